/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a snapshot of a session is due now, judged from outside: from its journal, its newest
 * snapshot and the clock alone, so that any process finds what others left.
 */
#ifndef SNAPSHOT_DUE_H
#define SNAPSHOT_DUE_H

#include "snapshot/policy.h"

struct due {
    struct snapshot_mark last; /* the newest snapshot, or the newest place where one did not fit */
    struct snapshot_mark end;  /* of the journal */
    uint64_t stride;           /* see policy.h */
    uint64_t patience;         /* see snapshot_write.h */
    int64_t since_us;          /* UTC: since when there are events after last; 0: there are none */
    /* last was looked up; if not, it is the beginning, and none is due */
    bool known;
    bool now;
};

/*
 * policy has no zeros. grown (may be NULL) says by how much at most the session grew since a
 * process looked: if this passes no multiple of the distance, nothing is looked up in the index, so
 * that a process that appends a few events need not open it. ANNAL_ERR_NOTFOUND: no such session.
 */
annal_status annal__due_look(annal_index *index, annal_slice session,
                             const annal_snapshot_policy *policy, const struct snapshot_mark *grown,
                             struct due *out_due, annal_error *err);

/*
 * Note for later processes that one did not fit here, and that the next attempt comes patience
 * times as far on. If this cannot be noted, it only costs them time.
 */
void annal__due_refused(annal_index *index, annal_slice session, struct snapshot_mark here,
                        uint64_t patience);

#endif
