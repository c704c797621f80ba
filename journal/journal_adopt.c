/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Move a journal from another store into this store.
 *
 * (1) The process holds locks/structure meanwhile, so that no process deletes or converts the
 *     parent of a fork, and owns the session's name, so that no process creates a session with it.
 * (2) A commit log may contain redo for a journal with the same file id that was deleted from this
 *     store; if this store has its tombstone, the journal is refused, because that redo belongs to
 *     its earlier content.
 * (3) Nothing is copied: the journal is synced, renamed, and events/ is synced.
 */
#include "journal/base/error.h"
#include "journal/checkpoint.h"
#include "journal/replace_claim.h"
#include "journal/replace_sweep.h"
#include "journal/replace_tombstone.h"
#include "journal/store.h"
#include "journal/store_journal.h"
#include "journal/sys/adopt.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

struct adoption {
    struct change change; /* ownership of the session's name */
    annal_store *store;
    annal_slice session;
    const struct codec *codec;
    struct frame_header header;
    struct buf frame;
    struct buf path; /* path of the journal in the other store */
    struct buf target;
};

/* Sync the journal in the other store, and read its header. */
static annal_status examine(struct adoption *adoption, annal_store *from, annal_error *err)
{
    const struct io *io = from->context.io;
    uint64_t h;
    annal_status status = annal__store_journal_find(&from->context, adoption->session,
                                                    &adoption->path, &adoption->codec, err);
    if (status < 0)
        return status;
    if (adoption->codec == NULL)
        return annal__fail(err, ANNAL_ERR_NOTFOUND, "there is no session '%.*s' in store %s",
                           ANNAL_FMT(adoption->session), from->context.path);
    status = annal__buf_reserve(&adoption->frame, FRAME_ENVELOPE_BYTES);
    if (status < 0)
        return annal__fail(err, status, "adopt session '%.*s': out of memory",
                           ANNAL_FMT(adoption->session));
    int fd = io->open(io->arg, adoption->path.ptr, O_RDONLY, 0);
    ssize_t got =
        fd < 0 ? -1 : annal__io_read_full(io, fd, adoption->frame.ptr, FRAME_ENVELOPE_BYTES, 0);
    if (got < 0 || io->fsync(io->arg, fd) < 0)
        status = annal__fail_errno(err, "cannot read and sync %s", adoption->path.ptr);
    if (fd >= 0)
        io->close(io->arg, fd);
    if (status < 0)
        return status;
    const annal_slice bytes = {adoption->frame.ptr, (size_t)got};
    if (!annal__codec_first(adoption->codec, bytes, &adoption->header, &h))
        return annal__fail(err, ANNAL_ERR_CORRUPT, "the header of journal %s is damaged",
                           adoption->path.ptr);
    return annal__codec_check_owner(&adoption->header, adoption->session, err);
}

/*
 * Fail while a commit log may contain records that recovery would write to a deleted journal with
 * this file id (rule 2). Called before any change, and again after this process owns the session.
 */
static annal_status refuse_gone(const struct adoption *adoption, annal_error *err)
{
    bool gone = false;
    annal_status status =
        annal__replace_is_gone(&adoption->store->context, adoption->session, adoption->codec,
                               adoption->header.file, &gone, err);
    if (status == ANNAL_OK && gone)
        status = annal__fail(err, ANNAL_ERR_BUSY,
                             "session '%.*s' was deleted, but a commit log still refers to its "
                             "journal: try again when no process writes this store",
                             ANNAL_FMT(adoption->session));
    return status;
}

static annal_status settle_gone(const struct adoption *adoption, annal_error *err)
{
    if (refuse_gone(adoption, NULL) == ANNAL_OK)
        return ANNAL_OK;
    annal_status status = annal_store_checkpoint(adoption->store, err);
    if (status == ANNAL_OK)
        annal__replace_sweep(adoption->store);
    return status;
}

/* Fail unless the event that a fork points at exists in this store. */
static annal_status check_parent(const struct adoption *adoption, annal_error *err)
{
    const struct frame_header *header = &adoption->header;
    annal_cursor *cursor = NULL;
    annal_event event = {0};
    if (header->fork.len == 0)
        return ANNAL_OK;
    annal_status status =
        annal_cursor_open(adoption->store, header->fork, header->fork_seq, &cursor, err);
    if (status == ANNAL_OK)
        status = annal_cursor_next(cursor, &event, err);
    if (status > 0 || status == ANNAL_ERR_NOTFOUND ||
        (status == ANNAL_OK && (event.seq != header->fork_seq || event.h != header->fork_h)))
        status =
            annal__fail(err, ANNAL_ERR_CORRUPT,
                        "session '%.*s' is a fork of event %" PRIu64
                        " of session '%.*s', but this store has no such session, or its events up "
                        "to there differ",
                        ANNAL_FMT(adoption->session), header->fork_seq, ANNAL_FMT(header->fork));
    annal_cursor_close(cursor);
    return status;
}

/* Rename the journal into this store, and sync events/ (rule 3). */
static annal_status take_place(struct adoption *adoption, annal_error *err)
{
    annal_store *store = adoption->store;
    annal_status status = annal__context_journal_path(&store->context, adoption->session,
                                                      adoption->codec, &adoption->target, err);
    if (status < 0)
        return status;
    if (store->context.io->rename(store->context.io->arg, adoption->path.ptr,
                                  adoption->target.ptr) < 0)
        return annal__fail_errno(err, "cannot rename %s to %s", adoption->path.ptr,
                                 adoption->target.ptr);
    atomic_store(&store->events.dirty, true);
    annal_error why = {0};
    if (annal__checkpoint_events(&store->events, &why) < 0)
        return annal__fail(err, ANNAL_ERR_UNKNOWN, "%.400s", why.message);
    return ANNAL_OK;
}

static annal_status adopt(struct adoption *adoption, annal_error *err)
{
    const struct session *session = adoption->change.session;
    if (session->create_logged || session->exists)
        return annal__fail(err, ANNAL_ERR_CONFLICT, "session '%.*s' already exists",
                           ANNAL_FMT(adoption->session));
    annal_status status = refuse_gone(adoption, err);
    if (status == ANNAL_OK)
        status = check_parent(adoption, err);
    return status == ANNAL_OK ? take_place(adoption, err) : status;
}

annal_status annal__journal_adopt(annal_store *store, annal_store *from, annal_slice session,
                                  annal_error *err)
{
    struct adoption adoption = {
        .store = store, .session = session, .frame = {.limit = FRAME_ENVELOPE_BYTES}};
    annal_status status = annal__context_check_writable(&store->context, err);
    if (status == ANNAL_OK)
        status = annal_session_id_check(session, err);
    if (status == ANNAL_OK)
        status = examine(&adoption, from, err);
    if (status == ANNAL_OK)
        status = settle_gone(&adoption, err);
    if (status == ANNAL_OK) {
        status = annal__replace_claim(&adoption.change, store, session, true, err);
        if (status == ANNAL_OK)
            status = adopt(&adoption, err);
        annal__replace_end(&adoption.change);
    }
    annal__buf_done(&adoption.frame);
    annal__buf_done(&adoption.path);
    annal__buf_done(&adoption.target);
    return status;
}
