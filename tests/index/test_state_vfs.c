/* SPDX-License-Identifier: Apache-2.0 */
#include "index/db/db.h"
#include "index/state/state.h"
#include "index/sys/pack.h"
#include "index/sys/state.h"
#include "journal/base/sha256.h"
#include "tests/index/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- A source that counts reads, and fails on demand ---- */

struct store {
    char (*pages)[ANNAL_STATE_PAGE_BYTES];
    uint64_t count;
    unsigned reads, closes;
    unsigned fail_at; /* 0: never */
    annal_status fail_with;
};

static annal_status store_read(void *arg, uint64_t page, void *out, annal_error *err)
{
    struct store *store = arg;
    ck_assert_uint_ge(page, 1);
    ck_assert_uint_le(page, store->count);
    store->reads++;
    if (store->reads == store->fail_at) {
        if (err != NULL) {
            err->status = store->fail_with;
            snprintf(err->message, sizeof err->message, "page %d is gone", (int)page);
        }
        return store->fail_with;
    }
    memcpy(out, store->pages[page - 1], ANNAL_STATE_PAGE_BYTES);
    return ANNAL_OK;
}

static void store_close(void *arg)
{
    struct store *store = arg;
    store->closes++;
}

static annal__state_source source_of(struct store *store)
{
    return (annal__state_source){
        .page_count = store->count, .read = store_read, .close = store_close, .arg = store};
}

static void store_grow(struct store *store, uint64_t count)
{
    store->pages = realloc(store->pages, (size_t)(count + 1) * ANNAL_STATE_PAGE_BYTES);
    ck_assert_ptr_nonnull(store->pages);
    store->count = count;
}

static void store_done(struct store *store)
{
    free(store->pages);
    *store = (struct store){0};
}

struct taking {
    struct store *store;
    annal_state *state;
    uint64_t changed;
};

static int take_page(void *arg, uint64_t page)
{
    struct taking *taking = arg;
    taking->changed++;
    ck_ok(annal__state_page(taking->state, page, taking->store->pages[page - 1], err));
    return 0;
}

/* Update store, the source of state, to the present state. */
static uint64_t store_take(struct store *store, annal_state *state)
{
    struct taking taking = {.store = store, .state = state};
    uint64_t count = 0;
    ck_ok(annal__state_page_count(state, &count, err));
    store_grow(store, count);
    ck_ok(annal__state_changed(state, take_page, &taking, err));
    return taking.changed;
}

/* ---- Over SQLite alone ---- */

struct pair {
    struct state_pages *pages;
    sqlite3 *ours, *plain;
    struct store store; /* source of ours */
};

static void pair_take(struct pair *pair)
{
    store_grow(&pair->store, annal__state_vfs_count(pair->pages));
    for (uint64_t page = 1; page <= pair->store.count; page++)
        if (annal__state_vfs_changed(pair->pages, page))
            ck_ok(annal__state_vfs_read(pair->pages, page, pair->store.pages[page - 1], err));
}

static void pair_open(struct pair *pair)
{
    const annal__state_source source = source_of(&pair->store);
    ck_ok(annal__state_vfs_open(&source, &pair->pages, &pair->ours, err));
    sqlite3_exec(pair->ours, "PRAGMA cache_size = 10", NULL, NULL, NULL);
}

static void pair_close(struct pair *pair)
{
    annal__db_close(pair->ours);
    annal__state_vfs_free(pair->pages);
}

/* Run SQL on both; they must agree, also about failures. */
static void pair_do(struct pair *pair, const char *sql)
{
    char *why = NULL;
    int ours = sqlite3_exec(pair->ours, sql, NULL, NULL, &why);
    int plain = sqlite3_exec(pair->plain, sql, NULL, NULL, NULL);
    ck_assert_msg(ours == plain, "%s: %d and %d, %s", sql, ours, plain, why);
    sqlite3_free(why);
}

static char *dump(sqlite3 *db)
{
    struct text text = {0};
    text_add(&text, "", 0);
    ck_ok(annal__db_select(db,
                           ANNAL_SLICE("SELECT 'a', id, hex(x), y FROM a UNION ALL "
                                       "SELECT 'b', id, hex(x), y FROM b ORDER BY 1, 2"),
                           NULL, text_row, &text, err));
    int64_t good = 0;
    ck_ok(annal__db_integer(
        db, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'", &good,
        err));
    ck_assert_int_eq(good, 1);
    return text.ptr;
}

static void pair_compare(struct pair *pair)
{
    char *ours = dump(pair->ours), *plain = dump(pair->plain);
    ck_assert_str_eq(ours, plain);
    free(ours);
    free(plain);
}

static void random_statement(struct pair *pair, struct random *random)
{
    char sql[200];
    const char *table = random_below(random, 2) == 0 ? "a" : "b";
    int id = (int)random_below(random, 300), bytes = (int)random_below(random, 3000);
    switch (random_below(random, 12)) {
    case 0:
        snprintf(sql, sizeof sql, "DELETE FROM %s WHERE id %% 7 = %d", table, id % 7);
        break;
    case 1:
        snprintf(sql, sizeof sql, "DELETE FROM %s WHERE id > %d", table, id);
        break;
    case 2:
        snprintf(sql, sizeof sql, "UPDATE %s SET y = y + 1, x = zeroblob(%d) WHERE id < %d", table,
                 bytes, id);
        break;
    case 3: /* fails in the middle: the statement is rolled back */
        snprintf(sql, sizeof sql, "UPDATE b SET y = id / 2 WHERE id < %d", id);
        break;
    case 4:
        snprintf(sql, sizeof sql, "SAVEPOINT p%d", id % 3);
        break;
    case 5:
        snprintf(sql, sizeof sql, "ROLLBACK TO p%d", id % 3);
        break;
    case 6:
        snprintf(sql, sizeof sql, "RELEASE p%d", id % 3);
        break;
    default:
        snprintf(sql, sizeof sql, "INSERT OR IGNORE INTO %s VALUES (%d, zeroblob(%d), %d)", table,
                 id, bytes, (int)random_below(random, 100000));
        break;
    }
    pair_do(pair, sql);
}

static void random_transaction(struct pair *pair, struct random *random)
{
    pair_do(pair, "BEGIN");
    for (uint64_t i = random_below(random, 40); i > 0; i--)
        random_statement(pair, random);
    pair_do(pair, random_below(random, 4) == 0 ? "ROLLBACK" : "COMMIT");
}

/* With few pages in SQLite's cache, so that dirty ones leave it before the transaction ends; and
 * with a file that is cut and grows again. */
START_TEST(random_sql_gives_the_same_rows_over_a_source_and_in_memory)
{
    struct random random = random_init((uint64_t)_i + 1);
    struct pair pair = {0};
    ck_ok(annal__db_open(":memory:", SQLITE_OPEN_READWRITE, &pair.plain, err));
    ck_ok(annal__state_vfs_open(NULL, &pair.pages, &pair.ours, err));
    pair_do(&pair, "PRAGMA cache_size = 10");
    pair_do(&pair, _i % 2 == 0 ? "PRAGMA auto_vacuum = 0" : "PRAGMA auto_vacuum = 1");
    pair_do(&pair, "CREATE TABLE a (id INTEGER PRIMARY KEY, x, y); CREATE INDEX ay ON a (y);"
                   "CREATE TABLE b (id TEXT PRIMARY KEY, x, y UNIQUE) WITHOUT ROWID");
    for (int round = 0; round < 40; round++) {
        random_transaction(&pair, &random);
        pair_compare(&pair);
        uint64_t how = random_below(&random, 5);
        if (how == 1 || how == 2)
            pair_take(&pair);
        if (how == 3)
            annal__state_vfs_spill(pair.pages, "/tmp");
        if (how == 1) {
            pair_close(&pair);
            pair_open(&pair);
        } else if (how == 2) {
            const annal__state_source source = source_of(&pair.store);
            annal__state_vfs_rebase(pair.pages, &source);
            ck_assert(!annal__state_vfs_changed(pair.pages, 1));
        }
    }
    pair_close(&pair);
    annal__db_close(pair.plain);
    store_done(&pair.store);
}
END_TEST

/* ---- States ---- */

static void apply(annal_state *state, uint64_t seq, const char *type, const char *data)
{
    const annal_event event = {.seq = seq,
                               .ts_us = 1767684240000000 + (int64_t)seq * 1000000,
                               .type = annal_slice_of(type),
                               .data = annal_slice_of(data)};
    ck_ok(annal_state_apply(state, &event, err));
}

static void apply_random(annal_state *state, uint64_t seq, struct random random)
{
    static const char *const types[] = {"turn.started",     "tool.called",    "tool.returned",
                                        "agent.turn.usage", "turn.completed", "response.stored",
                                        "session.updated",  "message.added",  "artifact.stored"};
    char data[200];
    random.state += seq * 0x9e3779b97f4a7c15u;
    uint64_t r = random_next(&random);
    snprintf(data, sizeof data,
             "{\"turn_id\":\"t%d\",\"call_id\":\"c%d\",\"input_tokens\":%d,\"cost_usd\":0.01,"
             "\"title\":\"%d\",\"ref\":\"$%d\",\"sha256\":\"%d\"}",
             (int)(r % 50), (int)(r / 64 % 200), (int)(r % 1000), (int)(r % 7), (int)(r % 9),
             (int)(r % 30));
    apply(state, seq, types[r / 8 % (sizeof types / sizeof *types)], data);
}

static char *json(annal_state *state)
{
    struct text text = {0};
    ck_ok(annal_state_json(state, text_write, &text, err));
    return text.ptr;
}

static annal_state *core_state(void)
{
    annal_state *state = NULL;
    ck_ok(annal__state_new(ANNAL_SLICE("s"), NULL, 0, &state, err));
    return state;
}

static annal_state *open_over(struct store *store)
{
    annal_state *state = NULL;
    const annal__state_source source = source_of(store);
    ck_ok(annal__state_open_over(ANNAL_SLICE("s"), NULL, 0, &source, &state, err));
    return state;
}

static void ck_equal(annal_state *one, annal_state *other)
{
    uint8_t first[ANNAL_STATE_HASH_BYTES], second[ANNAL_STATE_HASH_BYTES];
    char *expected = json(one), *got = json(other);
    ck_assert_str_eq(got, expected);
    free(expected);
    free(got);
    ck_ok(annal_state_hash(one, first, err));
    ck_ok(annal_state_hash(other, second, err));
    ck_assert_mem_eq(first, second, sizeof first);
}

START_TEST(a_state_over_pages_equals_a_state_in_memory)
{
    struct random random = random_init((uint64_t)_i + 1), events = random;
    annal_state *straight = core_state(), *state = core_state();
    struct store store = {0};
    unsigned closed = 0;
    for (uint64_t seq = 1; seq <= 1500; seq++) {
        apply_random(straight, seq, events);
        apply_random(state, seq, events);
        uint64_t how = random_below(&random, 100);
        if (how > 1)
            continue;
        store_take(&store, state);
        if (how == 0) {
            annal_state_free(state);
            state = open_over(&store);
        } else {
            const annal__state_source source = source_of(&store);
            ck_ok(annal__state_rebase(state, &source, err));
        }
        closed++;
        ck_assert_uint_eq(annal_state_seq(state), seq);
        ck_assert_uint_eq(annal__state_refused(state), annal__state_refused(straight));
    }
    ck_equal(straight, state);
    annal_state_free(state);
    ck_assert_uint_eq(store.closes, closed); /* each source once */
    annal_state_free(straight);
    store_done(&store);
}
END_TEST

START_TEST(the_hash_of_a_state_is_the_sha256_of_its_json)
{
    annal_state *state = core_state();
    for (uint64_t seq = 1; seq <= 2; seq++) {
        uint8_t got[ANNAL_STATE_HASH_BYTES], expected[SHA256_BYTES];
        apply(state, seq, "x", "{}");
        char *text = json(state);
        struct sha256 *sha256 = annal__sha256_begin();
        annal__sha256_add(sha256, text, strlen(text));
        annal__sha256_end(sha256, expected);
        ck_ok(annal_state_hash(state, got, err));
        ck_assert_mem_eq(got, expected, sizeof got);
        free(text);
    }
    annal_state_free(state);
}
END_TEST

static int count_page(void *arg, uint64_t page)
{
    uint64_t *count = arg;
    ck_assert_uint_gt(page, *count >> 32); /* in order */
    *count = (*count & UINT32_MAX) + 1 + (page << 32);
    return 0;
}

static uint64_t changed(annal_state *state)
{
    uint64_t count = 0;
    ck_ok(annal__state_changed(state, count_page, &count, err));
    return count & UINT32_MAX;
}

static void fold_turns(annal_state *state, uint64_t first, uint64_t last)
{
    for (uint64_t seq = first; seq <= last; seq++) {
        char data[60];
        snprintf(data, sizeof data, "{\"turn_id\":\"turn-%d\",\"sequence\":%d}", (int)seq,
                 (int)seq);
        apply(state, seq, "turn.started", data);
        if (seq % 512 == 0)
            apply(state, ++seq, "turn.completed", data);
    }
}

START_TEST(a_large_state_reads_and_keeps_only_the_pages_that_it_needs)
{
    annal_state *state = core_state();
    struct store store = {0};
    struct text text = {0};
    fold_turns(state, 1, 6000);
    ck_assert_uint_eq(store_take(&store, state), store.count);
    ck_assert_uint_gt(store.count, 200);
    annal_state_free(state);

    state = open_over(&store);
    ck_ok(annal_state_sql(state, ANNAL_SLICE("SELECT status FROM turns WHERE id = 's:turn-3000'"),
                          NULL, text_row, &text, err));
    ck_assert_str_eq(text.ptr, "started\n");
    free(text.ptr);
    ck_assert_uint_lt(store.reads, 20);
    ck_assert_uint_eq(changed(state), 0);
    apply(state, 7000, "turn.completed", "{\"turn_id\":\"turn-3000\"}");
    ck_assert_uint_gt(changed(state), 1);
    ck_assert_uint_lt(changed(state), 8);
    ck_assert_uint_lt(annal__state_vfs_own_bytes(state->pages), 65536);

    store_take(&store, state);
    const annal__state_source source = source_of(&store);
    ck_ok(annal__state_rebase(state, &source, err));
    ck_assert_uint_eq(changed(state), 0);
    annal_state_free(state);
    store_done(&store);
}
END_TEST

START_TEST(between_two_rebases_a_state_keeps_only_changed_pages)
{
    annal_state *state = core_state();
    struct store store = {0};
    for (uint64_t seq = 0; seq < 12000; seq += 1000) {
        fold_turns(state, seq + 1, seq + 990);
        store_take(&store, state);
        ck_assert_uint_lt(annal__state_vfs_own_bytes(state->pages), (size_t)600 << 10);
        const annal__state_source source = source_of(&store);
        ck_ok(annal__state_rebase(state, &source, err));
    }
    ck_assert_uint_gt(store.count * ANNAL_STATE_PAGE_BYTES, (size_t)1400 << 10);
    annal_state_free(state);
    store_done(&store);
}
END_TEST

/* A transaction keeps the old content of each changed page in memory. */
START_TEST(a_long_fold_does_not_keep_all_in_one_transaction)
{
    annal_state *state = core_state(), *looked_at = core_state();
    for (uint64_t seq = 1; seq <= 20000; seq++) {
        apply(state, seq, "x", "{}");
        apply(looked_at, seq, "x", "{}");
        if (seq % 1000 == 0)
            ck_equal(looked_at, looked_at);
    }
    ck_assert_uint_lt(state->in_transaction, 10000);
    ck_equal(state, looked_at);
    annal_state_free(state);
    annal_state_free(looked_at);
}
END_TEST

/* Also after repeated queries, and from pages. */
START_TEST(a_failed_settle_is_counted_until_it_succeeds)
{
    static const char text[] = "-- pack p   version 1   database p.db\n"
                               "CREATE TABLE seen (n INTEGER CHECK (n <> 3));\n"
                               "CREATE TABLE settled (n INTEGER CHECK (n <> 4));\n"
                               "-- on a\n"
                               "INSERT INTO seen VALUES (:seq);\n"
                               "-- settle\n"
                               "INSERT INTO settled SELECT 1 + count(*) FROM seen;\n";
    annal_pack *pack = NULL;
    annal_state *state = NULL;
    struct store store = {0};
    uint64_t pages;
    ck_ok(annal_pack_parse("p.sql", annal_slice_of(text), &pack, err));
    const annal_pack *const packs[] = {pack};
    ck_ok(annal__state_new(ANNAL_SLICE("s"), packs, 1, &state, err));
    for (uint64_t seq = 1; seq <= 4; seq++) /* event 3 is refused, then the settle fails */
        apply(state, seq, "a", "{}");
    ck_assert_uint_eq(annal__state_refused(state), 1);
    for (int i = 0; i < 2; i++) {
        ck_ok(annal__state_page_count(state, &pages, err));
        ck_assert_uint_eq(annal__state_refused(state), 2);
    }
    store_take(&store, state);
    annal_state_free(state);
    const annal__state_source source = source_of(&store);
    ck_ok(annal__state_open_over(ANNAL_SLICE("s"), packs, 1, &source, &state, err));
    ck_assert_uint_eq(annal__state_refused(state), 2);
    apply(state, 5, "a", "{}");
    ck_ok(annal__state_page_count(state, &pages, err));
    ck_assert_uint_eq(annal__state_refused(state), 1);
    annal_state_free(state);
    annal_pack_free(pack);
    store_done(&store);
}
END_TEST

/* Over a source that still provides the unchanged pages. */
START_TEST(pages_put_into_a_file_take_no_memory_and_stay_readable)
{
    annal_state *straight = core_state(), *state = core_state();
    struct store store = {0};
    fold_turns(straight, 1, 3000);
    fold_turns(state, 1, 3000);
    store_take(&store, state);
    annal_state_free(state);
    state = open_over(&store);
    for (uint64_t seq = 3001; seq < 9000; seq += 1000) {
        fold_turns(straight, seq, seq + 900);
        fold_turns(state, seq, seq + 900);
        ck_ok(annal__state_spill(state, seq > 7000 ? "/proc/nowhere" : "/tmp", 1000, err));
        ck_assert_uint_lt(annal__state_vfs_own_bytes(state->pages), 32768);
        ck_assert_uint_gt(changed(state), 20);
    }
    store_take(&store, state);
    ck_equal(straight, state);
    const annal__state_source source = source_of(&store);
    ck_ok(annal__state_rebase(state, &source, err));
    ck_equal(straight, state);
    annal_state_free(straight);
    annal_state_free(state);
    store_done(&store);
}
END_TEST

START_TEST(pages_that_cannot_be_put_into_a_file_stay_in_memory)
{
    annal_state *straight = core_state(), *state = core_state();
    for (uint64_t seq = 1; seq < 2000; seq += 1000) {
        fold_turns(straight, seq, seq + 900);
        fold_turns(state, seq, seq + 900);
        ck_ok(annal__state_spill(state, "/proc/nowhere", 1000, err));
        ck_assert_uint_gt(annal__state_vfs_own_bytes(state->pages), 1000);
    }
    ck_equal(straight, state);
    annal_state_free(straight);
    annal_state_free(state);
}
END_TEST

/* The n-th read fails, for every n; the call returns the message of the source. */
START_TEST(a_failed_read_of_a_page_fails_the_call_that_needs_it)
{
    static const annal_status with[] = {ANNAL_ERR_CORRUPT, ANNAL_ERR_IO, ANNAL_ERR_NOMEM};
    annal_slice select = ANNAL_SLICE("SELECT COUNT(*), MAX(sequence) FROM turns");
    annal_state *state = core_state();
    struct store store = {0};
    fold_turns(state, 1, 2000);
    store_take(&store, state);
    annal_state_free(state);
    unsigned opening = 0, reading = 0, applying = 0;
    for (unsigned n = 1;; n++) {
        annal_error why = {0};
        struct text text = {0};
        const annal__state_source source = source_of(&store);
        store.reads = store.closes = 0;
        store.fail_at = n;
        store.fail_with = with[n % (sizeof with / sizeof *with)];
        state = NULL;
        annal_status status =
            annal__state_open_over(ANNAL_SLICE("s"), NULL, 0, &source, &state, &why);
        opening += status < 0;
        ck_assert_uint_eq(store.closes, 0);
        if (status >= 0) {
            status = annal_state_sql(state, select, NULL, text_row, &text, &why);
            reading += status < 0;
            if (status < 0) { /* the next call reads again */
                ck_ok(annal_state_sql(state, select, NULL, text_row, &text, err));
                ck_assert_str_eq(text.ptr, "1997|2000\n");
            }
        }
        if (status >= 0) {
            const annal_event event = {.seq = 3000,
                                       .ts_us = 1,
                                       .type = ANNAL_SLICE("turn.completed"),
                                       .data = ANNAL_SLICE("{\"turn_id\":\"turn-7\"}")};
            status = annal_state_apply(state, &event, &why);
            applying += status < 0;
        }
        free(text.ptr);
        annal_state_free(state);
        if (status >= 0)
            break;
        ck_assert_int_eq(status, store.fail_with);
        ck_assert_ptr_nonnull(strstr(why.message, "is gone"));
    }
    ck_assert_uint_gt(opening, 0);
    ck_assert_uint_gt(reading, 5);
    ck_assert_uint_gt(applying, 0);
    store_done(&store);
}
END_TEST

START_TEST(pages_of_another_session_or_format_are_refused)
{
    annal_state *state = core_state(), *opened = NULL;
    struct store store = {0};
    apply(state, 1, "x", "{}");
    store_take(&store, state);
    annal_state_free(state);
    annal__state_source source = source_of(&store);
    ck_assert_int_eq(annal__state_open_over(ANNAL_SLICE("other"), NULL, 0, &source, &opened, NULL),
                     ANNAL_ERR_CORRUPT);
    static const size_t bad[] = {0, 16, 17, 18, 19}; /* magic, size of a page, a write-ahead log */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        store.pages[0][bad[i]] ^= 2;
        ck_assert_int_eq(annal__state_open_over(ANNAL_SLICE("s"), NULL, 0, &source, &opened, NULL),
                         ANNAL_ERR_CORRUPT);
        store.pages[0][bad[i]] ^= 2;
    }
    memset(store.pages[1], 0xff, 8); /* of _state */
    ck_assert_int_eq(annal__state_open_over(ANNAL_SLICE("s"), NULL, 0, &source, &opened, NULL),
                     ANNAL_ERR_CORRUPT);
    source.page_count = 0;
    ck_assert_int_eq(annal__state_open_over(ANNAL_SLICE("s"), NULL, 0, &source, &opened, NULL),
                     ANNAL_ERR_CORRUPT);
    ck_assert_uint_eq(store.closes, 0);
    store_done(&store);
}
END_TEST

static void run(annal_state *state, const char *sql)
{
    ck_assert_int_eq(sqlite3_db_config(state->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL), SQLITE_OK);
    ck_ok(annal__db_exec(state->db, sql, err));
}

static const char *const plants[] = {
    "CREATE TRIGGER evil AFTER INSERT ON t BEGIN DELETE FROM t; END",
    "ALTER TABLE t RENAME TO u; CREATE VIEW t AS SELECT * FROM u",
    "DROP VIEW twice; CREATE VIEW twice AS SELECT 7 AS n FROM t",
    "DROP TRIGGER whole",
    "CREATE TABLE u (a)",
};

/* As a snapshot of a pack would be, if there were one. */
START_TEST(pages_with_other_tables_than_those_of_a_users_pack_are_refused)
{
    static const char text[] = "-- pack p   version 1   database p.db\n"
                               "CREATE TABLE t (n INTEGER);\n"
                               "CREATE VIEW twice AS SELECT 2 * n AS n FROM t;\n"
                               "CREATE TRIGGER whole BEFORE INSERT ON t WHEN NEW.n < 0 BEGIN\n"
                               "    SELECT RAISE(IGNORE);\n"
                               "END;\n"
                               "-- on a\n"
                               "INSERT INTO t VALUES (:seq);\n";
    annal_pack *pack = NULL;
    ck_ok(annal_pack_parse("p.sql", annal_slice_of(text), &pack, err));
    const annal_pack *const packs[] = {pack};
    for (size_t i = 0; i <= sizeof plants / sizeof *plants; i++) {
        annal_state *state = NULL;
        struct store store = {0};
        int defensive = 0;
        bool planted = i < sizeof plants / sizeof *plants;
        ck_ok(annal__state_new(ANNAL_SLICE("s"), packs, 1, &state, err));
        apply(state, 1, "a", "{}");
        store_take(&store, state);
        if (planted)
            run(state, plants[i]);
        store_take(&store, state);
        annal_state_free(state);
        state = NULL;
        const annal__state_source source = source_of(&store);
        ck_assert_int_eq(annal__state_open_over(ANNAL_SLICE("s"), packs, 1, &source, &state, NULL),
                         planted ? ANNAL_ERR_CORRUPT : ANNAL_OK);
        if (!planted) {
            sqlite3_db_config(state->db, SQLITE_DBCONFIG_DEFENSIVE, -1, &defensive);
            ck_assert_int_eq(defensive, 1);
        }
        annal_state_free(state);
        store_done(&store);
    }
    annal_pack_free(pack);
}
END_TEST

/* Another program may write the file of a snapshot after it was opened. */
START_TEST(tables_that_change_in_an_open_source_are_not_used)
{
    annal_state *state = core_state(), *planted = NULL;
    struct store store = {0}, changed = {0};
    struct text text = {0};
    fold_turns(state, 1, 20);
    store_take(&store, state);
    store_take(&changed, state);
    annal_state_free(state);
    planted = open_over(&changed);
    run(planted, "CREATE TRIGGER evil AFTER UPDATE ON sessions BEGIN DELETE FROM turns; END");
    store_take(&changed, planted);
    ck_assert_uint_eq(changed.count, store.count);
    state = open_over(&store);
    memcpy(store.pages, changed.pages, (size_t)store.count * ANNAL_STATE_PAGE_BYTES);
    fold_turns(state, 21, 30);
    ck_ok(annal_state_sql(state, ANNAL_SLICE("SELECT COUNT(*) > 20 FROM turns"), NULL, text_row,
                          &text, err));
    ck_assert_str_eq(text.ptr, "1\n");
    free(text.ptr);
    annal_state_free(planted);
    annal_state_free(state);
    store_done(&store);
    store_done(&changed);
}
END_TEST

START_TEST(a_rebase_onto_a_source_with_another_number_of_pages_is_refused)
{
    annal_state *state = core_state();
    struct store store = {0};
    char page[ANNAL_STATE_PAGE_BYTES];
    apply(state, 1, "x", "{}");
    store_take(&store, state);
    annal__state_source source = source_of(&store);
    source.page_count--;
    ck_assert_int_eq(annal__state_rebase(state, &source, NULL), ANNAL_ERR_INVALID);
    ck_assert_uint_eq(store.closes, 0);
    ck_assert_uint_eq(changed(state), store.count);
    ck_assert_int_eq(annal__state_page(state, 0, page, NULL), ANNAL_ERR_INVALID);
    ck_assert_int_eq(annal__state_page(state, store.count + 1, page, NULL), ANNAL_ERR_INVALID);
    annal_state_free(state);
    store_done(&store);
}
END_TEST

/* Both sources have equal numbers of pages and transactions: SQLite itself sees no difference. */
START_TEST(a_reused_state_equals_its_new_source)
{
    annal_pack *core = NULL;
    annal_state *used = NULL, *state = NULL;
    ck_ok(annal__pack_core(&core, err));
    ck_ok(annal__state_new(ANNAL_SLICE("s"), (const annal_pack *const[]){core}, 1, &used, err));
    ck_assert(annal__state_rest(used));
    for (unsigned i = 0; i < 4; i++) {
        struct store store = {0};
        state = core_state();
        fold_turns(state, 100 + 100 * i, 190 + 100 * i);
        store_take(&store, state);
        const annal__state_source source = source_of(&store);
        ck_ok(annal__state_reopen(used, ANNAL_SLICE("s"), &source, err));
        ck_assert_uint_eq(changed(used), 0);
        ck_equal(state, used);
        if (i > 1) { /* leaves a transaction under way */
            fold_turns(used, 600, 650);
            fold_turns(state, 600, 650);
        }
        if (i == 3)
            ck_equal(state, used);
        fold_turns(used, 700, 710);
        annal_state_free(state);
        ck_assert(annal__state_rest(used));
        ck_assert_uint_eq(store.closes, 1);
        store_done(&store);
    }
    ck_ok(annal__state_reopen(used, ANNAL_SLICE("s"), NULL, err));
    state = core_state();
    ck_assert_uint_eq(changed(used), changed(state));
    fold_turns(used, 1, 50);
    fold_turns(state, 1, 50);
    ck_equal(state, used);
    annal_state_free(used);
    annal_state_free(state);
    annal_pack_free(core);
}
END_TEST

/* Count our open files without a name. */
static unsigned nameless_files(void)
{
    unsigned count = 0;
    char path[40], target[400];
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t len = readlink(path, target, sizeof target - 1);
        target[len < 0 ? 0 : len] = '\0';
        count += strstr(target, " (deleted)") != NULL;
    }
    return count;
}

START_TEST(a_resting_state_keeps_no_file_open)
{
    annal_state *state = core_state();
    unsigned before = nameless_files();
    fold_turns(state, 1, 100);
    ck_ok(annal__state_spill(state, "/tmp", 1000, err));
    ck_assert_uint_eq(nameless_files(), before + 1);
    ck_assert(annal__state_rest(state));
    ck_assert_uint_eq(nameless_files(), before);
    annal_state_free(state);
}
END_TEST

START_TEST(a_state_is_not_reused_over_other_tables)
{
    static const char text[] = "-- pack e   version 1   database e.db\n"
                               "CREATE TABLE e (seq);\n"
                               "-- on x.y\n"
                               "INSERT INTO e VALUES (:seq);\n";
    annal_pack *pack = NULL;
    annal_state *used = core_state(), *other = NULL;
    struct store store = {0};
    ck_ok(annal_pack_parse("e.sql", annal_slice_of(text), &pack, err));
    ck_ok(annal__state_new(ANNAL_SLICE("s"), (const annal_pack *const[]){pack}, 1, &other, err));
    apply(other, 1, "x.y", "{}");
    store_take(&store, other);
    const annal__state_source source = source_of(&store);
    ck_assert(annal__state_rest(used));
    ck_assert_int_eq(annal__state_reopen(used, ANNAL_SLICE("s"), &source, NULL),
                     ANNAL_ERR_CONFLICT);
    annal_state_free(used);
    ck_assert_uint_eq(store.closes, 0);
    annal_state_free(other);
    annal_pack_free(pack);
    store_done(&store);
}
END_TEST

Suite *suite_state_vfs(void)
{
    Suite *suite = suite_create("state_vfs");
    TCase *tcase = suite_case(suite, "pages", NULL, NULL);
    tcase_add_loop_test(tcase, random_sql_gives_the_same_rows_over_a_source_and_in_memory, 0, 8);
    tcase_add_loop_test(tcase, a_state_over_pages_equals_a_state_in_memory, 0, 3);
    tcase_add_test(tcase, a_failed_settle_is_counted_until_it_succeeds);
    tcase_add_test(tcase, the_hash_of_a_state_is_the_sha256_of_its_json);
    tcase_add_test(tcase, a_large_state_reads_and_keeps_only_the_pages_that_it_needs);
    tcase_add_test(tcase, between_two_rebases_a_state_keeps_only_changed_pages);
    tcase_add_test(tcase, a_long_fold_does_not_keep_all_in_one_transaction);
    tcase_add_test(tcase, pages_put_into_a_file_take_no_memory_and_stay_readable);
    tcase_add_test(tcase, pages_that_cannot_be_put_into_a_file_stay_in_memory);
    tcase_add_test(tcase, a_failed_read_of_a_page_fails_the_call_that_needs_it);
    tcase_add_test(tcase, pages_of_another_session_or_format_are_refused);
    tcase_add_test(tcase, pages_with_other_tables_than_those_of_a_users_pack_are_refused);
    tcase_add_test(tcase, tables_that_change_in_an_open_source_are_not_used);
    tcase_add_test(tcase, a_rebase_onto_a_source_with_another_number_of_pages_is_refused);
    tcase_add_test(tcase, a_reused_state_equals_its_new_source);
    tcase_add_test(tcase, a_resting_state_keeps_no_file_open);
    tcase_add_test(tcase, a_state_is_not_reused_over_other_tables);
    return suite;
}
