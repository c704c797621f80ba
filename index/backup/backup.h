/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a backup, and copying files. */
#pragma once

#include "journal/base/buf.h"
#include "journal/base/io.h"

#include <annal/backup.h>

#define BACKUP_MANIFEST "manifest"
#define BACKUP_PATH_MAX 512 /* size of the buffer for a file's path within a backup */

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
    const char *at; /* beginning of the next line to read in text */
    uint64_t files; /* number of files, according to the last line of the manifest */
    uint64_t bytes; /* size of all files, according to the last line of the manifest */
};

/* Read the manifest in directory, and check its hash. Messages contain directory. */
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
 * Copy the first `bytes` bytes of a file (UINT64_MAX: all) to the file `to`, which must not exist,
 * and sync it; if `to` is NULL, only read them. A shorter file is not a failure: out->bytes and
 * out->h are the length and the hash of the bytes that were read. ANNAL_ERR_NOTFOUND if from does
 * not exist.
 */
annal_status annal__backup_copy_file(struct copying *copying, const char *from, const char *to,
                                     uint64_t bytes, struct backup_file *out, annal_error *err);

/* Create the directories between root and the file root/path, and sync the parent of each. */
annal_status annal__backup_make_parents(const struct io *io, const char *root, const char *path,
                                        annal_error *err);

/* Sync all directories below target that contain files of the manifest, and target. The other
 * directories were synced when they were created, by annal__backup_make_parents(). */
annal_status annal__backup_sync_tree(const struct io *io, const char *target,
                                     struct manifest *manifest, annal_error *err);

/* Write root/path into out, which is cleared first. */
annal_status annal__backup_join(struct buf *out, const char *root, const char *path,
                                annal_error *err);

/* Check that path does not exist, or is an empty directory; otherwise ANNAL_ERR_CONFLICT.
 * *out_there: whether it exists. */
annal_status annal__backup_must_be_empty(const struct io *io, const char *path, bool *out_there,
                                         annal_error *err);

/* Restore a backup to path as annal_backup_restore() does, or only check it if path is NULL, with
 * this struct io. */
annal_status annal__backup_restore(const struct io *io, const char *directory, const char *path,
                                   const annal_backup_options *options,
                                   annal_backup_result *out_result, annal_error *err);
