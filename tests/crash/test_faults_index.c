/* SPDX-License-Identifier: Apache-2.0 */
/* Every call fails: the scenes of the index, of snapshots and of replay. See faults.h. */
#include "index/db/shape.h"
#include "index/sys/databases.h"
#include "index/sys/pack.h"
#include "tests/crash/faults.h"
#include "tests/support/failing_libc.h"
#include "tests/support/runner.h"
#include "tests/support/stopped.h"

#include <annal/annal.h>

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define EVERYTHING                                                                                 \
    (1u << FROM_DISK | 1u << FROM_HEAP | 1u << FROM_SYSTEM | 1u << FROM_SQLITE_DISK |              \
     1u << FROM_SQLITE_HEAP)
#define WAIT_MS 50

static void build_store(struct life *life)
{
    const annal_store_options options = {.create = true};
    ck_fault(open_store(life, &options), "the store does not open");
    attempt(life, "a", 3, ANNAL_LEVEL_SYNC, false);
    for (int i = 0; i < 4; i++)
        attempt(life, "b", 3, ANNAL_LEVEL_SYNC, true);
    close_store(life);
}

/* An answer that is a failure needs a fault, and a reason. */
static void ck_failure(const struct life *life, annal_status status, const annal_error *err,
                       const char *what)
{
    ck_fault(status >= 0 || fault_came(life), "%s without a fault: %s: %s", what,
             annal_status_name(status), err->message);
    ck_fault(status >= 0 || err->message[0] != '\0', "%s: %s without a reason", what,
             annal_status_name(status));
}

/* Measured once: there are thousands of runs. */
static uint32_t limit_ms(uint32_t ms)
{
    static int64_t thousand;
    if (thousand == 0)
        thousand = scaled_us(1000);
    return (uint32_t)(ms * thousand / 1000);
}

static annal_index *open_index(struct life *life)
{
    const annal_index_options options = {.wait_ms = limit_ms(WAIT_MS)};
    annal_index *index = NULL;
    for (int tries = 0; tries < 2; tries++) {
        annal_error err = {0};
        bool came = fault_came(life);
        annal_status status = annal_index_open(life->store, &options, &index, &err);
        ck_failure(life, status, &err, "open the index");
        if (status == ANNAL_OK)
            return index;
        ck_fault(!came || !life->once, "open the index after the fault: %s", err.message);
    }
    return NULL;
}

static void catch_up(struct life *life, annal_index *index, bool rebuild)
{
    annal_error err = {0};
    const annal_catch_up_options options = {.timeout_ms = limit_ms(1000)};
    bool came = fault_came(life);
    annal_status status = rebuild ? annal_index_rebuild(index, &options, &err)
                                  : annal_index_catch_up(index, (annal_slice){0}, &options, &err);
    ck_failure(life, status, &err, "catch up");
    ck_fault(status == ANNAL_OK || !came || !life->once, "catch up after the fault: %s: %s",
             annal_status_name(status), err.message);
}

/* A journal that may not be read is left out of answers, and the log names it. */
static bool was_denied(const struct life *life)
{
    return annal__stray_was_denied(life->store);
}

/* The result is true and complete, unless the answer says that the index lags, or the log says what
 * is missing. */
static void query(struct life *life, annal_index *index, const char *session)
{
    annal_query *query = NULL;
    annal_event event;
    annal_slice which;
    annal_error err = {0};
    const annal_slice sessions[] = {annal_slice_of(session)};
    const annal_filter filter = {.sessions = sessions, .session_count = 1};
    uint64_t next = 1;
    uint64_t count = 0;
    annal_lag lag = {0};
    annal_status status = annal_query_open(index, &filter, &query, &err);
    while (status == ANNAL_OK &&
           (status = annal_query_next(query, &which, &event, &err)) == ANNAL_OK) {
        ck_fault(event.seq == next, "the query gives seq %" PRIu64 " instead of %" PRIu64,
                 event.seq, next);
        next++;
        if (is_certain(life, session))
            ck_event(life, session, &event);
    }
    ck_failure(life, status, &err, "query");
    ck_fault(status != ANNAL_DAMAGE, "the query calls a fault damage");
    if (query != NULL)
        lag = annal_query_lag(query);
    annal_query_close(query);
    ck_fault(status < 0 || lag.bytes > 0 || was_denied(life) || !is_certain(life, session) ||
                 next == expected_events(life, session) + 1,
             "the query ends at seq %" PRIu64, next - 1);
    status = annal_query_count(index, &filter, &count, &lag, &err);
    ck_failure(life, status, &err, "count");
    ck_fault(status < 0 || lag.bytes > 0 || was_denied(life) || !is_certain(life, session) ||
                 count == expected_events(life, session),
             "%" PRIu64 " events are counted", count);
}

static int take_integer(void *arg, const annal_row *row)
{
    *(int64_t *)arg = row->values[0].integer;
    return 0;
}

static void ask_sql(struct life *life, annal_index *index, const char *sql)
{
    annal_error err = {0};
    annal_lag lag = {0};
    int64_t number = -1;
    const annal_sql_options options = {.out_lag = &lag};
    annal_status status =
        annal_index_sql(index, annal_slice_of(sql), &options, take_integer, &number, &err);
    ck_failure(life, status, &err, sql);
    ck_fault(status < 0 || lag.bytes > 0 || was_denied(life) || !is_certain(life, "b") ||
                 number == (int64_t)expected_events(life, "b"),
             "%s: %" PRId64, sql, number);
}

static int check_lag(void *arg, const annal_index_lag *lag)
{
    ck_fault(lag->indexed_seq <= lag->journal_seq, "the index is ahead of the journal");
    *(uint64_t *)arg += 1;
    return 0;
}

static int count_events(void *arg, annal_slice type, uint64_t events)
{
    (void)type;
    *(uint64_t *)arg += events;
    return 0;
}

static void look_at_index(struct life *life, annal_index *index)
{
    annal_error err = {0};
    uint64_t sessions = 0, events = 0;
    annal_status status = annal_index_lag_each(index, (annal_slice){0}, check_lag, &sessions, &err);
    ck_failure(life, status, &err, "lag");
    ck_fault(status < 0 || sessions == 2, "the lag of %" PRIu64 " sessions", sessions);
    status = annal__reader_counts(index, ANNAL_SLICE("b"), count_events, &events, &err);
    ck_failure(life, status, &err, "counts");
    ck_fault(status < 0 || events <= expected_events(life, "b"), "%" PRIu64 " events are counted",
             events);
}

static void live_index(struct life *life)
{
    const annal_store_options options = {.create = true, .region_bytes = LOG_REGION_FIRST};
    if (!open_store(life, &options))
        return;
    annal_index *index = open_index(life);
    if (index != NULL) {
        catch_up(life, index, false);
        query(life, index, "b");
        ask_sql(life, index, "SELECT count(*) FROM event_index WHERE session_id = 'b'");
        ask_sql(life, index, "SELECT count(data) FROM events WHERE session_id = 'b'");
        attempt(life, "b", 1, ANNAL_LEVEL_SYNC, false);
        query(life, index, "b");
        look_at_index(life, index);
        catch_up(life, index, true);
        query(life, index, "b");
    }
    annal_index_close(index);
    close_store(life);
}

static void prove_index(struct life *life)
{
    const annal_store_options options = {.create = true};
    ck_fault(open_store(life, &options), "the store does not open");
    annal_index *index = open_index(life);
    for (int i = 0; i < 2; i++) {
        catch_up(life, index, i == 1);
        query(life, index, "a");
        query(life, index, "b");
        ask_sql(life, index, "SELECT count(*) FROM event_index WHERE session_id = 'b'");
        ask_sql(life, index, "SELECT count(data) FROM events WHERE session_id = 'b'");
    }
    annal_index_close(index);
    close_store(life);
}

START_TEST(any_call_of_the_index_may_fail)
{
    static const struct scene scene = {.name = "index",
                                       .sources = EVERYTHING,
                                       .runs = 4,
                                       .build = build_store,
                                       .live = live_index,
                                       .prove = prove_index};
    fail_everywhere(&scene);
}
END_TEST

/* ---- Search ---- */

static int count_found(void *arg, const annal_search_session *found)
{
    *(uint64_t *)arg += found->events;
    return 0;
}

/* An answer is complete, or a failure: never empty because memory ran out. */
static void find(struct life *life, annal_index *index, const annal_slice *words, size_t count)
{
    const annal_catch_up_options catch_up = {.timeout_ms = limit_ms(1000)};
    const annal_slice preferred[] = {ANNAL_SLICE("b")};
    const annal_search_options options = {.words = words,
                                          .word_count = count,
                                          .preferred = preferred,
                                          .preferred_count = 1,
                                          .catch_up = &catch_up};
    annal_error err = {0};
    annal_lag lag = {0};
    uint64_t events = 0;
    annal_status status =
        annal_search_session_each(index, &options, count_found, &events, &lag, &err);
    ck_failure(life, status, &err, "search");
    ck_fault(status < 0 || lag.bytes > 0 || was_denied(life) || events == 4,
             "%" PRIu64 " events are found", events);
}

static void live_search(struct life *life)
{
    /* the words of four events */
    const annal_slice begins[] = {ANNAL_SLICE("h*"), ANNAL_SLICE("o*"), ANNAL_SLICE("v*"),
                                  ANNAL_SLICE("c*")};
    const annal_store_options options = {.create = true};
    if (!open_store(life, &options))
        return;
    annal_index *index = open_index(life);
    if (index != NULL)
        find(life, index, begins, sizeof begins / sizeof *begins);
    annal_index_close(index);
    close_store(life);
}

START_TEST(any_call_of_a_search_may_fail)
{
    static const struct scene scene = {.name = "search",
                                       .sources = 1u << FROM_HEAP | 1u << FROM_SQLITE_HEAP,
                                       .runs = 16,
                                       .build = build_store,
                                       .live = live_search};
    fail_everywhere(&scene);
}
END_TEST

/* ---- Packs ---- */

static const char counts_pack[] =
    "-- pack counts   version 1   database counts.db\n"
    "CREATE TABLE counts (session TEXT PRIMARY KEY, n INTEGER);\n"
    "CREATE VIEW many AS SELECT session FROM counts WHERE n > 1;\n"
    "-- on test.event\n"
    "INSERT INTO counts VALUES (:session, 0) ON CONFLICT DO NOTHING;\n"
    "UPDATE counts SET n = n + 1 WHERE session = :session;\n"
    "-- noun count   \"what is counted\"\n"
    "-- verb count one   appends test.event   session {NAME}   \"count one more\"\n"
    "--   NAME text \"whose\"\n"
    "-- verb count ls   selects   \"print the counts\"\n"
    "SELECT * FROM counts;\n";

static void build_with(struct life *life, const char *pack)
{
    char path[600];
    build_store(life);
    snprintf(path, sizeof path, "%s/packs", life->path);
    ck_fault(mkdir(path, 0700) == 0, "make '%s'", path);
    snprintf(path, sizeof path, "%s/packs/counts.sql", life->path);
    FILE *file = fopen(path, "w");
    ck_fault(file != NULL && fputs(pack, file) >= 0 && fclose(file) == 0, "write '%s'", path);
}

static void build_packs(struct life *life)
{
    build_with(life, counts_pack);
}

/* The reported lag is the lag of sessions.db or of a pack; or the pack is omitted: no table. */
static void ask_pack(struct life *life, annal_index *index)
{
    ask_sql(life, index, "SELECT sum(n) FROM counts WHERE session = 'b'");
}

static int count_packs(void *arg, const annal_pack_info *info)
{
    (void)info;
    *(uint64_t *)arg += 1;
    return 0;
}

static int no_finding(void *arg, const annal_pack_finding *finding)
{
    ck_fault(finding->remark || finding->table == NULL, "pack %s, table %s: %s", finding->pack,
             finding->table, finding->what);
    *(uint64_t *)arg += 1;
    return 0;
}

static int free_pack(void *arg, annal_pack *pack, const char *file, const annal_error *why)
{
    (void)arg;
    ck_fault(pack != NULL, "%s: %s", file, why->message);
    annal_pack_free(pack);
    return 0;
}

static void live_packs(struct life *life)
{
    const annal_store_options options = {.create = true, .region_bytes = LOG_REGION_FIRST};
    annal_error err = {0};
    uint64_t packs = 0, findings = 0;
    if (!open_store(life, &options))
        return;
    annal_index *index = open_index(life);
    if (index != NULL) {
        ask_pack(life, index);
        attempt(life, "b", 1, ANNAL_LEVEL_SYNC, false);
        ask_pack(life, index);
        ck_failure(life, annal_pack_rebuild(index, "counts", NULL, &err), &err, "rebuild a pack");
        ask_pack(life, index);
        ck_failure(life, annal_pack_each(index, count_packs, &packs, &err), &err, "list packs");
        ck_failure(life, annal_pack_verify(index, no_finding, &findings, &err), &err,
                   "verify packs");
        ck_failure(life, annal_pack_enable(life->store, "teams", NULL, &err), &err, "enable");
        ck_failure(life, annal__packs_of_users(life->path, free_pack, NULL, &err), &err,
                   "read the verbs of users");
    }
    annal_index_close(index);
    close_store(life);
}

static void prove_packs(struct life *life)
{
    const annal_store_options options = {.create = true};
    annal_error err = {0};
    uint64_t findings = 0;
    ck_fault(open_store(life, &options), "the store does not open");
    annal_index *index = open_index(life);
    for (int i = 0; i < 2; i++) {
        ask_pack(life, index);
        annal_status status = annal_pack_verify(index, no_finding, &findings, &err);
        ck_fault(status == ANNAL_OK && findings == 0, "verify: %s", err.message);
        catch_up(life, index, true);
    }
    annal_index_close(index);
    close_store(life);
}

START_TEST(any_call_of_packs_may_fail)
{
    static const struct scene scene = {.name = "packs",
                                       .sources = EVERYTHING,
                                       .runs = 4,
                                       .build = build_packs,
                                       .live = live_packs,
                                       .prove = prove_packs};
    fail_everywhere(&scene);
}
END_TEST

/* ---- Guarded appends ---- */

static const char once_pack[] =
    "-- pack counts   version 1   database counts.db\n"
    "CREATE TABLE counts (session TEXT PRIMARY KEY, n INTEGER);\n"
    "CREATE TABLE numbers (number INTEGER PRIMARY KEY);\n"
    "-- on test.event   guarded \"there is an event of this number already\"\n"
    "INSERT INTO numbers VALUES ($number);\n"
    "-- on test.event\n"
    "INSERT INTO counts VALUES (:session, 0) ON CONFLICT DO NOTHING;\n"
    "UPDATE counts SET n = n + 1 WHERE session = :session;\n";

static void build_guards(struct life *life)
{
    build_with(life, once_pack);
}

/* The answers are held against the journals; prove_packs() holds the tables against them. */
static void live_guards(struct life *life)
{
    const annal_store_options options = {.create = true, .region_bytes = LOG_REGION_FIRST};
    if (!open_store(life, &options))
        return;
    life->guards = open_index(life);
    if (life->guards != NULL) {
        attempt(life, "b", 1, ANNAL_LEVEL_SYNC, false);
        size_t claim = attempt(life, "c", 2, ANNAL_LEVEL_SYNC, true);
        attempt_again(life, claim, ANNAL_LEVEL_SYNC);
        attempt(life, "b", 1, ANNAL_LEVEL_SYNC, false);
    }
    annal_index_close(life->guards);
    life->guards = NULL;
    close_store(life);
}

START_TEST(any_call_of_guarded_appends_may_fail)
{
    static const struct scene scene = {.name = "guards",
                                       .sources = EVERYTHING,
                                       .runs = 4,
                                       .build = build_guards,
                                       .live = live_guards,
                                       .prove = prove_packs};
    fail_everywhere(&scene);
}
END_TEST

/* ---- Snapshots and replay ---- */

struct text {
    char bytes[4096];
    size_t length;
};

static int add_text(void *arg, const char *bytes, size_t len)
{
    struct text *text = arg;
    if (text->length + len > sizeof text->bytes)
        return 1;
    memcpy(text->bytes + text->length, bytes, len);
    text->length += len;
    return 0;
}

static struct text wanted; /* the state of session b at event 9 */

static annal_status replay(annal_index *index, bool no_snapshots, struct text *out,
                           annal_error *err)
{
    annal_state *state = NULL;
    const annal_moment at = {.kind = ANNAL_AT_SEQ, .seq = 9};
    const annal_replay_options options = {.no_snapshots = no_snapshots};
    annal_status status =
        annal_replay_open(index, ANNAL_SLICE("b"), at, &options, &state, NULL, err);
    if (status == ANNAL_OK)
        status = annal_state_json(state, add_text, out, err);
    annal_state_free(state);
    return status;
}

static void build_replay(struct life *life)
{
    const annal_store_options options = {.create = true};
    annal_error err = {0};
    build_store(life);
    ck_fault(open_store(life, &options), "the store does not open");
    annal_index *index = open_index(life);
    catch_up(life, index, false);
    wanted.length = 0;
    annal_status status = replay(index, true, &wanted, &err);
    ck_fault(status == ANNAL_OK && wanted.length > 0, "replay: %s", err.message);
    annal_index_close(index);
    close_store(life);
}

static void take_snapshot(struct life *life, annal_index *index, uint64_t every_events)
{
    annal_snapshot_info info;
    annal_error err = {0};
    bool came = fault_came(life);
    const annal_snapshot_policy policy = {.every_events = every_events};
    annal_status status = annal_snapshot_take(index, ANNAL_SLICE("b"), &policy, &info, &err);
    ck_failure(life, status, &err, "take a snapshot");
    ck_fault(status == ANNAL_OK || !came || !life->once || life->stopped,
             "take a snapshot after the fault: %s", err.message);
}

static void ck_replay(struct life *life, annal_index *index)
{
    struct text text = {.length = 0};
    annal_replay_verify_result result;
    annal_error err = {0};
    bool came = fault_came(life);
    annal_status status = replay(index, false, &text, &err);
    ck_failure(life, status, &err, "replay");
    ck_fault(status < 0 || (text.length == wanted.length &&
                            memcmp(text.bytes, wanted.bytes, text.length) == 0),
             "replay gives %.*s", (int)text.length, text.bytes);
    ck_fault(status == ANNAL_OK || !came || !life->once, "replay after the fault: %s", err.message);
    status = annal_replay_verify(index, ANNAL_SLICE("b"), NULL, &result, &err);
    ck_failure(life, status, &err, "verify the snapshots");
    ck_fault(status < 0 || result.findings == 0, "%" PRIu64 " findings", result.findings);
}

/* There and back: the same state. */
static void ck_travel(struct life *life, annal_index *index)
{
    struct text text = {.length = 0};
    annal_travel *travel = NULL;
    annal_error err = {0};
    const annal_moment at = {.kind = ANNAL_AT_SEQ, .seq = 9};
    annal_status status = annal_travel_open(index, ANNAL_SLICE("b"), at, NULL, &travel, &err);
    if (status == ANNAL_OK)
        status = annal_travel_step(travel, -4, &err);
    if (status == ANNAL_OK)
        status = annal_travel_step(travel, 4, &err);
    if (status == ANNAL_OK)
        status = annal_state_json(annal_travel_state(travel, NULL), add_text, &text, &err);
    ck_failure(life, status, &err, "travel");
    ck_fault(status < 0 || (text.length == wanted.length &&
                            memcmp(text.bytes, wanted.bytes, text.length) == 0),
             "travel comes to %.*s", (int)text.length, text.bytes);
    annal_travel_close(travel);
}

static void ck_recovery(struct life *life, annal_index *index)
{
    annal_recovery *found = NULL;
    annal_error err = {0};
    annal_status status = annal_recovery_get(index, ANNAL_SLICE("b"), &found, &err);
    ck_failure(life, status, &err, "recovery");
    uint64_t seq = found == NULL ? 0 : found->seq;
    annal_recovery_free(found);
    ck_fault(status < 0 || seq >= 9, "recovery is at %" PRIu64, seq);
}

/* A step is done once, whatever failed before. */
static void ck_step(struct life *life, annal_index *index)
{
    annal_steps *steps = NULL;
    annal_step_answer answer = {.is_failed = false};
    annal_error err = {0};
    const annal_slice key = ANNAL_SLICE("k");
    annal_status status = annal_steps_open(index, ANNAL_SLICE("j"), key, &steps, &err);
    if (status >= 0)
        status = annal_step_begin(steps, key, &answer, &err);
    if (status == ANNAL_OK)
        status = annal_step_complete(steps, key, ANNAL_SLICE("1"), &answer, &err);
    ck_failure(life, status, &err, "a step");
    ck_fault(status < 0 || (answer.result.len == 1 && answer.result.ptr[0] == '1'),
             "the step has another result");
    annal_steps_close(steps);
}

/* From the state at event 3 to that at event 9. */
static void ck_diff(struct life *life, annal_index *index)
{
    static const annal_moment at[2] = {{.kind = ANNAL_AT_SEQ, .seq = 3},
                                       {.kind = ANNAL_AT_SEQ, .seq = 9}};
    annal_state *states[2] = {NULL, NULL};
    struct text text = {.length = 0};
    annal_error err = {0};
    annal_status status = ANNAL_OK;
    for (int i = 0; i < 2 && status == ANNAL_OK; i++)
        status = annal_replay_open(index, ANNAL_SLICE("b"), at[i], NULL, &states[i], NULL, &err);
    if (status == ANNAL_OK)
        status = annal_state_patch(states[0], states[1], add_text, &text, &err);
    ck_failure(life, status, &err, "diff");
    ck_fault(status < 0 || (text.length > 2 && text.bytes[text.length - 1] == ']'),
             "the patch is %.*s", (int)text.length, text.bytes);
    annal_state_free(states[0]);
    annal_state_free(states[1]);
}

static annal_status count_init(void *arg, annal_slice session, void **out_state, annal_error *err)
{
    (void)session;
    (void)err;
    *(uint64_t *)arg = 0;
    *out_state = arg;
    return ANNAL_OK;
}

static annal_status count_apply(void *arg, void *state, const annal_event *event, annal_error *err)
{
    (void)arg;
    (void)event;
    (void)err;
    ++*(uint64_t *)state;
    return ANNAL_OK;
}

static annal_status count_save(void *arg, const void *state, annal_write_fn write, void *write_arg,
                               annal_error *err)
{
    (void)arg;
    (void)err;
    return (annal_status)write(write_arg, state, sizeof(uint64_t));
}

static annal_status count_load(void *arg, annal_slice session, annal_slice bytes, void **out_state,
                               annal_error *err)
{
    (void)session;
    (void)err;
    ck_fault(bytes.len == sizeof(uint64_t), "a copy of %zu bytes", bytes.len);
    memcpy(arg, bytes.ptr, bytes.len);
    *out_state = arg;
    return ANNAL_OK;
}

static void ck_reduce(struct life *life, annal_index *index)
{
    uint64_t count = 0;
    const annal_reducer reducer = {.name = "count",
                                   .version = 1,
                                   .init = count_init,
                                   .apply = count_apply,
                                   .save = count_save,
                                   .load = count_load,
                                   .arg = &count};
    const annal_reduce_options options = {.policy.every_events = 4};
    const annal_moment at = {.kind = ANNAL_AT_SEQ, .seq = 9};
    void *state = NULL;
    annal_error err = {0};
    annal_status status =
        annal_replay_reduce(index, ANNAL_SLICE("b"), &reducer, at, &options, &state, NULL, &err);
    ck_failure(life, status, &err, "reduce");
    ck_fault(status < 0 || count == 9, "reduced to %" PRIu64, count);
}

static void live_replay(struct life *life)
{
    const annal_store_options options = {.create = true, .region_bytes = LOG_REGION_FIRST};
    if (!open_store(life, &options))
        return;
    annal_index *index = open_index(life);
    if (index != NULL) {
        take_snapshot(life, index, 4);
        ck_replay(life, index);
        ck_travel(life, index);
        ck_recovery(life, index);
        ck_step(life, index);
        ck_diff(life, index);
        ck_reduce(life, index);
    }
    annal_index_close(index);
    close_store(life);
}

static void prove_replay(struct life *life)
{
    const annal_store_options options = {.create = true};
    ck_fault(open_store(life, &options), "the store does not open");
    annal_index *index = open_index(life);
    ck_replay(life, index);
    take_snapshot(life, index, 4);
    ck_replay(life, index);
    ck_travel(life, index);
    ck_recovery(life, index);
    ck_step(life, index);
    ck_reduce(life, index);
    annal_index_close(index);
    close_store(life);
}

START_TEST(any_call_of_a_replay_may_fail)
{
    static const struct scene scene = {.name = "replay",
                                       .sources = EVERYTHING,
                                       .runs = 3,
                                       .build = build_replay,
                                       .live = live_replay,
                                       .prove = prove_replay};
    fail_everywhere(&scene);
}
END_TEST

/* The objects refer to a copy of the text, which is freed. */
START_TEST(a_shape_without_memory_for_its_objects_is_empty)
{
    sqlite3 *db = NULL;
    annal_status status = ANNAL_ERR_NOMEM;
    unsigned failures = 0;
    ck_assert_int_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    for (int i = 0; i < 20; i++) {
        char sql[64];
        snprintf(sql, sizeof sql, "CREATE TABLE t%d (a, b)", i);
        ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    }
    while (status < 0) {
        struct failing_libc plan = {.family = LIBC_HEAP, .fail_at = ++failures};
        struct shape shape = {0};
        failing_libc_arm(&plan);
        status = annal__shape_of_database(&shape, db, NULL);
        failing_libc_arm(NULL);
        ck_assert_uint_eq(shape.count, status < 0 ? 0 : 20);
        ck_assert((shape.objects == NULL) == (status < 0));
        annal__shape_done(&shape);
    }
    ck_assert_uint_gt(failures, 3);
    sqlite3_close(db);
}
END_TEST

Suite *suite_faults_index(void)
{
    Suite *suite = suite_create("faults_index");
    TCase *tests = suite_case(suite, "index", NULL, NULL);
    tcase_set_timeout(tests, 1200);
    tcase_add_test(tests, any_call_of_the_index_may_fail);
    tcase_add_test(tests, any_call_of_a_search_may_fail);
    tcase_add_test(tests, any_call_of_packs_may_fail);
    tcase_add_test(tests, any_call_of_guarded_appends_may_fail);
    tcase_add_test(tests, any_call_of_a_replay_may_fail);
    tcase_add_test(tests, a_shape_without_memory_for_its_objects_is_empty);
    return suite;
}
