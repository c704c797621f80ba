/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/artifact/artifact_names.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hex.h"
#include "journal/base/lock_holder.h"
#include "journal/sys/seam.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#define PATH_LIMIT   8192
#define LOCK_WAIT_US 10000000
#define LOCK_TRY_US  2000

annal_status annal__artifact_path(const annal_store *store, annal_slice session, const char *name,
                                  struct buf *out, annal_error *err)
{
    annal__buf_clear(out);
    out->limit = PATH_LIMIT;
    annal_status status = annal__buf_printf(out, "%s/artifacts", annal_store_path(store));
    if (status >= 0 && session.len > 0)
        status = annal__buf_printf(out, "/%.*s", ANNAL_FMT(session));
    if (status >= 0 && name[0] != '\0')
        status = annal__buf_printf(out, "/%s", name);
    if (status < 0)
        return annal__fail(err, status, "cannot compose the path of an artifact of session '%.*s'",
                           ANNAL_FMT(session));
    return ANNAL_OK;
}

/* ---- Hashes as text ---- */

bool annal__artifact_read_sha256(const char *text, size_t len, uint8_t out[SHA256_BYTES])
{
    return len == (size_t)2 * SHA256_BYTES && annal__hex_read(text, SHA256_BYTES, out);
}

/* ---- Listing ---- */

static int collect(void *arg, const char *name)
{
    struct artifact_names *names = arg;
    if (name[0] == '.' && strncmp(name, UNFINISHED, strlen(UNFINISHED)) != 0)
        return 0;
    char **copy = annal__array_add(&names->list, &names->count, sizeof *copy);
    if (copy != NULL)
        *copy = annal__strndup(name, strlen(name));
    names->no_memory = copy == NULL || *copy == NULL;
    names->count -= copy != NULL && *copy == NULL;
    return names->no_memory;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

annal_status annal__artifact_names(const annal_store *store, const char *path,
                                   struct artifact_names *out_names, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    struct artifact_names names = {0};
    annal_status status = ANNAL_OK;
    if (io->list(io->arg, path, collect, &names) < 0 && errno != ENOENT && errno != ENOTDIR)
        status = annal__fail_errno(err, "cannot list %s", path);
    else if (names.no_memory)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "list %s: out of memory", path);
    if (status < 0) {
        annal__artifact_names_done(&names);
        return status;
    }
    if (names.count > 0)
        qsort(names.list, names.count, sizeof *names.list, compare);
    *out_names = names;
    return ANNAL_OK;
}

void annal__artifact_names_done(struct artifact_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        annal__free(names->list[i]);
    annal__free(names->list);
    *names = (struct artifact_names){0};
}

annal_status annal__artifact_look(const annal_store *store, annal_slice session, const char *hex,
                                  annal_artifact_info *out_info, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    SCOPED_BUF path = {0};
    struct stat file;
    char name[2 * SHA256_BYTES + sizeof ARTIFACT_SUFFIX];
    memcpy(name, hex, (size_t)2 * SHA256_BYTES);
    memcpy(name + (size_t)2 * SHA256_BYTES, ARTIFACT_SUFFIX, sizeof ARTIFACT_SUFFIX);
    annal_status status = annal__artifact_path(store, session, name, &path, err);
    if (status < 0)
        return status;
    bool there = io->stat(io->arg, path.ptr, &file) == 0;
    if (!there && errno != ENOENT && errno != ENOTDIR)
        return annal__fail_errno(err, "cannot examine %s", path.ptr);
    if (!there || !S_ISREG(file.st_mode))
        return annal__fail(err, ANNAL_ERR_NOTFOUND, "session '%.*s' has no artifact %.64s",
                           ANNAL_FMT(session), hex);
    *out_info = (annal_artifact_info){.stored_bytes = (uint64_t)file.st_size,
                                      .stored_us = (int64_t)file.st_mtim.tv_sec * 1000000 +
                                                   file.st_mtim.tv_nsec / 1000};
    memcpy(out_info->session, session.ptr, session.len);
    memcpy(out_info->sha256, hex, (size_t)2 * SHA256_BYTES);
    return status;
}

/* ---- The lock ---- */

static annal_status open_lock(const annal_store *store, int *out_fd, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    SCOPED_BUF path = {.limit = PATH_LIMIT};
    int fd = -1;
    annal_status status = annal__buf_printf(&path, "%s/locks", annal_store_path(store));
    if (status < 0)
        return annal__fail(err, status,
                           "cannot open locks/artifacts, the lock file of the store's artifacts");
    status = annal__io_make_dir(io, path.ptr, err);
    if (status < 0)
        return status;
    status = annal__buf_printf(&path, "/artifacts");
    if (status < 0)
        return annal__fail(err, status,
                           "cannot open locks/artifacts, the lock file of the store's artifacts");
    fd = io->open(io->arg, path.ptr, O_RDWR | O_CREAT, 0660);
    if (fd < 0)
        status = annal__fail_errno(err, "cannot open %s", path.ptr);
    else
        *out_fd = fd;
    return status;
}

static annal_status refuse(const struct io *io, int fd, int operation, annal_error *err)
{
    struct stat file;
    char name[HOLDER_BYTES];
    uint32_t pid = io->fstat(io->arg, fd, &file) < 0 ? 0 : annal__lock_holder_of(&file, false);
    return annal__fail(err, ANNAL_ERR_BUSY, "%s is %s artifacts; try again later",
                       annal__lock_holder_name(pid, name),
                       operation == LOCK_EX ? "storing" : "sweeping");
}

annal_status annal__artifact_lock(annal_store *store, int operation, int *out_fd, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    const struct clock *clock = annal__store_clock(store);
    int fd = -1;
    if (annal__session_list_is_read_only(store))
        return annal__fail(err, ANNAL_ERR_IO,
                           "cannot lock the artifacts: store %s is open for reading only",
                           annal_store_path(store));
    annal_status status = open_lock(store, &fd, err);
    if (status < 0)
        return status;
    int64_t left_us = 0, deadline_us = clock->monotonic_us(clock->arg) + LOCK_WAIT_US;
    while (io->flock(io->arg, fd, operation | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            status =
                annal__fail_errno(err, "cannot lock %s/locks/artifacts", annal_store_path(store));
        left_us = annal__store_may_wait(store, deadline_us - clock->monotonic_us(clock->arg));
        if (status == ANNAL_OK && left_us <= 0)
            status = refuse(io, fd, operation, err);
        if (status < 0) {
            io->close(io->arg, fd);
            return status;
        }
        annal__store_wait(store, left_us < LOCK_TRY_US ? left_us : LOCK_TRY_US);
    }
    *out_fd = fd;
    return ANNAL_OK;
}
