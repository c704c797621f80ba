/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery: the last durable event of a session, the process that owns it, and what was in
 * progress: calls without results, open turns, the last messages. All of it is read from the
 * journal and from the state at its end, so no index is needed, and it works for forks and on
 * read-only media.
 */
#include "tools/show/recovery.h"

#include "index/sys/open.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "journal/sys/cursor.h"
#include "journal/sys/inspect.h"
#include "journal/sys/seam.h"
#include "tools/cli/rows.h"
#include "tools/show/conversation.h"
#include "tools/show/event_out.h"
#include "tools/show/excerpt.h"

#include <annal/query.h>
#include <annal/replay.h>

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { TEXT_CHARS = 200, BLOCK_EVENTS = 512, LOOK_BACK_EVENTS = 20480, DUE_EVENTS = 1000 };

/* The last message of a role. */
struct said {
    const char *role; /* role as raw JSON */
    uint64_t seq;     /* seq of the message; 0 until one is found */
    int64_t ts_us;
    struct buf text;
};

struct recovery {
    annal_store *store;
    annal_index *index;
    annal_slice session;
    annal_session_info info;
    annal_state *state;
    annal_replay_info replay;
    bool owner_known;
    uint32_t pid; /* id of the process that owns the session; 0 if none does */
    /* why some events are not in the journal yet, but only in a commit log; NULL if all are */
    const char *unwritten;
    annal_error settling; /* contains the text of unwritten */
    annal_index_lag lag;
    struct said user, assistant;
    bool rests;            /* whether the agent is idle at the end */
    uint64_t calls, turns; /* number of calls without a result, and of open turns */
    char status[64];
    char first_turn[ANNAL_ID_BYTES_MAX];
    annal_cursor *cursor;
    struct buf data; /* data of a long event */
    uint64_t items;  /* number of items of the current list printed so far */
    struct table *table;
    annal_error err;
};

/* Only the newest items are listed: at most LISTED_MAX for programs, SHOWN_MAX for people. */
#define LISTED_MAX 100
enum { SHOWN_MAX = 20 };

static const char calls_sql[] = "SELECT call_id, seq, tool, called_at, turn_id FROM dangling"
                                " ORDER BY seq DESC LIMIT 100";
static const char turns_sql[] = "SELECT turn_id, seq, status, created_at, sequence FROM turns"
                                " WHERE completed_at IS NULL ORDER BY sequence DESC LIMIT 100";

static int64_t now_us(void)
{
    return annal__system_clock.wall_us(annal__system_clock.arg);
}

/* ---- Reading ---- */

static int take_lag(void *arg, const annal_index_lag *lag)
{
    ((struct recovery *)arg)->lag = *lag;
    return 0;
}

/* Record a message of the wanted role; a later one replaces an earlier one. */
static void listen(struct said *said, const annal_event *event)
{
    annal_slice role = event_message_role(event), text = event_message_text(event);
    if (text.len == 0 || !annal__slice_is(role, said->role))
        return;
    said->seq = event->seq;
    said->ts_us = event->ts_us;
    annal__buf_clear(&said->text);
    excerpt_line(&said->text, text, TEXT_CHARS);
}

/* Read the next event of the cursor; data that is too long is not read. */
static annal_status next_event(struct recovery *r, annal_event *event)
{
    uint64_t data_bytes = 0;
    annal_status status = annal__cursor_next_head(r->cursor, event, &data_bytes, &r->err);
    if (status != ANNAL_OK)
        return status;
    return event_read_data(r->cursor, event, data_bytes, &r->data, &r->err);
}

static annal_status listen_to_block(struct recovery *r, uint64_t from, uint64_t to)
{
    /* whether the last message of the user, and of the assistant, must still be found: no newer
     * block contains it */
    bool user = r->user.seq == 0, assistant = r->assistant.seq == 0;
    annal_status status = annal_cursor_seek(r->cursor, from, &r->err);
    while (status >= 0 && annal_cursor_position(r->cursor).seq < to) {
        annal_event event;
        status = next_event(r, &event);
        if (status == ANNAL_END)
            break;
        if (status != ANNAL_OK || event.seq >= to)
            continue;
        if (to > r->info.last_seq)
            r->rests = event_rests(r->rests, &event);
        if (user)
            listen(&r->user, &event);
        if (assistant)
            listen(&r->assistant, &event);
    }
    return status < 0 ? status : ANNAL_OK;
}

/* Find the last messages, from the end backwards in blocks of BLOCK_EVENTS, so that a long session
 * is not read completely. */
static annal_status find_messages(struct recovery *r)
{
    uint64_t to = r->info.last_seq + 1, looked = 0;
    annal_status status = ANNAL_OK;
    while (status >= 0 && to > 1 && looked < LOOK_BACK_EVENTS &&
           (r->user.seq == 0 || r->assistant.seq == 0)) {
        uint64_t from = to > BLOCK_EVENTS ? to - BLOCK_EVENTS : 1;
        status = listen_to_block(r, from, to);
        looked += to - from;
        to = from;
    }
    return status;
}

static annal_status ask(struct recovery *r, const char *sql, annal_row_fn fn)
{
    return annal_state_sql(r->state, annal_slice_of(sql), NULL, fn, r, &r->err);
}

static void keep_text(char *to, size_t size, const annal_value *value)
{
    size_t len = value->bytes.len < size ? value->bytes.len : size - 1;
    if (value->kind == ANNAL_VALUE_TEXT) {
        memcpy(to, value->bytes.ptr, len);
        to[len] = '\0';
    }
}

static int take_counts(void *arg, const annal_row *row)
{
    struct recovery *r = arg;
    r->calls = (uint64_t)row->values[0].integer;
    r->turns = (uint64_t)row->values[1].integer;
    keep_text(r->status, sizeof r->status, &row->values[2]);
    keep_text(r->first_turn, sizeof r->first_turn, &row->values[3]);
    return 0;
}

/* Find the time of the last event of a fork without own events; it is in an ancestor's journal. */
static annal_status find_time(struct recovery *r)
{
    annal_event event;
    if (r->info.last_seq == 0 || r->info.last_seq != r->info.fork_seq)
        return ANNAL_OK;
    annal_status status = annal_cursor_seek(r->cursor, r->info.last_seq, &r->err);
    if (status >= 0)
        status = annal_cursor_next(r->cursor, &event, &r->err);
    if (status == ANNAL_OK) {
        r->info.last_ts_us = event.ts_us;
        r->info.last_h = event.h;
    }
    return status < 0 ? status : ANNAL_OK;
}

static annal_status find_out(struct recovery *r)
{
    static const char counts[] =
        "SELECT (SELECT count(*) FROM dangling),"
        " (SELECT count(*) FROM turns WHERE completed_at IS NULL),"
        " (SELECT status FROM sessions),"
        " (SELECT turn_id FROM turns WHERE completed_at IS NULL ORDER BY sequence DESC LIMIT 1)";
    const annal_moment end = {.kind = ANNAL_AT_END};
    if (annal__unapplied_settle(r->store, &r->settling) == ANNAL_ERR_BUSY)
        r->unwritten = r->settling.message;
    annal_status status = annal__log_session_owner(r->store, r->session, &r->pid, NULL);
    r->owner_known = status >= 0;
    status = annal_session_info_get(r->store, r->session, &r->info, &r->err);
    if (status >= 0)
        status = annal_index_lag_each(r->index, r->session, take_lag, r, &r->err);
    if (status >= 0)
        status = annal_replay_open(r->index, r->session, end, NULL, &r->state, &r->replay, &r->err);
    if (status >= 0)
        status = ask(r, counts, take_counts);
    if (status >= 0)
        status = annal_cursor_open(r->store, r->session, 1, &r->cursor, &r->err);
    if (status >= 0)
        status = find_time(r);
    return status < 0 ? status : find_messages(r);
}

/* Set out to the arguments of the call at seq, on one line; empty if they cannot be read. */
static void read_arguments(struct recovery *r, uint64_t seq, struct buf *out)
{
    annal_event event;
    annal__buf_clear(out);
    if (annal_cursor_seek(r->cursor, seq, NULL) < 0 || next_event(r, &event) != ANNAL_OK ||
        event.seq != seq || event.data.len == 0 || event.data.ptr[0] != '{')
        return;
    annal_slice input = annal__json_member(event.data, "input");
    excerpt_line(out, input.len > 0 ? input : annal__json_member(event.data, "arguments"),
                 TEXT_CHARS);
}

/* ---- What to do next ---- */

enum { ADVICE_MAX = 6, ADVICE_BYTES = 400 };

struct advice {
    char lines[ADVICE_MAX][ADVICE_BYTES];
    int count;
};

static void advise(struct advice *advice, const char *format, ...) ANNAL_PRINTF(2, 3);

static void advise(struct advice *advice, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(advice->lines[advice->count++], ADVICE_BYTES, format, list);
    va_end(list);
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static struct advice advice_for(const struct recovery *r)
{
    struct advice advice = {.count = 0};
    uint64_t behind = r->info.bytes - r->info.end_offset;
    const char *session = r->info.session;
    if (r->pid != 0)
        advise(&advice, "process %" PRIu32 " owns the session and may be at work", r->pid);
    if (behind > 0 && r->info.torn)
        advise(&advice, "the next append removes %" PRIu64 " bytes that were never acknowledged",
               behind);
    else if (behind > 0)
        advise(
            &advice,
            "appends are refused: %" PRIu64
            " bytes at the end are damaged; run 'annal verify %s', then 'annal repair %s --to NEW'",
            behind, session, session);
    if (r->calls > 0)
        advise(&advice,
               "find out the results of %" PRIu64
               " call%s, then append tool.returned or tool.failed with %s call_id",
               r->calls, plural(r->calls), r->calls == 1 ? "its" : "each");
    if (r->turns > 0 && r->rests && r->calls == 0)
        advise(&advice,
               "nothing is under way: turn %s ends in an answer; append turn.completed with its "
               "turn_id, or continue it",
               r->first_turn[0] != '\0' ? r->first_turn : "that is open");
    else if (r->turns > 0)
        advise(&advice,
               "continue turn %s, or append turn.failed or turn.cancelled with its turn_id%s",
               r->first_turn[0] != '\0' ? r->first_turn : "that is open",
               r->turns > 1 ? "; others are open, too" : "");
    if (r->pid == 0 && (behind == 0 || r->info.torn))
        advise(&advice, "annal append %s --expect-seq %" PRIu64, session, r->info.last_seq);
    return advice;
}

/* ---- As JSON ---- */

static int json_call(void *arg, const annal_row *row)
{
    struct recovery *r = arg;
    struct buf input = {0};
    fputs(r->items++ > 0 ? ",{" : "{", stdout);
    rows_print_members(row);
    read_arguments(r, (uint64_t)row->values[1].integer, &input);
    out_json(",\"input\":?}", annal__buf_slice(&input));
    annal__buf_done(&input);
    return 0;
}

static int json_turn(void *arg, const annal_row *row)
{
    struct recovery *r = arg;
    fputs(r->items++ > 0 ? ",{" : "{", stdout);
    rows_print_members(row);
    fputc('}', stdout);
    return 0;
}

static void json_said(const char *name, const struct said *said)
{
    printf(",\"%s\":", name);
    if (said->seq == 0) {
        fputs("null", stdout);
        return;
    }
    printf("{\"seq\":%" PRIu64 ",\"timestamp\":\"", said->seq);
    out_time(said->ts_us);
    out_json("\",\"text\":?}", annal__buf_slice(&said->text));
}

static void json_head(const struct recovery *r)
{
    const annal_session_info *info = &r->info;
    printf("{\"session_id\":\"%s\",\"seq\":%" PRIu64 ",\"timestamp\":", info->session,
           info->last_seq);
    fputs(info->last_seq > 0 ? "\"" : "null", stdout);
    if (info->last_seq > 0)
        out_time(info->last_ts_us);
    printf("%s,\"h\":\"%016" PRIx64 "\",\"offset\":%" PRIu64 ",\"file\":\"%s\"",
           info->last_seq > 0 ? "\"" : "", info->last_h, info->end_offset, info->file);
    if (info->fork_session[0] != '\0')
        printf(",\"fork_session\":\"%s\",\"fork_seq\":%" PRIu64, info->fork_session,
               info->fork_seq);
    printf(",\"bytes_behind\":%" PRIu64 ",\"torn\":%s,\"unwritten\":",
           info->bytes - info->end_offset, info->torn ? "true" : "false");
    if (r->unwritten == NULL)
        fputs("null", stdout);
    else
        out_json_string(annal_slice_of(r->unwritten));
    fputs(",\"pid\":", stdout);
    printf(r->owner_known ? "%" PRIu32 : "null", r->pid);
    out_json(",\"indexed_seq\":#,\"indexed_bytes\":#,\"status\":?,\"snapshot_seq\":#,\"events_"
             "after_snapshot\":#,\"damaged\":#",
             JSON_U64(r->lag.indexed_seq), JSON_U64(r->lag.indexed_bytes),
             annal_slice_of(r->status), JSON_U64(r->replay.snapshot_seq),
             JSON_U64(r->replay.folded), JSON_U64(r->replay.damaged));
}

static int print_json(struct recovery *r)
{
    struct advice advice = advice_for(r);
    json_head(r);
    fputs(",\"calls_without_result\":[", stdout);
    annal_status status = ask(r, calls_sql, json_call);
    fputs("],\"open_turns\":[", stdout);
    r->items = 0;
    if (status >= 0)
        status = ask(r, turns_sql, json_turn);
    fputc(']', stdout);
    json_said("last_user_message", &r->user);
    json_said("last_assistant_message", &r->assistant);
    fputs(",\"next\":[", stdout);
    for (int i = 0; i < advice.count; i++)
        out_json("#?", annal_slice_of(i > 0 ? "," : ""), annal_slice_of(advice.lines[i]));
    fputs("]}\n", stdout);
    return status < 0 ? fail_error(&r->err) : EXIT_DONE;
}

/* ---- For people ---- */

static void heading(const char *text)
{
    fputc('\n', stdout);
    out_style("1");
    fputs(text, stdout);
    out_style("0");
    fputc('\n', stdout);
}

static void print_said(const char *name, const struct said *said)
{
    char age[HUMAN_BYTES];
    if (said->seq == 0)
        return;
    printf("%-20s event %" PRIu64 ", %s: ", name, said->seq, human_age(age, said->ts_us, now_us()));
    out_plain(annal__buf_slice(&said->text));
    fputc('\n', stdout);
}

static void print_owner(const struct recovery *r)
{
    if (!r->owner_known)
        printf("%-20s a running process has not yet recorded which sessions it owns\n", "process");
    else if (r->pid != 0)
        printf("%-20s %" PRIu32 " owns the session\n", "process", r->pid);
    else
        printf("%-20s no process owns the session\n", "process");
}

static void print_head(const struct recovery *r)
{
    char age[HUMAN_BYTES], text[HUMAN_BYTES];
    const annal_session_info *info = &r->info;
    printf("%-20s %s\n", "session", info->session);
    printf("%-20s event %" PRIu64, "durable up to", info->last_seq);
    if (info->last_seq > 0) {
        fputs(", ", stdout);
        out_shown_time(info->last_ts_us);
        printf(" (%s), h %016" PRIx64, human_age(age, info->last_ts_us, now_us()), info->last_h);
    }
    fputc('\n', stdout);
    if (info->fork_session[0] != '\0')
        printf("%-20s %s, up to event %" PRIu64 "\n", "fork of", info->fork_session,
               info->fork_seq);
    print_owner(r);
    if (info->end_offset < info->bytes)
        printf("%-20s %s after it %s\n", "end", human_bytes(text, info->bytes - info->end_offset),
               info->torn ? "are torn: a piece of an event, left by a crash" : "are damaged");
    if (r->unwritten != NULL)
        printf("%-20s %s\n", "not in its journal", r->unwritten);
    if (r->lag.indexed_bytes < r->lag.journal_bytes)
        printf("%-20s up to event %" PRIu64 "\n", "indexed", r->lag.indexed_seq);
    if (r->status[0] != '\0') {
        printf("%-20s ", "status");
        out_plain(annal_slice_of(r->status));
        fputc('\n', stdout);
    }
    if (r->replay.snapshot_seq > 0)
        printf("%-20s a snapshot at event %" PRIu64 ", and %s after it\n", "state from",
               r->replay.snapshot_seq, human_count(text, r->replay.folded));
    else
        printf("%-20s its %s events: no snapshot exists\n", "state from",
               human_count(text, r->replay.folded));
    if (r->replay.damaged > 0)
        printf("%-20s %" PRIu64 " ('annal verify %s' names them)\n", "damaged places",
               r->replay.damaged, info->session);
    print_said("last user", &r->user);
    print_said("last assistant", &r->assistant);
}

static int print_call(void *arg, const annal_row *row)
{
    struct recovery *r = arg;
    struct buf input = {0};
    if (r->items++ == SHOWN_MAX)
        return ANNAL_END;
    /* the last column, the turn of the call, is not printed */
    for (size_t i = 0; i + 1 < row->count; i++)
        rows_cell(r->table, &row->values[i]);
    read_arguments(r, (uint64_t)row->values[1].integer, &input);
    table_text(r->table, annal__buf_slice(&input));
    table_row(r->table);
    annal__buf_done(&input);
    return 0;
}

static int print_turn(void *arg, const annal_row *row)
{
    struct recovery *r = arg;
    if (r->items++ == SHOWN_MAX)
        return ANNAL_END;
    for (size_t i = 0; i < row->count; i++)
        rows_cell(r->table, &row->values[i]);
    table_row(r->table);
    return 0;
}

static annal_status print_list(struct recovery *r, uint64_t all, const char *name, const char *sql,
                               annal_row_fn fn, const struct column *columns, int count)
{
    heading(name);
    r->items = 0;
    r->table = table_new(OUT_TABLE, columns, count);
    annal_status status = ask(r, sql, fn);
    table_free(r->table);
    if (all > SHOWN_MAX)
        printf("and %" PRIu64 " before them\n", all - SHOWN_MAX);
    return status;
}

static int print_text(struct recovery *r)
{
    static const struct column calls[] = {{.name = "call_id", .title = "CALL"},
                                          {.name = "seq", .title = "EVENT", .right = true},
                                          {.name = "tool", .title = "TOOL"},
                                          {.name = "called_at", .title = "SINCE"},
                                          {.name = "input", .title = "WITH", .flexible = true}};
    static const struct column turns[] = {{.name = "turn_id", .title = "TURN"},
                                          {.name = "seq", .title = "EVENT", .right = true},
                                          {.name = "status", .title = "STATUS"},
                                          {.name = "created_at", .title = "SINCE"},
                                          {.name = "sequence", .title = "NUMBER", .right = true}};
    struct advice advice = advice_for(r);
    annal_status status = ANNAL_OK;
    print_head(r);
    if (r->calls > 0)
        status = print_list(r, r->calls, "calls without a result", calls_sql, print_call, calls, 5);
    if (status >= 0 && r->turns > 0)
        status = print_list(r, r->turns, "open turns", turns_sql, print_turn, turns, 5);
    if (status < 0)
        return fail_error(&r->err);
    heading("to continue");
    for (int i = 0; i < advice.count; i++) {
        out_plain(annal_slice_of(advice.lines[i]));
        fputc('\n', stdout);
    }
    return EXIT_DONE;
}

/* Take a snapshot of the state at the end if many events had to be applied to compute it, so that
 * the next call need not apply them again. */
static void take_snapshot(const struct recovery *r)
{
    annal_error err = {0};
    annal_snapshot_info taken;
    if (r->replay.folded >= DUE_EVENTS && !annal__session_list_is_read_only(r->store) &&
        out_flush())
        (void)!annal_snapshot_take(r->index, r->session, NULL, &taken, &err);
}

int recovery_print(const struct args *args, annal_index *index, annal_slice session)
{
    struct recovery r = {.store = annal__index_store(index),
                         .index = index,
                         .session = session,
                         .user = {.role = "\"user\""},
                         .assistant = {.role = "\"assistant\""}};
    int exit_status = find_out(&r) < 0 ? fail_error(&r.err)
                      : args->json     ? print_json(&r)
                                       : print_text(&r);
    take_snapshot(&r);
    annal_cursor_close(r.cursor);
    annal_state_free(r.state);
    annal__buf_done(&r.data);
    annal__buf_done(&r.user.text);
    annal__buf_done(&r.assistant.text);
    return exit_status;
}
