/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turso, SQLite rewritten in Rust, with the table of contender_sqlite.c. Both contenders sync each
 * commit. turso-mvcc uses BEGIN CONCURRENT: connections write at the same time, and their commits
 * share a sync. turso-wal allows a single writer at a time.
 *
 * Without async_io a thread that waits for another thread polls in a loop and takes a core for
 * that. With async_io it gets TURSO_IO and can pause.
 */
#include "tests/bench/compare/contender.h"
#include "tests/bench/compare/events_table.h"

#include "journal/base/slice.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <turso.h>

#define BUSY_MS  60000
#define PAUSE_NS 50000

struct mode {
    const char *name, *pragma, *begin;
    bool begins_always; /* a single event is concurrent only after BEGIN */
};

static const struct mode mvcc = {"mvcc", "PRAGMA journal_mode='mvcc'", "BEGIN CONCURRENT", true};
static const struct mode wal = {"wal", "PRAGMA journal_mode='wal'", "BEGIN IMMEDIATE", false};

struct table {
    const struct place *place;
    const struct mode *mode;
    const turso_database_t *db;
    turso_connection_t *reader;
    turso_statement_t *select, *find, *count;
};

struct inserter {
    const struct mode *mode;
    turso_connection_t *connection;
    turso_statement_t *begin, *insert, *commit;
};

static void check(turso_status_code_t code, const char *why, const char *what)
{
    if (code != TURSO_OK && code != TURSO_DONE && code != TURSO_ROW)
        bench_fail("turso: %s: %s (%d)", what, why == NULL ? "no reason" : why, (int)code);
}

static turso_statement_t *prepare(const turso_connection_t *connection, const char *sql)
{
    const char *why = NULL;
    turso_statement_t *statement = NULL;
    check(turso_connection_prepare_single(connection, sql, &statement, &why), why, sql);
    return statement;
}

static void pause_shortly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* True: there is a row. */
static bool step(turso_statement_t *statement, const char *what)
{
    const char *why = NULL;
    turso_status_code_t code;
    while ((code = turso_statement_step(statement, &why)) == TURSO_IO) {
        check(turso_statement_run_io(statement, &why), why, what);
        pause_shortly();
    }
    check(code, why, what);
    return code == TURSO_ROW;
}

static void reset(turso_statement_t *statement)
{
    const char *why = NULL;
    check(turso_statement_reset(statement, &why), why, "reset");
}

static void run_statement(turso_statement_t *statement, const char *what)
{
    while (step(statement, what))
        ;
    reset(statement);
}

static void run_sql(const turso_connection_t *connection, const char *sql)
{
    turso_statement_t *statement = prepare(connection, sql);
    run_statement(statement, sql);
    turso_statement_deinit(statement);
}

static turso_connection_t *connect_to(const struct table *table)
{
    const char *why = NULL;
    turso_connection_t *connection = NULL;
    check(turso_database_connect(table->db, &connection, &why), why, "connect");
    turso_connection_set_busy_timeout_ms(connection, BUSY_MS);
    run_sql(connection, "PRAGMA synchronous=FULL");
    return connection;
}

static void disconnect(turso_connection_t *connection)
{
    const char *why = NULL;
    check(turso_connection_close(connection, &why), why, "close");
    turso_connection_deinit(connection);
}

static void open_database(struct table *table)
{
    char path[4096];
    const char *why = NULL;
    snprintf(path, sizeof path, "%s/events.db", table->place->dir);
    turso_database_config_t config = {.async_io = true, .path = path};
    if (table->place->processes > 1)
        config.experimental_features = "multiprocess_wal";
    check(turso_database_new(&config, &table->db, &why), why, "new");
    turso_status_code_t code;
    while ((code = turso_database_open(table->db, &why)) == TURSO_IO)
        pause_shortly();
    check(code, why, "open");
}

static annal_slice column(const turso_statement_t *statement, size_t number)
{
    return (annal_slice){turso_statement_row_value_bytes_ptr(statement, number),
                         (size_t)turso_statement_row_value_bytes_count(statement, number)};
}

static void set_mode(const turso_connection_t *connection, const struct mode *mode)
{
    turso_statement_t *statement = prepare(connection, mode->pragma);
    if (!step(statement, mode->pragma) || !annal__slice_is(column(statement, 0), mode->name))
        bench_fail("turso: the database did not take '%s'", mode->pragma);
    reset(statement);
    turso_statement_deinit(statement);
}

static void *open_table(const struct place *place, const struct mode *mode)
{
    struct table *table = bench_alloc(sizeof *table);
    *table = (struct table){.place = place, .mode = mode};
    open_database(table);
    table->reader = connect_to(table);
    set_mode(table->reader, mode);
    run_sql(table->reader, EVENTS_TABLE);
    if (place->asked)
        run_sql(table->reader, EVENTS_INDEX);
    table->select = prepare(table->reader, EVENTS_SELECT);
    table->find = prepare(table->reader, EVENTS_FIND);
    table->count = prepare(table->reader, EVENTS_COUNT);
    return table;
}

static void *mvcc_open(const struct place *place, unsigned process)
{
    (void)process;
    return open_table(place, &mvcc);
}

static void *wal_open(const struct place *place, unsigned process)
{
    (void)process;
    return open_table(place, &wal);
}

static void turso_close(void *handle)
{
    struct table *table = handle;
    turso_statement_deinit(table->select);
    turso_statement_deinit(table->find);
    turso_statement_deinit(table->count);
    disconnect(table->reader);
    turso_database_deinit(table->db);
    free(table);
}

static void *turso_writer_open(void *handle)
{
    const struct table *table = handle;
    struct inserter *inserter = bench_alloc(sizeof *inserter);
    *inserter = (struct inserter){.mode = table->mode, .connection = connect_to(table)};
    inserter->begin = prepare(inserter->connection, table->mode->begin);
    inserter->insert = prepare(inserter->connection, EVENTS_INSERT);
    inserter->commit = prepare(inserter->connection, "COMMIT");
    return inserter;
}

static void turso_writer_close(void *writer)
{
    struct inserter *inserter = writer;
    turso_statement_deinit(inserter->begin);
    turso_statement_deinit(inserter->insert);
    turso_statement_deinit(inserter->commit);
    disconnect(inserter->connection);
    free(inserter);
}

static void bind_text(turso_statement_t *statement, size_t column, annal_slice text)
{
    check(turso_statement_bind_positional_text(statement, column, text.ptr, text.len), NULL,
          "bind");
}

static void bind_int(turso_statement_t *statement, size_t column, int64_t value)
{
    check(turso_statement_bind_positional_int(statement, column, value), NULL, "bind");
}

static void turso_append(void *writer, const struct bench_event *events, size_t count)
{
    struct inserter *inserter = writer;
    bool begins = count > 1 || inserter->mode->begins_always;
    if (begins)
        run_statement(inserter->begin, "begin");
    for (size_t i = 0; i < count; i++) {
        bind_text(inserter->insert, 1, events[i].name);
        bind_int(inserter->insert, 2, (int64_t)events[i].seq);
        bind_int(inserter->insert, 3, events[i].ts_us);
        bind_text(inserter->insert, 4, events[i].type);
        bind_text(inserter->insert, 5, events[i].data);
        run_statement(inserter->insert, "insert");
    }
    if (begins)
        run_statement(inserter->commit, "commit");
}

static uint64_t select_events(struct table *table, unsigned session, uint64_t from_seq,
                              uint64_t count, bench_event_fn fn, void *arg)
{
    annal_slice name = payloads_name(table->place->payloads, session);
    turso_statement_t *select = table->select;
    uint64_t done = 0;
    bind_text(select, 1, name);
    bind_int(select, 2, (int64_t)from_seq);
    bind_int(select, 3, count > INT64_MAX ? INT64_MAX : (int64_t)count);
    for (; step(select, "select"); done++)
        fn(arg, &(struct bench_event){.session = session,
                                      .name = name,
                                      .seq = (uint64_t)turso_statement_row_value_int(select, 0),
                                      .ts_us = turso_statement_row_value_int(select, 1),
                                      .type = column(select, 2),
                                      .data = column(select, 3)});
    reset(select);
    return done;
}

static void turso_read(void *handle, unsigned session, uint64_t from_seq, uint64_t count,
                       bench_event_fn fn, void *arg)
{
    select_events(handle, session, from_seq, count, fn, arg);
}

static void turso_find_type(void *handle, annal_slice type, int64_t from_us, int64_t to_us,
                            bench_event_fn fn, void *arg)
{
    struct table *table = handle;
    turso_statement_t *find = table->find;
    bind_text(find, 1, type);
    bind_int(find, 2, from_us);
    bind_int(find, 3, to_us);
    while (step(find, "find")) {
        annal_slice name = column(find, 0);
        fn(arg, &(struct bench_event){.session = payloads_session(name),
                                      .name = name,
                                      .seq = (uint64_t)turso_statement_row_value_int(find, 1),
                                      .ts_us = turso_statement_row_value_int(find, 2),
                                      .type = type,
                                      .data = column(find, 3)});
    }
    reset(find);
}

static uint64_t turso_count_type(void *handle, annal_slice type)
{
    struct table *table = handle;
    bind_text(table->count, 1, type);
    step(table->count, "count");
    uint64_t count = (uint64_t)turso_statement_row_value_int(table->count, 0);
    reset(table->count);
    return count;
}

static void turso_library_version(char out[BENCH_VERSION_BYTES])
{
    snprintf(out, BENCH_VERSION_BYTES, "%s", turso_version());
}

#define TURSO                                                                                      \
    .promise = "on the disk", .durable = true, .version = turso_library_version,                   \
    .close = turso_close, .writer_open = turso_writer_open, .writer_close = turso_writer_close,    \
    .append = turso_append, .read = turso_read, .find_type = turso_find_type,                      \
    .count_type = turso_count_type

const struct contender contender_turso_mvcc = {.name = "turso-mvcc",
                                               .no_processes =
                                                   "one process may open a database in this mode",
                                               .open = mvcc_open,
                                               TURSO};
const struct contender contender_turso_wal = {.name = "turso-wal", .open = wal_open, TURSO};
