/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions: states that C reducers computed from a session's events and saved at a seq, as the
 * snapshots of <annal/snapshot.h> are saved SQL states. Programs call <annal/reduce.h>.
 *
 * A reduction is a row of sessions.db, bound to the journal prefix from which it was computed: it
 * is valid while that journal still has the same event at its seq. Invalid reductions are skipped.
 * Reductions of events that a fork shares with its ancestors belong to the ancestors.
 */
#pragma once

#include <annal/snapshot.h>

/* maximum size in bytes of one reduction (a saved state of a user's reducer); a larger reduction is
 * not saved */
#define ANNAL_REDUCTION_BYTES_MAX (64u << 20)

typedef struct annal__reduction {
    uint64_t seq;
    uint64_t every;   /* number of events between two reductions */
    annal_slice data; /* owned by the caller: annal_free() */
} annal__reduction;

/*
 * Load the newest valid reduction of this reducer and version with a seq of at most at_most. Any
 * thread.
 *
 * ANNAL_ERR_NOTFOUND  no valid reduction, or no such session
 */
ANNAL_MUST_CHECK annal_status annal__reduction_load(annal_index *index, annal_slice session,
                                                    annal_slice reducer, uint32_t version,
                                                    uint64_t at_most,
                                                    annal__reduction *out_reduction,
                                                    annal_error *err);

/*
 * Save a reduction, compressed. cursor has just returned the last event that the reduction
 * contains. All reductions of one reducer and session together take at most policy->bytes_max
 * (default as for snapshots): if they would take more, some are deleted so that equal distances
 * remain, and *out_every, the number of events until the next reduction, becomes larger. Does not
 * wait for other writers of the index. Any thread.
 *
 * ANNAL_ERR_LIMIT  data is larger than ANNAL_REDUCTION_BYTES_MAX, or than all reductions may be
 * ANNAL_ERR_BUSY   another process writes the index
 */
ANNAL_MUST_CHECK annal_status annal__reduction_save(annal_index *index, const annal_cursor *cursor,
                                                    annal_slice reducer, uint32_t version,
                                                    annal_slice data,
                                                    const annal_snapshot_policy *policy,
                                                    uint64_t *out_every, annal_error *err);
