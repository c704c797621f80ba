/* SPDX-License-Identifier: Apache-2.0 */
/* Homes of sessions in PostgreSQL: annal._homes in schema.sql. */
#include "journal/base/error.h"
#include "tools/ship/home.h"
#include "tools/ship/postgres.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

extern const char annal__sql_ship_renew[]; /* renew.sql */

/* Read a session's home from three columns, starting at `column`: name of the store, epoch, seconds
 * left. */
static void read_home(const PGresult *result, int row, int column, struct home *out)
{
    snprintf(out->store, sizeof out->store, "%s", postgres_text(result, row, column));
    out->epoch = postgres_number(result, row, column + 1);
    out->seconds_left = postgres_seconds(result, row, column + 2);
}

/* Make this store the home of a session. The server gives up after the same time as this process,
 * so a store that reported an unreachable target does not become the home afterwards. */
static annal_status take(struct ship_target *target, const char *session, uint64_t epoch,
                         uint32_t seconds, struct home *out_home, annal_error *err)
{
    char epoch_text[24], seconds_text[16], begin[80];
    PGresult *result = NULL;
    snprintf(begin, sizeof begin, "BEGIN; SET LOCAL statement_timeout = %d", target->quiet_ms);
    snprintf(epoch_text, sizeof epoch_text, "%" PRIu64, epoch);
    snprintf(seconds_text, sizeof seconds_text, "%" PRIu32, seconds);
    const char *const values[] = {session, target->store, epoch_text, seconds_text};
    annal_status status = postgres_run(target,
                                       "INSERT INTO annal._homes (session) VALUES ($1)"
                                       " ON CONFLICT DO NOTHING",
                                       values, 1, NULL, err);
    if (status >= 0)
        status = postgres_script(target, begin, NULL, err);
    if (status >= 0)
        status = postgres_run(target, "SELECT * FROM annal.take_home($1, $2, $3, $4)", values, 4,
                              &result, err);
    if (status >= 0)
        status = postgres_script(target, "COMMIT", NULL, err);
    if (status >= 0) {
        out_home->granted = postgres_text(result, 0, 0)[0] == 't';
        read_home(result, 0, 1, out_home);
    }
    PQclear(result);
    return status;
}

static annal_status renew(struct ship_target *target, struct home_lease *leases, size_t count,
                          annal_error *err)
{
    struct buf arrays[3] = {{0}};
    PGresult *result = NULL;
    for (size_t i = 0; i < count; i++) {
        postgres_add_text(&arrays[0], leases[i].session);
        postgres_add_number(&arrays[1], leases[i].lease.epoch);
        postgres_add_number(&arrays[2], leases[i].lease.seconds);
    }
    annal_status status = postgres_run_arrays(target, annal__sql_ship_renew, &target->store, 1,
                                              arrays, 3, &result, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < count && (int)i < PQntuples(result); i++)
        leases[i].kept = postgres_text(result, (int)i, 0)[0] == 't';
    PQclear(result);
    return ANNAL_OK;
}

#define HOMES                                                                                      \
    "SELECT session, coalesce(store, ''), epoch,"                                                  \
    " extract(epoch FROM greatest(until, '2000-01-01') - clock_timestamp()) FROM annal._homes"     \
    " WHERE epoch > 0"

static annal_status release(struct ship_target *target, const char *session, uint64_t epoch,
                            struct home *out_home, annal_error *err)
{
    char epoch_text[24];
    PGresult *result = NULL;
    snprintf(epoch_text, sizeof epoch_text, "%" PRIu64, epoch);
    const char *const values[] = {session, target->store, epoch_text};
    annal_status status = postgres_run(target,
                                       "UPDATE annal._homes SET was = store, store = NULL,"
                                       " epoch = epoch + 1, until = '-infinity' WHERE session = $1"
                                       " AND store = $2 AND epoch = $3 RETURNING epoch",
                                       values, 3, &result, err);
    if (status < 0)
        return status;
    *out_home = (struct home){.granted = PQntuples(result) == 1};
    if (!out_home->granted) {
        PQclear(result);
        result = NULL;
        status = postgres_run(target, HOMES " AND session = $1", values, 1, &result, err);
    } else
        out_home->epoch = postgres_number(result, 0, 0);
    if (status >= 0 && !out_home->granted && PQntuples(result) == 1)
        read_home(result, 0, 1, out_home);
    PQclear(result);
    return status;
}

static int add_session(void *arg, struct shipment *shipment)
{
    postgres_add_text(arg, shipment->session);
    return 0;
}

static annal_status each(struct ship_target *target, struct shipments *only, home_fn fn, void *arg,
                         annal_error *err)
{
    PGresult *result = NULL;
    struct buf sessions = {0};
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_status status = ANNAL_OK;
    if (only == NULL)
        status = postgres_run(target, HOMES " ORDER BY session", NULL, 0, &result, err);
    else if (shipments_each(only, add_session, &sessions) == 0 && sessions.len > 0)
        status = postgres_run_arrays(target, HOMES " AND session = ANY ($1::text[])", NULL, 0,
                                     &sessions, 1, &result, err);
    for (int i = 0; status >= 0 && i < PQntuples(result); i++) {
        struct home home = {0};
        read_home(result, i, 1, &home);
        home.is_ours = strcmp(home.store, target->store) == 0;
        status = postgres_session(result, i, 0, session)
                     ? fn(arg, annal_slice_of(session), &home, err)
                     : postgres_refuse("the home of a session", err);
    }
    PQclear(result);
    return status;
}

/* SQL for the row of heads (last event) of a session that its home shipped; without a home, the row
 * that take_home() would continue. $1 is the name of this store. */
#define ITS_HEAD(session)                                                                          \
    "annal._heads AS head WHERE session = " session " AND store = coalesce((SELECT"                \
    " coalesce(store, was) FROM annal._homes WHERE session = " session "), (SELECT store FROM"     \
    " annal._heads WHERE session = " session " ORDER BY seq DESC, store = $1 DESC LIMIT 1))"

static annal_status head(struct ship_target *target, const char *session, struct place *out_head,
                         annal_error *err)
{
    PGresult *result = NULL;
    const char *const values[] = {target->store, session};
    annal_status status =
        postgres_run(target, "SELECT seq, h, at FROM " ITS_HEAD("$2"), values, 2, &result, err);
    if (status < 0)
        return status;
    *out_head = (struct place){0};
    if (PQntuples(result) == 1 && !postgres_place(result, 0, 0, out_head))
        status = postgres_refuse("the last event of a session", err);
    PQclear(result);
    return status;
}

/* Find the last of these events that is part of the history ending with this head, a row of key,
 * first day, last day, seq, h. *out_seq is 0 if none of them is part of it. */
static annal_status find_shared(struct ship_target *target, const PGresult *head,
                                const struct place *events, size_t count, uint64_t *out_seq,
                                annal_error *err)
{
    const char *const where[] = {postgres_text(head, 0, 0), postgres_text(head, 0, 1),
                                 postgres_text(head, 0, 2)};
    struct buf arrays[2] = {{0}};
    PGresult *result = NULL;
    for (size_t i = 0; i < count; i++) {
        postgres_add_number(&arrays[0], events[i].seq);
        postgres_add_number(&arrays[1], events[i].h);
    }
    annal_status status = postgres_run_arrays(
        target,
        "SELECT coalesce(max(mine.seq), 0) FROM unnest($4::bigint[], $5::bigint[]) AS mine (seq, h)"
        " WHERE EXISTS (SELECT FROM annal._events AS event WHERE event.key = $1 AND event.day"
        " BETWEEN $2 AND $3 AND event.seq = mine.seq AND event.h = mine.h)",
        where, 3, arrays, 2, &result, err);
    if (status >= 0)
        *out_seq = postgres_number(result, 0, 0);
    bool is_one = *out_seq == 0;
    for (size_t i = 0; i < count && !is_one; i++)
        is_one = events[i].seq == *out_seq;
    if (status >= 0 && !is_one)
        status = postgres_refuse("the events that both have", err);
    PQclear(result);
    return status;
}

static annal_status shared(struct ship_target *target, const char *session,
                           const struct place *events, size_t count, uint64_t *out_seq,
                           annal_error *err)
{
    PGresult *head = NULL;
    const char *const values[] = {target->store, session};
    annal_status status =
        postgres_run(target, "SELECT key, " POSTGRES_DAYS ", seq, h FROM " ITS_HEAD("$2"), values,
                     2, &head, err);
    if (status < 0)
        return status;
    bool found = PQntuples(head) == 1;
    *out_seq = 0;
    for (size_t i = 0; i < count && found; i++)
        if (events[i].seq == postgres_number(head, 0, 3) &&
            events[i].h == postgres_number(head, 0, 4))
            *out_seq = events[i].seq;
    if (found && *out_seq == 0)
        status = find_shared(target, head, events, count, out_seq, err);
    PQclear(head);
    return status;
}

static const char *text_of(struct buf *buf, annal_slice text)
{
    return text.len > 0 && annal__buf_append_slice(buf, text) == ANNAL_OK ? annal__buf_cstr(buf)
                                                                          : NULL;
}

annal_status postgres_home_insert(struct ship_target *target, int64_t key, const annal_event *event,
                                  annal_error *err)
{
    char numbers[3][24], time[POSTGRES_TIME_BYTES];
    struct buf texts[4] = {{0}};
    snprintf(numbers[0], sizeof numbers[0], "%" PRId64, key);
    snprintf(numbers[1], sizeof numbers[1], "%" PRIu64, event->seq);
    snprintf(numbers[2], sizeof numbers[2], "%" PRId64, (int64_t)event->h);
    digest_time(event->ts_us, time);
    const char *const values[] = {numbers[0],
                                  numbers[1],
                                  time,
                                  text_of(&texts[0], event->type),
                                  text_of(&texts[1], event->id),
                                  text_of(&texts[2], event->cause),
                                  text_of(&texts[3], event->data),
                                  numbers[2]};
    annal_status status =
        values[6] == NULL
            ? annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory")
            : postgres_run(
                  target,
                  "INSERT INTO annal._events (key, seq, day, ts, type, id, cause, data, h)"
                  " VALUES ($1, $2, (now() AT TIME ZONE 'UTC')::date, $3, $4, $5, $6, $7, $8)",
                  values, 8, NULL, err);
    for (int i = 0; i < 4; i++)
        annal__buf_done(&texts[i]);
    return status;
}

static const char *name(const struct ship_target *target)
{
    return target->name;
}

const struct home_kind home_postgres = {.take = take,
                                        .renew = renew,
                                        .release = release,
                                        .each = each,
                                        .head = head,
                                        .shared = shared,
                                        .name = name};
