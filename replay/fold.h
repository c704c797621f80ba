/* SPDX-License-Identifier: Apache-2.0 */
/* Fold events into a state, for the files of this folder. */
#pragma once

#include <annal/replay.h>

/* A state and the cursor before its next event. Begin with all members zero, then call
 * annal__fold_begin(); call annal__fold_done() whatever that returns. */
struct folding {
    annal_store *store;
    annal_state *state;
    annal_cursor *cursor;
    uint64_t from_seq; /* seq of the state with which the folding began, or 0 */
    uint64_t folded;   /* number of events applied since the folding began */
    uint64_t damaged;  /* number of damaged parts skipped since the folding began */
};

/* Begin with the nearest snapshot at or before seq. If options->no_snapshots, or without a
 * snapshot, begin before event 1. */
annal_status annal__fold_begin(struct folding *folding, annal_index *index, annal_slice session,
                               const annal_replay_options *options, uint64_t seq, annal_error *err);

/* Apply the events up to seq. Missing and damaged events are skipped. */
annal_status annal__fold_to(struct folding *folding, uint64_t seq, annal_error *err);

/* Return the state, which the caller owns from now on. */
annal_state *annal__fold_take(struct folding *folding);
void annal__fold_done(struct folding *folding);

/* Call fn for each event from the cursor up to to_seq. *damaged is increased for each damaged part
 * that is skipped. */
annal_status annal__fold(annal_cursor *cursor, uint64_t to_seq, annal_fold_fn fn, void *arg,
                         uint64_t *damaged, annal_error *err);
