/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the table _reductions: states that reducers in C saved. Rebuilding the index deletes
 * them.
 */
#pragma once

#include <annal/index.h>

typedef struct annal__reduction_row {
    annal_slice session; /* the session whose journal contains event seq */
    annal_slice reducer;
    uint32_t version;
    uint64_t every;  /* number of events between two rows of this reducer and session */
    uint64_t seq;    /* the event after which the state was saved */
    uint64_t offset; /* offset in the journal at which the event after seq begins */
    uint64_t h;      /* hash of event seq */
    annal_slice state;
} annal__reduction_row;

/*
 * Write a row, and delete rows of the same reducer with another version. If all rows of this
 * reducer and session take more than bytes_max, rows are deleted until the rest fits, in each step
 * the row whose deletion leaves the smallest gap, and `every` is doubled until as many rows as are
 * left cover the session. *out_every is its new value. Waits as annal__snapshot_rows_put() does.
 * Any thread.
 *
 * ANNAL_ERR_LIMIT  the row alone takes more than bytes_max: nothing is changed
 */
ANNAL_MUST_CHECK annal_status annal__reduction_put(annal_index *index,
                                                   const annal__reduction_row *row,
                                                   uint64_t bytes_max, uint32_t wait_ms,
                                                   uint64_t *out_every, annal_error *err);

/*
 * Find the newest row of this session, reducer and version whose seq is at most at_most. out_row
 * borrows session and reducer; free its state with annal_free(). ANNAL_ERR_NOTFOUND if no row
 * exists. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__reduction_newest(annal_index *index, annal_slice session,
                                                      annal_slice reducer, uint32_t version,
                                                      uint64_t at_most,
                                                      annal__reduction_row *out_row,
                                                      annal_error *err);
