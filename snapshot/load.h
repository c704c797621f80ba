/* Loading, as the files of this folder share it. */
#ifndef SNAPSHOT_LOAD_H
#define SNAPSHOT_LOAD_H

#include "snapshot/chain.h"

/* A state, and the snapshot that it came from. */
struct loaded {
    annal_state *state;  /* to be freed by who asked, */
    struct chain *chain; /* as this is to be unrefed */
};

/*
 * annal_snapshot_load() over a shelf. With discard, rows that do not count are deleted on the way,
 * each waiting for other writers of the index as long as wait_ms.
 */
annal_status annal__snapshot_load(const struct shelf *shelf, uint64_t at_most, bool discard,
                                  uint32_t wait_ms, struct loaded *out_loaded, annal_error *err);

/* How long a caller, as against the keeper, waits for other writers of the index. */
#define SNAPSHOT_WAIT_MS 10000

#endif
