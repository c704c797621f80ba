/* SPDX-License-Identifier: Apache-2.0 */
/* Find out whether a snapshot of a session is due, only from its journal, its newest snapshot and
 * the clock, so that any process finds the snapshots that other processes did not take. */
#pragma once

#include "snapshot/policy.h"

struct due {
    struct snapshot_mark last; /* newest snapshot, or a later place where a snapshot did not fit */
    struct snapshot_mark end;  /* end of the journal */
    uint64_t stride;           /* distance between two snapshots' numbers (policy.h) */
    /* another factor by which the distances between snapshots are multiplied (snapshot_write.h) */
    uint64_t patience;
    /* time (us UTC) since when events after `last` exist; 0: there are none */
    int64_t since_us;
    /* whether `last` was read from the index; if not, it is the beginning of the journal, and no
     * snapshot is due */
    bool known;
    bool now;
};

/*
 * Find out whether a snapshot is due. No member of policy is 0. grown (may be NULL) is an upper
 * bound of what was appended since a process last called this: if this passes no multiple of the
 * distance between snapshots, the index is not read, so that a process that appends a few events
 * need not open it. ANNAL_ERR_NOTFOUND: no such session.
 */
annal_status annal__due_look(annal_index *index, annal_slice session,
                             const annal_snapshot_policy *policy, const struct snapshot_mark *grown,
                             struct due *out_due, annal_error *err);

/*
 * Record for other processes that a snapshot did not fit at `here`, and that the next attempt
 * follows after `patience` times the usual distance. If this fails, other processes only try in
 * vain.
 */
void annal__due_refused(annal_index *index, annal_slice session, struct snapshot_mark here,
                        uint64_t patience);
