/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a lake in a directory. Other programs may write there, so each file is opened,
 * renamed and removed below LAKE/store=<name> without following links (journal/base/below.h).
 * To create a name that only one process may get, a file is linked, not renamed. DuckDB opens files
 * as /proc/self/fd/N. */
#include "tools/ship/lake.h"

#include "journal/base/alloc.h"
#include "journal/base/below.h"
#include "journal/base/error.h"
#include "journal/base/io.h"
#include "tools/cli/must.h"
#include "tools/cli/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOT_BYTES = PATH_BYTES / 2 };

struct lake_files {
    /* directory of the store; not open if it does not exist and is only read */
    struct below below;
    int local;             /* descriptor that dir_local() opened, or -1 */
    char root[ROOT_BYTES]; /* path LAKE/store=<name> */
    char place[PATH_BYTES];
};

/* Permissions of new files and directories before the umask of the user, who decides with it who
 * may read the lake. */
static const struct below_mode shared = {.file = 0666, .folder = 0777, .sync = true};

static const char *place_of(struct lake_files *files, const char *name, const char *end)
{
    snprintf(files->place, sizeof files->place, "%s/%s%s", files->root, name, end);
    return files->place;
}

static annal_status ship_error(annal_status status, annal_error *err)
{
    if (status < 0 && err != NULL) {
        annal_error why = *err;
        snprintf(err->message, sizeof err->message, "ship: %.500s", why.message);
    }
    return status;
}

/* ---- Descriptors and pieces, also of files of a bucket ---- */

annal_status lake_add_text(void *arg, const void *bytes, size_t len)
{
    return annal__buf_append(arg, bytes, len);
}

void lake_fd_path(char path[FD_PATH_BYTES], int fd)
{
    snprintf(path, FD_PATH_BYTES, "/proc/self/fd/%d", fd);
}

annal_status lake_unnamed(int *out_fd, annal_error *err)
{
    *out_fd = temporary_file(NULL);
    return *out_fd >= 0 ? ANNAL_OK : annal__fail_errno(err, "ship: cannot create a temporary file");
}

/* ---- Opening ---- */

static void dir_close(struct lake_files *files)
{
    if (files == NULL)
        return;
    if (files->local >= 0)
        close(files->local);
    annal__below_close(&files->below);
    annal__free(files);
}

/* Create the directory that the user named; its path may contain links. */
static annal_status make_root(const char *root, annal_error *err)
{
    char path[ROOT_BYTES];
    snprintf(path, sizeof path, "%s/", root);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return annal__fail_errno(err, "ship: cannot create the directory '%s'", path);
        *slash = '/';
    }
    return ANNAL_OK;
}

static annal_status make_folder(struct lake_files *files, const char *name, annal_error *err)
{
    int fd = -1;
    annal_status status = annal__below_folder(&files->below, name, &shared, &fd, err);
    if (fd >= 0)
        close(fd);
    return ship_error(status, err);
}

/* Raise the limit of open files: a reader opens all files of a session. */
static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static annal_status open_root(struct lake_files *files, bool to_write, annal_error *err)
{
    annal_status status = to_write ? make_root(files->root, err) : ANNAL_OK;
    if (status >= 0)
        status = ship_error(annal__below_open(files->root, &files->below, err), err);
    if (status == ANNAL_ERR_NOTFOUND && !to_write)
        return ANNAL_OK; /* a lake whose directory does not exist is read as an empty lake */
    if (status >= 0 && to_write)
        status = make_folder(files, "_log", err);
    if (status >= 0 && to_write)
        status = make_folder(files, "artifacts", err);
    return status;
}

static annal_status dir_open(const struct ship_where *where, const char *directory, bool to_write,
                             struct lake_files **out_files, annal_error *err)
{
    struct lake_files *files = must_zalloc(sizeof *files);
    files->local = -1;
    int len = snprintf(files->root, sizeof files->root, "%s/%s", where->url + strlen("file://"),
                       directory);
    annal_status status =
        len < 0 || len + 2 > ROOT_BYTES
            ? annal__fail(err, ANNAL_ERR_INVALID, "ship: the path of the lake is too long")
            : open_root(files, to_write, err);
    if (status < 0) {
        dir_close(files);
        return status;
    }
    raise_limit();
    *out_files = files;
    return ANNAL_OK;
}

/* ---- Reading ---- */

static annal_status fail_missing(struct lake_files *files, const char *name, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_NOTFOUND, "ship: the file '%s' of the lake does not exist",
                       place_of(files, name, ""));
}

static annal_status open_file(struct lake_files *files, const char *name, int *out_fd,
                              annal_error *err)
{
    if (files->below.root == NULL)
        return fail_missing(files, name, err);
    annal_status status = annal__below_open_file(&files->below, name, O_RDONLY, NULL, out_fd, err);
    return status == ANNAL_ERR_NOTFOUND ? fail_missing(files, name, err) : ship_error(status, err);
}

annal_status lake_refuse_long(const char *place, uint64_t most, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_LIMIT,
                       "ship: the file '%s' of the lake has more than %" PRIu64
                       " bytes, the maximum that annal writes to such a file",
                       place, most);
}

annal_status lake_refuse_longer(const char *place, uint64_t said, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_CORRUPT,
                       "ship: the file '%s' of the lake is longer than the %" PRIu64
                       " bytes in the manifest",
                       place, said);
}

annal_status lake_read_fd(int fd, const char *place, uint64_t most, piece_fn fn, void *arg,
                          annal_error *err)
{
    static char piece[1 << 16];
    annal_status status = ANNAL_OK;
    ssize_t len = 0;
    for (off_t at = 0; status >= 0 && (len = pread(fd, piece, sizeof piece, at)) > 0; at += len)
        status =
            (uint64_t)len > most - (uint64_t)at ? ANNAL_ERR_LIMIT : fn(arg, piece, (size_t)len);
    if (status < 0)
        return status == ANNAL_ERR_LIMIT ? lake_refuse_long(place, most, err)
                                         : annal__fail(err, status, "ship: out of memory");
    return len < 0 ? annal__fail_errno(err, "ship: cannot read the file '%s' of the lake", place)
                   : ANNAL_OK;
}

static annal_status dir_read(struct lake_files *files, const char *name, struct buf *out,
                             annal_error *err)
{
    int fd = -1;
    annal_status status = open_file(files, name, &fd, err);
    if (status < 0)
        return status;
    status = lake_read_fd(fd, place_of(files, name, ""), out->limit, lake_add_text, out, err);
    close(fd);
    return status;
}

static annal_status dir_fetch(struct lake_files *files, const char *name, uint64_t most,
                              int *out_fd, annal_error *err)
{
    struct stat info;
    annal_status status = open_file(files, name, out_fd, err);
    if (status < 0)
        return status;
    if (fstat(*out_fd, &info) < 0)
        status = annal__fail_errno(err, "ship: cannot examine the file '%s' of the lake",
                                   place_of(files, name, ""));
    else if ((uint64_t)info.st_size > most)
        status = lake_refuse_longer(place_of(files, name, ""), most, err);
    if (status < 0)
        close(*out_fd);
    return status;
}

/* ---- Writing ---- */

static annal_status fail_conflict(struct lake_files *files, const char *name, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_CONFLICT, "ship: the file '%s' of the lake already exists",
                       place_of(files, name, ""));
}

static annal_status write_file(struct lake_files *files, const char *name, annal_slice bytes,
                               annal_error *err)
{
    int fd = -1;
    annal_status status =
        annal__below_open_file(&files->below, name, O_RDWR | O_CREAT | O_EXCL, &shared, &fd, err);
    if (status < 0)
        return ship_error(status, err);
    if (annal__io_write_all(&annal__system_io, fd, bytes.ptr, bytes.len, 0) < 0 || fsync(fd) < 0)
        status = annal__fail_errno(err, "ship: cannot write the file '%s' of the lake",
                                   place_of(files, name, ""));
    if (close(fd) < 0 && status >= 0)
        status = annal__fail_errno(err, "ship: cannot write the file '%s' of the lake",
                                   place_of(files, name, ""));
    return status;
}

static annal_status dir_create(struct lake_files *files, const char *name, annal_slice bytes,
                               annal_error *err)
{
    char tmp[NAME_BYTES + 40];
    /* random part of a name; a process id would not do: another container may have the same */
    uint64_t chance = 0;
    bool ignored;
    if (getrandom(&chance, sizeof chance, 0) < 0)
        return annal__fail_errno(err, "ship: cannot create a temporary file beside '%s'",
                                 place_of(files, name, ""));
    snprintf(tmp, sizeof tmp, "%s.%016" PRIx64 ".tmp", name, chance);
    annal_status status = write_file(files, tmp, bytes, err);
    if (status >= 0)
        status = annal__below_link(&files->below, tmp, name, err);
    (void)annal__below_delete(&files->below, tmp, &ignored, NULL);
    return status == ANNAL_ERR_CONFLICT ? fail_conflict(files, name, err) : ship_error(status, err);
}

static void tmp_name(char tmp[NAME_BYTES + 40], const char *name)
{
    snprintf(tmp, NAME_BYTES + 40, "%s.tmp", name);
}

static annal_status dir_local(struct lake_files *files, const char *name, int *out_fd,
                              annal_error *err)
{
    char tmp[NAME_BYTES + 40];
    tmp_name(tmp, name);
    if (files->local >= 0)
        close(files->local);
    files->local = -1;
    annal_status status = annal__below_open_file(&files->below, tmp, O_RDWR | O_CREAT | O_EXCL,
                                                 &shared, &files->local, err);
    *out_fd = files->local;
    return ship_error(status, err);
}

static annal_status sync_folder(struct lake_files *files, const char *name, annal_error *err)
{
    char folder[NAME_BYTES];
    int fd = -1;
    snprintf(folder, sizeof folder, "%.*s", (int)strcspn(name, "/"), name);
    annal_status status = annal__below_folder(&files->below, folder, NULL, &fd, err);
    if (status >= 0 && fsync(fd) < 0)
        status = annal__fail_errno(err, "ship: cannot sync the directory '%s' of the lake",
                                   place_of(files, folder, ""));
    if (fd >= 0)
        close(fd);
    return ship_error(status, err);
}

static annal_status dir_stage(struct lake_files *files, const char *name, annal_error *err)
{
    if (fsync(files->local) < 0)
        return annal__fail_errno(err, "ship: cannot sync the file '%s' of the lake",
                                 place_of(files, name, ".tmp"));
    return sync_folder(files, name, err);
}

static annal_status dir_settle(struct lake_files *files, const char *name, annal_error *err)
{
    char tmp[NAME_BYTES + 40];
    tmp_name(tmp, name);
    annal_status status = annal__below_rename(&files->below, tmp, name, err);
    return status == ANNAL_ERR_NOTFOUND ? ANNAL_OK : ship_error(status, err);
}

static void dir_drop(struct lake_files *files, const char *name)
{
    char tmp[NAME_BYTES + 40];
    bool ignored;
    tmp_name(tmp, name);
    (void)annal__below_delete(&files->below, tmp, &ignored, NULL);
}

static annal_status dir_remove(struct lake_files *files, const char *name, annal_error *err)
{
    bool ignored;
    return ship_error(annal__below_delete(&files->below, name, &ignored, err), err);
}

static const char *dir_place(struct lake_files *files, const char *name)
{
    return place_of(files, name, "");
}

const struct lake_files_kind lake_dir = {.open = dir_open,
                                         .close = dir_close,
                                         .read = dir_read,
                                         .create = dir_create,
                                         .local = dir_local,
                                         .stage = dir_stage,
                                         .settle = dir_settle,
                                         .drop = dir_drop,
                                         .remove = dir_remove,
                                         .fetch = dir_fetch,
                                         .place = dir_place};
