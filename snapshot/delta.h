/* SPDX-License-Identifier: Apache-2.0 */
/* Packing the body of a snapshot from the pages of a state and of an older snapshot. */
#ifndef SNAPSHOT_DELTA_H
#define SNAPSHOT_DELTA_H

#include "snapshot/chain.h"

/*
 * Pack the current state against layer base of the chain; with base = annal__chain_layers() it is
 * stored whole. The state was opened over layer 0, or rebased to it. So the pages that may differ
 * from the base are those in the bodies above it, and those that the state has changed since. Sets
 * raw_bytes and the members that annal__container_body_writer_end() sets. body is cleared first.
 */
annal_status annal__delta_write(annal_state *state, struct chain *chain, size_t base,
                                struct snapshot_header *header, struct buf *body, annal_error *err);

#endif
