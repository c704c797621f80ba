/* Loading, as the files of this folder share it. */
#ifndef SNAPSHOT_LOAD_H
#define SNAPSHOT_LOAD_H

#include "snapshot/chain.h"

/* A state, and the snapshot that it came from. */
struct loaded {
    annal_state *state;  /* to be freed by who asked, */
    struct chain *chain; /* as this is to be unrefed */
    bool inherited;      /* it is the snapshot of an ancestor */
};

/*
 * The newest snapshot that counts and whose seq is at most at_most: one of the session, or, at or
 * before its fork point, of an ancestor. With discard, rows of the session that do not count are
 * deleted on the way, each waiting for other writers of the index as long as wait_ms.
 * ANNAL_ERR_NOTFOUND: there is none.
 */
annal_status annal__snapshot_load(const struct storage *shelf, uint64_t at_most, bool discard,
                                  uint32_t wait_ms, struct loaded *out_loaded, annal_error *err);

/* Open a cursor behind the snapshot that was loaded. */
annal_status annal__snapshot_cursor(const struct storage *shelf, const struct loaded *loaded,
                                    annal_cursor **out_cursor, annal_error *err);

/* How long a caller, as against the keeper, waits for other writers of the index. */
#define SNAPSHOT_WAIT_MS 10000

#endif
