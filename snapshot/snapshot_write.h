/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking snapshots: fold a session from its newest snapshot towards the end of its journal, and
 * take one at every due place on the way. This is done in steps, so that the keeper can do other
 * work between them.
 */
#ifndef SNAPSHOT_SNAPSHOT_WRITE_H
#define SNAPSHOT_SNAPSHOT_WRITE_H

#include "snapshot/load.h"
#include "snapshot/policy.h"

struct snapshot_writer {
    struct storage shelf; /* its session points to id */
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_snapshot_policy policy;
    bool at_end;      /* take one at the end, due or not */
    bool hurries;     /* for the keeper: see policy.h */
    uint32_t wait_ms; /* for other writers of the index; 0: only try */

    struct chain *chain; /* layer 0 is the newest snapshot; the state is over it */
    annal_state *state;
    annal_cursor *cursor;
    struct snapshot_mark last; /* the newest snapshot; all zero: none */
    struct snapshot_mark due;  /* the newest due place, taken or skipped */
    struct snapshot_mark here; /* after the last event folded */
    struct snapshot_mark end;  /* of the journal when this began */
    uint64_t here_h;
    uint64_t stride;
    uint64_t taken;

    /* If one did not fit even alone it was not stored: the distance to the next attempt, in
     * strides. */
    uint64_t patience;
    uint64_t refused_seq; /* the newest of those, or 0 */
    uint64_t refused_bytes;

    bool listed;          /* the following are known */
    uint64_t total_bytes; /* of the session's snapshots whose number is a multiple of stride */
    bool leftovers;       /* there are others, which are to be deleted */
};

/*
 * spare (may be NULL) has a state at rest or NULL, and gets the writer's at its end.
 * ANNAL_ERR_NOTFOUND: no such session. Free the writer in any case.
 */
annal_status annal__snapshot_write_init(struct snapshot_writer *writer, annal_index *index,
                                        annal_slice session, const annal_snapshot_policy *policy,
                                        bool at_end, uint32_t wait_ms, annal_state **spare,
                                        annal_error *err);

/*
 * Fold some hundred events, or some hundred KiB of them. ANNAL_END: done. ANNAL_ERR_BUSY: another
 * process writes the index; the next step tries again.
 */
annal_status annal__snapshot_write_step(struct snapshot_writer *writer, annal_error *err);

void annal__snapshot_write_done(struct snapshot_writer *writer);

#endif
