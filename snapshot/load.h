/* SPDX-License-Identifier: Apache-2.0 */
/* Loading, for the files of this folder. */
#ifndef SNAPSHOT_LOAD_H
#define SNAPSHOT_LOAD_H

#include "snapshot/chain.h"

/* A state, and the snapshot from which it was loaded. */
struct loaded {
    annal_state *state;  /* the caller frees it */
    struct chain *chain; /* the caller drops this reference */
    bool inherited;      /* whether it is the snapshot of an ancestor */
};

/*
 * Load the newest valid snapshot whose seq is at most at_most: of the session or, at or before its
 * fork point, of an ancestor. With discard, invalid rows of the session are deleted on the way;
 * each deletion waits up to wait_ms for other writers of the index. ANNAL_ERR_NOTFOUND: no valid
 * snapshot.
 */
annal_status annal__load_newest(const struct storage *shelf, uint64_t at_most, bool discard,
                                uint32_t wait_ms, struct loaded *out_loaded, annal_error *err);

/*
 * Create a state of the session over source, or before its first event if source is NULL; reuse
 * shelf->spare if possible. On success the state owns source.
 */
annal_status annal__load_state(const struct storage *shelf, const annal__state_source *source,
                               annal_state **out_state, annal_error *err);

/* Open a cursor after the snapshot that was loaded. */
annal_status annal__load_cursor(const struct storage *shelf, const struct loaded *loaded,
                                annal_cursor **out_cursor, annal_error *err);

/* How long a caller waits for other writers of the index; the keeper waits less. */
#define SNAPSHOT_WAIT_MS 10000

#endif
