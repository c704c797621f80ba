/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of the PostgreSQL target. */
#pragma once

#include "tools/ship/digest.h"
#include "tools/ship/ship.h"

#include "journal/base/buf.h"

#include <annal/lease.h>

#include <loaded/pq.h>

/* 2000-01-01, from which PostgreSQL counts, in us since 1970 */
#define EPOCH_US INT64_C(946684800000000)

/*
 * SQL for the first and the last day on which the events of a session arrived, as in the view
 * heads. Queries of events pass these days as parameters, so that PostgreSQL plans only their
 * partitions; with a join it would plan all partitions.
 */
#define POSTGRES_DAYS "first_day, greatest(last_day, (shipped_at AT TIME ZONE 'UTC')::date)"

struct ship_target {
    /* name of the store; may be NULL for a pull, until find() sets it to found */
    const char *store;
    char found[SHIP_STORE_BYTES_MAX];
    char name[ANNAL_LEASE_GIVER_BYTES_MAX + 1]; /* host/database, without a password */
    int quiet_ms;
    PGconn *conn;
    uint64_t taken;  /* number of bytes that libpq had read from a Unix socket at the last check */
    struct buf copy; /* rows of the COPY that are not sent yet */
    struct digest digest;
    uint32_t day;
    bool is_copying;
    /* whether an append to a shared session is being decided (shared.h): its events are inserted,
     * not copied */
    bool is_deciding;
};

/* Read a field of a result. The database is not trusted: if the row or the column is missing, the
 * text is ""; if the text is not a 64-bit number, the number is 0. */
const char *postgres_text(const PGresult *result, int row, int column);
uint64_t postgres_number(const PGresult *result, int row, int column);
double postgres_seconds(const PGresult *result, int row, int column); /* 0 unless finite */

/*
 * Read a required value of a result: a session id from `column`, or a struct place from three
 * columns (seq, h and at) beginning at `column`. Return false if it is invalid; the caller then
 * returns postgres_refuse().
 */
bool postgres_session(const PGresult *result, int row, int column,
                      char out[ANNAL_SESSION_ID_BYTES_MAX + 1]);
bool postgres_place(const PGresult *result, int row, int column, struct place *out);
annal_status postgres_refuse(const char *what, annal_error *err);

/* Run statements. *out (may be NULL) is the result of the last one; the caller frees it with
 * PQclear(). */
annal_status postgres_script(struct ship_target *target, const char *sql, PGresult **out,
                             annal_error *err);

/* Run one statement with text parameters; *out as above. */
annal_status postgres_run(struct ship_target *target, const char *sql, const char *const *values,
                          int count, PGresult **out, annal_error *err);

/* Append an item to an array in PostgreSQL's syntax, for postgres_run_arrays(). The text must not
 * need escaping. */
void postgres_add_text(struct buf *array, const char *text);
void postgres_add_number(struct buf *array, uint64_t value);
void postgres_add_null(struct buf *array);

/* Run a statement whose parameters are the values, then the arrays; free the arrays. At most
 * POSTGRES_VALUES_MAX parameters. */
enum { POSTGRES_VALUES_MAX = 10 };
annal_status postgres_run_arrays(struct ship_target *target, const char *sql,
                                 const char *const *values, int value_count, struct buf *arrays,
                                 int count, PGresult **out, annal_error *err);

/* Defined in postgres_home.c: insert an event of a shared session. */
annal_status postgres_home_insert(struct ship_target *target, int64_t key, const annal_event *event,
                                  annal_error *err);

/* Defined in digest.c: print a time in PostgreSQL's syntax. */
enum { POSTGRES_TIME_BYTES = ANNAL_TIME_BYTES + 3 };
void digest_time(int64_t time_us, char out[POSTGRES_TIME_BYTES]);

extern const struct home_kind home_postgres;

/* Defined in postgres_rows.c. postgres_queue_rows() appends to sql the statements that queue the
 * batch for the rows of sessions and turns, and commit it; postgres_make_rows() builds rows of
 * queued batches; postgres_look_at_rows() reports what is queued. */
annal_status postgres_queue_rows(struct ship_target *target, struct buf *sql, annal_error *err);
annal_status postgres_make_rows(struct ship_target *target, uint32_t min_age_ms,
                                struct ship_rows *out, annal_error *err);
annal_status postgres_look_at_rows(struct ship_target *target, struct ship_rows *out,
                                   annal_error *err);
/* Wait until the rows of all existing batches are built. Returns ANNAL_ERR_BUSY if another process
 * builds them and has made no progress for quiet_ms. */
annal_status postgres_make_all_rows(struct ship_target *target, annal_error *err);

/* Receive one row of an answer. Return ANNAL_OK to continue; another status ends the calls. */
typedef annal_status (*postgres_row_fn)(void *arg, const PGresult *row, annal_error *err);

/* Run a SELECT and call fn for each row. */
annal_status postgres_query(struct ship_target *target, const char *sql, const char *const *values,
                            int count, bool binary, postgres_row_fn fn, void *arg,
                            annal_error *err);

/* Defined in postgres_read.c: the functions of ship_kind with the same names. */
annal_status postgres_rows(struct ship_target *target, annal_slice session, uint64_t after_seq,
                           row_fn fn, void *arg, annal_error *err);
annal_status postgres_may_lack(struct ship_target *target, annal_slice session, uint64_t last_seq,
                               bool *out, annal_error *err);
annal_status postgres_find(struct ship_target *target, annal_slice session, struct ship_origin *out,
                           annal_error *err);
annal_status postgres_fetch(struct ship_target *target, const char *sha256, struct buf *out,
                            annal_error *err);
annal_status postgres_tree(struct ship_target *target, annal_slice session, session_fn fn,
                           void *arg, annal_error *err);
