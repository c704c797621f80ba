/* SPDX-License-Identifier: Apache-2.0 */
/* Folding events into a state, for the files of this folder. */
#ifndef REPLAY_FOLD_H
#define REPLAY_FOLD_H

#include <annal/replay.h>

/*
 * A state being folded, and the cursor before its next event. Begin with all zero, then call
 * annal__fold_begin(); call annal__fold_done() in any case.
 */
struct folding {
    annal_store *store;
    annal_state *state;
    annal_cursor *cursor;
    uint64_t from_seq; /* event after whose state it began, or 0 */
    uint64_t folded;   /* number of events applied since */
    uint64_t damaged;  /* number of damaged places skipped since */
};

/* Begin with the nearest snapshot at or before seq; with no_snapshots, or without any, before event
 * 1. */
annal_status annal__fold_begin(struct folding *folding, annal_index *index, annal_slice session,
                               const annal_replay_options *options, uint64_t seq, annal_error *err);

/* Apply the events up to seq; missing and damaged events are skipped. */
annal_status annal__fold_to(struct folding *folding, uint64_t seq, annal_error *err);

/* Return the state, which the caller owns from now on. */
annal_state *annal__fold_take(struct folding *folding);
void annal__fold_done(struct folding *folding);

/*
 * Call fn for the events from the cursor up to to_seq; damaged counts the places that were skipped.
 */
annal_status annal__fold(annal_cursor *cursor, uint64_t to_seq, annal_fold_fn fn, void *arg,
                         uint64_t *damaged, annal_error *err);

#endif
