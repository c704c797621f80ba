/* Folding events into a state, as the files of this folder share it. */
#ifndef REPLAY_FOLD_H
#define REPLAY_FOLD_H

#include <annal/replay.h>

/*
 * A state on its way, and the cursor in front of its next event. Begin with all zero, then
 * annal__folding_begin(); annal__folding_done() in any case.
 */
struct folding {
    annal_store *store;
    annal_state *state;
    annal_cursor *cursor;
    uint64_t from_seq; /* it began with the state after this event; 0: none */
    uint64_t folded;   /* events applied since */
    uint64_t damaged;  /* places passed over since */
};

/* The nearest snapshot at or before seq, or, with no_snapshots or without any, before event 1. */
annal_status annal__folding_begin(struct folding *folding, annal_index *index, annal_slice session,
                                  const annal_replay_options *options, uint64_t seq,
                                  annal_error *err);

/* Apply the events up to seq; what is not there, or not whole, is passed over. */
annal_status annal__folding_to(struct folding *folding, uint64_t seq, annal_error *err);

/* The state is the caller's from now on. */
annal_state *annal__folding_take(struct folding *folding);
void annal__folding_done(struct folding *folding);

/* The events up to to_seq from where the cursor stands; damaged counts what was passed over. */
annal_status annal__fold(annal_cursor *cursor, uint64_t to_seq, annal_fold_fn fn, void *arg,
                         uint64_t *damaged, annal_error *err);

#endif
