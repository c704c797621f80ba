/* The files of a lake in a directory: a name is linked, not renamed, where only one may get it. */
#include "tools/ship/lake.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

struct lake_files {
    char root[PATH_BYTES / 2]; /* LAKE/store=<name> */
    char place[PATH_BYTES];
};

static void path_of(const struct lake_files *files, char path[PATH_BYTES], const char *name,
                    const char *end)
{
    snprintf(path, PATH_BYTES, "%s/%s%s", files->root, name, end);
}

static annal_status fail_file(annal_error *err, const char *what, const char *path)
{
    return annal__fail_errno(err, "ship: %s '%s'", what, path);
}

/* Sync a file, or the directory in which a file got its name. */
static annal_status sync_path(const char *path, bool its_directory, annal_error *err)
{
    char name[PATH_BYTES];
    snprintf(name, sizeof name, "%s", path);
    if (its_directory)
        *strrchr(name, '/') = '\0';
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    int failed = fd < 0 || fsync(fd) < 0;
    annal_status status = failed ? fail_file(err, "sync", name) : ANNAL_OK;
    if (fd >= 0)
        close(fd);
    return status;
}

static annal_status make_directories(const char *path, annal_error *err)
{
    char name[PATH_BYTES];
    snprintf(name, sizeof name, "%s", path);
    for (char *slash = strchr(name + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(name, 0777) < 0 && errno != EEXIST)
            return fail_file(err, "make", name);
        *slash = '/';
    }
    return ANNAL_OK;
}

static void dir_close(struct lake_files *files)
{
    annal__free(files);
}

static annal_status dir_open(const struct ship_where *where, const char *directory, bool to_write,
                             struct lake_files **out_files, annal_error *err)
{
    char path[PATH_BYTES];
    struct buf root = {.limit = PATH_BYTES / 2 - 1};
    struct lake_files *files = annal__zalloc(sizeof *files);
    annal_status status =
        annal__buf_printf(&root, "%s/%s", where->url + strlen("file://"), directory);
    if (files == NULL || status < 0 || annal__buf_cstr(&root) == NULL)
        status = annal__fail(err, ANNAL_ERR_INVALID, "ship: the path of the lake is too long");
    if (status >= 0) {
        memcpy(files->root, root.ptr, root.len);
        path_of(files, path, "_log/x", "");
        if (to_write)
            status = make_directories(path, err);
        path_of(files, path, "artifacts/x", "");
        if (status >= 0 && to_write)
            status = make_directories(path, err);
    }
    annal__buf_done(&root);
    if (status < 0) {
        dir_close(files);
        return status;
    }
    *out_files = files;
    return ANNAL_OK;
}

static annal_status fail_read(const char *path, annal_error *err)
{
    return errno == ENOENT ? annal__fail(err, ANNAL_ERR_NOTFOUND, "ship: there is no '%s'", path)
                           : fail_file(err, "read", path);
}

annal_status lake_read_path(const char *path, piece_fn fn, void *arg, annal_error *err)
{
    static char piece[1 << 16];
    annal_status status = ANNAL_OK;
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return fail_read(path, err);
    for (size_t len; status >= 0 && (len = fread(piece, 1, sizeof piece, file)) > 0;)
        status = fn(arg, piece, len);
    if (status < 0)
        status = annal__fail(err, status, "ship: out of memory");
    else if (ferror(file))
        status = fail_file(err, "read", path);
    fclose(file);
    return status;
}

static annal_status dir_read(struct lake_files *files, const char *name, piece_fn fn, void *arg,
                             annal_error *err)
{
    char path[PATH_BYTES];
    path_of(files, path, name, "");
    return lake_read_path(path, fn, arg, err);
}

static annal_status dir_create(struct lake_files *files, const char *name, annal_slice bytes,
                               annal_error *err)
{
    char path[PATH_BYTES], tmp[PATH_BYTES], end[40];
    uint64_t chance = 0; /* a process of another container may have the same id */
    annal_status status = ANNAL_OK;
    path_of(files, path, name, "");
    if (getrandom(&chance, sizeof chance, 0) < 0)
        return fail_file(err, "find a name beside", path);
    snprintf(end, sizeof end, ".%016" PRIx64 ".tmp", chance);
    path_of(files, tmp, name, end);
    FILE *out = fopen(tmp, "wxe");
    bool written = out != NULL && fwrite(bytes.ptr, 1, bytes.len, out) == bytes.len;
    written = out != NULL && fclose(out) == 0 && written;
    if (!written)
        status = fail_file(err, "write", tmp);
    if (status >= 0)
        status = sync_path(tmp, false, err);
    if (status >= 0 && link(tmp, path) < 0)
        status = errno == EEXIST
                     ? annal__fail(err, ANNAL_ERR_CONFLICT, "ship: '%s' is there already", path)
                     : fail_file(err, "write", path);
    (void)unlink(tmp);
    return status < 0 ? status : sync_path(path, true, err);
}

static annal_status dir_local(struct lake_files *files, const char *name, char path[PATH_BYTES],
                              annal_error *err)
{
    path_of(files, path, name, ".tmp");
    return make_directories(path, err);
}

/* It is where it has to be: whoever wrote it synced it. */
static annal_status dir_stage(struct lake_files *files, const char *name, const char *path,
                              annal_error *err)
{
    (void)files, (void)name, (void)path, (void)err;
    return ANNAL_OK;
}

static annal_status dir_settle(struct lake_files *files, const char *name, annal_error *err)
{
    char path[PATH_BYTES], tmp[PATH_BYTES];
    path_of(files, path, name, "");
    path_of(files, tmp, name, ".tmp");
    if (rename(tmp, path) == 0)
        return sync_path(path, true, err);
    return errno == ENOENT ? ANNAL_OK : fail_file(err, "rename", tmp);
}

static void dir_drop(struct lake_files *files, const char *name, const char *path)
{
    (void)files, (void)name;
    (void)unlink(path);
}

static annal_status dir_remove(struct lake_files *files, const char *name, annal_error *err)
{
    char path[PATH_BYTES];
    path_of(files, path, name, "");
    return unlink(path) == 0 || errno == ENOENT ? ANNAL_OK : fail_file(err, "remove", path);
}

static annal_status dir_fetch(struct lake_files *files, const char *name, char path[PATH_BYTES],
                              bool *out_is_copy, annal_error *err)
{
    path_of(files, path, name, "");
    *out_is_copy = false;
    return access(path, F_OK) == 0 ? ANNAL_OK : fail_read(path, err);
}

static const char *dir_place(struct lake_files *files, const char *name)
{
    path_of(files, files->place, name, "");
    return files->place;
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
