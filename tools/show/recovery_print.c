/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery: the last durable event of a session, the process that owns it, and what was in
 * progress: calls without results, open turns, the last messages. All of it is read from the
 * journal and from the state at its end, so no index is needed, and it works for forks and on
 * read-only media.
 */
#include "tools/show/recovery_print.h"

#include "index/sys/open.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "journal/sys/cursor.h"
#include "journal/sys/inspect.h"
#include "journal/sys/seam.h"
#include "tools/cli/out.h"
#include "tools/show/conversation.h"
#include "tools/show/event_out.h"
#include "tools/show/excerpt.h"

#include <annal/query.h>
#include <annal/recovery.h>

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { TEXT_CHARS = 200, BLOCK_EVENTS = 512, DUE_EVENTS = 1000 };

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
    annal_recovery *found;
    bool owner_known;
    uint32_t pid; /* id of the process that owns the session; 0 if none does */
    /* why some events are not in the journal yet, but only in a commit log; NULL if all are */
    const char *unwritten;
    annal_error settling; /* contains the text of unwritten */
    annal_index_lag lag;
    struct said user, assistant;
    bool rests; /* whether the agent is idle at the end */
    annal_cursor *cursor;
    struct buf data; /* data of a long event */
    annal_error err;
};

/* Only the newest items are listed: at most LISTED_MAX for programs, SHOWN_MAX for people. */
enum { LISTED_MAX = 100, SHOWN_MAX = 20 };

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
    return status != ANNAL_OK ? status
                              : event_read_data(r->cursor, event, data_bytes, &r->data, &r->err);
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
    while (status >= 0 && to > 1 && looked < ANNAL_RECOVERY_EVENTS &&
           (r->user.seq == 0 || r->assistant.seq == 0)) {
        uint64_t from = to > BLOCK_EVENTS ? to - BLOCK_EVENTS : 1;
        status = listen_to_block(r, from, to);
        looked += to - from;
        to = from;
    }
    return status;
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
    if (annal__unapplied_settle(r->store, &r->settling) == ANNAL_ERR_BUSY)
        r->unwritten = r->settling.message;
    annal_status status = annal__log_session_owner(r->store, r->session, &r->pid, NULL);
    r->owner_known = status >= 0;
    status = annal_session_info_get(r->store, r->session, &r->info, &r->err);
    if (status >= 0)
        status = annal_index_lag_each(r->index, r->session, take_lag, r, &r->err);
    if (status >= 0)
        status = annal_recovery_get(r->index, r->session, &r->found, &r->err);
    if (status >= 0)
        status = annal_cursor_open(r->store, r->session, 1, &r->cursor, &r->err);
    if (status >= 0)
        status = find_time(r);
    return status < 0 ? status : find_messages(r);
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
    size_t calls = r->found->call_count, turns = r->found->turn_count;
    const char *turn = turns > 0 ? r->found->turns[turns - 1].turn_id.ptr : NULL;
    if (turn == NULL || turn[0] == '\0')
        turn = "that is open";
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
    if (calls > 0)
        advise(&advice,
               "find out the results of %zu"
               " call%s, then append tool.returned or tool.failed with %s call_id",
               calls, plural(calls), calls == 1 ? "its" : "each");
    if (turns > 0 && r->rests && calls == 0)
        advise(&advice,
               "nothing is under way: turn %s ends in an answer; append turn.completed with its "
               "turn_id, or continue it",
               turn);
    else if (turns > 0)
        advise(&advice,
               "continue turn %s, or append turn.failed or turn.cancelled with its turn_id%s", turn,
               turns > 1 ? "; others are open, too" : "");
    if (r->pid == 0 && (behind == 0 || r->info.torn))
        advise(&advice, "annal append %s --expect-seq %" PRIu64, session, r->info.last_seq);
    return advice;
}

/* ---- As JSON ---- */

/* Return the index of the oldest of count items that is listed. */
static size_t oldest(size_t count, size_t listed)
{
    return count > listed ? count - listed : 0;
}

static void json_calls(const annal_recovery *found)
{
    fputs(",\"calls_without_result\":[", stdout);
    for (size_t i = found->call_count; i-- > oldest(found->call_count, LISTED_MAX);) {
        const annal_open_call *call = &found->calls[i];
        SCOPED_BUF input = {0};
        fputs(i + 1 < found->call_count ? ",{" : "{", stdout);
        excerpt_line(&input, call->input, TEXT_CHARS);
        out_json("\"call_id\":?,\"seq\":#,\"tool\":!,\"called_at\":!,\"turn_id\":!,\"input\":?}",
                 call->call_id, JSON_U64(call->seq), call->tool, call->called_at, call->turn_id,
                 annal__buf_slice(&input));
    }
}

static void json_turns(const annal_recovery *found)
{
    fputs("],\"open_turns\":[", stdout);
    for (size_t i = found->turn_count; i-- > oldest(found->turn_count, LISTED_MAX);) {
        const annal_open_turn *turn = &found->turns[i];
        fputs(i + 1 < found->turn_count ? ",{" : "{", stdout);
        out_json("\"turn_id\":?,\"seq\":#,\"status\":!,\"created_at\":!,\"sequence\":#}",
                 turn->turn_id, JSON_U64(turn->seq), turn->status, turn->created_at,
                 JSON_I64(turn->sequence));
    }
    fputc(']', stdout);
}

static void json_said(const char *name, const struct said *said)
{
    printf(",\"%s\":", name);
    if (said->seq == 0) {
        fputs("null", stdout);
        return;
    }
    out_json("{\"seq\":#,\"timestamp\":?,\"text\":?}", JSON_U64(said->seq), JSON_TIME(said->ts_us),
             annal__buf_slice(&said->text));
}

static void json_head(const struct recovery *r)
{
    const annal_session_info *info = &r->info;
    const annal_replay_info *replay = &r->found->replay;
    out_json("{\"session_id\":?,\"seq\":#,\"timestamp\":!", annal_slice_of(info->session),
             JSON_U64(info->last_seq),
             info->last_seq > 0 ? JSON_TIME(info->last_ts_us) : (annal_slice){0});
    printf(",\"h\":\"%016" PRIx64 "\",\"offset\":%" PRIu64 ",\"file\":\"%s\"", info->last_h,
           info->end_offset, info->file);
    if (info->fork_session[0] != '\0')
        printf(",\"fork_session\":\"%s\",\"fork_seq\":%" PRIu64, info->fork_session,
               info->fork_seq);
    out_json(",\"bytes_behind\":#,\"torn\":#,\"unwritten\":!,\"pid\":#",
             JSON_U64(info->bytes - info->end_offset),
             annal_slice_of(info->torn ? "true" : "false"), annal_slice_of(r->unwritten),
             r->owner_known ? JSON_U64(r->pid) : ANNAL_SLICE("null"));
    out_json(",\"indexed_seq\":#,\"indexed_bytes\":#,\"status\":?,\"snapshot_seq\":#,\"events_"
             "after_snapshot\":#,\"damaged\":#",
             JSON_U64(r->lag.indexed_seq), JSON_U64(r->lag.indexed_bytes), r->found->status,
             JSON_U64(replay->snapshot_seq), JSON_U64(replay->folded), JSON_U64(replay->damaged));
}

static int print_json(struct recovery *r)
{
    struct advice advice = advice_for(r);
    json_head(r);
    json_calls(r->found);
    json_turns(r->found);
    json_said("last_user_message", &r->user);
    json_said("last_assistant_message", &r->assistant);
    fputs(",\"next\":[", stdout);
    for (int i = 0; i < advice.count; i++)
        out_json("#?", annal_slice_of(i > 0 ? "," : ""), annal_slice_of(advice.lines[i]));
    fputs("]}\n", stdout);
    return EXIT_DONE;
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
    const annal_replay_info *replay = &r->found->replay;
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
    if (r->found->status.len > 0) {
        printf("%-20s ", "status");
        out_plain(r->found->status);
        fputc('\n', stdout);
    }
    if (replay->snapshot_seq > 0)
        printf("%-20s a snapshot at event %" PRIu64 ", and %s after it\n", "state from",
               replay->snapshot_seq, human_count(text, replay->folded));
    else
        printf("%-20s its %s events: no snapshot exists\n", "state from",
               human_count(text, replay->folded));
    if (replay->damaged > 0)
        printf("%-20s %" PRIu64 " ('annal verify %s' names them)\n", "damaged places",
               replay->damaged, info->session);
    print_said("last user", &r->user);
    print_said("last assistant", &r->assistant);
}

static void end_table(struct table *table, size_t before)
{
    table_free(table);
    if (before > 0)
        printf("and %zu before them\n", before);
}

static void print_calls(const annal_recovery *found)
{
    static const struct column columns[] = {{.name = "call_id", .title = "CALL"},
                                            {.name = "seq", .title = "EVENT", .right = true},
                                            {.name = "tool", .title = "TOOL"},
                                            {.name = "called_at", .title = "SINCE"},
                                            {.name = "input", .title = "WITH", .flexible = true}};
    size_t first = oldest(found->call_count, SHOWN_MAX);
    heading("calls without a result");
    struct table *table = table_new(OUT_TABLE, columns, 5);
    for (size_t i = found->call_count; i-- > first;) {
        const annal_open_call *call = &found->calls[i];
        SCOPED_BUF input = {0};
        table_text(table, call->call_id);
        table_number(table, call->seq);
        table_text(table, call->tool);
        table_text(table, call->called_at);
        excerpt_line(&input, call->input, TEXT_CHARS);
        table_text(table, annal__buf_slice(&input));
        table_row(table);
    }
    end_table(table, first);
}

static void print_turns(const annal_recovery *found)
{
    static const struct column columns[] = {{.name = "turn_id", .title = "TURN"},
                                            {.name = "seq", .title = "EVENT", .right = true},
                                            {.name = "status", .title = "STATUS"},
                                            {.name = "created_at", .title = "SINCE"},
                                            {.name = "sequence", .title = "NUMBER", .right = true}};
    size_t first = oldest(found->turn_count, SHOWN_MAX);
    heading("open turns");
    struct table *table = table_new(OUT_TABLE, columns, 5);
    for (size_t i = found->turn_count; i-- > first;) {
        const annal_open_turn *turn = &found->turns[i];
        table_text(table, turn->turn_id);
        table_number(table, turn->seq);
        table_text(table, turn->status);
        table_text(table, turn->created_at);
        table_signed(table, turn->sequence);
        table_row(table);
    }
    end_table(table, first);
}

static int print_text(struct recovery *r)
{
    struct advice advice = advice_for(r);
    print_head(r);
    if (r->found->call_count > 0)
        print_calls(r->found);
    if (r->found->turn_count > 0)
        print_turns(r->found);
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
    if (r->found != NULL && r->found->replay.folded >= DUE_EVENTS &&
        !annal__session_list_is_read_only(r->store) && out_flush())
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
    annal_recovery_free(r.found);
    annal__buf_done(&r.data);
    annal__buf_done(&r.user.text);
    annal__buf_done(&r.assistant.text);
    return exit_status;
}
