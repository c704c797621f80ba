/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports sessions through a staging directory (bundle.h, rule 5, from the chain of hashes on).
 *
 * The files are written as a store of their own, STORE/.importing-<16 hex>, in which the library
 * proves them as in any store; then they are moved. A directory of that name that no process has
 * locked was left by an interrupted process: the next import of a bundle, or deletion, removes it.
 */
#pragma once

#include "tools/export/bundle.h"

/* Limit of the unpacked artifacts of a bundle: 1 GiB plus 100 times the size of the bundle. */
enum { UNPACK_GIB = 1, UNPACK_RATIO = 100 };

/* The limit of all generations of logs together: they share bytes. */
enum { UNPACK_SOURCES_RATIO = 1000 };

/* How much of a bundle's session the store contains: nothing, the same events, or only the first
 * ones. */
enum standing { STANDS_NOT, STANDS_SAME, STANDS_SHORTER };

struct staging {
    annal_store *store;
    const char *from;     /* name of the source in messages */
    struct bundle bundle; /* sessions to import, whose files are below stage */
    annal_error *err;

    struct buf stage; /* path of the staging directory */
    /* descriptor of the staging directory, which is locked; -1 if the directory does not exist */
    int stage_lock;
    annal_store *staged;
    enum standing *standings;
    /* number of bytes that the artifacts may still unpack to */
    uint64_t unpack_max;
    /* number of bytes of logs that their copies may still have */
    uint64_t sources_max;
    uint64_t sources_kept; /* number of files that were not imported: the store has others */
    /* number of references in events to artifacts that the bundle lacks */
    uint64_t missing;
    uint64_t added, extended, events;
};

/* Create and lock the staging directory. Its name is random if key is 0. Another key determines the
 * name; the directory may then contain the files of an interrupted caller with the same key.
 * ANNAL_ERR_BUSY: another process is using it. */
annal_status staging_begin(struct staging *staging, uint64_t key);

/* Return the directory for functions of below.h. It stays the same even if another process replaces
 * its name. */
struct below staging_below(const struct staging *staging);

/* Check that this many bytes more fit on the disk, beyond what the store keeps free. */
annal_status staging_check_space(struct staging *staging, uint64_t bytes);

/* Open a file below the staging directory as annal__below_open_file() does; with O_CREAT, also
 * create it and its directories. Links are not followed. */
annal_status staging_open_file(struct staging *staging, const char *within, int flags, int *out_fd);

/* Import the files, which must be complete: prove them, compare them with the store, move them, and
 * read the store again. */
annal_status staging_finish(struct staging *staging);

/* staging_done() removes the directory, and frees the members. staging_keep() leaves the files for
 * a later staging_begin() with the same key. */
void staging_done(struct staging *staging);
void staging_keep(struct staging *staging);
