/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a backup, and copying files. */
#ifndef INDEX_BACKUP_BACKUP_H
#define INDEX_BACKUP_BACKUP_H

#include "journal/base/buf.h"
#include "journal/base/io.h"

#include <annal/backup.h>

#define BACKUP_MANIFEST "manifest"
#define BACKUP_PATH_MAX 512 /* length of a file's path within a backup */

struct backup_file {
    char path[BACKUP_PATH_MAX];
    uint64_t bytes;
    uint64_t h;
};

/* ---- The manifest, rule (2) of backup.c ---- */

annal_status annal__backup_manifest_begin(struct buf *out, const char *created);
annal_status annal__backup_manifest_add(struct buf *out, const struct backup_file *file);
annal_status annal__backup_manifest_end(struct buf *out, uint64_t files, uint64_t bytes);

struct manifest {
    struct buf text;
    const char *at; /* next line */
    uint64_t files; /* numbers in its last line */
    uint64_t bytes;
};

/* Read and check the manifest; directory is also for messages. */
annal_status annal__backup_manifest_open(struct manifest *manifest, const struct io *io,
                                         const char *directory, annal_error *err);
/* Return the next file; ANNAL_END after the last. */
annal_status annal__backup_manifest_next(struct manifest *manifest, struct backup_file *out,
                                         annal_error *err);
void annal__backup_manifest_done(struct manifest *manifest);

/* ---- Copying ---- */

struct copying {
    const struct io *io;
    const annal_backup_options *options;
    struct buf piece;
    uint64_t bytes_done, bytes_total;
};

annal_status annal__backup_copying_init(struct copying *copying, const struct io *io,
                                        const annal_backup_options *options, annal_error *err);
void annal__backup_copying_done(struct copying *copying);

/*
 * Copy the first bytes of a file (all if UINT64_MAX) to another, which must not exist, and sync it;
 * if `to` is NULL only read. Fewer bytes are not a failure: see out->bytes. ANNAL_ERR_NOTFOUND if
 * from does not exist.
 */
annal_status annal__backup_copy_file(struct copying *copying, const char *from, const char *to,
                                     uint64_t bytes, struct backup_file *out, annal_error *err);

/* The same for a file that is open: closes it. from is its name in messages. */
annal_status annal__backup_copy_opened(struct copying *copying, int source, const char *from,
                                       const char *to, uint64_t bytes, struct backup_file *out,
                                       annal_error *err);

/* Create the directories below root for path, a file in it, and sync what was created. */
annal_status annal__backup_make_parents(const struct io *io, const char *root, const char *path,
                                        annal_error *err);

/* Write root/path into out, which is cleared first. */
annal_status annal__backup_join(struct buf *out, const char *root, const char *path,
                                annal_error *err);

/* Check that path is an empty directory or does not exist; else ANNAL_ERR_CONFLICT. */
annal_status annal__backup_must_be_empty(const struct io *io, const char *path, bool *out_there,
                                         annal_error *err);

/* Run annal_restore(), or annal_backup_check() (path NULL), with another struct io. */
annal_status annal__backup_restore(const struct io *io, const char *directory, const char *path,
                                   const annal_backup_options *options,
                                   annal_backup_result *out_result, annal_error *err);

#endif
