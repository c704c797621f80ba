/* SPDX-License-Identifier: Apache-2.0 */
/* Packing the body of a snapshot from the pages of a state and those of an older snapshot. */
#ifndef SNAPSHOT_DELTA_H
#define SNAPSHOT_DELTA_H

#include "snapshot/chain.h"

/*
 * Pack the state as it is now against layer base of the chain; with base = annal__chain_layers() it
 * is stored whole. Layer 0 is what the state was opened over or rebased to. So the pages that may
 * differ from the base are those in the bodies above it, and those that the state has changed
 * since. Sets raw_bytes and what annal__container_body_writer_end() sets. body is cleared first.
 */
annal_status annal__delta_write(annal_state *state, struct chain *chain, size_t base,
                                struct snapshot_header *header, struct buf *body, annal_error *err);

#endif
