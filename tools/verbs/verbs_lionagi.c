/* annal lionagi: sessions, branches and messages, of the pack lionagi. */
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "tools/cli/out.h"
#include "tools/cli/verbs.h"

#include <annal/pack.h>
#include <annal/process.h>

#include <string.h>
#include <sys/random.h>

/* ---- Ids ---- */

enum { UUID_BYTES = 37 };

static int new_uuid(char out[UUID_BYTES])
{
    unsigned char b[16];
    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        return fail_storage("the system gives no random bytes");
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(out, UUID_BYTES,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
    return 0;
}

/* Where the caller named none. */
static int prepare_id(struct verb_call *call)
{
    char id[UUID_BYTES];
    if (verb_member(call, "id").len > 0)
        return 0;
    int exit_status = new_uuid(id);
    return exit_status != 0 ? exit_status : verb_set_text(call, "id", annal_slice_of(id));
}

/* ---- Messages ---- */

static int note_row(void *arg, const annal_row *row)
{
    (void)row;
    *(bool *)arg = true;
    return 0;
}

/*
 * A class is given its number once, in session _state. Of several who meet it first one gives it,
 * and the others are refused, which is as good.
 */
static annal_status register_class(struct verb_call *call, const char *class, annal_error *err)
{
    annal_writer *writer = NULL;
    struct buf data = {0};
    bool known = false;
    const annal_value param = {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(class)};
    const annal_sql_options asked = {.params = &param, .param_count = 1};
    annal_status status =
        annal_sql(call->index, ANNAL_SLICE("SELECT 1 FROM message_types WHERE lion_class = ?1"),
                  &asked, note_row, &known, err);
    if (status < 0 || known)
        return status;
    if (annal__buf_printf(&data, "{\"lion_class\":") < 0 ||
        annal__json_quote(&data, annal_slice_of(class)) < 0 || annal__buf_append(&data, "}", 1) < 0)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "class '%s'", class);
    if (status >= 0)
        status = annal_writer_open(call->store, ANNAL_SLICE("_state"), NULL, &writer, err);
    if (status >= 0) {
        const annal_draft draft = {.type = ANNAL_SLICE("message_type.registered"),
                                   .data = annal__buf_slice(&data)};
        status = annal_pack_append(call->index, writer, &draft, 1, NULL, NULL, err);
    }
    annal_writer_close(writer);
    annal__buf_done(&data);
    return status == ANNAL_ERR_REFUSED ? ANNAL_OK : status;
}

static int prepare_message(struct verb_call *call)
{
    annal_error err = {0};
    const char *class = verb_text(call->args, "class");
    int exit_status = prepare_id(call);
    if (exit_status == 0 && class != NULL && register_class(call, class, &err) < 0)
        exit_status = fail_error(&err);
    return exit_status;
}

/* ---- Processes ---- */

/* --pid N: the facts that tell that process from all others, so that its death can be proven. */
static int prepare_process(struct verb_call *call)
{
    char json[ANNAL_PROCESS_JSON_BYTES];
    uint64_t pid = 0;
    annal_process process;
    annal_error err = {0};
    const char *text = verb_text(call->args, "pid");
    if (text == NULL)
        return 0;
    if (!parse_number(text, &pid) || pid == 0 || pid > INT32_MAX)
        return fail_usage("--pid needs the id of a process, and was given '%s'", text);
    if (annal_process_get((uint32_t)pid, &process, &err) < 0)
        return fail_error(&err);
    return verb_set(call, "process", annal_slice_of(annal_process_json(&process, json)));
}

/* A session runs from when it is created, unless it is said when it began. */
static int prepare_session(struct verb_call *call)
{
    char text[ANNAL_TIME_BYTES];
    annal_slice created = verb_member(call, "created_at");
    int exit_status = prepare_process(call);
    if (exit_status != 0 || verb_member(call, "started_at").len > 0)
        return exit_status;
    if (created.len > 0)
        return verb_set(call, "started_at", created);
    annal_time_format(annal__system_clock.wall_us(annal__system_clock.arg), text);
    exit_status = verb_set_text(call, "created_at", annal_slice_of(text));
    return exit_status == 0 ? verb_set_text(call, "started_at", annal_slice_of(text)) : exit_status;
}

/* ---- Fields ---- */

static const struct field session_fields[] = {
    OPERAND("SESSION", FIELD_TEXT, "id", "its id"),
    OPTION("name", "NAME", FIELD_TEXT, "name", "what people call it"),
    OPTION("user", "USER", FIELD_TEXT, "user", "whose it is"),
    OPTION("metadata", "JSON", FIELD_JSON, "node_metadata", "anything"),
    OPTION("progression", "ID", FIELD_TEXT, "progression_id", "of its messages (the session's id)"),
    OPTION_WITH("kind", "KIND", FIELD_TEXT, "invocation_kind", "what ran",
                .choices = "agent|play|flow|fanout|show-play"),
    OPTION("agent", "NAME", FIELD_TEXT, "agent_name", "which agent"),
    OPTION("playbook", "NAME", FIELD_TEXT, "playbook_name", "which playbook"),
    OPTION("show-topic", "TEXT", FIELD_TEXT, "show_topic", "of a show"),
    OPTION("show-play", "NAME", FIELD_TEXT, "show_play_name", "the play in that show"),
    OPTION("artifacts", "DIR", FIELD_TEXT, "artifacts_path", "where its artifacts are"),
    OPTION_WITH("status", "STATUS", FIELD_TEXT, "status", "running, unless it is given",
                .preset = "\"running\"",
                .choices = "running|completed|failed|timed_out|aborted|cancelled"),
    OPTION("created", "TIME", FIELD_TIME, "created_at", "now, unless it is given"),
    OPTION("started", "TIME", FIELD_TIME, "started_at", "when it began to run (when created)"),
    OPTION("pid", "PID", FIELD_NUMBER, NULL, "the process that runs it, such as $$"),
    FIELDS_END};

static const struct field open_fields[] = {
    OPERAND("SESSION", FIELD_TEXT, NULL, "the session"),
    OPTION_MUST("pid", "PID", FIELD_NUMBER, NULL, "the process that runs it now, such as $$"),
    FIELDS_END};

static const struct field set_fields[] = {
    OPERAND("SESSION", FIELD_TEXT, NULL, "the session"),
    OPTION("name", "NAME", FIELD_TEXT, "set.name", "what people call it"),
    OPTION("user", "USER", FIELD_TEXT, "set.user", "whose it is"),
    OPTION("metadata", "JSON", FIELD_JSON, "set.node_metadata", "in the place of what was there"),
    OPTION("agent", "NAME", FIELD_TEXT, "set.agent_name", "which agent"),
    OPTION("playbook", "NAME", FIELD_TEXT, "set.playbook_name", "which playbook"),
    OPTION("artifacts", "DIR", FIELD_TEXT, "set.artifacts_path", "where its artifacts are"),
    OPTION("health", "WORD", FIELD_TEXT, "set.health", "second axis of its state"),
    OPTION("delivery", "WORD", FIELD_TEXT, "set.delivery", "third axis of its state"),
    FIELDS_END};

static const struct field transition_fields[] = {
    OPERAND("SESSION", FIELD_TEXT, NULL, "the session"),
    OPERAND("STATUS", FIELD_TEXT, "to", "its status from now on"),
    OPTION("expect", "STATUS", FIELD_LIST, "expected", "refuse unless it is this now; repeat it"),
    OPTION("reason-code", "CODE", FIELD_TEXT, "reason_code", "why, for programs"),
    OPTION("reason", "TEXT", FIELD_TEXT, "reason_summary", "why, for people"),
    OPTION_WITH("source", "WHO", FIELD_TEXT, "source", "who says so (executor)",
                .preset = "\"executor\"", .choices = "executor|agent|admin|system"),
    OPTION("actor", "NAME", FIELD_TEXT, "actor", "their name"),
    OPTION("evidence", "JSON", FIELD_JSON, "evidence_refs", "what shows it"),
    OPTION("ended", "TIME", FIELD_TIME, "ended_at", "now, unless it is given"),
    FLAG("override", "override", "also out of a status that ends; needs a reason"),
    FIELDS_END};

static const struct field branch_fields[] = {
    OPERAND("SESSION", FIELD_TEXT, NULL, "the session"),
    OPTION("id", "ID", FIELD_TEXT, "id", "the branch's id (a new UUID)"),
    OPTION("name", "NAME", FIELD_TEXT, "name", "what people call it"),
    OPTION("user", "USER", FIELD_TEXT, "user", "whose it is"),
    OPTION("metadata", "JSON", FIELD_JSON, "node_metadata", "provider, model, tools, effort"),
    OPTION("progression", "ID", FIELD_TEXT, "progression_id", "of its messages (the branch's id)"),
    OPTION("system", "MESSAGE", FIELD_TEXT, "system_msg_id", "its system message"),
    FIELDS_END};

static const struct field fork_fields[] = {
    OPERAND("SESSION", FIELD_TEXT, NULL, "the session"),
    OPERAND("BRANCH", FIELD_TEXT, "parent_branch_id", "from which it forks"),
    OPTION("at", "N", FIELD_NUMBER, "forked_at_ord", "it has the first N of its history (all)"),
    OPTION("id", "ID", FIELD_TEXT, "id", "the new branch's id (a new UUID)"),
    OPTION("name", "NAME", FIELD_TEXT, "name", "what people call it"),
    OPTION("user", "USER", FIELD_TEXT, "user", "whose it is"),
    OPTION("metadata", "JSON", FIELD_JSON, "node_metadata", "provider, model, tools, effort"),
    FIELDS_END};

static const struct field system_fields[] = {
    OPERAND("SESSION", FIELD_TEXT, NULL, "the session"),
    OPERAND("BRANCH", FIELD_TEXT, "id", "the branch"),
    OPERAND("MESSAGE", FIELD_TEXT, "message_id", "its system message from now on"), FIELDS_END};

#define MESSAGE_OPTIONS                                                                            \
    OPTION("sender", "ID", FIELD_TEXT, "sender", "who says it"),                                   \
        OPTION("recipient", "ID", FIELD_TEXT, "recipient", "to whom"),                             \
        OPTION("channel", "NAME", FIELD_TEXT, "channel", "on which channel"),                      \
        OPTION("class", "NAME", FIELD_TEXT, "lion_class", "its class, a path of Python"),          \
        OPTION("metadata", "JSON", FIELD_JSON, "node_metadata", "anything"),                       \
        OPTION("embedding", "JSON", FIELD_JSON, "embedding", "an array of numbers"),               \
        OPTION("created", "TIME", FIELD_TIME, "created_at", "now, unless it is given")

static const struct field message_fields[] = {
    OPERAND("SESSION", FIELD_TEXT, NULL, "the session"),
    OPERAND("CONTENT", FIELD_JSON, "content", "JSON; @FILE and - read it"),
    OPTION_WITH("role", "ROLE", FIELD_TEXT, "role", "user, assistant, system, tool, ... (user)",
                .preset = "\"user\""),
    OPTION("branch", "ID", FIELD_TEXT, "branch_id", "the branch that it belongs to"),
    OPTION("id", "ID", FIELD_TEXT, "id", "the message's id (a new UUID)"),
    MESSAGE_OPTIONS,
    FIELDS_END};

static const struct field amend_fields[] = {
    OPERAND("SESSION", FIELD_TEXT, NULL, "the session"),
    OPERAND("MESSAGE", FIELD_TEXT, "id", "the message"),
    OPTION("content", "JSON", FIELD_JSON, "content", "its content from now on"),
    OPTION("role", "ROLE", FIELD_TEXT, "role", "its role from now on"),
    MESSAGE_OPTIONS,
    FIELDS_END};

static const struct field class_fields[] = {
    OPERAND("CLASS", FIELD_TEXT, "lion_class", "a path of Python"), FIELDS_END};

static const struct field history_fields[] = {OPERAND("BRANCH", FIELD_TEXT, NULL, "the branch"),
                                              FIELDS_END};

static const struct field branches_fields[] = {OPERAND("SESSION", FIELD_TEXT, NULL, "the session"),
                                               FIELDS_END};

static const struct field inbox_fields[] = {
    OPERAND("RECIPIENT", FIELD_TEXT, NULL, "to whom"),
    OPTION("channel", "NAME", FIELD_TEXT, NULL, "only on this channel"), FIELDS_END};

static const struct field similar_fields[] = {
    OPERAND("VECTOR", FIELD_JSON, NULL, "an array of numbers; @FILE and - read it"),
    OPTION_WITH("limit", "N", FIELD_NUMBER, NULL, "at most so many (10)", .preset = "10"),
    FIELDS_END};

/* ---- Verbs ---- */

static const struct command verbs[] = {
    {.name = "session",
     .summary = "begin a session",
     .about = "Its row in the table sessions of state.db, and its progression. With --pid the\n"
              "process is recorded, so that 'annal doctor --transition-stale' can prove its\n"
              "death.",
     .examples = "  annal lionagi session run-1 --kind agent --agent analyst --pid $$\n",
     .fields = session_fields,
     .type = "session.created",
     .session = "{SESSION}",
     .said = "session {SESSION} is {status}",
     .prepare = prepare_session,
     .run = verb_append},
    {.name = "open",
     .summary = "say which process runs a session from now on",
     .about = "For a session that is taken up again: what was recorded of the process before is\n"
              "replaced, so that nobody takes the session for one whose process died.",
     .examples = "  annal lionagi open run-1 --pid $$\n",
     .fields = open_fields,
     .type = "session.opened",
     .session = "{SESSION}",
     .said = "session {SESSION} is run by process {pid}",
     .prepare = prepare_process,
     .run = verb_append},
    {.name = "set",
     .summary = "change what a session is called and where it comes from",
     .about = "Is no sign of life: last_message_at stays. Its status has a verb of its own,\n"
              "transition.",
     .examples = "  annal lionagi set run-1 --name \"tide table\"\n",
     .fields = set_fields,
     .type = "session.updated",
     .session = "{SESSION}",
     .said = "session {SESSION} is changed",
     .run = verb_append},
    {.name = "transition",
     .summary = "change the status of a session",
     .about = "Only running has a way on; what has ended stays so, unless --override is given\n"
              "with a reason. STATUS is running, completed, failed, timed_out, aborted or\n"
              "cancelled. Each change is kept in status_transitions.",
     .examples = "  annal lionagi transition run-1 completed --expect running\n"
                 "  annal lionagi transition run-1 running --override --reason \"was cut off\"\n",
     .fields = transition_fields,
     .type = "session.transition",
     .session = "{SESSION}",
     .said = "session {SESSION} is {to}",
     .run = verb_append},
    {.name = "branch",
     .summary = "add a branch to a session",
     .about = "A branch is a progression with a name: messages in their order.",
     .examples = "  annal lionagi branch run-1 --id b1 --name main\n",
     .fields = branch_fields,
     .type = "branch.created",
     .session = "{SESSION}",
     .said = "branch {id} of {SESSION}",
     .prepare = prepare_id,
     .run = verb_append},
    {.name = "fork",
     .summary = "fork a branch",
     .about = "The new branch has the first N messages of the other's history, what that\n"
              "inherits included. Nothing is copied.",
     .examples = "  annal lionagi fork run-1 b1 --at 4 --id b2\n",
     .fields = fork_fields,
     .type = "branch.forked",
     .session = "{SESSION}",
     .said = "branch {id} has the first {forked_at_ord} messages of {BRANCH}",
     .prepare = prepare_id,
     .run = verb_append},
    {.name = "system",
     .summary = "say which message is the system message of a branch",
     .about = "The message itself stays where it is; the branch points at it.",
     .examples = "  annal lionagi system run-1 b1 m1\n",
     .fields = system_fields,
     .type = "branch.system_set",
     .session = "{SESSION}",
     .said = "system message of {BRANCH} is {MESSAGE}",
     .run = verb_append},
    {.name = "message",
     .summary = "add a message to a session, and to a branch",
     .about = "It is appended to the progression of the session and, with --branch, to that of\n"
              "the branch. The same id again overwrites the message. A class that was never\n"
              "seen gets the next number (message_types).",
     .examples = "  annal lionagi message run-1 '\"hello\"' --branch b1\n"
                 "  annal lionagi message run-1 @answer.json --role assistant --sender b1\n",
     .fields = message_fields,
     .type = "message.added",
     .session = "{SESSION}",
     .said = "message {id} of {SESSION}",
     .prepare = prepare_message,
     .run = verb_append},
    {.name = "amend",
     .summary = "change a message",
     .about = "What is not given stays. The journal keeps both.",
     .examples = "  annal lionagi amend run-1 m1 --content '\"hello, world\"'\n",
     .fields = amend_fields,
     .type = "message.amended",
     .session = "{SESSION}",
     .said = "message {MESSAGE} is changed",
     .prepare = prepare_message,
     .run = verb_append},
    {.name = "class",
     .summary = "give a class of messages its number",
     .about = "'annal lionagi message' does so by itself. A class that has a number is refused.",
     .examples = "  annal lionagi class my.module.Note\n",
     .fields = class_fields,
     .type = "message_type.registered",
     .session = "_state",
     .said = "{CLASS} is number {type_id}",
     .run = verb_append},
    {.name = "history",
     .summary = "print what a branch has, with what it inherits",
     .about = "The messages in their order. An id without a message is left out.",
     .examples = "  annal lionagi history b2\n",
     .fields = history_fields,
     .sql = "SELECT ord, id, role, sender, created_at, content FROM branch_messages "
            "WHERE branch_id = ?1 ORDER BY ord",
     .run = verb_select},
    {.name = "branches",
     .summary = "list the branches of a session",
     .about = "The oldest first, with how many messages each has of its own.",
     .examples = "  annal lionagi branches run-1\n",
     .fields = branches_fields,
     .sql = "SELECT b.id, b.name, b.created_at, b.parent_branch_id, b.forked_at_ord, "
            "(SELECT COALESCE(MAX(ord) + 1, 0) FROM progression_items "
            "WHERE progression_id = b.progression_id) AS messages, b.system_msg_id FROM branches b "
            "WHERE b.session_id = ?1 ORDER BY b.created_at, b.id",
     .run = verb_select},
    {.name = "inbox",
     .summary = "list the messages to somebody",
     .about = "Of all sessions, by time.",
     .examples = "  annal lionagi inbox b1 --channel review\n",
     .fields = inbox_fields,
     .sql = "SELECT id, created_at, sender, channel, role, content, session_id FROM messages "
            "WHERE recipient = ?1 AND (?2 IS NULL OR channel = ?2) ORDER BY created_at, id",
     .run = verb_select},
    {.name = "similar",
     .summary = "list the messages whose embeddings are nearest",
     .about = "By cosine distance, among those of the same number of dimensions.",
     .examples = "  annal lionagi similar '[0.1, 0.9]' --limit 3\n",
     .fields = similar_fields,
     .sql = "SELECT id, vec_distance_cosine(embedding, annal_f32(?1)) AS distance, session_id, "
            "content FROM messages WHERE length(embedding) = length(annal_f32(?1)) "
            "ORDER BY distance, id LIMIT ?2",
     .run = verb_select},
    {0}};

const struct noun noun_lionagi = {.name = "lionagi",
                                  .summary = "sessions, branches and messages of lionagi",
                                  .pack = "lionagi",
                                  .verbs = verbs};
