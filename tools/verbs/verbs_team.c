/* annal team: teams and their messages, of the pack teams. */
#include "tools/verbs/team.h"

#include "journal/base/buf.h"
#include "journal/base/json.h"
#include "tools/cli/rows.h"

#include <annal/pack.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- Asking ---- */

int team_rows(struct verb_call *call, const char *sql, const annal_value *params, size_t count,
              annal_row_fn fn, void *arg)
{
    annal_error err = {0};
    const annal_sql_options options = {.params = params, .param_count = count};
    annal_status status = annal_sql(call->index, annal_slice_of(sql), &options, fn, arg, &err);
    return status < 0 ? fail_error(&err) : 0;
}

static annal_value text_value(const char *text)
{
    if (text == NULL)
        return (annal_value){.kind = ANNAL_VALUE_NULL};
    return (annal_value){.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(text)};
}

static annal_value slice_value(annal_slice text)
{
    return (annal_value){.kind = ANNAL_VALUE_TEXT, .bytes = text};
}

/* The first value of the last row, as text; arg is a struct buf. */
static int keep_value(void *arg, const annal_row *row)
{
    struct buf *text = arg;
    annal__buf_clear(text);
    if (row->values[0].kind != ANNAL_VALUE_TEXT)
        return 0;
    return annal__buf_append_slice(text, row->values[0].bytes) < 0 ? ANNAL_ERR_NOMEM : 0;
}

/* ---- Which team ---- */

struct choice {
    char id[TEAM_ID_BYTES_MAX + 1];
    bool exact;
    uint64_t count;
    char named[300]; /* of those it may mean */
};

static int choose(void *arg, const annal_row *row)
{
    struct choice *choice = arg;
    annal_slice id = row->values[0].bytes, name = row->values[1].bytes;
    bool exact = row->values[2].integer != 0;
    size_t len = strlen(choice->named);
    if (choice->exact || id.len > TEAM_ID_BYTES_MAX)
        return 0;
    choice->exact = exact;
    choice->count++;
    snprintf(choice->id, sizeof choice->id, "%.*s", ANNAL_FMT(id));
    snprintf(choice->named + len, sizeof choice->named - len, "%s%.*s (%.*s)", len > 0 ? ", " : "",
             ANNAL_FMT(id), ANNAL_FMT(name));
    return 0;
}

int team_find(struct verb_call *call, const char *word, char out_id[TEAM_ID_BYTES_MAX + 1])
{
    static const char sql[] = "SELECT id, name, id = ?1 FROM teams "
                              "WHERE name = ?1 OR substr(id, 1, length(?1)) = ?1 "
                              "ORDER BY id = ?1 DESC, id";
    struct choice choice = {0};
    const annal_value param = text_value(word);
    int exit_status = team_rows(call, sql, &param, 1, choose, &choice);
    if (exit_status != 0)
        return exit_status;
    if (choice.count == 0)
        return fail_refused("there is no team '%s'", word);
    if (choice.count > 1)
        return fail_refused("'%s' may mean %" PRIu64 " teams: %s", word, choice.count,
                            choice.named);
    memcpy(out_id, choice.id, sizeof choice.id);
    return 0;
}

/* The team of the operand TEAM, whose session the event will be in. */
static int take_team(struct verb_call *call, char id[TEAM_ID_BYTES_MAX + 1])
{
    int exit_status = team_find(call, verb_text(call->args, "TEAM"), id);
    return exit_status != 0 ? exit_status : verb_set_session(call, "team_%s", id);
}

static int prepare_team(struct verb_call *call)
{
    char id[TEAM_ID_BYTES_MAX + 1];
    return take_team(call, id);
}

int team_new_id(char out[13])
{
    unsigned char bytes[6];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return fail_storage("the system gives no random bytes");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* ---- create ---- */

static int prepare_create(struct verb_call *call)
{
    char made[13];
    const char *id = verb_text(call->args, "id");
    int exit_status = id == NULL ? team_new_id(made) : 0;
    if (id == NULL)
        id = made;
    if (exit_status == 0)
        exit_status = verb_set_text(call, "id", annal_slice_of(id));
    return exit_status != 0 ? exit_status : verb_set_session(call, "team_%s", id);
}

static const struct field create_fields[] = {
    OPERAND("NAME", FIELD_TEXT, "name", "what people call it"),
    OPTION("member", "NAME", FIELD_LIST, "members", "a member; repeat it"),
    OPTION("id", "ID", FIELD_TEXT, "id", "its id (12 random hex digits)"),
    OPTION("metadata", "JSON", FIELD_JSON, "node_metadata", "configuration, coordination mode"),
    FIELDS_END};

/* ---- send ---- */

/* --to bob --to alice,carol: names, as a list; "all" when there is none. */
static int set_recipients(struct verb_call *call)
{
    struct buf list = {0};
    int exit_status = 0;
    const char *word;
    bool failed = annal__buf_append(&list, "[", 1) < 0;
    for (int at = 0; (word = verb_next(call->args, "to", &at)) != NULL;) {
        while (*word != '\0' && !failed) {
            size_t len = strcspn(word, ",");
            annal_slice name = {word, len};
            while (name.len > 0 && name.ptr[0] == ' ')
                name = (annal_slice){name.ptr + 1, name.len - 1};
            while (name.len > 0 && name.ptr[name.len - 1] == ' ')
                name.len--;
            if (name.len > 0)
                failed = (list.len > 1 && annal__buf_append(&list, ",", 1) < 0) ||
                         annal__json_quote(&list, name) < 0;
            word += len + (word[len] == ',' ? 1 : 0);
        }
    }
    if (failed)
        exit_status = fail_storage("--to: out of memory");
    else if (list.len <= 1)
        exit_status = verb_set_text(call, "to", ANNAL_SLICE("all"));
    else if (annal__buf_append(&list, "]", 1) < 0)
        exit_status = fail_storage("--to: out of memory");
    else
        exit_status = verb_set(call, "to", annal__buf_slice(&list));
    annal__buf_done(&list);
    return exit_status;
}

static int warn_of_stranger(void *arg, const annal_row *row)
{
    say("'%.*s' is no member of team %s", ANNAL_FMT(row->values[0].bytes), (const char *)arg);
    return 0;
}

/* Say which of these (a name, a list: JSON) are no members; the command itself and the system are
 * no strangers. */
static int warn_of_strangers(struct verb_call *call, char *team, annal_slice name, annal_slice list)
{
    static const char sql[] =
        "SELECT DISTINCT value FROM ("
        " SELECT ?2 ->> '$' AS value UNION ALL SELECT value FROM json_each(?3)) "
        "WHERE value NOT IN ('all', '*', '_cli', 'system') AND value NOT IN ("
        " SELECT m.value FROM teams t, json_each(t.members) m WHERE t.id = ?1)";
    const annal_value params[] = {text_value(team), slice_value(name), slice_value(list)};
    return team_rows(call, sql, params, 3, warn_of_stranger, team);
}

/* Whether the session that the message belongs to is there: a handler cannot look. */
static int look_for_session(struct verb_call *call)
{
    struct buf found = {0};
    const char *session = verb_text(call->args, "session");
    if (session == NULL)
        session = getenv("ANNAL_SESSION");
    if (session == NULL || session[0] == '\0')
        return 0;
    const annal_value param = text_value(session);
    int exit_status =
        team_rows(call, "SELECT name FROM state.sqlite_master WHERE name = 'sessions'", NULL, 0,
                  keep_value, &found);
    bool of_pack = found.len > 0;
    annal__buf_clear(&found);
    if (exit_status == 0)
        exit_status = team_rows(call,
                                of_pack ? "SELECT id FROM state.sessions WHERE id = ?1"
                                        : "SELECT id FROM main.sessions WHERE id = ?1",
                                &param, 1, keep_value, &found);
    if (exit_status == 0)
        exit_status = verb_set_text(call, "session_id", annal_slice_of(session));
    if (exit_status == 0 && found.len == 0) {
        say("there is no session '%s': the message is stored without a link to it", session);
        exit_status = verb_set(call, "session_known", ANNAL_SLICE("false"));
    }
    annal__buf_done(&found);
    return exit_status;
}

static int prepare_send(struct verb_call *call)
{
    char team[TEAM_ID_BYTES_MAX + 1], id[13];
    int exit_status = take_team(call, team);
    if (exit_status == 0 && verb_text(call->args, "id") == NULL) {
        exit_status = team_new_id(id);
        if (exit_status == 0)
            exit_status = verb_set_text(call, "id", annal_slice_of(id));
    }
    if (exit_status == 0)
        exit_status = set_recipients(call);
    if (exit_status == 0)
        exit_status = look_for_session(call);
    if (exit_status == 0)
        exit_status =
            warn_of_strangers(call, team, verb_member(call, "sender"), verb_member(call, "to"));
    return exit_status;
}

static const struct field send_fields[] = {
    OPERAND("TEAM", FIELD_TEXT, NULL, "its id, the beginning of it, or its name"),
    OPERAND("TEXT", FIELD_BODY, "content", "what to say; - reads standard input"),
    OPTION_WITH("from", "NAME", FIELD_TEXT, "sender", "who says it (_cli)", .preset = "\"_cli\""),
    OPTION("to", "NAME", FIELD_LIST, "to", "to whom; repeat it, or separate by commas (all)"),
    OPTION("summary", "TEXT", FIELD_TEXT, "summary", "one line, for what is long"),
    OPTION("session", "SESSION", FIELD_TEXT, NULL, "whose work it is about ($ANNAL_SESSION)"),
    OPTION("from-op", "OP", FIELD_TEXT, "from_op", "the operation it belongs to"),
    OPTION("id", "ID", FIELD_TEXT, "id", "the message's id (12 random hex digits)"),
    FIELDS_END};

/* ---- Messages, printed ---- */

static void print_lines(annal_slice text)
{
    while (text.len > 0) {
        const char *newline = memchr(text.ptr, '\n', text.len);
        size_t len = newline == NULL ? text.len : (size_t)(newline - text.ptr);
        fputs("  ", stdout);
        out_plain((annal_slice){text.ptr, len});
        fputc('\n', stdout);
        len += newline == NULL ? 0 : 1;
        text = (annal_slice){text.ptr + len, text.len - len};
    }
}

/* id, at, sender, recipient, read_by, text */
static int print_message(void *arg, const annal_row *row)
{
    uint64_t *count = arg;
    const annal_value *values = row->values;
    ++*count;
    printf("[");
    out_plain(values[1].bytes);
    printf("] ");
    out_plain(values[2].bytes);
    printf(" to ");
    out_plain(values[3].bytes);
    printf("  (");
    out_plain(values[0].bytes);
    if (values[4].bytes.len > 2) {
        printf(", read by ");
        out_plain((annal_slice){values[4].bytes.ptr + 1, values[4].bytes.len - 2});
    }
    printf(")\n");
    print_lines(values[5].bytes);
    return 0;
}

/* The messages among ids (a JSON array; NULL: all), with JSON one object a line. */
static int print_messages(struct verb_call *call, const char *team, const annal_slice *ids,
                          bool full, uint64_t *out_count)
{
    static const char for_people[] =
        "SELECT id, strftime('%Y-%m-%d %H:%M:%S', created_at, 'unixepoch'), sender, recipient,"
        " read_by, CASE WHEN ?3 THEN content ELSE COALESCE(summary,"
        "  CASE WHEN length(content) > 200 THEN substr(content, 1, 200) || '…' ELSE content END)"
        " END "
        "FROM team_messages WHERE team_id = ?1"
        " AND (?2 IS NULL OR id IN (SELECT value FROM json_each(?2))) ORDER BY created_at, id";
    static const char for_programs[] =
        "SELECT id, team_id, created_at, sender, recipient, content, summary, read_by, session_id,"
        " from_op FROM team_messages WHERE team_id = ?1 AND ?3 IS NOT NULL"
        " AND (?2 IS NULL OR id IN (SELECT value FROM json_each(?2))) ORDER BY created_at, id";
    const annal_value params[] = {
        text_value(team), ids == NULL ? (annal_value){.kind = ANNAL_VALUE_NULL} : slice_value(*ids),
        (annal_value){.kind = ANNAL_VALUE_INTEGER, .integer = full}};
    struct rows rows = {.format = OUT_JSONL};
    *out_count = 0;
    if (!call->args->json)
        return team_rows(call, for_people, params, 3, print_message, out_count);
    annal_error err = {0};
    const annal_sql_options options = {.params = params, .param_count = 3, .columns = rows_columns};
    annal_status status =
        annal_sql(call->index, annal_slice_of(for_programs), &options, rows_row, &rows, &err);
    rows_done(&rows);
    return status < 0 ? fail_error(&err) : 0;
}

/* ---- inbox ---- */

/* What the member has not read, as a JSON array of ids. */
static int select_unread(struct verb_call *call, const char *team, const char *member,
                         struct buf *out_ids)
{
    static const char sql[] =
        "SELECT json_group_array(id) FROM (SELECT m.id FROM team_messages m "
        "WHERE m.team_id = ?1 AND (?2 IS NULL OR (m.sender <> ?2"
        " AND (m.recipient = 'all' OR instr(',' || m.recipient || ',', ',' || ?2 || ','))"
        " AND NOT EXISTS (SELECT 1 FROM x_team_reads r WHERE r.message_id = m.id"
        "                 AND r.member = ?2))) ORDER BY m.created_at, m.id)";
    const annal_value params[] = {text_value(team), text_value(member)};
    return team_rows(call, sql, params, 2, keep_value, out_ids);
}

/*
 * Mark what was found, and find anew when somebody else who reads as this member was quicker: each
 * message is handed out once.
 */
static int take_unread(struct verb_call *call, const char *team, const char *member,
                       struct buf *ids)
{
    for (;;) {
        annal_error err = {0};
        int exit_status = select_unread(call, team, member, ids);
        bool marks = member != NULL && !args_has(call->args, "peek") && ids->len > 2;
        if (exit_status != 0 || !marks)
            return exit_status;
        exit_status = verb_set(call, "message_ids", annal__buf_slice(ids));
        if (exit_status == 0)
            exit_status = verb_set_text(call, "member", annal_slice_of(member));
        if (exit_status != 0)
            return exit_status;
        annal_status status = verb_try(call, &err);
        if (status != ANNAL_ERR_REFUSED)
            return status < 0 ? fail_error(&err) : 0;
    }
}

static int warn_of_stranger_here(struct verb_call *call, char *team, const char *member)
{
    struct buf name = {0};
    int exit_status =
        annal__json_quote(&name, annal_slice_of(member)) < 0
            ? fail_storage("--as: out of memory")
            : warn_of_strangers(call, team, annal__buf_slice(&name), ANNAL_SLICE("[]"));
    annal__buf_done(&name);
    return exit_status;
}

static int run_inbox(const struct args *args)
{
    struct verb_call call;
    struct buf ids = {0};
    char team[TEAM_ID_BYTES_MAX + 1];
    const char *member = verb_text(args, "as");
    uint64_t count = 0;
    int exit_status = verb_open(&call, args);
    if (exit_status == 0 && member != NULL && member[0] == '\0')
        exit_status = fail_usage("--as needs the name of a member, and was given none");
    if (exit_status == 0)
        exit_status = take_team(&call, team);
    if (exit_status == 0 && member != NULL)
        exit_status = warn_of_stranger_here(&call, team, member);
    if (exit_status == 0)
        exit_status = take_unread(&call, team, member, &ids);
    const annal_slice found = annal__buf_slice(&ids);
    if (exit_status == 0)
        exit_status = print_messages(&call, team, &found, true, &count);
    if (exit_status == 0 && !args->json)
        printf(count == 0   ? "no new messages\n"
               : count == 1 ? "(1 message)\n"
                            : "(%" PRIu64 " messages)\n",
               count);
    annal__buf_done(&ids);
    return verb_close(&call, exit_status);
}

static const struct field inbox_fields[] = {
    OPERAND("TEAM", FIELD_TEXT, NULL, "its id, the beginning of it, or its name"),
    OPTION("as", "NAME", FIELD_TEXT, NULL, "read as this member; else all are shown, none marked"),
    FLAG("peek", NULL, "mark nothing"), FIELDS_END};

/* ---- read ---- */

static const struct field read_fields[] = {
    OPERAND("TEAM", FIELD_TEXT, NULL, "its id, the beginning of it, or its name"),
    OPERAND("MESSAGE", FIELD_LIST, "message_ids", "the ids of messages"),
    OPTION_MUST("as", "NAME", FIELD_TEXT, "member", "who has read them"), FIELDS_END};

/* ---- members ---- */

static const char member_rows[] =
    "SELECT m.value AS member,"
    " (SELECT count(*) FROM team_messages g WHERE g.team_id = t.id AND g.sender = m.value) AS sent,"
    " (SELECT count(*) FROM team_messages g WHERE g.team_id = t.id AND g.sender <> m.value"
    "  AND (g.recipient = 'all' OR instr(',' || g.recipient || ',', ',' || m.value || ','))"
    "  AND NOT EXISTS (SELECT 1 FROM x_team_reads r"
    "                  WHERE r.message_id = g.id AND r.member = m.value)) AS unread "
    "FROM teams t, json_each(t.members) m WHERE t.id = ?1 ORDER BY m.key";

/* The rows of a SELECT whose ?1 is the team. */
static int print_rows(struct verb_call *call, const char *team, const char *sql)
{
    struct rows rows = {.format = call->args->json ? OUT_JSONL : OUT_TABLE};
    const annal_value param = text_value(team);
    const annal_sql_options options = {.params = &param, .param_count = 1, .columns = rows_columns};
    annal_error err = {0};
    annal_status status =
        annal_sql(call->index, annal_slice_of(sql), &options, rows_row, &rows, &err);
    rows_done(&rows);
    return status < 0 ? fail_error(&err) : 0;
}

static int run_members(const struct args *args)
{
    struct verb_call call;
    char team[TEAM_ID_BYTES_MAX + 1];
    bool changes = args_has(args, "add") || args_has(args, "remove");
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = take_team(&call, team);
    if (exit_status == 0 && changes)
        exit_status = verb_post(&call);
    if (exit_status == 0 && changes && args->json)
        verb_print(&call);
    else if (exit_status == 0)
        exit_status = print_rows(&call, team, member_rows);
    return verb_close(&call, exit_status);
}

static const struct field members_fields[] = {
    OPERAND("TEAM", FIELD_TEXT, NULL, "its id, the beginning of it, or its name"),
    OPTION("add", "NAME", FIELD_LIST, "add", "who joins; repeat it"),
    OPTION("remove", "NAME", FIELD_LIST, "remove", "who leaves; repeat it"), FIELDS_END};

/* ---- archive, delete, rename ---- */

static const struct field reason_fields[] = {
    OPERAND("TEAM", FIELD_TEXT, NULL, "its id, the beginning of it, or its name"),
    OPTION("reason", "TEXT", FIELD_TEXT, "reason", "why"), FIELDS_END};

static const struct field rename_fields[] = {
    OPERAND("TEAM", FIELD_TEXT, NULL, "its id, the beginning of it, or its name"),
    OPERAND("NAME", FIELD_TEXT, "name", "the new name"), FIELDS_END};

/* ---- ls, show, timeline ---- */

static const struct field ls_fields[] = {OPTION_WITH("status", "STATUS", FIELD_TEXT, NULL,
                                                     "active or archived (both)",
                                                     .choices = "active|archived"),
                                         FIELDS_END};

static const char list_rows[] =
    "SELECT id, name, status, member_count, members,"
    " (SELECT count(*) FROM team_messages m WHERE m.team_id = t.id) AS messages,"
    " strftime('%Y-%m-%dT%H:%M:%SZ', updated_at, 'unixepoch') AS updated "
    "FROM teams t WHERE ?1 IS NULL OR status = ?1 ORDER BY t.updated_at DESC, id";

static const char show_row[] =
    "SELECT id, name, status, member_count, members, node_metadata,"
    " strftime('%Y-%m-%dT%H:%M:%SZ', created_at, 'unixepoch') AS created,"
    " strftime('%Y-%m-%dT%H:%M:%SZ', updated_at, 'unixepoch') AS updated,"
    " (SELECT json_group_array(session_id) FROM (SELECT session_id FROM team_sessions s"
    "  WHERE s.team_id = t.id ORDER BY first_at, session_id)) AS sessions "
    "FROM teams t WHERE id = ?1";

static int run_show(const struct args *args)
{
    struct verb_call call;
    char team[TEAM_ID_BYTES_MAX + 1];
    uint64_t count = 0;
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = team_find(&call, verb_text(args, "TEAM"), team);
    const annal_value param = text_value(team);
    if (exit_status == 0 && args->json)
        exit_status = print_rows(&call, team, show_row);
    else if (exit_status == 0)
        exit_status = team_rows(&call, show_row, &param, 1, rows_print_lines, NULL);
    if (exit_status == 0 && !args->json)
        printf("\n");
    if (exit_status == 0)
        exit_status = print_messages(&call, team, NULL, args_has(args, "full"), &count);
    return verb_close(&call, exit_status);
}

static const struct field show_fields[] = {
    OPERAND("TEAM", FIELD_TEXT, NULL, "its id, the beginning of it, or its name"),
    FLAG("full", NULL, "messages in full, not their summaries"), FIELDS_END};

/* By time; of the same time by session and seq. */
static const char timeline_rows[] =
    "WITH told(session) AS (SELECT 'team_' || ?1 UNION"
    " SELECT session_id FROM team_messages WHERE team_id = ?1 AND session_id IS NOT NULL) "
    "SELECT e.timestamp, e.session_id, e.seq, e.type,"
    " COALESCE(e.data ->> '$.sender', e.data ->> '$.role', e.data ->> '$.member') AS who,"
    " substr(COALESCE(e.data ->> '$.summary', e.data ->> '$.content', e.data ->> '$.name',"
    "  e.data ->> '$.to', ''), 1, 200) AS what "
    "FROM told CROSS JOIN events e ON e.session_id = told.session "
    "WHERE e.type GLOB 'team.*' OR e.type GLOB 'message.*' OR e.type GLOB 'session.*'"
    " OR e.type = 'run.transition' "
    "ORDER BY e.timestamp, e.session_id, e.seq";

static int run_timeline(const struct args *args)
{
    struct verb_call call;
    char team[TEAM_ID_BYTES_MAX + 1];
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = team_find(&call, verb_text(args, "TEAM"), team);
    if (exit_status == 0)
        exit_status = print_rows(&call, team, timeline_rows);
    return verb_close(&call, exit_status);
}

static const struct field team_fields[] = {
    OPERAND("TEAM", FIELD_TEXT, NULL, "its id, the beginning of it, or its name"), FIELDS_END};

/* ---- runs, dashboard ---- */

static const struct field runs_fields[] = {
    OPTION_WITH("health", "HEALTH", FIELD_TEXT, NULL, "only these",
                .choices = "healthy|idle|unresponsive|stale|orphaned|zombie"),
    OPTION("status", "STATUS", FIELD_TEXT, NULL, "only these: running, failed, ..."), FIELDS_END};

static const char run_rows[] =
    "SELECT session_id, name, invocation_kind, status, effective_health, last_message_at,"
    " message_count, duration_seconds FROM run_list "
    "WHERE (?1 IS NULL OR effective_health = ?1) AND (?2 IS NULL OR status = ?2) "
    "ORDER BY last_activity DESC, session_id";

static const struct field health_fields[] = {
    OPTION_WITH("by", "WHAT", FIELD_TEXT, NULL, "all, kind, show or team (all)",
                .preset = "\"all\"", .choices = "all|kind|show|team"),
    FIELDS_END};

/* Of no runs the worst is healthy. */
static const char health_rows[] =
    "WITH parts(id, session_id, health) AS ("
    "SELECT 'all', NULL, 'healthy' WHERE ?1 = 'all' UNION ALL "
    "SELECT 'all', session_id, effective_health FROM run_list WHERE ?1 = 'all' UNION ALL "
    "SELECT invocation_kind, session_id, effective_health FROM run_list WHERE ?1 = 'kind' UNION "
    "ALL "
    "SELECT s.show_topic, r.session_id, r.effective_health FROM run_list r JOIN state.sessions s ON"
    " s.id = r.session_id WHERE ?1 = 'show' AND s.show_topic IS NOT NULL UNION ALL "
    "SELECT t.id, r.session_id, COALESCE(r.effective_health, 'healthy') FROM teams t LEFT JOIN"
    " team_sessions m ON m.team_id = t.id LEFT JOIN run_list r ON r.session_id = m.session_id"
    " WHERE ?1 = 'team') "
    "SELECT g.id, w.health AS effective_health, g.runs, g.idle, g.unresponsive, g.stale,"
    " g.orphaned, g.zombie FROM (SELECT p.id, max(l.severity) AS worst,"
    " count(session_id) AS runs,"
    " count(session_id) FILTER (WHERE p.health = 'idle') AS idle,"
    " count(session_id) FILTER (WHERE p.health = 'unresponsive') AS unresponsive,"
    " count(session_id) FILTER (WHERE p.health = 'stale') AS stale,"
    " count(session_id) FILTER (WHERE p.health = 'orphaned') AS orphaned,"
    " count(session_id) FILTER (WHERE p.health = 'zombie') AS zombie "
    "FROM parts p JOIN health_levels l ON l.health = p.health GROUP BY p.id) g "
    "JOIN health_levels w ON w.severity = g.worst ORDER BY g.id";

static const struct field no_fields[] = {FIELDS_END};

/* ---- The noun ---- */

static const struct field import_fields[] = {
    OPERAND("FILE", FIELD_LIST, NULL, "JSON files of teams, or directories of them"), FIELDS_END};

static const struct field export_fields[] = {
    OPERAND_MAYBE("TEAM", FIELD_TEXT, NULL, "its id, the beginning of it, or its name (all)"),
    OPTION("to", "DIR", FIELD_TEXT, NULL, "write DIR/<id>.json (standard output)"), FIELDS_END};

static const struct command verbs[] = {
    {.name = "create",
     .summary = "make a team",
     .about = "Names of members have no comma, and are neither 'all' nor '*'.",
     .examples = "  annal team create review --member alice --member bob\n",
     .fields = create_fields,
     .type = "team.created",
     .said = "team {id}: {name}",
     .prepare = prepare_create,
     .run = verb_append},
    {.name = "send",
     .summary = "say something to a team",
     .about = "A sender or recipient who is no member is remarked on, and the message stored.\n"
              "With --session, or $ANNAL_SESSION, it is linked to the session whose work it is\n"
              "about: 'annal team timeline' shows both side by side.",
     .examples = "  annal team send review \"approve?\" --from alice --to bob\n"
                 "  git diff | annal team send review - --summary \"the diff\"\n",
     .fields = send_fields,
     .type = "team.message",
     .said = "message {id} to {to}",
     .prepare = prepare_send,
     .run = verb_append},
    {.name = "inbox",
     .summary = "print what a member has not read, and mark it as read",
     .about = "Each message is handed out once, also when several processes read as the same\n"
              "member. Without --as all messages are printed and none is marked.",
     .examples = "  annal team inbox review --as bob\n",
     .fields = inbox_fields,
     .type = "team.message_read",
     .run = run_inbox},
    {.name = "receive",
     .summary = "the same as inbox",
     .about = "See 'annal team help inbox'.",
     .examples = "  annal team receive review --as bob\n",
     .fields = inbox_fields,
     .type = "team.message_read",
     .run = run_inbox},
    {.name = "read",
     .summary = "mark messages as read",
     .about = "All of them or none: when the member has read one already, it is refused.",
     .examples = "  annal team read review 3f2a90c1d4e5 --as bob\n",
     .fields = read_fields,
     .type = "team.message_read",
     .said = "{member} has read {message_ids}",
     .prepare = prepare_team,
     .run = verb_append},
    {.name = "members",
     .summary = "who is in a team; who joins and leaves",
     .about = "Without options: each member, with what was sent and what is not read.",
     .examples = "  annal team members review --add carol --remove bob\n",
     .fields = members_fields,
     .type = "team.members_changed",
     .run = run_members},
    {.name = "rename",
     .summary = "give a team another name",
     .about = "Its id stays.",
     .examples = "  annal team rename review reviewers\n",
     .fields = rename_fields,
     .type = "team.renamed",
     .said = "team {TEAM} is {name} now",
     .prepare = prepare_team,
     .run = verb_append},
    {.name = "archive",
     .summary = "put a team away",
     .about = "Its messages stay; its members do not change any more.",
     .examples = "  annal team archive review --reason \"merged\"\n",
     .fields = reason_fields,
     .type = "team.archived",
     .said = "team {TEAM} is archived",
     .prepare = prepare_team,
     .run = verb_append},
    {.name = "delete",
     .summary = "take a team and its messages out of the tables",
     .about = "Its journal stays, and with it what was said: 'annal delete' removes that.",
     .examples = "  annal team delete review --reason \"made by mistake\"\n",
     .fields = reason_fields,
     .type = "team.deleted",
     .said = "team {TEAM} is deleted",
     .prepare = prepare_team,
     .run = verb_append},
    {.name = "ls",
     .summary = "list the teams, the last active one first",
     .about = "With their members, and how many messages each has.",
     .examples = "  annal team ls --status active\n",
     .fields = ls_fields,
     .sql = list_rows,
     .run = verb_select},
    {.name = "show",
     .summary = "one team with its messages",
     .about = "Long messages show their summary, or their first 200 characters.",
     .examples = "  annal team show review --full\n",
     .fields = show_fields,
     .run = run_show},
    {.name = "timeline",
     .summary = "a team's events beside those of its sessions",
     .about = "By time; of the same time by session and seq.",
     .examples = "  annal team timeline review\n",
     .fields = team_fields,
     .run = run_timeline},
    {.name = "runs",
     .summary = "list the sessions that run or ran, with their health",
     .about = "Of the packs lionagi and teams. A run whose process is alive is idle after an\n"
              "hour without a message, and unresponsive after 6 hours, or 12 for flow, fanout\n"
              "and show-play (the table stale_thresholds). One whose process is dead is stale,\n"
              "or orphaned when it has neither messages nor artifacts. Without --pid nobody\n"
              "knows whether a process is alive: after those hours the run is stale. A run\n"
              "that ended is healthy, and a zombie when it left *.lock files in its artifacts.\n"
              "'annal doctor --transition-stale' ends those whose process is dead.",
     .examples = "  annal team runs --health stale\n",
     .fields = runs_fields,
     .sql = run_rows,
     .run = verb_select},
    {.name = "health",
     .summary = "how runs are: the worst of them decides",
     .about = "One row for all runs, or for each kind, show or team. From the best to the\n"
              "worst: healthy, idle, unresponsive, stale, orphaned, zombie. 'annal team help\n"
              "runs' says what they mean.",
     .examples = "  annal team health --by team\n",
     .fields = health_fields,
     .sql = health_rows,
     .run = verb_select},
    {.name = "dashboard",
     .summary = "count what runs, is stale, failed, is slow, and the teams",
     .about = "failed_24h: in the last 24 hours; slow: running for more than 30 minutes.",
     .examples = "  annal team dashboard --json\n",
     .fields = no_fields,
     .sql = "SELECT * FROM dashboard",
     .run = verb_select},
    {.name = "import",
     .summary = "take over teams from JSON files",
     .about =
         "A file holds one team: {\"id\",\"name\",\"members\",\"messages\":[…]}. Doing it again\n"
         "adds only what is new: messages, and marks of who has read them.",
     .examples = "  annal team import ~/.lionagi/teams\n",
     .fields = import_fields,
     .type = "team.imported",
     .run = team_import},
    {.name = "export",
     .summary = "write teams as JSON files",
     .about = "They import again to the same rows.",
     .examples = "  annal team export review > review.json\n"
                 "  annal team export --to teams/\n",
     .fields = export_fields,
     .run = team_export},
    {0}};

const struct noun noun_team = {.name = "team",
                               .summary = "teams of agents and what they say to each other",
                               .pack = "teams",
                               .verbs = verbs};
