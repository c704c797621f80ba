/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Artifacts: content that is stored in files beside the journals, and named by events.
 *
 * (1) The name is the SHA-256 of the content, so the same content has the same name, and a file can
 *     be checked against its own name.
 * (2) Content is written under a temporary name, synced, renamed; then the three directories above
 *     it are synced, even if they existed: the process that created them may have died before the
 *     sync. Only then does the call return, and the caller appends the event that names the
 *     artifact. So after a power cut, every event that survives names artifacts that survive.
 * (3) If the artifact exists already, it is checked by reading it, and its directories are synced
 *     as in (2). It is written again if it is damaged, or older than REFRESH_US: a sweep removes
 *     files by their age.
 * (4) Storing takes locks/artifacts shared, and a hold keeps the lock until the event is appended;
 *     removing takes it exclusively. See artifact_sweep.c.
 */
#include "journal/sys/artifact.h"
#include "journal/artifact/artifact_frame.h"
#include "journal/artifact/artifact_names.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/sys/adopt.h"
#include "journal/sys/seam.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>

#define REFRESH_US ((int64_t)600 * 1000000)

/* ---- Holding ---- */

struct annal__artifact_hold {
    annal_store *store;
    int fd;
};

annal_status annal__artifact_hold_new(annal_store *store, annal__artifact_hold **out_hold,
                                      annal_error *err)
{
    annal__artifact_hold *hold = annal__zalloc(sizeof *hold);
    if (hold == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "hold artifacts: out of memory");
    hold->store = store;
    annal_status status = annal__artifact_lock(store, LOCK_SH, &hold->fd, err);
    if (status < 0)
        annal__free(hold);
    else
        *out_hold = hold;
    return status;
}

void annal__artifact_hold_free(annal__artifact_hold *hold)
{
    if (hold == NULL)
        return;
    const struct io *io = annal__store_io(hold->store);
    io->close(io->arg, hold->fd);
    annal__free(hold);
}

/* ---- Storing ---- */

static annal_status make_directories(annal_store *store, annal_slice session, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    SCOPED_BUF path = {0};
    annal_status status = annal__artifact_path(store, (annal_slice){NULL, 0}, "", &path, err);
    if (status >= 0)
        status = annal__io_make_dir(io, path.ptr, err);
    if (status >= 0)
        status = annal__artifact_path(store, session, "", &path, err);
    return status < 0 ? status : annal__io_make_dir(io, path.ptr, err);
}

/* Sync the directories of the session, of all artifacts, and of the store (rule 2). */
static annal_status sync_directories(annal_store *store, annal_slice session, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    SCOPED_BUF path = {0};
    annal_status status = annal__artifact_path(store, session, "", &path, err);
    if (status >= 0)
        status = annal__io_sync_dir(io, path.ptr, err);
    if (status >= 0)
        status = annal__artifact_path(store, (annal_slice){NULL, 0}, "", &path, err);
    if (status >= 0)
        status = annal__io_sync_dir(io, path.ptr, err);
    return status < 0 ? status : annal__io_sync_dir(io, annal_store_path(store), err);
}

/* Find out whether the artifact exists, is undamaged, and was stored at most REFRESH_US ago; if so,
 * make its name durable (rule 3). */
static annal_status is_stored(annal_store *store, annal_slice session, const char *hex,
                              bool *out_stored, annal_artifact_info *out_info, annal_error *err)
{
    const struct clock *clock = annal__store_clock(store);
    annal_error why;
    *out_stored = false;
    annal_status status =
        annal_artifact_read(store, session, annal_slice_of(hex), NULL, NULL, out_info, &why);
    if (status == ANNAL_ERR_NOTFOUND || status == ANNAL_ERR_CORRUPT)
        return ANNAL_OK;
    if (status < 0)
        return annal__error_pass(err, status, &why);
    int64_t age_us = clock->wall_us(clock->arg) - out_info->stored_us;
    if (age_us < 0 || age_us > REFRESH_US)
        return ANNAL_OK;
    status = sync_directories(store, session, err);
    *out_stored = status == ANNAL_OK;
    return status;
}

/* Rename the unfinished file to its final name, unless the artifact exists already (rules 2 to
 * 4). */
static annal_status publish(annal_store *store, annal_slice session, const char *unfinished,
                            const struct frame_result *written, annal_artifact_info *out_info,
                            annal_error *err)
{
    const struct io *io = annal__store_io(store);
    SCOPED_BUF path = {0};
    char hex[ANNAL_SHA256_TEXT_BYTES], name[ANNAL_SHA256_TEXT_BYTES + sizeof ARTIFACT_SUFFIX];
    bool stored = false;
    int lock = -1;
    annal__sha256_text(written->sha256, hex);
    snprintf(name, sizeof name, "%s" ARTIFACT_SUFFIX, hex);
    annal_status status = annal__artifact_lock(store, LOCK_SH, &lock, err);
    if (status >= 0)
        status = is_stored(store, session, hex, &stored, out_info, err);
    if (status < 0 || stored)
        goto done;
    status = annal__artifact_path(store, session, name, &path, err);
    if (status < 0)
        goto done;
    if (io->rename(io->arg, unfinished, path.ptr) < 0) {
        status = annal__fail_errno(err, "cannot rename %s to %s", unfinished, path.ptr);
        goto done;
    }
    status = sync_directories(store, session, err);
    if (status >= 0)
        status = annal__artifact_look(store, session, hex, out_info, err);
    out_info->bytes = written->bytes;

done:
    if (lock >= 0)
        io->close(io->arg, lock);
    return status;
}

annal_status annal_artifact_put_stream(annal_store *store, annal_slice session,
                                       annal_artifact_source source, void *arg,
                                       annal_artifact_info *out_info, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    SCOPED_BUF path = {0};
    struct frame_result written;
    annal_artifact_info info = {0};
    char name[32];
    uint64_t random = 0;
    int fd = -1;
    annal_status status = annal_session_id_check(session, err);
    if (status >= 0 && annal__session_list_is_read_only(store))
        status = annal__fail(err, ANNAL_ERR_IO,
                             "cannot store an artifact: store %s is open for reading only",
                             annal_store_path(store));
    if (status < 0)
        return status;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return annal__fail_errno(err, "store an artifact: cannot choose a random name");
    snprintf(name, sizeof name, UNFINISHED "%016" PRIx64, random);
    status = make_directories(store, session, err);
    if (status >= 0)
        status = annal__artifact_path(store, session, name, &path, err);
    if (status < 0)
        goto done;
    fd = io->open(io->arg, path.ptr, O_WRONLY | O_CREAT | O_EXCL, 0660);
    if (fd < 0) {
        status = annal__fail_errno(err, "cannot create %s", path.ptr);
        goto done;
    }
    status = annal__artifact_write(io, fd, path.ptr, source, arg, &written, err);
    if (status >= 0)
        status = publish(store, session, path.ptr, &written, &info, err);
    if (status >= 0)
        *out_info = info;

done:
    if (fd >= 0) {
        io->close(io->arg, fd);
        io->unlink(io->arg, path.ptr); /* fails, without harm, if publish() has renamed the file */
    }
    return status;
}

static int64_t take_slice(void *arg, char *bytes, size_t room, annal_error *err)
{
    (void)err;
    annal_slice *rest = arg;
    size_t len = rest->len < room ? rest->len : room;
    if (len > 0)
        memcpy(bytes, rest->ptr, len);
    rest->ptr += len;
    rest->len -= len;
    return (int64_t)len;
}

annal_status annal_artifact_put(annal_store *store, annal_slice session, annal_slice content,
                                annal_artifact_info *out_info, annal_error *err)
{
    uint8_t hash[SHA256_BYTES];
    char hex[ANNAL_SHA256_TEXT_BYTES];
    annal_artifact_info info = {0};
    bool stored = false;
    int lock = -1;
    annal_status status = annal_session_id_check(session, err);
    if (status < 0)
        return status;
    annal__sha256_of(content.ptr, content.len, hash);
    annal__sha256_text(hash, hex);
    status = annal__artifact_lock(store, LOCK_SH, &lock, err);
    if (status >= 0) {
        const struct io *io = annal__store_io(store);
        status = is_stored(store, session, hex, &stored, &info, err);
        io->close(io->arg, lock);
    }
    if (status >= 0 && !stored)
        return annal_artifact_put_stream(store, session, take_slice, &content, out_info, err);
    if (status >= 0)
        *out_info = info;
    return status;
}

/* ---- Reading ---- */

static annal_status read_proved(annal_store *store, const annal_artifact_info *info,
                                const uint8_t expected[SHA256_BYTES], annal_artifact_sink fn,
                                void *arg, struct frame_result *out, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    SCOPED_BUF path = {0};
    char name[ANNAL_SHA256_TEXT_BYTES + sizeof ARTIFACT_SUFFIX];
    int fd = -1;
    snprintf(name, sizeof name, "%s" ARTIFACT_SUFFIX, info->sha256);
    annal_status status =
        annal__artifact_path(store, annal_slice_of(info->session), name, &path, err);
    if (status < 0)
        goto done;
    fd = io->open(io->arg, path.ptr, O_RDONLY, 0);
    if (fd < 0) {
        status = annal__fail_errno(err, "cannot open %s", path.ptr);
        goto done;
    }
    status = annal__artifact_unpack(io, fd, path.ptr, fn, arg, out, err);
    if (status == ANNAL_OK && memcmp(out->sha256, expected, SHA256_BYTES) != 0)
        status = annal__fail(
            err, ANNAL_ERR_CORRUPT,
            "read artifact %s: the content of the file does not match the hash in its name",
            path.ptr);

done:
    if (fd >= 0)
        io->close(io->arg, fd);
    return status;
}

annal_status annal_artifact_read(annal_store *store, annal_slice session, annal_slice sha256,
                                 annal_artifact_sink fn, void *arg, annal_artifact_info *out_info,
                                 annal_error *err)
{
    annal_artifact_info info = {0};
    struct frame_result result;
    uint8_t expected[SHA256_BYTES];
    annal_status status = annal_session_id_check(session, err);
    if (status >= 0 && !annal__artifact_read_sha256(sha256.ptr, sha256.len, expected))
        status =
            annal__fail(err, ANNAL_ERR_INVALID,
                        "'%.*s' is not the SHA-256 of an artifact: write 64 digits of 0-9 and a-f",
                        (int)(sha256.len < 80 ? sha256.len : 80), sha256.ptr);
    if (status >= 0)
        status = annal__artifact_look(store, session, sha256.ptr, &info, err);
    if (status >= 0)
        status = read_proved(store, &info, expected, fn, arg, &result, err);
    if (status == ANNAL_OK && out_info != NULL) {
        info.bytes = result.bytes;
        *out_info = info;
    }
    return status;
}

static int add_piece(void *arg, annal_slice piece)
{
    return (int)annal__buf_append_slice(arg, piece);
}

annal_status annal_artifact_get(annal_store *store, annal_slice session, annal_slice sha256,
                                uint64_t bytes_max, annal_slice *out_content, annal_error *err)
{
    SCOPED_BUF content = {.limit = bytes_max == 0 ? 1 : (size_t)bytes_max};
    annal_status status = annal__buf_reserve(&content, 1);
    if (status >= 0)
        status = annal_artifact_read(store, session, sha256, add_piece, &content, NULL, err);
    if (status == ANNAL_ERR_LIMIT || status == ANNAL_ERR_NOMEM)
        status = annal__fail(err, status, "read artifact %.*s of session '%.*s': %s",
                             ANNAL_FMT(sha256), ANNAL_FMT(session),
                             status == ANNAL_ERR_LIMIT ? "it is larger than the caller's limit"
                                                       : "out of memory");
    if (status == ANNAL_OK) {
        *out_content = annal__buf_slice(&content);
        content = (struct buf){0}; /* the memory belongs to the caller now */
    }
    return status;
}

/* ---- Listing ---- */

static annal_status each_of_session(annal_store *store, annal_slice session, annal_artifact_fn fn,
                                    void *arg, annal_error *err)
{
    SCOPED_BUF path = {0};
    struct artifact_names names = {0};
    uint8_t hash[SHA256_BYTES];
    annal_status status = annal__artifact_path(store, session, "", &path, err);
    if (status >= 0)
        status = annal__artifact_names(store, path.ptr, &names, err);
    for (size_t i = 0; i < names.count && status == ANNAL_OK; i++) {
        size_t len = strlen(names.list[i]);
        annal_artifact_info info;
        if (len != strlen(ARTIFACT_SUFFIX) + (size_t)2 * SHA256_BYTES ||
            strcmp(names.list[i] + (size_t)2 * SHA256_BYTES, ARTIFACT_SUFFIX) != 0 ||
            !annal__artifact_read_sha256(names.list[i], (size_t)2 * SHA256_BYTES, hash))
            continue; /* skip a file that is not an artifact */
        status = annal__artifact_look(store, session, names.list[i], &info, err);
        if (status == ANNAL_ERR_NOTFOUND) /* removed in the meantime */
            status = ANNAL_OK;
        else if (status == ANNAL_OK)
            status = (annal_status)fn(arg, &info);
    }
    annal__artifact_names_done(&names);
    return status;
}

annal_status annal_artifact_each(annal_store *store, annal_slice session, annal_artifact_fn fn,
                                 void *arg, annal_error *err)
{
    SCOPED_BUF path = {0};
    struct artifact_names sessions = {0};
    annal_status status;
    if (session.len > 0) {
        status = annal_session_id_check(session, err);
        return status < 0 ? status : each_of_session(store, session, fn, arg, err);
    }
    status = annal__artifact_path(store, session, "", &path, err);
    if (status >= 0)
        status = annal__artifact_names(store, path.ptr, &sessions, err);
    for (size_t i = 0; i < sessions.count && status == ANNAL_OK; i++)
        if (annal_session_id_check(annal_slice_of(sessions.list[i]), NULL) == ANNAL_OK)
            status = each_of_session(store, annal_slice_of(sessions.list[i]), fn, arg, err);
    annal__artifact_names_done(&sessions);
    return status;
}

/* ---- Moving from another store ---- */

static annal_status sync_file(const struct io *io, const char *path, annal_error *err)
{
    int fd = io->open(io->arg, path, O_RDONLY, 0);
    if (fd < 0)
        return annal__fail_errno(err, "cannot open %s", path);
    annal_status status = ANNAL_OK;
    if (io->fsync(io->arg, fd) < 0)
        status = annal__fail_errno(err, "cannot sync %s", path);
    io->close(io->arg, fd);
    return status;
}

annal_status annal__artifact_adopt(annal_store *store, annal_store *from, annal_slice session,
                                   annal_slice sha256, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    SCOPED_BUF old = {0}, new = {0};
    annal_artifact_info info;
    uint8_t hash[SHA256_BYTES];
    char hex[ANNAL_SHA256_TEXT_BYTES], name[ANNAL_SHA256_TEXT_BYTES + sizeof ARTIFACT_SUFFIX];
    int lock = -1;
    annal_status status = annal_session_id_check(session, err);
    if (status >= 0 && !annal__artifact_read_sha256(sha256.ptr, sha256.len, hash))
        status =
            annal__fail(err, ANNAL_ERR_INVALID, "the name of an artifact must be 64 hex digits");
    if (status < 0)
        return status;
    annal__sha256_text(hash, hex);
    snprintf(name, sizeof name, "%s" ARTIFACT_SUFFIX, hex);
    status = annal__artifact_look(from, session, hex, &info, err);
    if (status >= 0)
        status = annal__artifact_path(from, session, name, &old, err);
    if (status >= 0)
        status = annal__artifact_path(store, session, name, &new, err);
    if (status >= 0)
        status = make_directories(store, session, err);
    if (status >= 0)
        status = annal__artifact_lock(store, LOCK_SH, &lock, err);
    if (status >= 0)
        status = sync_file(io, old.ptr, err);
    if (status >= 0 && io->rename(io->arg, old.ptr, new.ptr) < 0)
        status = annal__fail_errno(err, "cannot rename %s to %s", old.ptr, new.ptr);
    if (status >= 0)
        status = sync_directories(store, session, err);
    if (lock >= 0)
        io->close(io->arg, lock);
    return status < 0 ? status : ANNAL_OK;
}
