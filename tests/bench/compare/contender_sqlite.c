/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table of SQLite, in WAL mode, whose key is what queries ask for. synchronous=FULL syncs the
 * WAL with each transaction, NORMAL only when it is moved into the database.
 */
#include "tests/bench/compare/contender.h"
#include "tests/bench/compare/events_table.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BUSY_MS 60000

struct table {
    const struct place *place;
    const char *synchronous;
    sqlite3 *reader;
    sqlite3_stmt *select, *find, *count;
};

struct inserter {
    sqlite3 *db;
    sqlite3_stmt *insert, *begin, *commit;
};

static void check(sqlite3 *db, int code, const char *what)
{
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW)
        bench_fail("sqlite: %s: %s", what, db == NULL ? "no memory" : sqlite3_errmsg(db));
}

/* Of two that change the mode of a new file at once one is refused, without its handler asked. */
static int set_pragmas(sqlite3 *db, const char *pragmas)
{
    int code = sqlite3_exec(db, pragmas, NULL, NULL, NULL);
    for (unsigned ms = 0; code == SQLITE_BUSY && ms < BUSY_MS; ms += 10) {
        sqlite3_sleep(10);
        code = sqlite3_exec(db, pragmas, NULL, NULL, NULL);
    }
    return code;
}

static sqlite3 *connect_to(const struct table *table)
{
    char path[4096], pragmas[256];
    sqlite3 *db = NULL;
    snprintf(path, sizeof path, "%s/events.db", table->place->dir);
    snprintf(pragmas, sizeof pragmas, "PRAGMA journal_mode=WAL; PRAGMA synchronous=%s",
             table->synchronous);
    check(db, sqlite3_open(path, &db), "open");
    sqlite3_busy_timeout(db, BUSY_MS);
    check(db, set_pragmas(db, pragmas), "pragmas");
    check(db, sqlite3_exec(db, EVENTS_TABLE, NULL, NULL, NULL), "create");
    if (table->place->asked)
        check(db, sqlite3_exec(db, EVENTS_INDEX, NULL, NULL, NULL), "index");
    return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    check(db, sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL), sql);
    return statement;
}

static void *open_table(const struct place *place, const char *synchronous)
{
    struct table *table = bench_alloc(sizeof *table);
    *table = (struct table){.place = place, .synchronous = synchronous};
    table->reader = connect_to(table);
    table->select = prepare(table->reader, EVENTS_SELECT);
    table->find = prepare(table->reader, EVENTS_FIND);
    table->count = prepare(table->reader, EVENTS_COUNT);
    return table;
}

static void *full_open(const struct place *place, unsigned process)
{
    (void)process;
    return open_table(place, "FULL");
}

static void *normal_open(const struct place *place, unsigned process)
{
    (void)process;
    return open_table(place, "NORMAL");
}

static void sqlite_close(void *handle)
{
    struct table *table = handle;
    sqlite3_finalize(table->select);
    sqlite3_finalize(table->find);
    sqlite3_finalize(table->count);
    sqlite3_close(table->reader);
    free(table);
}

static void *sqlite_writer_open(void *handle)
{
    struct inserter *inserter = bench_alloc(sizeof *inserter);
    inserter->db = connect_to(handle);
    inserter->insert = prepare(inserter->db, EVENTS_INSERT);
    inserter->begin = prepare(inserter->db, "BEGIN IMMEDIATE");
    inserter->commit = prepare(inserter->db, "COMMIT");
    return inserter;
}

static void sqlite_writer_close(void *writer)
{
    struct inserter *inserter = writer;
    sqlite3_finalize(inserter->insert);
    sqlite3_finalize(inserter->begin);
    sqlite3_finalize(inserter->commit);
    sqlite3_close(inserter->db);
    free(inserter);
}

static void step(struct inserter *inserter, sqlite3_stmt *statement, const char *what)
{
    check(inserter->db, sqlite3_step(statement), what);
    sqlite3_reset(statement);
}

static void bind_text(sqlite3_stmt *statement, int column, annal_slice text)
{
    sqlite3_bind_text(statement, column, text.ptr, (int)text.len, SQLITE_STATIC);
}

static void sqlite_append(void *writer, const struct bench_event *events, size_t count)
{
    struct inserter *inserter = writer;
    if (count > 1)
        step(inserter, inserter->begin, "begin");
    for (size_t i = 0; i < count; i++) {
        bind_text(inserter->insert, 1, events[i].name);
        sqlite3_bind_int64(inserter->insert, 2, (sqlite3_int64)events[i].seq);
        sqlite3_bind_int64(inserter->insert, 3, events[i].ts_us);
        bind_text(inserter->insert, 4, events[i].type);
        bind_text(inserter->insert, 5, events[i].data);
        step(inserter, inserter->insert, "insert");
    }
    if (count > 1)
        step(inserter, inserter->commit, "commit");
}

static annal_slice column(sqlite3_stmt *statement, int number)
{
    const char *text = (const char *)sqlite3_column_text(statement, number);
    return (annal_slice){text, (size_t)sqlite3_column_bytes(statement, number)};
}

static uint64_t select_events(struct table *table, unsigned session, uint64_t from_seq,
                              uint64_t count, bench_event_fn fn, void *arg)
{
    annal_slice name = payloads_name(table->place->payloads, session);
    int code;
    uint64_t done = 0;
    bind_text(table->select, 1, name);
    sqlite3_bind_int64(table->select, 2, (sqlite3_int64)from_seq);
    sqlite3_bind_int64(table->select, 3, count > INT64_MAX ? INT64_MAX : (sqlite3_int64)count);
    while ((code = sqlite3_step(table->select)) == SQLITE_ROW) {
        fn(arg, &(struct bench_event){.session = session,
                                      .name = name,
                                      .seq = (uint64_t)sqlite3_column_int64(table->select, 0),
                                      .ts_us = sqlite3_column_int64(table->select, 1),
                                      .type = column(table->select, 2),
                                      .data = column(table->select, 3)});
        done++;
    }
    check(table->reader, code, "select");
    sqlite3_reset(table->select);
    return done;
}

static void sqlite_read(void *handle, unsigned session, uint64_t from_seq, uint64_t count,
                        bench_event_fn fn, void *arg)
{
    select_events(handle, session, from_seq, count, fn, arg);
}

/* ---- By type and time ---- */

static void sqlite_find_type(void *handle, annal_slice type, int64_t from_us, int64_t to_us,
                             bench_event_fn fn, void *arg)
{
    struct table *table = handle;
    sqlite3_stmt *find = table->find;
    int code;
    bind_text(find, 1, type);
    sqlite3_bind_int64(find, 2, from_us);
    sqlite3_bind_int64(find, 3, to_us);
    while ((code = sqlite3_step(find)) == SQLITE_ROW) {
        annal_slice name = column(find, 0);
        fn(arg, &(struct bench_event){.session = payloads_session(name),
                                      .name = name,
                                      .seq = (uint64_t)sqlite3_column_int64(find, 1),
                                      .ts_us = sqlite3_column_int64(find, 2),
                                      .type = type,
                                      .data = column(find, 3)});
    }
    check(table->reader, code, "find");
    sqlite3_reset(find);
}

static uint64_t sqlite_count_type(void *handle, annal_slice type)
{
    struct table *table = handle;
    bind_text(table->count, 1, type);
    check(table->reader, sqlite3_step(table->count), "count");
    uint64_t count = (uint64_t)sqlite3_column_int64(table->count, 0);
    sqlite3_reset(table->count);
    return count;
}

/* ---- Following: nothing wakes a reader, so it asks once a millisecond ---- */

struct sqlite_tail {
    struct table *table;
    unsigned session;
    uint64_t next_seq;
};

static void *sqlite_tail_open(void *handle, unsigned session)
{
    struct sqlite_tail *tail = bench_alloc(sizeof *tail);
    *tail = (struct sqlite_tail){handle, session, 1};
    return tail;
}

static bool sqlite_tail_next(void *arg_tail, unsigned timeout_ms, bench_event_fn fn, void *arg)
{
    struct sqlite_tail *tail = arg_tail;
    for (unsigned waited = 0; waited <= timeout_ms; waited++) {
        if (select_events(tail->table, tail->session, tail->next_seq, 1, fn, arg) == 1) {
            tail->next_seq++;
            return true;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

static void sqlite_version(char out[BENCH_VERSION_BYTES])
{
    snprintf(out, BENCH_VERSION_BYTES, "%s", sqlite3_libversion());
}

#define SQLITE                                                                                     \
    .version = sqlite_version, .close = sqlite_close, .writer_open = sqlite_writer_open,           \
    .writer_close = sqlite_writer_close, .append = sqlite_append, .read = sqlite_read,             \
    .find_type = sqlite_find_type, .count_type = sqlite_count_type, .tail_open = sqlite_tail_open, \
    .tail_next = sqlite_tail_next, .tail_close = free

const struct contender contender_sqlite_full = {
    .name = "sqlite-full", .promise = "on the disk", .durable = true, .open = full_open, SQLITE};
const struct contender contender_sqlite_normal = {
    .name = "sqlite-normal",
    .promise = "in the page cache: a power cut takes the last transactions",
    .open = normal_open,
    SQLITE};
