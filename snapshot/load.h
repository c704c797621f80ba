/* SPDX-License-Identifier: Apache-2.0 */
/* Load states from snapshots, for the files of this folder. */
#pragma once

#include "snapshot/chain.h"

/* A state, and the snapshot from which it was loaded. */
struct loaded {
    annal_state *state;  /* freed by the caller */
    struct chain *chain; /* chain of the snapshot; the caller drops this reference */
    bool inherited;      /* whether the snapshot belongs to an ancestor of the session */
};

/*
 * Load the newest valid snapshot whose seq is at most at_most: of the session or, at or before its
 * fork point, of an ancestor. With discard, invalid rows of the session that are found are deleted;
 * each deletion waits up to wait_ms milliseconds for other writers of the index.
 * ANNAL_ERR_NOTFOUND: no valid snapshot.
 */
annal_status annal__load_newest(const struct storage *shelf, uint64_t at_most, bool discard,
                                uint32_t wait_ms, struct loaded *out_loaded, annal_error *err);

/* Create a state of the session from the pages of source or, if source is NULL, before its first
 * event; reuse the state *shelf->spare if possible. On success the state owns source. */
annal_status annal__load_state(const struct storage *shelf, const annal__state_source *source,
                               annal_state **out_state, annal_error *err);

/* Open a cursor at the first event after the snapshot that was loaded. */
annal_status annal__load_cursor(const struct storage *shelf, const struct loaded *loaded,
                                annal_cursor **out_cursor, annal_error *err);

/* Time in ms that a caller waits for other writers of the index; the keeper waits for less time. */
#define SNAPSHOT_WAIT_MS 10000
