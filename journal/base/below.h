/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files below a directory to which others write as well, and who may create symbolic links there
 * that lead elsewhere: the workspace of agents, or a lake.
 *
 * (1) The directory is what a user named; it may be a link. Below it no link is followed: openat2()
 *     with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS opens the directory of a file; where a kernel
 *     before 5.6 or a seccomp filter lacks it, every component is opened separately, with
 *     O_NOFOLLOW, from its parent. So nothing outside is read, written or deleted, even if links
 *     are created there at the same time.
 * (2) A link among the components is an error that names it. A link in the place of a file is not
 *     overwritten.
 * (3) A reader finds the old bytes of a file or the new ones: they are written under another name,
 *     and renamed.
 * (4) Only regular files are read. Reading a FIFO does not wait.
 *
 * (5) A path is relative, shorter than PATH_MAX, and has no component that is empty, "." or "..":
 *     any other path is ANNAL_ERR_INVALID.
 */
#ifndef JOURNAL_BASE_BELOW_H
#define JOURNAL_BASE_BELOW_H

#include "journal/base/buf.h"

struct below {
    const char *root; /* the directory, as the user named it; borrowed */
    int fd;
};

/* How files and directories are created. */
struct below_mode {
    unsigned file;   /* 0600 */
    unsigned folder; /* 0700; 0: a missing directory is an error */
    bool sync;       /* the file, its name, and the names of the directories above it */
};

/* The directory must exist. One thread at a time. */
annal_status annal__below_open(const char *root, struct below *out, annal_error *err);
void annal__below_close(struct below *below); /* may be zeroed */

/*
 * Open the directory path ("": the root itself). ANNAL_ERR_NOTFOUND if it is missing and mode does
 * not create it.
 */
annal_status annal__below_folder(const struct below *below, const char *path,
                                 const struct below_mode *mode, int *out_fd, annal_error *err);

/* Append a whole file to out; ANNAL_ERR_LIMIT if out's limit is too small, ANNAL_ERR_NOTFOUND. */
annal_status annal__below_read(const struct below *below, const char *path, struct buf *out,
                               annal_error *err);

annal_status annal__below_replace(const struct below *below, const char *path, annal_slice content,
                                  const struct below_mode *mode, annal_error *err);

/* Delete a file, or a link in its place. *out_deleted is false if it did not exist. */
annal_status annal__below_delete(const struct below *below, const char *path, bool *out_deleted,
                                 annal_error *err);

/* Open a regular file (rule 4), with O_RDONLY, or to create it with O_RDWR | O_CREAT | O_EXCL.
 * ANNAL_ERR_NOTFOUND; ANNAL_ERR_CONFLICT if it is created and exists. */
annal_status annal__below_open_file(const struct below *below, const char *path, int flags,
                                    const struct below_mode *mode, int *out_fd, annal_error *err);

/* Give a file another name in the same directory, which is synced. ANNAL_ERR_NOTFOUND; link:
 * ANNAL_ERR_CONFLICT if a file has the name. */
annal_status annal__below_rename(const struct below *below, const char *path, const char *to,
                                 annal_error *err);
annal_status annal__below_link(const struct below *below, const char *path, const char *to,
                               annal_error *err);

#endif
