/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions on their way into a store: rule (5) of bundle.h from the chain of each journal on.
 *
 * They are written as a store of its own, STORE/.importing-<16 hex>, where the library proves them
 * as it proves any store; then its files are moved. A directory of that name whose lock nobody has
 * was left by a process that was interrupted: the next import of a bundle, or deletion, removes it.
 */
#ifndef TOOLS_EXPORT_STAGING_H
#define TOOLS_EXPORT_STAGING_H

#include "tools/export/bundle.h"

/* What the artifacts of a bundle may unpack to: 1 GiB, and 100 times the size of its file. */
enum { UNPACK_GIB = 1, UNPACK_RATIO = 100 };

/* What the store has of a session. */
enum standing { STANDS_NOT, STANDS_SAME, STANDS_SHORTER };

struct staging {
    annal_store *store;
    const char *from;     /* for messages: where they come from */
    struct bundle bundle; /* what they are to be, and where their files are below stage */
    annal_error *err;

    struct buf stage; /* its path */
    int stage_lock;   /* -1: it does not exist */
    annal_store *staged;
    enum standing *standings;
    const struct bundle_session **by_id; /* the sessions of the bundle, sorted by their ids */
    uint64_t unpack_max;                 /* what the artifacts may unpack to, in all */
    uint64_t missing;                    /* artifacts that events name and that did not come */
    uint64_t added, extended, events;
};

/* Its name is random, unless key says it: then it may have what an interrupted caller left.
 * ANNAL_ERR_BUSY: another process has that. */
annal_status staging_begin(struct staging *staging, uint64_t key);

/* The directory, which stays the same if another process gives its name to something else. */
struct below staging_below(const struct staging *staging);

/* Whether the disk has room for so many bytes more, beyond what the store keeps free. */
annal_status staging_check_space(struct staging *staging, uint64_t bytes);

/* Open a file below stage (annal__below_open_file()), or with O_CREAT create it and the directories
 * above it. No link is followed. */
annal_status staging_open_file(struct staging *staging, const char *within, int flags, int *out_fd);

/* The files of the bundle are there: prove them, compare them with what the store has, move them in
 * and read the store again. */
annal_status staging_finish(struct staging *staging);

/* Remove it; its bundle too. With keep, its files stay for the next staging_begin(). */
void staging_done(struct staging *staging);
void staging_keep(struct staging *staging);

#endif
