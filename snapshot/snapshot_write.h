/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing snapshots: fold a session from its newest snapshot towards the end of its journal, and
 * take a snapshot at every due place on the way. This is done in steps, so that the keeper can do
 * other work between them.
 */
#ifndef SNAPSHOT_SNAPSHOT_WRITE_H
#define SNAPSHOT_SNAPSHOT_WRITE_H

#include "snapshot/load.h"
#include "snapshot/policy.h"

struct snapshot_writer {
    struct storage shelf; /* the session's snapshots; its session points to id */
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_snapshot_policy policy;
    bool at_end;      /* whether to take a snapshot at the end, due or not */
    bool is_hurried;  /* whether it hurries, for the keeper: see policy.h */
    uint32_t wait_ms; /* wait for other writers of the index; 0: only try */

    struct chain *chain; /* layer 0 is the newest snapshot; the state is over it */
    annal_state *state;
    annal_cursor *cursor;
    struct snapshot_mark last; /* newest snapshot; all zero: none */
    struct snapshot_mark due;  /* newest due place, taken or skipped */
    struct snapshot_mark here; /* place after the last folded event */
    struct snapshot_mark end;  /* end of the journal when this began */
    uint64_t here_h;
    uint64_t stride;
    uint64_t taken;

    /* Distance to the next attempt, in strides, after a snapshot that did not fit even alone and
     * was not stored. */
    uint64_t patience;
    uint64_t refused_seq; /* newest place where a snapshot did not fit, or 0 */
    uint64_t refused_bytes;

    bool listed; /* whether the members below are known */
    /* bytes of the session's snapshots whose number is a multiple of stride */
    uint64_t total_bytes;
    bool leftovers; /* whether there are other snapshots, which are to be deleted */
};

/*
 * Begin to write snapshots. spare (may be NULL) points to a released state or NULL, and receives
 * the writer's state at its end. ANNAL_ERR_NOTFOUND: no such session. Call
 * annal__snapshot_write_done() in any case.
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
