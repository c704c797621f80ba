/* SPDX-License-Identifier: Apache-2.0 */
/* An open snapshot: its pages are read on demand, from its body and from the bodies of its bases.
 * Pages are counted from 0 here. */
#pragma once

#include "index/sys/state.h"
#include "snapshot/storage.h"

struct chain;

/* Create a chain without layers, for annal__chain_push(). */
annal_status annal__chain_new(const struct storage *shelf, struct chain **out_chain,
                              annal_error *err);

/*
 * Open the snapshot of a row; the function takes ownership of the row, even after a failure. Every
 * byte that its pages depend on is read once and checked; directories, and bodies that are in rows,
 * stay in memory. ANNAL_ERR_CORRUPT if it is incomplete or damaged.
 */
annal_status annal__chain_open(const struct storage *shelf, struct shelf_row *row,
                               struct chain **out_chain, annal_error *err);

/* Add or drop a reference. One thread at a time may use a chain, whoever holds the references.
 * chain may be NULL for annal__chain_unref() only. */
struct chain *annal__chain_ref(struct chain *chain);
void annal__chain_unref(struct chain *chain);

/*
 * Return the number of layers of a chain. Layer 0 is the snapshot itself, and each further layer is
 * the base of the layer before it.
 */
size_t annal__chain_layers(const struct chain *chain);
const struct snapshot_header *annal__chain_header(const struct chain *chain, size_t layer);
const struct snapshot_directory *annal__chain_directory(const struct chain *chain, size_t layer);

/* Read a page of the snapshot of this layer. *out_cost is the number of frames that the page
 * depends on. */
annal_status annal__chain_page(struct chain *chain, size_t layer, uint32_t page, char *out,
                               uint32_t *out_cost, annal_error *err);

/*
 * Add the snapshot with this header, which was just stored, as layer 0. Its base is the layer that
 * has number `base` before the call; with base = annal__chain_layers() it has no base. Layers
 * before its base are removed. The chain takes ownership of body.
 */
annal_status annal__chain_push(struct chain *chain, const struct storage *shelf,
                               const struct snapshot_header *header, struct buf *body, size_t base,
                               annal_error *err);

/* Return the pages of layer 0 as the source of a state. The state drops a reference to the chain
 * when it closes the source, so take a reference for it first. */
annal__state_source annal__chain_source(struct chain *chain);
