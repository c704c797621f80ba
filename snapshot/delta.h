/* The body of a snapshot, made of the pages of a state and those of an older snapshot. */
#ifndef SNAPSHOT_DELTA_H
#define SNAPSHOT_DELTA_H

#include "snapshot/chain.h"

/*
 * Pack what the state is now over layer base of the chain; with base = annal__chain_layers() it is
 * whole. Layer 0 is what the state was opened over or rebased to, so that what may differ from the
 * base is what the bodies above it hold, and what the state changed since. Sets raw_bytes and what
 * annal__body_writer_end() does. body is cleared first.
 */
annal_status annal__delta_write(annal_state *state, struct chain *chain, size_t base,
                                struct snapshot_header *header, struct buf *body, annal_error *err);

#endif
