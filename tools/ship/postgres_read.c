/* SPDX-License-Identifier: Apache-2.0 */
/* Reads events back from PostgreSQL, to compare them with the journals or to pull sessions. */
#include "tools/ship/postgres.h"

#include "journal/base/error.h"
#include "tools/cli/outside.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char annal__sql_ship_tree[]; /* tree.sql */

struct rows {
    row_fn fn;
    void *arg;
    /* seq of the last event received, and of the last event at the target */
    uint64_t seq, last_seq;
};

static annal_slice text_of(const PGresult *row, int column)
{
    if (column >= PQnfields(row))
        return (annal_slice){NULL, 0};
    return (annal_slice){PQgetvalue(row, 0, column), (size_t)PQgetlength(row, 0, column)};
}

/* Read a binary 64-bit number; 0 if the column does not have 8 bytes. */
static uint64_t binary_of(const PGresult *row, int column)
{
    uint64_t be = 0;
    annal_slice bytes = text_of(row, column);
    if (bytes.len == sizeof be)
        memcpy(&be, bytes.ptr, sizeof be);
    return be64toh(be);
}

static annal_status give_row(void *arg, const PGresult *row, annal_error *err)
{
    struct rows *rows = arg;
    const annal_event event = {.seq = binary_of(row, 0),
                               .ts_us = (int64_t)(binary_of(row, 1) + (uint64_t)EPOCH_US),
                               .type = text_of(row, 2),
                               .id = text_of(row, 3),
                               .cause = text_of(row, 4),
                               .data = text_of(row, 5),
                               .h = binary_of(row, 6)};
    if (event.seq <= rows->seq || event.seq > rows->last_seq)
        return postgres_refuse("the order of events", err);
    rows->seq = event.seq;
    return rows->fn(rows->arg, &event, err);
}

/* What is needed to read a session's events: their key, the days on which the first and the last
 * event arrived, and the seq of the last one. */
struct span {
    char key[24], first_day[16], last_day[16];
    uint64_t seq; /* seq of the last event; 0 if the target does not have the session */
};

static annal_status take_span(void *arg, const PGresult *row, annal_error *err)
{
    struct span *out = arg;
    (void)err;
    snprintf(out->key, sizeof out->key, "%s", postgres_text(row, 0, 0));
    snprintf(out->first_day, sizeof out->first_day, "%s", postgres_text(row, 0, 1));
    snprintf(out->last_day, sizeof out->last_day, "%s", postgres_text(row, 0, 2));
    out->seq = postgres_number(row, 0, 3);
    return ANNAL_END;
}

static annal_status find_span(struct ship_target *target, const char *session, struct span *out,
                              annal_error *err)
{
    const char *const values[] = {target->store, session};
    *out = (struct span){0};
    return postgres_query(target,
                          "SELECT key, " POSTGRES_DAYS ", seq FROM annal._heads AS head"
                          " WHERE store = $1 AND session = $2",
                          values, 2, false, take_span, out, err);
}

annal_status postgres_rows(struct ship_target *target, annal_slice session, uint64_t after_seq,
                           row_fn fn, void *arg, annal_error *err)
{
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1], after[24], last[24];
    struct span span;
    snprintf(name, sizeof name, "%.*s", ANNAL_FMT(session));
    snprintf(after, sizeof after, "%" PRIu64, after_seq);
    annal_status status = find_span(target, name, &span, err);
    if (status < 0 || span.seq <= after_seq)
        return status;
    snprintf(last, sizeof last, "%" PRIu64, span.seq);
    const char *const values[] = {span.key, after, span.first_day, span.last_day, last};
    return postgres_query(target,
                          "SELECT seq, ts, type, id, cause, data, h FROM annal._events"
                          " WHERE key = $1 AND seq > $2 AND seq <= $5 AND day BETWEEN $3 AND $4"
                          " ORDER BY seq",
                          values, 5, true, give_row, &(struct rows){fn, arg, after_seq, span.seq},
                          err);
}

/* SQL for the partition of a day, which is named as in annal._today(); NULL if it does not
 * exist. */
#define PARTITION_OF(day) "to_regclass('annal.events_' || to_char(" day ", 'YYYYMMDD'))"

/*
 * Find out whether retention may have dropped the session's first events, or the event last_seq.
 * Retention drops the oldest partitions first. The last event arrived on the day when the session's
 * row in heads was last changed.
 */
annal_status postgres_may_lack(struct ship_target *target, annal_slice session, uint64_t last_seq,
                               bool *out, annal_error *err)
{
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1], last[24];
    PGresult *result = NULL;
    snprintf(name, sizeof name, "%.*s", ANNAL_FMT(session));
    snprintf(last, sizeof last, "%" PRIu64, last_seq);
    const char *const values[] = {target->store, name, last};
    annal_status status =
        postgres_run(target,
                     "SELECT FROM pg_inherits, annal._heads,"
                     " LATERAL (SELECT (shipped_at AT TIME ZONE 'UTC')::date AS moved) AS day"
                     " WHERE store = $1 AND session = $2 AND inhparent = 'annal._events'::regclass"
                     " AND inhrelid IN (" PARTITION_OF(
                         "first_day") ", CASE WHEN seq = $3 THEN " PARTITION_OF("moved") " END)",
                     values, 3, &result, err);
    if (status >= 0)
        *out = PQntuples(result) == 0;
    PQclear(result);
    return status;
}

/* ---- Finding a session ---- */

/* Read the session from the first row; further rows belong to older copies. */
static annal_status take_origin(void *arg, const PGresult *row, annal_error *err)
{
    struct ship_origin *out = arg;
    annal_session_info *info = &out->info;
    if (out->stores > 0)
        return ANNAL_END;
    struct outside file = {.at = postgres_text(row, 0, 1)};
    struct outside created = {.at = postgres_text(row, 0, 2)};
    struct place fork = {0}, last;
    bool is_fork = postgres_text(row, 0, 3)[0] != '\0';
    snprintf(out->store, sizeof out->store, "%s", postgres_text(row, 0, 0));
    outside_hex(&file, sizeof info->file - 1, info->file);
    info->created_us = outside_time(&created);
    fork.seq = is_fork ? postgres_number(row, 0, 4) : 0;
    if (!outside_end(&file) || !outside_end(&created) || !postgres_place(row, 0, 5, &last) ||
        (is_fork && !postgres_session(row, 0, 3, info->fork_session)) ||
        fork.seq > OUTSIDE_SEQ_MAX || last.seq < fork.seq)
        return postgres_refuse("the session", err);
    /* number of stores: the query returns count(*) OVER () in the column that postgres_place()
     * reads as `at` */
    out->stores = last.at;
    info->fork_seq = fork.seq;
    info->last_seq = last.seq;
    info->last_h = last.h;
    info->first_seq = info->fork_seq + 1;
    return out->stores > 0 ? ANNAL_OK : postgres_refuse("the session", err);
}

static annal_status take_fork_h(void *arg, const PGresult *row, annal_error *err)
{
    annal_session_info *info = arg;
    (void)err;
    info->fork_h = postgres_number(row, 0, 0);
    return ANNAL_END;
}

/* Find the hash of the event at the fork point, in the parent session. */
static annal_status find_fork_h(struct ship_target *target, annal_session_info *info,
                                annal_error *err)
{
    char seq[24];
    struct span span;
    annal_status status = find_span(target, info->fork_session, &span, err);
    if (status < 0 || span.seq == 0)
        return status;
    snprintf(seq, sizeof seq, "%" PRIu64, info->fork_seq);
    const char *const values[] = {span.key, seq, span.first_day, span.last_day};
    return postgres_query(
        target, "SELECT h FROM annal._events WHERE key = $1 AND seq = $2 AND day BETWEEN $3 AND $4",
        values, 4, false, take_fork_h, info, err);
}

annal_status postgres_find(struct ship_target *target, annal_slice session, struct ship_origin *out,
                           annal_error *err)
{
    *out = (struct ship_origin){0};
    snprintf(out->info.session, sizeof out->info.session, "%.*s", ANNAL_FMT(session));
    const char *const values[] = {target->store, out->info.session};
    annal_status status = postgres_query(
        target,
        "SELECT store, file, (extract(epoch FROM created_at) * 1000000)::bigint, parent, forked_at,"
        " seq, h, count(*) OVER () FROM annal._heads"
        " WHERE ($1::text IS NULL OR store = $1) AND session = $2 ORDER BY shipped_at DESC, store",
        values, 2, false, take_origin, out, err);
    if (status < 0)
        return status;
    if (out->stores == 0)
        return annal__fail(err, ANNAL_ERR_NOTFOUND, "there is no session '%s' at %s",
                           out->info.session, target->name);
    if (target->store == NULL) {
        snprintf(target->found, sizeof target->found, "%s", out->store);
        target->store = target->found;
    }
    return out->info.fork_session[0] != '\0' ? find_fork_h(target, &out->info, err) : ANNAL_OK;
}

struct sessions {
    session_fn fn;
    void *arg;
};

static annal_status give_session(void *arg, const PGresult *row, annal_error *err)
{
    const struct sessions *sessions = arg;
    return sessions->fn(sessions->arg, text_of(row, 0), err);
}

annal_status postgres_tree(struct ship_target *target, annal_slice session, session_fn fn,
                           void *arg, annal_error *err)
{
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
    snprintf(name, sizeof name, "%.*s", ANNAL_FMT(session));
    const char *const values[] = {target->store, name};
    annal_status status = postgres_make_all_rows(target, err);
    if (status < 0)
        return status;
    return postgres_query(target, annal__sql_ship_tree, values, 2, true, give_session,
                          &(struct sessions){fn, arg}, err);
}

struct content {
    struct buf *out;
    bool found;
};

static annal_status take_content(void *arg, const PGresult *row, annal_error *err)
{
    struct content *content = arg;
    content->found = true;
    if (text_of(row, 0).len > SHIP_ARTIFACT_BYTES_MAX)
        return postgres_refuse("an artifact", err);
    return annal__buf_append_slice(content->out, text_of(row, 0)) == ANNAL_OK
               ? ANNAL_END
               : annal__fail(err, ANNAL_ERR_NOMEM, "pull: out of memory");
}

annal_status postgres_fetch(struct ship_target *target, const char *sha256, struct buf *out,
                            annal_error *err)
{
    const char *const values[] = {sha256};
    struct content content = {.out = out};
    annal_status status =
        postgres_query(target, "SELECT bytes FROM annal.artifacts WHERE hash = $1", values, 1, true,
                       take_content, &content, err);
    return status < 0 || content.found
               ? status
               : annal__fail(err, ANNAL_ERR_NOTFOUND, "the target %s has no artifact %s",
                             target->name, sha256);
}
