/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions: what a C reducer made of a session's events, saved at one seq, as the snapshots of
 * <annal/snapshot.h> are of SQL states. Programs call <annal/reduce.h>.
 *
 * A reduction is a row of sessions.db, bound to the journal prefix that it was made from: it counts
 * while that journal still has, at its seq, the very event that it was saved at. Those that do not
 * count are skipped. Reductions of what a fork shares with its ancestors belong to the ancestors.
 */
#ifndef SNAPSHOT_SYS_REDUCTION_H
#define SNAPSHOT_SYS_REDUCTION_H

#include <annal/snapshot.h>

#define ANNAL_REDUCTION_BYTES_MAX (64u << 20) /* of one; larger ones are not saved */

typedef struct annal__reduction {
    uint64_t seq;
    uint64_t every;   /* events from one to the next */
    annal_slice data; /* the caller's: annal_free() */
} annal__reduction;

/*
 * The newest one that counts of this reducer and version, at or before at_most. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  there is none, or no such session
 */
ANNAL_MUST_CHECK annal_status annal__reduction_load(annal_index *index, annal_slice session,
                                                    annal_slice reducer, uint32_t version,
                                                    uint64_t at_most,
                                                    annal__reduction *out_reduction,
                                                    annal_error *err);

/*
 * Save one, compressed. cursor has just returned the event that it comes after. Those of one
 * reducer and session together take policy->bytes_max at most (default as for snapshots): if there
 * is no more room, some are deleted, so that the gaps stay even, and *out_every is larger. Does not
 * wait for other writers of the index. Any thread.
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
