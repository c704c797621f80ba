/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access files below a directory in which other programs write, too, and may create symbolic links
 * to other places: the workspace of agents, or a lake.
 *
 * (1) The path of the directory itself, which a user gives, may contain links. Below it no link is
 *     followed: openat2() with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS opens the directory of a
 *     file; where a kernel before 5.6 or a seccomp filter lacks it, every component is opened
 *     separately, with O_NOFOLLOW, from its parent. So nothing outside is read, written or deleted,
 *     even if links are created there at the same time.
 * (2) If a component is a link, the function fails with a message that names the link. A link in
 *     the place of a file is not overwritten.
 * (3) A reader finds either the old content of a file or the new content, which is written under
 *     another name and renamed.
 * (4) Only regular files are read. Reading a FIFO does not wait.
 *
 * (5) A path is relative, shorter than PATH_MAX, and has no component that is empty, "." or "..":
 *     any other path is ANNAL_ERR_INVALID.
 */
#pragma once

#include "journal/base/buf.h"

struct below {
    const char *root; /* path of the directory as the user gave it; must stay valid */
    int fd;
};

/* How files and directories are created. */
struct below_mode {
    unsigned file; /* permissions of a new file, such as 0600 */
    /* permissions of a new directory, such as 0700; 0: a missing directory is an error */
    unsigned folder;
    /* whether to sync the file, its name, and the names of the directories above it */
    bool sync;
};

/* Open the directory root, which must exist. One thread at a time may use *out. */
annal_status annal__below_open(const char *root, struct below *out, annal_error *err);
void annal__below_close(struct below *below); /* may be zeroed */

/* Open a directory below the root; path "" is the root itself. ANNAL_ERR_NOTFOUND if it is missing
 * and mode does not create it. */
annal_status annal__below_folder(const struct below *below, const char *path,
                                 const struct below_mode *mode, int *out_fd, annal_error *err);

/* Append the content of a file to out. ANNAL_ERR_LIMIT if it exceeds out's limit,
 * ANNAL_ERR_NOTFOUND if the file does not exist. */
annal_status annal__below_read(const struct below *below, const char *path, struct buf *out,
                               annal_error *err);

annal_status annal__below_replace(const struct below *below, const char *path, annal_slice content,
                                  const struct below_mode *mode, annal_error *err);

/* Delete a file, or a link in its place. *out_deleted is false if it did not exist. */
annal_status annal__below_delete(const struct below *below, const char *path, bool *out_deleted,
                                 annal_error *err);

/*
 * Open a regular file; fail if the path names anything else, such as a FIFO (rule 4). flags is
 * O_RDONLY, or O_RDWR | O_CREAT | O_EXCL to create it. ANNAL_ERR_NOTFOUND if it does not exist;
 * ANNAL_ERR_CONFLICT if it should be created and exists.
 */
annal_status annal__below_open_file(const struct below *below, const char *path, int flags,
                                    const struct below_mode *mode, int *out_fd, annal_error *err);

/*
 * Give a file another name in the same directory, and sync the directory. ANNAL_ERR_NOTFOUND if the
 * file does not exist; annal__below_link() fails with ANNAL_ERR_CONFLICT if a file has the other
 * name.
 */
annal_status annal__below_rename(const struct below *below, const char *path, const char *to,
                                 annal_error *err);
annal_status annal__below_link(const struct below *below, const char *path, const char *to,
                               annal_error *err);
