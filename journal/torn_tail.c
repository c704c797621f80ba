/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/torn_tail.h"

#include "journal/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PIECE_BYTES ((size_t)1 << 20)

/* Copy bytes [from, to) of a file to the beginning of another file. Return 0, or -1 and set
 * errno. */
static int copy_range(const struct io *io, int from_fd, uint64_t from, uint64_t to, int to_fd,
                      struct buf *piece)
{
    for (uint64_t at = from; at < to;) {
        size_t want = to - at < piece->cap ? (size_t)(to - at) : piece->cap;
        ssize_t got = annal__io_read_full(io, from_fd, piece->ptr, want, at);
        if (got == 0)
            errno = EIO; /* the file ends before `to`, but was longer a moment ago */
        if (got <= 0 || annal__io_write_all(io, to_fd, piece->ptr, (size_t)got, at - from) < 0)
            return -1;
        at += (uint64_t)got;
    }
    return 0;
}

/* Save bytes [from, to) of a journal in events/.torn. They are written under a temporary name
 * first, so that a file with the final name is complete. */
static annal_status keep_bytes(struct session_table *sessions, const char *name, int fd,
                               uint64_t from, uint64_t to, annal_error *err)
{
    const struct io *io = sessions->context->io;
    SCOPED_BUF dir = {0}, path = {0}, temporary = {0}, piece = {.limit = PIECE_BYTES};
    int copy = -1;
    annal_status status = annal__context_path(sessions->context, &dir, "events", ".torn", err);
    if (status == ANNAL_OK)
        status = annal__io_make_dir(io, dir.ptr, err);
    if (status < 0)
        goto done;
    if (annal__buf_printf(&path, "%s/%s", dir.ptr, name) < 0 ||
        annal__buf_printf(&temporary, "%s.tmp", path.ptr) < 0 ||
        annal__buf_reserve(&piece, PIECE_BYTES) < 0) {
        status =
            annal__fail(err, ANNAL_ERR_NOMEM, "save the torn bytes as %s: out of memory", name);
        goto done;
    }
    copy = io->open(io->arg, temporary.ptr, O_RDWR | O_CREAT | O_TRUNC, 0660);
    if (copy < 0 || copy_range(io, fd, from, to, copy, &piece) < 0 ||
        io->fsync(io->arg, copy) < 0 || io->rename(io->arg, temporary.ptr, path.ptr) < 0) {
        status = annal__fail_errno(err, "cannot save the torn bytes as %s", path.ptr);
        goto done;
    }
    status = annal__io_sync_dir(io, dir.ptr, err);

done:
    if (copy >= 0)
        io->close(io->arg, copy);
    if (status < 0 && temporary.ptr != NULL)
        io->unlink(io->arg, temporary.ptr);
    return status;
}

annal_status annal__torn_cut(struct session_table *sessions, annal_slice session, int fd,
                             uint64_t from, uint64_t to, annal_error *err)
{
    char name[ANNAL_SESSION_ID_BYTES_MAX + 64];
    snprintf(name, sizeof name, "%.*s.%" PRIu64 ".%" PRId64, ANNAL_FMT(session), from,
             sessions->context->clock->wall_us(sessions->context->clock->arg));
    annal_status status = keep_bytes(sessions, name, fd, from, to, err);
    if (status < 0)
        return status;
    if (sessions->context->io->ftruncate(sessions->context->io->arg, fd, from) < 0 ||
        sessions->context->io->fsync(sessions->context->io->arg, fd) < 0)
        return annal__fail_errno(err, "cannot cut the torn tail of session '%.*s'",
                                 ANNAL_FMT(session));
    annal__metrics_add(sessions->metrics, METRIC_TORN_BYTES, to - from);
    annal__wakeup_announce_all(sessions->wakeup);
    annal__context_say(
        sessions->context, ANNAL_LOG_WARNING,
        "session '%.*s': %" PRIu64
        " bytes of an unfinished write at its end were cut off and saved in events/.torn/%s",
        ANNAL_FMT(session), to - from, name);
    return ANNAL_OK;
}

struct forgetting {
    const struct context *context;
    annal_slice session;
    struct buf dir;
    bool removed;
    int failed; /* errno with which a saved piece could not be removed, or 0 */
};

/* Return whether the name belongs to a saved piece of this session's journal:
 * SESSION.NUMBER.NUMBER…. The session's id may contain dots itself. */
static bool is_piece_of(const char *name, annal_slice session)
{
    const char *at = name + session.len;
    if (strncmp(name, session.ptr, session.len) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        if (*at++ != '.')
            return false;
        size_t digits = strspn(at, "0123456789");
        if (digits == 0)
            return false;
        at += digits;
    }
    return *at == '\0' || strcmp(at, ".tmp") == 0;
}

static int forget_piece(void *arg, const char *name)
{
    struct forgetting *forgetting = arg;
    const struct io *io = forgetting->context->io;
    SCOPED_BUF path = {0};
    if (!is_piece_of(name, forgetting->session))
        return 0;
    if (annal__buf_printf(&path, "%s/%s", forgetting->dir.ptr, name) < 0 ||
        annal__buf_cstr(&path) == NULL)
        forgetting->failed = ENOMEM;
    else if (io->unlink(io->arg, path.ptr) < 0)
        forgetting->failed = errno;
    forgetting->removed = true;
    return 0;
}

annal_status annal__torn_forget(const struct context *context, annal_slice session,
                                annal_error *err)
{
    struct forgetting forgetting = {.context = context, .session = session};
    annal_status status = annal__context_path(context, &forgetting.dir, "events", ".torn", err);
    if (status < 0)
        return status;
    if (context->io->list(context->io->arg, forgetting.dir.ptr, forget_piece, &forgetting) < 0)
        forgetting.failed = errno == ENOENT ? 0 : errno;
    errno = forgetting.failed;
    if (forgetting.failed != 0)
        status = annal__fail_errno(err, "cannot remove the saved bytes of session '%.*s' in %s",
                                   ANNAL_FMT(session), forgetting.dir.ptr);
    else if (forgetting.removed)
        status = annal__io_sync_dir(context->io, forgetting.dir.ptr, err);
    annal__buf_done(&forgetting.dir);
    return status;
}
