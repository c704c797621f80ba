/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/below.h"

#include "journal/base/error.h"
#include "journal/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Close a file, if it is open, and keep errno. */
static void close_quietly(int fd)
{
    int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
}

/* Fail with the reason in errno: ANNAL_ERR_NOTFOUND for a missing file, ANNAL_ERR_CONFLICT for an
 * existing file, else the status of errno. */
static annal_status fail_errno(annal_error *err, const char *what, const char *root,
                               const char *slash, const char *path)
{
    annal_status status = errno == ENOENT   ? ANNAL_ERR_NOTFOUND
                          : errno == EEXIST ? ANNAL_ERR_CONFLICT
                                            : annal__error_of_errno(errno);
    annal__fail_errno(err, "%s '%s%s%s'", what, root, slash, path);
    if (err != NULL)
        err->status = status;
    return status;
}

/* Fail because the first len bytes of path could not be opened: with a message that names the
 * symbolic link if they are the path of one (rule 2 of below.h), else with the reason in errno. */
static annal_status fail(const struct below *below, int folder, const char *name, const char *path,
                         size_t len, const char *what, annal_error *err)
{
    struct stat found;
    int why = errno;
    if ((why == ELOOP || why == ENOTDIR) &&
        fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode)) {
        annal__fail(err, ANNAL_ERR_IO, "path '%s/%.*s' is a symbolic link, which is not followed",
                    below->root, (int)len, path);
        if (err != NULL)
            err->os_errno = ELOOP;
        return ANNAL_ERR_IO;
    }
    errno = why;
    return fail_errno(err, what, below->root, "/", path);
}

annal_status annal__below_open(const char *root, struct below *out, annal_error *err)
{
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(err, "open directory", root, "", "");
    *out = (struct below){root, fd};
    return ANNAL_OK;
}

void annal__below_close(struct below *below)
{
    if (below->root != NULL)
        close(below->fd);
    *below = (struct below){0};
}

/* Copy the next component of a path, which begins at *at, to name, and move *at after it; name is
 * empty at the end of the path. Return false and set errno if it is too long. */
static bool take_name(const char *path, size_t *at, char name[NAME_MAX + 1])
{
    size_t from = *at + (path[*at] == '/'), len = strcspn(path + from, "/");
    *at = from + len;
    if (len > NAME_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(name, path + from, len);
    name[len] = '\0';
    return true;
}

/* Open a directory from its parent, without following a link (rule 1); create it if it is missing
 * and mode allows that. */
static int open_next(int folder, const char *name, const struct below_mode *mode)
{
    int fd = openat(folder, name, FOLDER_FLAGS);
    if (fd < 0 && errno == ENOENT && mode != NULL && mode->folder != 0 &&
        (mkdirat(folder, name, mode->folder) == 0 || errno == EEXIST))
        fd = openat(folder, name, FOLDER_FLAGS);
    /* Sync the parent even if the directory existed: the process that created it may have died
     * before the sync. */
    if (fd >= 0 && mode != NULL && mode->sync && fsync(folder) < 0) {
        close_quietly(fd);
        return -1;
    }
    return fd;
}

/* Return whether no component of the path is empty, "." or ".." (rule 5). */
static bool is_plain(const char *path)
{
    for (size_t len; path != NULL; path = path[len] == '/' ? path + len + 1 : NULL) {
        len = strcspn(path, "/");
        if (len == 0 || (len <= 2 && strspn(path, ".") >= len))
            return false;
    }
    return true;
}

/* Open a directory by openat2(), all components at once (rule 1). -1: open the components one by
 * one, which finds out why. */
static int open_at_once(const struct below *below, const char *path)
{
    struct open_how how = {.flags = FOLDER_FLAGS,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, below->fd, path, &how, sizeof how);
}

annal_status annal__below_folder(const struct below *below, const char *path,
                                 const struct below_mode *mode, int *out_fd, annal_error *err)
{
    char name[NAME_MAX + 1] = "";
    if (path[0] != '\0' && !is_plain(path))
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "path '%.200s' does not name a file below directory '%s'", path,
                           below->root);
    if (path[0] != '\0' && mode == NULL && (*out_fd = open_at_once(below, path)) >= 0)
        return ANNAL_OK;
    int folder = openat(below->fd, ".", FOLDER_FLAGS);
    annal_status status =
        folder < 0 ? annal__fail_errno(err, "cannot open directory '%s'", below->root) : ANNAL_OK;
    for (size_t at = 0; status == ANNAL_OK && path[at] != '\0';) {
        int next = take_name(path, &at, name) ? open_next(folder, name, mode) : -1;
        if (next < 0)
            status = fail(below, folder, name, path, at, "open directory", err);
        close_quietly(folder);
        folder = next;
    }
    if (status == ANNAL_OK)
        *out_fd = folder;
    return status;
}

/* Open the directory of a file, and find the file's name in it. */
static annal_status open_above(const struct below *below, const char *path,
                               const struct below_mode *mode, int *out_fd, const char **out_name,
                               annal_error *err)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : (size_t)(slash - path);
    *out_name = slash == NULL ? path : slash + 1;
    if (!is_plain(path))
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "path '%.200s' does not name a file below directory '%s'", path,
                           below->root);
    if (len >= sizeof folder) {
        errno = ENAMETOOLONG;
        return annal__fail_errno(err, "cannot open '%s/%.200s…'", below->root, path);
    }
    memcpy(folder, path, len);
    folder[len] = '\0';
    return annal__below_folder(below, folder, mode, out_fd, err);
}

annal_status annal__below_open_file(const struct below *below, const char *path, int flags,
                                    const struct below_mode *mode, int *out_fd, annal_error *err)
{
    const char *name = path, *what = flags & O_CREAT ? "create" : "read";
    struct stat info;
    int folder = -1;
    annal_status status = open_above(below, path, mode, &folder, &name, err);
    if (status < 0)
        return status;
    int file = openat(folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                      mode != NULL ? mode->file : 0);
    if (file < 0 || fstat(file, &info) < 0) {
        status = fail(below, folder, name, path, strlen(path), what, err);
    } else if (!S_ISREG(info.st_mode)) { /* a FIFO, for instance, is not read (rule 4 of below.h) */
        status = annal__fail(
            err, ANNAL_ERR_IO, "%s '%s/%s': the path names %s, not a file", what, below->root, path,
            S_ISDIR(info.st_mode) ? "a directory" : "a pipe, a socket or a device");
        if (err != NULL)
            err->os_errno = S_ISDIR(info.st_mode) ? EISDIR : ENODEV;
    }
    close_quietly(folder);
    if (status < 0)
        close_quietly(file);
    else
        *out_fd = file;
    return status;
}

annal_status annal__below_read(const struct below *below, const char *path, struct buf *out,
                               annal_error *err)
{
    int file = -1;
    ssize_t count = 1;
    annal_status status = annal__below_open_file(below, path, O_RDONLY, NULL, &file, err);
    while (status == ANNAL_OK && count != 0) {
        status = annal__buf_reserve(out, 1);
        if (status < 0) {
            annal__fail(err, status, "read '%s/%s': the file is longer than %zu bytes", below->root,
                        path, out->limit);
            break;
        }
        count = read(file, out->ptr + out->len, out->cap - out->len);
        if (count > 0)
            out->len += (size_t)count;
        else if (count < 0 && errno != EINTR)
            status = annal__fail_errno(err, "cannot read '%s/%s'", below->root, path);
    }
    close_quietly(file);
    return status;
}

/* Write a new file. A file with this name, which another process with the same id has left, is
 * removed first. Return false and set errno on failure. */
static bool write_new(int folder, const char *name, annal_slice content,
                      const struct below_mode *mode)
{
    (void)unlinkat(folder, name, 0);
    int file =
        openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode->file);
    bool good = file >= 0 &&
                annal__io_write_all(&annal__system_io, file, content.ptr, content.len, 0) == 0 &&
                (!mode->sync || fsync(file) == 0);
    int why = errno;
    if (file >= 0 && close(file) < 0 && good) {
        good = false;
        why = errno;
    }
    errno = why;
    return good;
}

annal_status annal__below_replace(const struct below *below, const char *path, annal_slice content,
                                  const struct below_mode *mode, annal_error *err)
{
    char next[40];
    const char *name = path;
    struct stat found;
    int folder = -1;
    annal_status status = open_above(below, path, mode, &folder, &name, err);
    if (status < 0)
        return status;
    snprintf(next, sizeof next, ".new-%ld", (long)getpid());
    if (fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode)) {
        errno = ELOOP;
        status = fail(below, folder, name, path, strlen(path), "write", err);
    } else if (!write_new(folder, next, content, mode) ||
               renameat(folder, next, folder, name) < 0) {
        status = annal__fail_errno(err, "cannot write '%s/%s'", below->root, path);
        (void)unlinkat(folder, next, 0);
    } else if (mode->sync && fsync(folder) < 0) {
        status = annal__fail_errno(err, "cannot sync the directory of '%s/%s'", below->root, path);
    }
    close_quietly(folder);
    return status;
}

annal_status annal__below_delete(const struct below *below, const char *path, bool *out_deleted,
                                 annal_error *err)
{
    const char *name = path;
    int folder = -1;
    annal_status status = open_above(below, path, NULL, &folder, &name, err);
    *out_deleted = false;
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    if (status < 0)
        return status;
    if (unlinkat(folder, name, 0) == 0)
        *out_deleted = true;
    else if (errno != ENOENT)
        status = annal__fail_errno(err, "cannot delete '%s/%s'", below->root, path);
    close_quietly(folder);
    return status;
}

typedef int (*name_fn)(int folder, const char *name, const char *to);

/* Give a file another name in the same directory, by rename or link, and sync the directory. */
static annal_status give_name(const struct below *below, const char *path, const char *to,
                              name_fn call, const char *what, annal_error *err)
{
    const char *name = path;
    const char *slash = strrchr(to, '/');
    int folder = -1;
    annal_status status = open_above(below, path, NULL, &folder, &name, err);
    if (status < 0)
        return status;
    if (call(folder, name, slash == NULL ? to : slash + 1) < 0)
        status = fail_errno(err, what, below->root, "/", path);
    else if (fsync(folder) < 0)
        status = annal__fail_errno(err, "cannot sync the directory of '%s/%s'", below->root, to);
    close_quietly(folder);
    return status;
}

static int rename_in(int folder, const char *name, const char *to)
{
    return renameat(folder, name, folder, to);
}

static int link_in(int folder, const char *name, const char *to)
{
    return linkat(folder, name, folder, to, 0);
}

annal_status annal__below_rename(const struct below *below, const char *path, const char *to,
                                 annal_error *err)
{
    return give_name(below, path, to, rename_in, "rename", err);
}

annal_status annal__below_link(const struct below *below, const char *path, const char *to,
                               annal_error *err)
{
    return give_name(below, path, to, link_in, "link", err);
}
