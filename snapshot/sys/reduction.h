/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions: states that C reducers computed from a session's events and saved at a seq, as the
 * snapshots of <annal/snapshot.h> are saved SQL states. Programs call <annal/reduce.h>.
 *
 * A reduction is a row of sessions.db, bound to the journal prefix from which it was computed: it
 * is valid while that journal still has the same event at its seq. Invalid reductions are skipped.
 * Reductions of events that a fork shares with its ancestors belong to the ancestors.
 */
#ifndef SNAPSHOT_SYS_REDUCTION_H
#define SNAPSHOT_SYS_REDUCTION_H

#include <annal/snapshot.h>

/* maximum for one reduction; a larger one is not saved */
#define ANNAL_REDUCTION_BYTES_MAX (64u << 20)

typedef struct annal__reduction {
    uint64_t seq;
    uint64_t every;   /* events between two reductions */
    annal_slice data; /* owned by the caller: annal_free() */
} annal__reduction;

/*
 * Load the newest valid reduction of this reducer and version, at or before at_most. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no valid reduction, or no such session
 */
ANNAL_MUST_CHECK annal_status annal__reduction_load(annal_index *index, annal_slice session,
                                                    annal_slice reducer, uint32_t version,
                                                    uint64_t at_most,
                                                    annal__reduction *out_reduction,
                                                    annal_error *err);

/*
 * Save a reduction, compressed. cursor has just returned the last event that it contains. All
 * reductions of one reducer and session together take policy->bytes_max at most (default as for
 * snapshots): if no room is left, some are deleted, so that the gaps stay even, and *out_every is
 * larger. Does not wait for other writers of the index. Any thread.
 *
 * ANNAL_ERR_LIMIT  data is larger than ANNAL_REDUCTION_BYTES_MAX, or takes more than all may
 * ANNAL_ERR_BUSY   another process writes the index
 */
ANNAL_MUST_CHECK annal_status annal__reduction_save(annal_index *index, const annal_cursor *cursor,
                                                    annal_slice reducer, uint32_t version,
                                                    annal_slice data,
                                                    const annal_snapshot_policy *policy,
                                                    uint64_t *out_every, annal_error *err);

#endif
