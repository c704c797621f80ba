/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of annal team in C: they find the team, print messages and mark them as read. */
#include "tools/cli/must.h"
#include "tools/verbs/team.h"

#include "journal/base/hex.h"
#include "journal/base/json.h"
#include "tools/cli/rows.h"
#include "tools/show/values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

extern const char annal__sql_team_members[], annal__sql_team_messages[],
    annal__sql_team_messages_json[], annal__sql_team_show[], annal__sql_team_strangers[],
    annal__sql_team_timeline[], annal__sql_team_unread[]; /* team/ */

/* ---- Queries ---- */

int verbs_team_rows(struct verb_call *call, const char *sql, const annal_value *params,
                    size_t count, annal_row_fn fn, void *arg)
{
    annal_error err = {0};
    const annal_sql_options options = {.params = params, .param_count = count};
    annal_status status =
        annal_index_sql(call->index, annal_slice_of(sql), &options, fn, arg, &err);
    return status < 0 ? fail_error(&err) : 0;
}

/* Set arg, a struct buf, to the first value of a row if it is text; after several rows it has the
 * value of the last one. */
static int keep_value(void *arg, const annal_row *row)
{
    struct buf *text = arg;
    annal__buf_clear(text);
    if (row->values[0].kind == ANNAL_VALUE_TEXT)
        must_append_slice(text, row->values[0].bytes);
    return 0;
}

/* ---- The team ---- */

struct choice {
    char id[TEAM_ID_BYTES_MAX + 1];
    bool exact;
    uint64_t count;
    char named[300]; /* names of the candidates, for a message */
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

int verbs_team_find(struct verb_call *call, const char *word, char out_id[TEAM_ID_BYTES_MAX + 1])
{
    static const char sql[] = "SELECT id, name, id = ?1 FROM teams "
                              "WHERE name = ?1 OR substr(id, 1, length(?1)) = ?1 "
                              "ORDER BY id = ?1 DESC, id";
    struct choice choice = {0};
    const annal_value param = string_value(word);
    int exit_status = verbs_team_rows(call, sql, &param, 1, choose, &choice);
    if (exit_status != 0)
        return exit_status;
    if (choice.count == 0)
        return fail_refused("team '%s' does not exist", word);
    if (choice.count > 1)
        return fail_refused("the name '%s' matches %" PRIu64 " teams: %s", word, choice.count,
                            choice.named);
    memcpy(out_id, choice.id, sizeof choice.id);
    return 0;
}

/* Find the team of the operand TEAM, and set its session as the event's. Returns 0 or an exit
 * status. */
static int take_team(struct verb_call *call, char id[TEAM_ID_BYTES_MAX + 1])
{
    int exit_status = verbs_team_find(call, args_get(call->args, "TEAM"), id);
    return exit_status != 0 ? exit_status : verb_set_session(call, "team_%s", id);
}

static int prepare_team(struct verb_call *call)
{
    char id[TEAM_ID_BYTES_MAX + 1];
    return take_team(call, id);
}

/* Write a new id of a team or message to out: 12 random hex digits. Returns 0 or an exit status. */
static int new_id(char out[13])
{
    unsigned char bytes[6];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return fail_storage("cannot read random bytes from the system");
    annal__hex_text(bytes, sizeof bytes, out);
    return 0;
}

/* ---- create ---- */

static int prepare_create(struct verb_call *call)
{
    char made[13];
    const char *id = args_get(call->args, "id");
    int exit_status = id == NULL ? new_id(made) : 0;
    if (id == NULL)
        id = made;
    if (exit_status == 0)
        verb_set_text(call, "id", annal_slice_of(id));
    return exit_status != 0 ? exit_status : verb_set_session(call, "team_%s", id);
}

/* ---- send ---- */

/* Read --to bob --to alice,carol, and set the recipients as a list of names; "all" without the
 * option. */
static void set_recipients(struct verb_call *call)
{
    SCOPED_BUF list = {0};
    const char *word;
    must_append_text(&list, "[");
    for (int at = 0; (word = args_next(call->args, "to", &at)) != NULL;) {
        while (*word != '\0') {
            size_t len = strcspn(word, ",");
            annal_slice name = {word, len};
            while (name.len > 0 && name.ptr[0] == ' ')
                name = (annal_slice){name.ptr + 1, name.len - 1};
            while (name.len > 0 && name.ptr[name.len - 1] == ' ')
                name.len--;
            if (name.len > 0)
                must_json(&list, "#?", annal_slice_of(list.len > 1 ? "," : ""), name);
            word += len + (word[len] == ',' ? 1 : 0);
        }
    }
    bool none = list.len <= 1;
    must_append_text(&list, "]");
    verb_set(call, "to", none ? ANNAL_SLICE("\"all\"") : annal__buf_slice(&list));
}

static int warn_of_stranger(void *arg, const annal_row *row)
{
    say("'%.*s' is not a member of team %s", ANNAL_FMT(row->values[0].bytes), (const char *)arg);
    return 0;
}

/* Report the names that are not members of the team: name is a JSON string, list a JSON array of
 * strings. `_cli`, the command itself, and `system` are never reported. Returns 0 or an exit
 * status. */
static int warn_of_strangers(struct verb_call *call, char *team, annal_slice name, annal_slice list)
{
    const annal_value params[] = {string_value(team), text_value(name), text_value(list)};
    return verbs_team_rows(call, annal__sql_team_strangers, params, 3, warn_of_stranger, team);
}

/* Check that the session to which the message refers exists, because a handler of a pack cannot
 * check it. Returns 0 or an exit status. */
static int look_for_session(struct verb_call *call)
{
    SCOPED_BUF found = {0};
    const char *session = args_get(call->args, "session");
    if (session == NULL)
        session = getenv("ANNAL_SESSION");
    if (session == NULL || session[0] == '\0')
        return 0;
    const annal_value param = string_value(session);
    int exit_status =
        verbs_team_rows(call, "SELECT name FROM state.sqlite_master WHERE name = 'sessions'", NULL,
                        0, keep_value, &found);
    bool of_pack = found.len > 0;
    annal__buf_clear(&found);
    if (exit_status == 0)
        exit_status = verbs_team_rows(call,
                                      of_pack ? "SELECT id FROM state.sessions WHERE id = ?1"
                                              : "SELECT id FROM main.sessions WHERE id = ?1",
                                      &param, 1, keep_value, &found);
    if (exit_status == 0)
        verb_set_text(call, "session_id", annal_slice_of(session));
    if (exit_status == 0 && found.len == 0) {
        say("session '%s' does not exist: the message is stored without a link to it", session);
        verb_set(call, "session_known", ANNAL_SLICE("false"));
    }
    return exit_status;
}

static int prepare_send(struct verb_call *call)
{
    char team[TEAM_ID_BYTES_MAX + 1], id[13];
    int exit_status = take_team(call, team);
    if (exit_status == 0 && args_get(call->args, "id") == NULL) {
        exit_status = new_id(id);
        if (exit_status == 0)
            verb_set_text(call, "id", annal_slice_of(id));
    }
    set_recipients(call);
    if (exit_status == 0)
        exit_status = look_for_session(call);
    if (exit_status == 0)
        exit_status =
            warn_of_strangers(call, team, verb_member(call, "sender"), verb_member(call, "to"));
    return exit_status;
}

/* ---- Printing messages ---- */

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

/* Print a message for people, from a row of id, at, sender, recipient, read_by, text. */
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

/* Print the messages of a team whose ids are in ids, a JSON array (NULL: all messages); with --json
 * one object a line. */
static int print_messages(struct verb_call *call, const char *team, const annal_slice *ids,
                          bool full, uint64_t *out_count)
{
    const annal_value params[] = {string_value(team),
                                  ids == NULL ? (annal_value){.kind = ANNAL_VALUE_NULL}
                                              : text_value(*ids),
                                  (annal_value){.kind = ANNAL_VALUE_INTEGER, .integer = full}};
    struct rows rows = {.format = OUT_JSONL};
    *out_count = 0;
    if (!call->args->json)
        return verbs_team_rows(call, annal__sql_team_messages, params, 3, print_message, out_count);
    annal_error err = {0};
    const annal_sql_options options = {.params = params, .param_count = 3, .columns = rows_columns};
    annal_status status =
        annal_index_sql(call->index, annal_slice_of(annal__sql_team_messages_json), &options,
                        rows_row, &rows, &err);
    rows_done(&rows);
    return status < 0 ? fail_error(&err) : 0;
}

/* ---- inbox ---- */

/* Set out_ids to the ids of the messages that a member has not read, as a JSON array. Returns 0 or
 * an exit status. */
static int select_unread(struct verb_call *call, const char *team, const char *member,
                         struct buf *out_ids)
{
    const annal_value params[] = {string_value(team), string_value(member)};
    return verbs_team_rows(call, annal__sql_team_unread, params, 2, keep_value, out_ids);
}

/*
 * Set ids to the unread messages, and mark them as read. If another process that reads for the same
 * member was first, search again, so that each message is printed only once. Returns 0 or an exit
 * status.
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
        verb_set(call, "message_ids", annal__buf_slice(ids));
        verb_set_text(call, "member", annal_slice_of(member));
        annal_status status = verb_try(call, &err);
        if (status != ANNAL_ERR_REFUSED)
            return status < 0 ? fail_error(&err) : 0;
    }
}

static int warn_of_stranger_here(struct verb_call *call, char *team, const char *member)
{
    SCOPED_BUF name = {0};
    must_quote(&name, annal_slice_of(member));
    return warn_of_strangers(call, team, annal__buf_slice(&name), ANNAL_SLICE("[]"));
}

static int run_inbox(const struct args *args)
{
    struct verb_call call;
    SCOPED_BUF ids = {0};
    char team[TEAM_ID_BYTES_MAX + 1];
    const char *member = args_get(args, "as");
    uint64_t count = 0;
    int exit_status = verb_open(&call, args);
    if (exit_status == 0 && member != NULL && member[0] == '\0')
        exit_status = fail_usage("--as needs the name of a member");
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
    return verb_close(&call, exit_status);
}

/* ---- members ---- */

/* Print the rows of a SELECT whose parameter ?1 is the team. Returns 0 or an exit status. */
static int print_rows(struct verb_call *call, const char *team, const char *sql)
{
    struct rows rows = {.format = call->args->json ? OUT_JSONL : OUT_TABLE};
    const annal_value param = string_value(team);
    const annal_sql_options options = {.params = &param, .param_count = 1, .columns = rows_columns};
    annal_error err = {0};
    annal_status status =
        annal_index_sql(call->index, annal_slice_of(sql), &options, rows_row, &rows, &err);
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
        exit_status = print_rows(&call, team, annal__sql_team_members);
    return verb_close(&call, exit_status);
}

/* ---- show, timeline ---- */

static int run_show(const struct args *args)
{
    struct verb_call call;
    char team[TEAM_ID_BYTES_MAX + 1];
    uint64_t count = 0;
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = verbs_team_find(&call, args_get(args, "TEAM"), team);
    const annal_value param = string_value(team);
    if (exit_status == 0 && args->json)
        exit_status = print_rows(&call, team, annal__sql_team_show);
    else if (exit_status == 0)
        exit_status =
            verbs_team_rows(&call, annal__sql_team_show, &param, 1, rows_print_lines, NULL);
    if (exit_status == 0 && !args->json)
        printf("\n");
    if (exit_status == 0)
        exit_status = print_messages(&call, team, NULL, args_has(args, "full"), &count);
    return verb_close(&call, exit_status);
}

static int run_timeline(const struct args *args)
{
    struct verb_call call;
    char team[TEAM_ID_BYTES_MAX + 1];
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = verbs_team_find(&call, args_get(args, "TEAM"), team);
    if (exit_status == 0)
        exit_status = print_rows(&call, team, annal__sql_team_timeline);
    return verb_close(&call, exit_status);
}

const struct verb_code team_code[] = {
    {"team", "create", .prepare = prepare_create}, {"team", "send", .prepare = prepare_send},
    {"team", "inbox", .run = run_inbox},           {"team", "receive", .run = run_inbox},
    {"team", "read", .prepare = prepare_team},     {"team", "members", .run = run_members},
    {"team", "rename", .prepare = prepare_team},   {"team", "archive", .prepare = prepare_team},
    {"team", "delete", .prepare = prepare_team},   {"team", "show", .run = run_show},
    {"team", "timeline", .run = run_timeline},     {"team", "import", .run = team_import},
    {"team", "export", .run = team_export},        {.noun = NULL}};
