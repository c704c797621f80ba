/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a snapshot of a session is due now, judged from outside: only from its journal, its
 * newest snapshot and the clock, so that any process finds what others left.
 */
#ifndef SNAPSHOT_DUE_H
#define SNAPSHOT_DUE_H

#include "snapshot/policy.h"

struct due {
    struct snapshot_mark last; /* newest snapshot, or newest place where a snapshot did not fit */
    struct snapshot_mark end;  /* end of the journal */
    uint64_t stride;           /* see policy.h */
    uint64_t patience;         /* see snapshot_write.h */
    int64_t since_us;          /* UTC: since when there are events after last, or 0 */
    /* whether last was looked up; if not, it is the beginning, and no snapshot is due */
    bool known;
    bool now;
};

/*
 * Find out whether a snapshot is due. policy has no zeros. grown (may be NULL) is an upper bound of
 * how much the session grew since a process looked: if this passes no multiple of the distance, the
 * index is not read, so that a process that appends a few events need not open it.
 * ANNAL_ERR_NOTFOUND: no such session.
 */
annal_status annal__due_look(annal_index *index, annal_slice session,
                             const annal_snapshot_policy *policy, const struct snapshot_mark *grown,
                             struct due *out_due, annal_error *err);

/*
 * Note for later processes that a snapshot did not fit here, and that the next attempt follows
 * patience times as far on. A failure to note it only costs them time.
 */
void annal__due_refused(annal_index *index, annal_slice session, struct snapshot_mark here,
                        uint64_t patience);

#endif
