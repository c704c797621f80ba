/* SPDX-License-Identifier: Apache-2.0 */
#include "index/db/files.h"

#include "index/db/page_proof.h"

#include "journal/base/buf.h"
#include "journal/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define FOREIGN_NAMES 100

static annal_status path_with(const char *database, const char *suffix, struct buf *out,
                              annal_error *err)
{
    annal__buf_clear(out);
    if (annal__buf_printf(out, "%s%s", database, suffix) < 0 || annal__buf_cstr(out) == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "compose a file name: out of memory");
    return ANNAL_OK;
}

/* Refuse a path through a symbolic link: agents can write where databases of runs are, and may
 * create links there. */
static annal_status check_folders(const struct io *io, const char *database, size_t root_bytes,
                                  annal_error *err)
{
    SCOPED_BUF path = {0};
    struct stat folder;
    annal_status status = path_with(database, "", &path, err);
    for (char *slash = status < 0 ? NULL : strchr(path.ptr + root_bytes + 1, '/');
         slash != NULL && status >= 0; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (io->stat(io->arg, path.ptr, &folder) == 0 && S_ISLNK(folder.st_mode)) {
            errno = ELOOP;
            status = annal__fail_errno(err, "path '%s' is a symbolic link, which is not followed",
                                       path.ptr);
        }
        *slash = '/';
    }
    return status;
}

annal_status annal__file_check(const struct io *io, const char *path, size_t root_bytes,
                               annal_error *err)
{
    struct stat file;
    annal_status status = check_folders(io, path, root_bytes, err);
    if (status < 0)
        return status;
    if (io->stat(io->arg, path, &file) < 0)
        return ANNAL_OK;
    if (S_ISDIR(file.st_mode)) {
        errno = EISDIR;
        return annal__fail_errno(err, "open a database: '%s' is a directory", path);
    }
    /* refuse a symbolic link: its target may belong to another program */
    if (!S_ISREG(file.st_mode)) {
        errno = ELOOP;
        return annal__fail_errno(
            err, "open a database: '%s' is a link or a device, not a regular file", path);
    }
    return ANNAL_OK;
}

bool annal__file_is_there(const struct io *io, const char *path)
{
    struct stat file;
    return io->stat(io->arg, path, &file) == 0;
}

static annal_status remove_file(const struct io *io, const char *database, const char *suffix,
                                annal_error *err)
{
    SCOPED_BUF path = {0};
    annal_status status = path_with(database, suffix, &path, err);
    if (status >= 0 && io->unlink(io->arg, path.ptr) < 0 && errno != ENOENT)
        status = annal__fail_errno(err, "cannot delete '%s'", path.ptr);
    return status;
}

static annal_status remove_satellites(const struct io *io, const char *database, annal_error *err)
{
    annal_status status = remove_file(io, database, "-wal", err);
    if (status >= 0)
        status = remove_file(io, database, "-shm", err);
    if (status >= 0)
        status = remove_file(io, database, "-journal", err);
    return status < 0 ? status : remove_file(io, database, PROOF_MARK, err);
}

annal_status annal__files_remove(const struct io *io, const char *database, annal_error *err)
{
    annal_status status = remove_file(io, database, "", err);
    return status < 0 ? status : remove_satellites(io, database, err);
}

/* Find the first of the paths database.foreign, database.foreign2, … that does not exist. */
static annal_status find_free_name(const struct io *io, const char *database, struct buf *out,
                                   annal_error *err)
{
    for (int i = 1; i <= FOREIGN_NAMES; i++) {
        char suffix[32];
        snprintf(suffix, sizeof suffix, i == 1 ? ".foreign" : ".foreign%d", i);
        annal_status status = path_with(database, suffix, out, err);
        if (status < 0 || !annal__file_is_there(io, out->ptr))
            return status;
    }
    return annal__fail(err, ANNAL_ERR_IO,
                       "cannot move the database '%s' aside: file '%s' already exists", database,
                       out->ptr);
}

static annal_status move_file(const struct io *io, const char *database, const char *to,
                              const char *suffix, annal_error *err)
{
    SCOPED_BUF old = {0}, new = {0};
    annal_status status = path_with(database, suffix, &old, err);
    if (status >= 0)
        status = path_with(to, suffix, &new, err);
    if (status >= 0 && io->rename(io->arg, old.ptr, new.ptr) < 0 && errno != ENOENT)
        status = annal__fail_errno(err, "cannot move the database '%s' aside", old.ptr);
    return status;
}

annal_status annal__files_move_aside(const struct io *io, const char *database, annal_error *err)
{
    SCOPED_BUF to = {0};
    annal_status status = find_free_name(io, database, &to, err);
    /* Rename the database last: if the process dies before that, the same name is still free, and
     * the next call moves the remaining files to it. */
    if (status >= 0)
        status = move_file(io, database, to.ptr, "-wal", err);
    if (status >= 0)
        status = move_file(io, database, to.ptr, "-journal", err);
    if (status >= 0)
        status = move_file(io, database, to.ptr, "", err);
    return status < 0 ? status : remove_satellites(io, database, err);
}

/* Create the missing directories above the database, below the first root_bytes of its path. */
static annal_status make_parents(const struct io *io, const char *database, size_t root_bytes,
                                 annal_error *err)
{
    SCOPED_BUF path = {0};
    annal_status status = path_with(database, "", &path, err);
    for (char *slash = status < 0 ? NULL : strchr(path.ptr + root_bytes + 1, '/');
         slash != NULL && status >= 0; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (!annal__file_is_there(io, path.ptr))
            status = annal__io_make_dir(io, path.ptr, err);
        *slash = '/';
    }
    return status;
}

annal_status annal__files_make(const struct io *io, const char *database, size_t root_bytes,
                               annal_error *err)
{
    annal_status status = make_parents(io, database, root_bytes, err);
    if (status >= 0)
        status = remove_satellites(io, database, err);
    if (status < 0)
        return status;
    int fd = io->open(io->arg, database, O_RDWR | O_CREAT | O_EXCL, 0660);
    if (fd < 0)
        return annal__fail_errno(err, "cannot create the database '%s'", database);
    io->close(io->arg, fd);
    return ANNAL_OK;
}

struct file_id annal__file_id(const struct io *io, const char *database, const char *suffix)
{
    SCOPED_BUF path = {0};
    struct stat file = {0};
    if (path_with(database, suffix, &path, NULL) < 0 || io->stat(io->arg, path.ptr, &file) < 0)
        file = (struct stat){0};
    return (struct file_id){file.st_dev, file.st_ino};
}

bool annal__file_is_same(struct file_id a, struct file_id b)
{
    return a.device == b.device && a.inode == b.inode;
}
