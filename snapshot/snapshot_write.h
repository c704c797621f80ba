/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write snapshots: fold a session from its newest snapshot towards the end of its journal, and take
 * a snapshot at every position on the way at which one is due. This is done in steps, so that the
 * keeper can do other work between them.
 */
#pragma once

#include "snapshot/load.h"
#include "snapshot/policy.h"

struct snapshot_writer {
    struct storage shelf; /* the session's snapshots; its session points to id */
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_snapshot_policy policy;
    bool at_end; /* whether to take a snapshot at the end even if none is due there */
    /* whether to skip positions at which a snapshot is due but many events follow:
     * annal__policy_skips_in_hurry() */
    bool is_hurried;
    uint32_t wait_ms; /* time in ms to wait for other writers of the index; 0: only try once */

    /* existing snapshots of the session, the newest as layer 0; the pages of the state that did not
     * change are read from layer 0 */
    struct chain *chain;
    annal_state *state;
    annal_cursor *cursor;
    struct snapshot_mark last; /* newest snapshot; all zero: no snapshot */
    struct snapshot_mark due;  /* newest position at which a snapshot was due, taken or skipped */
    struct snapshot_mark here; /* position after the last folded event */
    struct snapshot_mark end;  /* end of the journal when the writer began */
    uint64_t here_h;
    uint64_t stride;
    uint64_t taken;

    /* Factor of the policy's distances, 1 at first. It is multiplied by four each time a snapshot
     * is not stored because it does not fit even alone. */
    uint64_t patience;
    uint64_t refused_seq; /* newest seq at which a snapshot did not fit, or 0 */
    uint64_t refused_bytes;

    bool listed; /* whether total_bytes and leftovers are known */
    /* size in bytes of the session's snapshots whose number is a multiple of stride */
    uint64_t total_bytes;
    bool leftovers; /* whether the session has other snapshots, which must be deleted */
};

/*
 * Begin to write snapshots. spare (may be NULL) points to a released state or to NULL;
 * annal__snapshot_write_done() moves the writer's state there. Call annal__snapshot_write_done()
 * whatever this returns. ANNAL_ERR_NOTFOUND: no such session.
 */
annal_status annal__snapshot_write_init(struct snapshot_writer *writer, annal_index *index,
                                        annal_slice session, const annal_snapshot_policy *policy,
                                        bool at_end, uint32_t wait_ms, annal_state **spare,
                                        annal_error *err);

/*
 * Fold up to 256 events, or about 256 KiB of the journal, and take the snapshots that are due on
 * the way. ANNAL_END: the end was reached. ANNAL_ERR_BUSY: another process writes the index; the
 * next step tries again.
 */
annal_status annal__snapshot_write_step(struct snapshot_writer *writer, annal_error *err);

void annal__snapshot_write_done(struct snapshot_writer *writer);
