/*
 * A snapshot that is open: its pages, read through all the bodies that it is stored against, when
 * they are asked for. Pages count from 0 here.
 */
#ifndef SNAPSHOT_CHAIN_H
#define SNAPSHOT_CHAIN_H

#include "snapshot/storage.h"

struct chain;

/* A chain without layers, to push to. */
annal_status annal__chain_new(const struct storage *shelf, struct chain **out_chain,
                              annal_error *err);

/*
 * Open the snapshot of a row, which is the chain's now (also on failure). Every byte that its pages
 * are made of is read once, and checked; what is kept in memory are directories, and bodies that
 * stand in rows. ANNAL_ERR_CORRUPT when it is not whole.
 */
annal_status annal__chain_open(const struct storage *shelf, struct shelf_row *row,
                               struct chain **out_chain, annal_error *err);

/* The same for one row alone, as if its base were whole. The row stays the caller's. */
annal_status annal__chain_check(const struct storage *shelf, struct shelf_row *row,
                                annal_error *err);

/* One thread at a time, holders and all. NULL is fine. */
struct chain *annal__chain_ref(struct chain *chain);
void annal__chain_unref(struct chain *chain);

/* A chain has layers: 0 is the snapshot itself, each other one the base of the layer before it. */
size_t annal__chain_layers(const struct chain *chain);
const struct snapshot_header *annal__chain_header(const struct chain *chain, size_t layer);
const struct snapshot_directory *annal__chain_directory(const struct chain *chain, size_t layer);

/* The page as the snapshot of that layer has it, and how many frames are unpacked for it. */
annal_status annal__chain_page(struct chain *chain, size_t layer, uint32_t page, char *out,
                               uint32_t *out_cost, annal_error *err);

/*
 * The snapshot with this header, just put on the shelf, becomes layer 0. What is now layer base
 * is its base; with base = annal__chain_layers() it has none. body becomes the chain's.
 */
annal_status annal__chain_push(struct chain *chain, const struct storage *shelf,
                               const struct snapshot_header *header, struct buf *body, size_t base,
                               annal_error *err);

/* The pages of layer 0 for a state. Its close() is annal__chain_unref(): ref it before. */
annal_state_source annal__chain_source(struct chain *chain);

#endif
