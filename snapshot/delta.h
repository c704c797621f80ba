/* SPDX-License-Identifier: Apache-2.0 */
/* Write the body of a snapshot from the pages of a state and of an older snapshot. */
#pragma once

#include "snapshot/chain.h"

/*
 * Write the current state as a body against layer `base` of the chain; with base =
 * annal__chain_layers() all its pages are stored. The state was opened over layer 0, or rebased to
 * it, so the pages that may differ from the base are those in the layers before the base, and those
 * that the state has changed since. Sets raw_bytes of the header and the members that
 * annal__container_body_writer_end() sets. body is cleared first.
 */
annal_status annal__delta_write(annal_state *state, struct chain *chain, size_t base,
                                struct snapshot_header *header, struct buf *body, annal_error *err);
