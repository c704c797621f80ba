/* SPDX-License-Identifier: Apache-2.0 */
/* The journal file of a session that this store object writes: its descriptor, writes and syncs. */
#include "journal/session_file.h"

#include "journal/base/error.h"
#include "journal/checkpoint.h"
#include "journal/failure_late.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>

#define PAGE_BYTES ((uint64_t)4 << 10)
/* Memory of the buffer for bytes of level os that is kept while the buffer is empty. */
#define LOOSE_KEPT_BYTES ((size_t)4 << 10)

/* ---- Descriptors ---- */

void annal__session_close_journal(struct session_table *sessions, struct session *session)
{
    if (session->fd < 0)
        return;
    sessions->context->io->close(sessions->context->io->arg, session->fd);
    session->fd = -1;
    pthread_mutex_lock(&sessions->lock);
    sessions->open_journals--;
    pthread_mutex_unlock(&sessions->lock);
}

struct eviction {
    struct session_table *sessions;
    const struct session *keep;
    int64_t used_before_us;
};

static annal_status evict(void *arg, struct session *session, annal_error *err)
{
    struct eviction *eviction = arg;
    if (session == eviction->keep || pthread_mutex_trylock(&session->lock) != 0)
        return ANNAL_OK;
    /*
     * A journal is synced before it is closed, because the kernel does not report a failed write to
     * a descriptor that is opened later. If the sync fails, the descriptor stays open, and the
     * journal must be written again (the session is late).
     */
    if (session->fd >= 0 && session->pending == 0 && !session->in_use &&
        session->used_us <= eviction->used_before_us &&
        annal__session_sync(eviction->sessions, session, err) == ANNAL_OK)
        annal__session_close_journal(eviction->sessions, session);
    pthread_mutex_unlock(&session->lock);
    return ANNAL_OK;
}

static bool has_room(struct session_table *sessions)
{
    pthread_mutex_lock(&sessions->lock);
    bool room = sessions->open_journals < sessions->descriptors_max;
    pthread_mutex_unlock(&sessions->lock);
    return room;
}

/* Close journals of this process that were not used for a second; if too many are still open, close
 * all idle journals except the journal of keep. */
static annal_status make_room(struct session_table *sessions, const struct session *keep,
                              annal_error *err)
{
    static const int64_t ages_us[] = {1000000, 0};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < 2 && status == ANNAL_OK && !has_room(sessions); i++) {
        struct eviction eviction = {sessions, keep,
                                    annal__context_now_us(sessions->context) - ages_us[i]};
        status = annal__session_each(sessions, evict, &eviction, err);
    }
    return status;
}

annal_status annal__session_open_journal(struct session_table *sessions, struct session *session,
                                         bool create, bool *out_found, annal_error *err)
{
    struct stat file;
    annal_status status = has_room(sessions) ? ANNAL_OK : make_room(sessions, session, err);
    if (status < 0)
        return status;
    int fd = sessions->context->io->open(sessions->context->io->arg, session->path, O_RDWR, 0);
    *out_found = fd >= 0;
    if (fd < 0 && errno == ENOENT && create) {
        fd = sessions->context->io->open(sessions->context->io->arg, session->path,
                                         O_RDWR | O_CREAT | O_EXCL, 0660);
        atomic_store(&sessions->events->dirty, true);
    }
    if (fd < 0 && errno == ENOENT)
        return ANNAL_OK;
    if (fd < 0 || sessions->context->io->fstat(sessions->context->io->arg, fd, &file) < 0) {
        status = annal__fail_errno(err, "cannot open %s", session->path);
        if (fd >= 0)
            sessions->context->io->close(sessions->context->io->arg, fd);
        return status;
    }
    if (!S_ISREG(file.st_mode)) {
        sessions->context->io->close(sessions->context->io->arg, fd);
        return annal__fail(err, ANNAL_ERR_INVALID, "%s is not a regular file", session->path);
    }
    session->fd = fd;
    session->device = file.st_dev;
    session->inode = file.st_ino;
    pthread_mutex_lock(&sessions->lock);
    sessions->open_journals++;
    pthread_mutex_unlock(&sessions->lock);
    return ANNAL_OK;
}

void annal__session_wait_unused(struct session *session)
{
    while (session->in_use)
        pthread_cond_wait(&session->moved, &session->lock);
}

/* ---- New journals ---- */

void annal__session_set_codec(struct session *session, const struct codec *codec)
{
    char *suffix = session->path + strlen(session->path) - strlen(session->codec->suffix);
    memcpy(suffix, codec->suffix, strlen(codec->suffix) + 1);
    session->codec = codec;
}

annal_status annal__session_header_new(const struct context *context, annal_slice session,
                                       const struct codec *codec, struct frame_header *out,
                                       struct buf *frame, uint64_t *out_h, annal_error *err)
{
    *out = (struct frame_header){.session = session,
                                 .created_us = context->clock->wall_us(context->clock->arg)};
    if (getrandom(out->file, sizeof out->file, 0) != (ssize_t)sizeof out->file)
        return annal__fail_errno(err, "cannot create an id for the journal of session '%.*s'",
                                 ANNAL_FMT(session));
    annal_status status = codec->encode_header(frame, out, out_h);
    return status < 0
               ? annal__fail(err, status, "begin session '%.*s': out of memory", ANNAL_FMT(session))
               : ANNAL_OK;
}

/* Changes the session only after everything else succeeded: otherwise a header of the wrong format
 * could be written later. */
annal_status annal__session_begin(struct session_table *sessions, struct session *session,
                                  const struct codec *codec, annal_error *err)
{
    struct frame_header header;
    struct buf frame = {.limit = session->header.limit};
    uint64_t h = 0;
    annal_status status = annal__session_header_new(sessions->context, annal__session_id(session),
                                                    codec, &header, &frame, &h, err);
    if (status < 0) {
        annal__buf_done(&frame);
        return status;
    }
    if (codec != session->codec) {
        /* if a journal is open, it is an empty journal of the old format */
        annal__session_close_journal(sessions, session);
        annal__session_set_codec(session, codec);
    }
    memcpy(session->file, header.file, sizeof session->file);
    annal__buf_done(&session->header);
    session->header = frame; /* the session owns the memory of frame from now on */
    session->create_logged = session->exists = false;
    session->seq = 0;
    session->ts_us = INT64_MIN;
    session->logged = session->end = session->header.len;
    session->logged_h = session->h = h;
    return ANNAL_OK;
}

/* ---- Bytes of level os ---- */

bool annal__session_is_loose(const struct session_table *sessions, const struct session *session)
{
    return atomic_load(&annal__held_entry(&sessions->own_log->held, session->held_index)->loose) !=
           0;
}

void annal__session_set_loose(struct session_table *sessions, struct session *session, bool loose)
{
    struct held_entry *entry = annal__held_entry(&sessions->own_log->held, session->held_index);
    if (atomic_exchange(&entry->loose, loose ? 1 : 0) == (loose ? 1u : 0u))
        return;
    if (loose)
        atomic_fetch_add(&sessions->loose, 1);
    else
        atomic_fetch_sub(&sessions->loose, 1);
}

void annal__session_drop_loose(struct session *session, size_t bytes)
{
    annal__buf_consume(&session->loose, bytes);
    if (session->loose.len == 0 && session->loose.cap > LOOSE_KEPT_BYTES)
        annal__buf_done(&session->loose);
}

/* ---- Syncing ---- */

annal_status annal__session_sync(struct session_table *sessions, struct session *session,
                                 annal_error *err)
{
    /* wait for a running checkpoint, which changes `dirty` when it has finished */
    annal__session_wait_unused(session);
    annal_error failure = *session->refusal;
    bool late = session->late != LATE_NOT;
    if (!late && session->dirty && session->fd >= 0 &&
        annal__metrics_fdatasync(sessions->metrics, session->fd) < 0) {
        annal__fail_errno(&failure, "cannot sync the journal of session '%s'", session->id);
        annal__failure_set_late(sessions, session, LATE_SYNC, &failure);
        late = true;
    }
    if (late) {
        if (err != NULL)
            *err = failure;
        return failure.status;
    }
    session->dirty = false;
    annal_status status = annal__checkpoint_events(sessions->events, err);
    if (status < 0)
        return status;
    /* The bytes of level os are on the disk now. The log does not record this yet;
     * annal_store_sync() adds a mark for it. */
    if (session->loose.len > 0) {
        annal__session_drop_loose(session, session->loose.len);
        session->logged = session->end;
        session->logged_h = session->h;
    }
    return ANNAL_OK;
}

annal_status annal__session_reopen(struct session_table *sessions, struct session *session,
                                   annal_error *err)
{
    bool found = false;
    annal__session_wait_unused(session);
    annal__session_close_journal(sessions, session);
    annal_status status = annal__session_open_journal(sessions, session, false, &found, err);
    if (status == ANNAL_OK && !found)
        status =
            annal__fail(err, ANNAL_ERR_IO, "the journal of session '%s' was removed", session->id);
    if (status < 0)
        return status;
    session->exists = true;
    session->dirty = false;
    if (session->loose.len > 0 &&
        (annal__io_write_all(sessions->context->io, session->fd, session->loose.ptr,
                             session->loose.len, session->logged) < 0 ||
         annal__metrics_fdatasync(sessions->metrics, session->fd) < 0))
        return annal__fail_errno(err, "cannot write the journal of session '%s' again",
                                 session->id);
    return ANNAL_OK;
}

/* ---- Writing ---- */

/* Fail if the journal's name no longer belongs to the open file: another program, an editor or a
 * restore, may have replaced it. The caller handles this like a failed write. */
static annal_status check_place(struct session_table *sessions, const struct session *session,
                                annal_error *err)
{
    dev_t device;
    ino_t inode;
    bool found = sessions->context->io->identify(sessions->context->io->arg, session->path, &device,
                                                 &inode) == 0;
    if (!found && errno != ENOENT && errno != ENOTDIR)
        return annal__fail_errno(err, "cannot examine the journal of session '%s'", session->id);
    if (!found || device != session->device || inode != session->inode)
        return annal__fail(err, ANNAL_ERR_UNKNOWN,
                           "the journal of session '%s' was replaced by another file; open the "
                           "store again to continue",
                           session->id);
    return ANNAL_OK;
}

/* Open the journal for writing. Its descriptor was closed to make room for others, or it does not
 * exist yet. */
static annal_status reopen_journal(struct session_table *sessions, struct session *session,
                                   annal_error *err)
{
    dev_t device = session->device;
    ino_t inode = session->inode;
    bool found = false;
    annal_status status =
        annal__session_open_journal(sessions, session, !session->exists, &found, err);
    if (status < 0)
        return status;
    if (session->fd < 0)
        return annal__fail(err, ANNAL_ERR_UNKNOWN, "the journal of session '%s' was removed",
                           session->id);
    struct stat file = {0};
    if (!session->exists && found &&
        sessions->context->io->fstat(sessions->context->io->arg, session->fd, &file) < 0) {
        status = annal__fail_errno(err, "cannot examine the journal of session '%s'", session->id);
        /* so that the next write opens and examines the journal again */
        annal__session_close_journal(sessions, session);
        return status;
    }
    if (!session->exists && found && file.st_size > 0)
        return annal__fail(err, ANNAL_ERR_UNKNOWN,
                           "another program created a journal of session '%s'", session->id);
    if (session->exists) {
        /* Keep the identity of the original file, with which check_place() compares the file that
         * has the name now. */
        session->device = device;
        session->inode = inode;
    }
    return ANNAL_OK;
}

annal_status annal__session_write(struct session_table *sessions, struct session *session,
                                  uint64_t offset, annal_slice bytes, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (session->fd < 0)
        status = reopen_journal(sessions, session, err);
    if (status < 0)
        return status;
    status = check_place(sessions, session, err);
    if (status < 0)
        return status;
    if (!session->dirty)
        session->written_back = offset / PAGE_BYTES * PAGE_BYTES;
    if (annal__io_write_all(sessions->context->io, session->fd, bytes.ptr, bytes.len, offset) < 0)
        return annal__fail_errno(err, "cannot write the journal of session '%s'", session->id);
    session->exists = true;
    session->dirty = true;
    session->used_us = annal__context_now_us(sessions->context);
    session->changed = atomic_fetch_add(&sessions->changes, 1) + 1;
    annal__metrics_add(sessions->metrics, METRIC_JOURNAL_BYTES, bytes.len);
    return ANNAL_OK;
}

annal_status annal__session_write_back(struct session_table *sessions, struct session *session,
                                       uint64_t end, uint64_t piece_bytes, annal_error *err)
{
    uint64_t shift = (uintptr_t)session / sizeof *session % (piece_bytes / PAGE_BYTES) * PAGE_BYTES;
    uint64_t whole = (end + shift) / piece_bytes * piece_bytes;
    if (whole <= session->written_back + shift)
        return ANNAL_OK;
    uint64_t from = session->written_back;
    session->written_back = whole - shift;
    if (sessions->context->io->write_back(sessions->context->io->arg, session->fd, from,
                                          whole - shift - from) < 0)
        return annal__fail_errno(err, "cannot write the journal of session '%s'", session->id);
    return ANNAL_OK;
}

/* ---- Giving up a session ---- */

void annal__session_let_go(struct session_table *sessions, struct session *session)
{
    if (!session->unlisted)
        annal__held_remove(&sessions->own_log->held, session->held_index);
    session->unlisted = false;
    atomic_fetch_sub(&sessions->metrics->sessions_owned, 1);
    session->state = SESSION_FREE;
    pthread_cond_broadcast(&session->moved);
}

bool annal__session_forget(struct session_table *sessions, struct session *session)
{
    if (session->state != SESSION_OWNED || session->pending > 0 || session->in_use)
        return false;
    annal__session_close_journal(sessions, session);
    annal__session_let_go(sessions, session);
    return true;
}
