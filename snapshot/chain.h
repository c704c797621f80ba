/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open snapshot: its pages are read on demand, through all bodies against which it is stored.
 * Pages are counted from 0 here.
 */
#ifndef SNAPSHOT_CHAIN_H
#define SNAPSHOT_CHAIN_H

#include "index/sys/state.h"
#include "snapshot/storage.h"

struct chain;

/* Create a chain without layers, to push to. */
annal_status annal__chain_new(const struct storage *shelf, struct chain **out_chain,
                              annal_error *err);

/*
 * Open the snapshot of a row; the chain owns the row from now on, even after a failure. Every byte
 * that its pages depend on is read once and checked; directories, and bodies that are in rows, stay
 * in memory. ANNAL_ERR_CORRUPT if it is incomplete or damaged.
 */
annal_status annal__chain_open(const struct storage *shelf, struct shelf_row *row,
                               struct chain **out_chain, annal_error *err);

/*
 * Add or drop a reference. One thread at a time, including all holders of references. chain may be
 * NULL.
 */
struct chain *annal__chain_ref(struct chain *chain);
void annal__chain_unref(struct chain *chain);

/*
 * Return the number of layers of a chain. Layer 0 is the snapshot itself, and each further layer is
 * the base of the layer before it.
 */
size_t annal__chain_layers(const struct chain *chain);
const struct snapshot_header *annal__chain_header(const struct chain *chain, size_t layer);
const struct snapshot_directory *annal__chain_directory(const struct chain *chain, size_t layer);

/* Read a page of the snapshot of that layer. *out_cost: how many frames were unpacked for it. */
annal_status annal__chain_page(struct chain *chain, size_t layer, uint32_t page, char *out,
                               uint32_t *out_cost, annal_error *err);

/*
 * Make the snapshot with this header, which was just stored, layer 0. Its base is the layer that
 * currently has number base; with base = annal__chain_layers() it has no base. The chain takes
 * ownership of body.
 */
annal_status annal__chain_push(struct chain *chain, const struct storage *shelf,
                               const struct snapshot_header *header, struct buf *body, size_t base,
                               annal_error *err);

/*
 * Return the pages of layer 0 as a source for a state. Its close() is annal__chain_unref(): take a
 * reference before.
 */
annal__state_source annal__chain_source(struct chain *chain);

#endif
