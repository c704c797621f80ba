/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Import sessions through a staging directory: rule (5) of bundle.h from the chain of each journal
 * on.
 *
 * The files are written as a separate store, STORE/.importing-<16 hex>, where the library proves
 * them as in any store; then they are moved. A directory of that name without a lock was left by an
 * interrupted process: the next import of a bundle, or deletion, removes it.
 */
#ifndef TOOLS_EXPORT_STAGING_H
#define TOOLS_EXPORT_STAGING_H

#include "tools/export/bundle.h"

/* Limits of the unpacked artifacts of a bundle: 1 GiB, and 100 times the size of its file. */
enum { UNPACK_GIB = 1, UNPACK_RATIO = 100 };

/* The state of a session in the store. */
enum standing { STANDS_NOT, STANDS_SAME, STANDS_SHORTER };

struct staging {
    annal_store *store;
    const char *from;     /* source, for messages */
    struct bundle bundle; /* the sessions to import, and the names of their files below stage */
    annal_error *err;

    struct buf stage; /* path of the directory */
    int stage_lock;   /* -1: the directory does not exist */
    annal_store *staged;
    enum standing *standings;
    const struct bundle_session **by_id; /* sessions of the bundle, sorted by id */
    uint64_t unpack_max;                 /* limit of the unpacked artifacts together */
    uint64_t missing;                    /* artifacts of events that are missing in the bundle */
    uint64_t added, extended, events;
};

/* Create the directory. Its name is random, unless key determines it: then it may contain the files
 * of an interrupted caller. ANNAL_ERR_BUSY: another process is using it. */
annal_status staging_begin(struct staging *staging, uint64_t key);

/* Return the directory, which stays the same if another process replaces its name. */
struct below staging_below(const struct staging *staging);

/* Check that the disk has room for this many bytes more, beyond what the store keeps free. */
annal_status staging_check_space(struct staging *staging, uint64_t bytes);

/* Open a file below stage (annal__below_open_file()), or with O_CREAT create it and its
 * directories. No link is followed. */
annal_status staging_open_file(struct staging *staging, const char *within, int flags, int *out_fd);

/* Once the files of the bundle are written: prove them, compare them with the store, move them, and
 * read the store again. */
annal_status staging_finish(struct staging *staging);

/* Remove the directory, and free the bundle. With keep, the files stay for the next
 * staging_begin(). */
void staging_done(struct staging *staging);
void staging_keep(struct staging *staging);

#endif
