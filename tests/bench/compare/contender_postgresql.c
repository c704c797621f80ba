/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PostgreSQL with its defaults: fsync and synchronous_commit are on. One event is a prepared
 * INSERT, many are a COPY. It refuses to run as root, so root runs it as the user whom Debian makes
 * for it.
 */
#include "tests/bench/compare/server.h"

#include <endian.h>
#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USER        "postgres"
#define START_TRIES 1500

struct postgresql {
    const struct place *place;
    PGconn *conn;
};

struct copier {
    const struct place *place;
    PGconn *conn;
    char *bytes;
    size_t len, room;
};

static bool postgresql_find(char why[BENCH_WHY_BYTES])
{
    char path[SERVER_PATH_BYTES];
    return server_find("initdb", "postgresql", path, why) &&
           server_find("postgres", "postgresql", path, why);
}

static void postgresql_version(char out[BENCH_VERSION_BYTES])
{
    server_version("postgres", out);
}

static PGconn *connect_to(const struct place *place)
{
    char info[4300];
    snprintf(info, sizeof info, "host='%s/pg' user=" USER " dbname=postgres", place->dir);
    return PQconnectdb(info);
}

static PGresult *check(PGconn *conn, PGresult *result, ExecStatusType wanted, const char *what)
{
    if (PQresultStatus(result) != wanted)
        bench_fail("postgresql: %s: %.200s", what, PQerrorMessage(conn));
    return result;
}

static void execute(PGconn *conn, const char *sql)
{
    PQclear(check(conn, PQexec(conn, sql), PGRES_COMMAND_OK, sql));
}

static void prepare(PGconn *conn, const char *name, const char *sql)
{
    PQclear(check(conn, PQprepare(conn, name, sql, 0, NULL), PGRES_COMMAND_OK, sql));
}

static void make_table(struct place *place)
{
    for (int i = 0; i < START_TRIES; i++) {
        PGconn *conn = connect_to(place);
        if (PQstatus(conn) == CONNECTION_OK) {
            execute(conn, "CREATE TABLE events (session text NOT NULL, seq bigint NOT NULL, ts "
                          "bigint NOT NULL, type text NOT NULL, data text NOT NULL, "
                          "PRIMARY KEY (session, seq))");
            if (place->asked)
                execute(conn, "CREATE INDEX by_type ON events (type, ts)");
            PQfinish(conn);
            return;
        }
        PQfinish(conn);
        server_check(place, "postgres");
    }
    bench_fail("postgresql: the server does not answer");
}

static void postgresql_start(struct place *place)
{
    char initdb[SERVER_PATH_BYTES], program[SERVER_PATH_BYTES], why[BENCH_WHY_BYTES];
    char dir[4100];
    if (!server_find("initdb", "postgresql", initdb, why) ||
        !server_find("postgres", "postgresql", program, why))
        bench_fail("%s", why);
    snprintf(dir, sizeof dir, "%s/pg", place->dir);
    server_give(place->dir, USER);
    const char *init[] = {initdb,  "-D", dir,    "-U",         USER,        "-A",
                          "trust", "-E", "UTF8", "--locale=C", "--no-sync", NULL};
    server_run(place, init, USER);
    const char *serve[] = {program, "-D", dir, "-c", "listen_addresses=", "-k", dir, NULL};
    server_start(place, serve, USER, SIGQUIT);
    make_table(place);
}

static void postgresql_stop(struct place *place)
{
    server_stop(place, SIGINT);
}

static void *postgresql_open(const struct place *place, unsigned process)
{
    (void)process;
    struct postgresql *postgresql = bench_alloc(sizeof *postgresql);
    *postgresql = (struct postgresql){place, connect_to(place)};
    if (PQstatus(postgresql->conn) != CONNECTION_OK)
        bench_fail("postgresql: %.200s", PQerrorMessage(postgresql->conn));
    prepare(postgresql->conn, "read",
            "SELECT seq, ts, type, data FROM events WHERE session = $1 AND seq >= $2::bigint "
            "ORDER BY seq LIMIT $3::bigint");
    prepare(postgresql->conn, "find",
            "SELECT session, seq, ts, data FROM events WHERE type = $1 AND ts >= $2::bigint AND "
            "ts < $3::bigint ORDER BY ts");
    prepare(postgresql->conn, "count", "SELECT count(*) FROM events WHERE type = $1");
    return postgresql;
}

static void postgresql_close(void *handle)
{
    struct postgresql *postgresql = handle;
    PQfinish(postgresql->conn);
    free(postgresql);
}

static void *postgresql_writer_open(void *handle)
{
    const struct place *place = ((struct postgresql *)handle)->place;
    struct copier *copier = bench_alloc(sizeof *copier);
    *copier = (struct copier){.place = place, .conn = connect_to(place)};
    if (PQstatus(copier->conn) != CONNECTION_OK)
        bench_fail("postgresql: %.200s", PQerrorMessage(copier->conn));
    const char *insert =
        place->followed ? "WITH notice AS (INSERT INTO events VALUES ($1, $2::bigint, $3::bigint, "
                          "$4, $5) RETURNING seq) SELECT pg_notify('events', seq::text) FROM notice"
                        : "INSERT INTO events VALUES ($1, $2::bigint, $3::bigint, $4, $5)";
    prepare(copier->conn, "append", insert);
    return copier;
}

static void postgresql_writer_close(void *writer)
{
    struct copier *copier = writer;
    PQfinish(copier->conn);
    free(copier->bytes);
    free(copier);
}

static void insert_one(struct copier *copier, const struct bench_event *event)
{
    uint64_t seq = htobe64(event->seq), ts = htobe64((uint64_t)event->ts_us);
    const char *values[] = {event->name.ptr, (const char *)&seq, (const char *)&ts, event->type.ptr,
                            event->data.ptr};
    const int lens[] = {(int)event->name.len, sizeof seq, sizeof ts, (int)event->type.len,
                        (int)event->data.len};
    const int binary[] = {1, 1, 1, 1, 1};
    PGresult *result = PQexecPrepared(copier->conn, "append", 5, values, lens, binary, 1);
    PQclear(check(copier->conn, result,
                  copier->place->followed ? PGRES_TUPLES_OK : PGRES_COMMAND_OK, "insert"));
}

/* ---- COPY in its binary form ---- */

static void put(struct copier *copier, const void *bytes, size_t len)
{
    if (copier->len + len > copier->room) {
        copier->room = (copier->len + len) * 2;
        copier->bytes = realloc(copier->bytes, copier->room);
        if (copier->bytes == NULL)
            bench_fail("postgresql: no memory");
    }
    memcpy(copier->bytes + copier->len, bytes, len);
    copier->len += len;
}

static void put_field(struct copier *copier, const void *bytes, size_t len)
{
    uint32_t len_be = htobe32((uint32_t)len);
    put(copier, &len_be, sizeof len_be);
    put(copier, bytes, len);
}

static void put_event(struct copier *copier, const struct bench_event *event)
{
    uint16_t fields = htobe16(5);
    uint64_t seq = htobe64(event->seq), ts = htobe64((uint64_t)event->ts_us);
    put(copier, &fields, sizeof fields);
    put_field(copier, event->name.ptr, event->name.len);
    put_field(copier, &seq, sizeof seq);
    put_field(copier, &ts, sizeof ts);
    put_field(copier, event->type.ptr, event->type.len);
    put_field(copier, event->data.ptr, event->data.len);
}

static void copy_all(struct copier *copier, const struct bench_event *events, size_t count)
{
    static const char head[19] = "PGCOPY\n\377\r\n";
    static const char tail[2] = "\377\377";
    PQclear(check(copier->conn, PQexec(copier->conn, "COPY events FROM STDIN (FORMAT binary)"),
                  PGRES_COPY_IN, "copy"));
    copier->len = 0;
    put(copier, head, sizeof head);
    for (size_t i = 0; i < count; i++)
        put_event(copier, &events[i]);
    put(copier, tail, sizeof tail);
    if (PQputCopyData(copier->conn, copier->bytes, (int)copier->len) != 1 ||
        PQputCopyEnd(copier->conn, NULL) != 1)
        bench_fail("postgresql: copy: %.200s", PQerrorMessage(copier->conn));
    PQclear(check(copier->conn, PQgetResult(copier->conn), PGRES_COMMAND_OK, "copy"));
    while (PQgetResult(copier->conn) != NULL)
        ;
}

static void postgresql_append(void *writer, const struct bench_event *events, size_t count)
{
    if (count == 1)
        insert_one(writer, events);
    else
        copy_all(writer, events, count);
}

/* ---- Reading, a thousand rows at a time ---- */

static annal_slice field(const PGresult *result, int row, int column)
{
    return (annal_slice){PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column)};
}

static uint64_t number(const PGresult *result, int row, int column)
{
    uint64_t value;
    memcpy(&value, PQgetvalue(result, row, column), sizeof value);
    return be64toh(value);
}

static uint64_t select_events(struct postgresql *postgresql, unsigned session, uint64_t from_seq,
                              uint64_t count, bench_event_fn fn, void *arg)
{
    annal_slice name = payloads_name(postgresql->place->payloads, session);
    uint64_t from = htobe64(from_seq), limit = htobe64(count);
    const char *values[] = {name.ptr, (const char *)&from, (const char *)&limit};
    const int lens[] = {(int)name.len, sizeof from, sizeof limit}, binary[] = {1, 1, 1};
    PGresult *result = check(postgresql->conn,
                             PQexecPrepared(postgresql->conn, "read", 3, values, lens, binary, 1),
                             PGRES_TUPLES_OK, "select");
    int rows = PQntuples(result);
    for (int row = 0; row < rows; row++)
        fn(arg, &(struct bench_event){.session = session,
                                      .name = name,
                                      .seq = number(result, row, 0),
                                      .ts_us = (int64_t)number(result, row, 1),
                                      .type = field(result, row, 2),
                                      .data = field(result, row, 3)});
    PQclear(result);
    return (uint64_t)rows;
}

static void postgresql_read(void *handle, unsigned session, uint64_t from_seq, uint64_t count,
                            bench_event_fn fn, void *arg)
{
    while (count > 0) {
        uint64_t chunk = count < 1000 ? count : 1000;
        uint64_t got = select_events(handle, session, from_seq, chunk, fn, arg);
        if (got < chunk)
            return;
        from_seq += got;
        count -= got;
    }
}

/* ---- By type and time ---- */

static void postgresql_find_type(void *handle, annal_slice type, int64_t from_us, int64_t to_us,
                                 bench_event_fn fn, void *arg)
{
    struct postgresql *postgresql = handle;
    uint64_t from = htobe64((uint64_t)from_us), to = htobe64((uint64_t)to_us);
    const char *values[] = {type.ptr, (const char *)&from, (const char *)&to};
    const int lens[] = {(int)type.len, sizeof from, sizeof to}, binary[] = {1, 1, 1};
    PGresult *result = check(postgresql->conn,
                             PQexecPrepared(postgresql->conn, "find", 3, values, lens, binary, 1),
                             PGRES_TUPLES_OK, "find");
    for (int row = 0; row < PQntuples(result); row++)
        fn(arg, &(struct bench_event){.session = payloads_session(field(result, row, 0)),
                                      .name = field(result, row, 0),
                                      .seq = number(result, row, 1),
                                      .ts_us = (int64_t)number(result, row, 2),
                                      .type = type,
                                      .data = field(result, row, 3)});
    PQclear(result);
}

static uint64_t postgresql_count_type(void *handle, annal_slice type)
{
    struct postgresql *postgresql = handle;
    const char *values[] = {type.ptr};
    const int lens[] = {(int)type.len}, binary[] = {1};
    PGresult *result = check(postgresql->conn,
                             PQexecPrepared(postgresql->conn, "count", 1, values, lens, binary, 1),
                             PGRES_TUPLES_OK, "count");
    uint64_t count = number(result, 0, 0);
    PQclear(result);
    return count;
}

/* ---- Following: the writer notifies, the reader selects ---- */

struct postgresql_tail {
    struct postgresql *postgresql;
    unsigned session;
    uint64_t next_seq;
};

static void keep_next(void *arg, const struct bench_event *event)
{
    *(uint64_t *)arg = event->seq + 1;
}

static void *postgresql_tail_open(void *handle, unsigned session)
{
    struct postgresql *postgresql = handle;
    struct postgresql_tail *tail = bench_alloc(sizeof *tail);
    *tail = (struct postgresql_tail){postgresql, session, 1};
    execute(postgresql->conn, "LISTEN events");
    postgresql_read(handle, session, 1, UINT64_MAX, keep_next, &tail->next_seq);
    return tail;
}

static bool postgresql_tail_next(void *arg_tail, unsigned timeout_ms, bench_event_fn fn, void *arg)
{
    struct postgresql_tail *tail = arg_tail;
    PGconn *conn = tail->postgresql->conn;
    for (;;) {
        PGnotify *notice;
        while ((notice = PQnotifies(conn)) != NULL)
            PQfreemem(notice);
        if (select_events(tail->postgresql, tail->session, tail->next_seq, 1, fn, arg) == 1) {
            tail->next_seq++;
            return true;
        }
        /* Events that were announced during the SELECT have been read already. */
        if ((notice = PQnotifies(conn)) != NULL) {
            PQfreemem(notice);
            continue;
        }
        if (poll(&(struct pollfd){PQsocket(conn), POLLIN, 0}, 1, (int)timeout_ms) <= 0 ||
            PQconsumeInput(conn) != 1)
            return false;
    }
}

const struct contender contender_postgresql = {.name = "postgresql",
                                               .promise = "on the disk of the server",
                                               .durable = true,
                                               .find = postgresql_find,
                                               .version = postgresql_version,
                                               .start = postgresql_start,
                                               .stop = postgresql_stop,
                                               .open = postgresql_open,
                                               .close = postgresql_close,
                                               .writer_open = postgresql_writer_open,
                                               .writer_close = postgresql_writer_close,
                                               .append = postgresql_append,
                                               .read = postgresql_read,
                                               .find_type = postgresql_find_type,
                                               .count_type = postgresql_count_type,
                                               .tail_open = postgresql_tail_open,
                                               .tail_next = postgresql_tail_next,
                                               .tail_close = free};
