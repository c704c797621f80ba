/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the rows of sessions and turns: tables.sql describes how. */
#include "tools/ship/postgres.h"

#include "journal/base/clock.h"
#include "journal/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Maximum number of queued sessions and events that one call processes. With more, a call would
 * cost less per event, but progress would be reported less often. A batch is always processed as a
 * whole. */
#define FOLD_MOST "20000"
enum { FOLD_QUIET_MS = 60000, AGAIN_NS = 100000000 };

annal_status postgres_queue_rows(struct ship_target *target, struct buf *sql, annal_error *err)
{
    bool failed = !digest_end(&target->digest);
    for (int i = 0; i < DIGEST_ARRAYS && !failed; i++)
        failed = annal__buf_cstr(&target->digest.arrays[i]) == NULL ||
                 annal__buf_printf(sql, "%s'%s'", i == 0 ? "SELECT annal._queue(" : ", ",
                                   annal__buf_cstr(&target->digest.arrays[i])) < 0;
    failed = failed || annal__buf_printf(sql, "); COMMIT") < 0 || annal__buf_cstr(sql) == NULL;
    return failed ? annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory") : ANNAL_OK;
}

static annal_status ask_rows(struct ship_target *target, const char *sql, struct ship_rows *out,
                             annal_error *err)
{
    PGresult *result = NULL;
    annal_status status = postgres_run(target, sql, NULL, 0, &result, err);
    if (status < 0)
        return status;
    *out = (struct ship_rows){.batches = strtoull(postgres_text(result, 0, 0), NULL, 10),
                              .seconds = postgres_seconds(result, 0, 1),
                              .first = strtoull(postgres_text(result, 0, 2), NULL, 10),
                              .last = strtoull(postgres_text(result, 0, 3), NULL, 10)};
    PQclear(result);
    return ANNAL_OK;
}

/* Build rows of queued batches. The server gets at least FOLD_QUIET_MS to answer, because a batch
 * may have many events. */
annal_status postgres_make_rows(struct ship_target *target, uint32_t min_age_ms,
                                struct ship_rows *out, annal_error *err)
{
    char sql[100];
    int quiet_ms = target->quiet_ms;
    snprintf(sql, sizeof sql, "SELECT * FROM annal._fold_queued(" FOLD_MOST ", %.3f)",
             min_age_ms / 1e3);
    if (target->quiet_ms < FOLD_QUIET_MS)
        target->quiet_ms = FOLD_QUIET_MS;
    annal_status status = ask_rows(target, sql, out, err);
    target->quiet_ms = quiet_ms;
    return status;
}

annal_status postgres_make_all_rows(struct ship_target *target, annal_error *err)
{
    struct ship_rows left = {0};
    int64_t went_on_us = annal__clock_monotonic_us();
    annal_status status = postgres_make_rows(target, 0, &left, err);
    const uint64_t last = left.last;
    uint64_t first = left.first; /* the highest until now */
    while (status >= 0 && left.first != 0 && left.first <= last) {
        status = postgres_make_rows(target, 0, &left, err);
        if (status < 0)
            return status;
        if (left.first > first) {
            first = left.first;
            went_on_us = annal__clock_monotonic_us();
        } else if (annal__clock_monotonic_us() - went_on_us >= (int64_t)target->quiet_ms * 1000)
            return annal__fail(err, ANNAL_ERR_BUSY,
                               "ship to %s: another process, which builds the rows of sessions, "
                               "made no progress for %d s",
                               target->name, target->quiet_ms / 1000);
        else
            nanosleep(&(struct timespec){.tv_nsec = AGAIN_NS}, NULL);
    }
    return status;
}

annal_status postgres_look_at_rows(struct ship_target *target, struct ship_rows *out,
                                   annal_error *err)
{
    return ask_rows(target, "SELECT * FROM annal.rows_behind()", out, err);
}
