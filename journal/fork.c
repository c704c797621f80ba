/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Create a fork: a journal that contains only a header, which names another journal and an event in
 * it (lineage.h).
 *
 * (1) The caller's process holds locks/structure meanwhile, so that no process deletes or converts
 *     the parent, and owns the name of the fork, so that no process creates a session with it.
 * (2) The shared events are made durable first: our own events by annal_store_sync(), events of
 *     another process by a sync of the journal that contains them. So a fork never points at
 *     something that a power cut removes.
 * (3) The fork's journal is written under a temporary name, synced, renamed, and events/ is synced:
 *     at every moment it is complete or missing.
 */
#include "journal/base/error.h"
#include "journal/checkpoint.h"
#include "journal/lineage.h"
#include "journal/replace_claim.h"
#include "journal/store.h"
#include "journal/store_journal.h"
#include "journal/sys/cursor.h"
#include "journal/sys/lineage.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

struct forking {
    struct change change; /* ownership of the fork's name */
    annal_store *store;
    annal_slice parent;
    /* event after which the fork begins, and the session whose journal contains it */
    struct origin origin;
    const struct codec *codec;
    annal_session_info made; /* information on the new fork */
};

/* Fail if the fork's name already belongs to a session. Checked first, because claiming the name
 * would take that session from its owner. */
static annal_status refuse_child(annal_store *store, annal_slice child, annal_error *err)
{
    SCOPED_BUF path = {0};
    const struct codec *codec = NULL;
    struct stat file = {0};
    annal_status status = annal__store_journal_find(&store->context, child, &path, &codec, err);
    if (status == ANNAL_OK && codec != NULL &&
        store->context.io->stat(store->context.io->arg, path.ptr, &file) == 0 && file.st_size > 0)
        status =
            annal__fail(err, ANNAL_ERR_CONFLICT, "session '%.*s' already exists", ANNAL_FMT(child));
    return status;
}

static annal_status choose_seq(const struct forking *forking, uint64_t *at_seq, annal_error *err)
{
    annal_session_info info;
    annal_status status = annal_session_info_get(forking->store, forking->parent, &info, err);
    if (status < 0)
        return status;
    if (info.last_seq == 0)
        return annal__fail(
            err, ANNAL_ERR_NOTFOUND,
            "fork session '%.*s': the session is empty, so a fork has no event to begin at",
            ANNAL_FMT(forking->parent));
    if (*at_seq > info.last_seq)
        return annal__fail(err, ANNAL_ERR_NOTFOUND,
                           "session '%.*s' ends at event %" PRIu64 ", it has no event %" PRIu64,
                           ANNAL_FMT(forking->parent), info.last_seq, *at_seq);
    if (*at_seq == ANNAL_FORK_LAST)
        *at_seq = info.last_seq;
    return ANNAL_OK;
}

/* Find the journal that contains event at_seq, the last shared event, and its hash. */
static annal_status find_origin(struct forking *forking, uint64_t at_seq, annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_status status = annal_cursor_open(forking->store, forking->parent, at_seq, &cursor, err);
    if (status < 0)
        return status;
    /* whether event at_seq is lost; damage before it does not matter, because its own hash proves
     * it */
    bool lost = false;
    do {
        status = annal_cursor_next(cursor, &event, err);
        lost = status == ANNAL_DAMAGE && annal_cursor_damage(cursor).event_lost &&
               annal_cursor_damage(cursor).seq >= at_seq;
    } while (status == ANNAL_DAMAGE && !lost);
    if (lost || (status == ANNAL_OK && event.seq != at_seq))
        status = annal__fail(err, ANNAL_ERR_CORRUPT,
                             "session '%.*s' is damaged at event %" PRIu64
                             ": fork the session at an earlier event",
                             ANNAL_FMT(forking->parent), at_seq);
    else if (status == ANNAL_END)
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "session '%.*s' has no event %" PRIu64,
                             ANNAL_FMT(forking->parent), at_seq);
    if (status == ANNAL_OK) {
        annal_slice holder = annal__cursor_journal(cursor);
        memcpy(forking->origin.session, holder.ptr, holder.len);
        forking->origin.seq = at_seq;
        forking->origin.h = event.h;
    }
    annal_cursor_close(cursor);
    return status;
}

/* Refuse a fork with too many ancestors, because a reader of the fork opens all of them. */
static annal_status check_depth(const struct forking *forking, annal_error *err)
{
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1] = "";
    struct lineage lineage = {0};
    struct origin origin = {0};
    size_t parts = 0;
    annal_status status = annal__lineage_of(forking->store, annal_slice_of(forking->origin.session),
                                            &lineage, id, &origin, &parts, err);
    annal__lineage_done(&lineage);
    if (status < 0 || parts < ANNAL_ANCESTORS_MAX)
        return status;
    return annal__fail(
        err, ANNAL_ERR_LIMIT,
        "session '%s' has %d ancestors, the maximum: fork one of these ancestors instead", id,
        ANNAL_ANCESTORS_MAX);
}

/* Make the shared events durable, so that a fork never points at events that a power cut removes
 * (rule 2). */
static annal_status sync_origin(const struct forking *forking, const struct codec **out_codec,
                                annal_error *err)
{
    annal_store *store = forking->store;
    int fd = -1;
    annal_status status = annal__store_journal_open(
        &store->context, annal_slice_of(forking->origin.session), &fd, out_codec, err);
    if (status < 0)
        return status;
    if (annal__metrics_fdatasync(&store->metrics, fd) < 0)
        status = annal__fail_errno(err, "cannot sync the journal of session '%s'",
                                   forking->origin.session);
    store->context.io->close(store->context.io->arg, fd);
    /* another process may have created the journal just now, without syncing events/ yet */
    atomic_store(&store->events.dirty, true);
    return status < 0 ? status : annal__checkpoint_events(&store->events, err);
}

static void describe(struct forking *forking, const struct frame_header *header, uint64_t h,
                     uint64_t bytes)
{
    annal_session_info *made = &forking->made;
    *made = (annal_session_info){.format = forking->codec->format,
                                 .created_us = header->created_us,
                                 .bytes = bytes,
                                 .last_seq = header->fork_seq,
                                 .last_h = h,
                                 .end_offset = bytes,
                                 .fork_seq = header->fork_seq,
                                 .fork_h = header->fork_h,
                                 .first_seq = header->fork_seq + 1};
    memcpy(made->session, header->session.ptr, header->session.len);
    memcpy(made->fork_session, header->fork.ptr, header->fork.len);
    annal__codec_file_id_text(header->file, made->file);
}

/* Write and sync the journal under a temporary name, and rename it to path (rule 3). */
static annal_status put_journal(annal_store *store, const uint8_t file[FRAME_FILE_ID_BYTES],
                                annal_slice frame, const char *path, annal_error *err)
{
    const struct io *io = store->context.io;
    char name[64] = ".new-";
    SCOPED_BUF unfinished = {0};
    bool there = false;
    int fd = -1;
    annal__codec_file_id_text(file, name + strlen(name));
    annal_status status = annal__context_path(&store->context, &unfinished, "events", name, err);
    if (status < 0)
        goto done;
    fd = io->open(io->arg, unfinished.ptr, O_WRONLY | O_CREAT | O_EXCL, 0660);
    there = fd >= 0;
    if (!there || annal__io_write_all(io, fd, frame.ptr, frame.len, 0) < 0 ||
        io->fsync(io->arg, fd) < 0) {
        status = annal__fail_errno(err, "cannot write %s", unfinished.ptr);
        goto done;
    }
    if (io->rename(io->arg, unfinished.ptr, path) < 0) {
        status = annal__fail_errno(err, "cannot rename %s to %s", unfinished.ptr, path);
        goto done;
    }
    there = false;
    atomic_store(&store->events.dirty, true);
    annal_error why = {0};
    if (annal__checkpoint_events(&store->events, &why) < 0)
        status = annal__fail(err, ANNAL_ERR_UNKNOWN, "%.400s", why.message);

done:
    if (fd >= 0)
        io->close(io->arg, fd);
    if (there)
        io->unlink(io->arg, unfinished.ptr);
    return status;
}

static annal_status publish(struct forking *forking, annal_slice child, annal_error *err)
{
    annal_store *store = forking->store;
    struct frame_header header = {.session = child,
                                  .created_us =
                                      store->context.clock->wall_us(store->context.clock->arg),
                                  .fork = annal_slice_of(forking->origin.session),
                                  .fork_seq = forking->origin.seq,
                                  .fork_h = forking->origin.h};
    SCOPED_BUF frame = {.limit = FRAME_ENVELOPE_BYTES}, path = {0};
    uint64_t h;
    if (getrandom(header.file, sizeof header.file, 0) != (ssize_t)sizeof header.file)
        return annal__fail_errno(err, "cannot create an id for the journal of session '%.*s'",
                                 ANNAL_FMT(child));
    annal_status status = forking->codec->encode_header(&frame, &header, &h);
    if (status < 0)
        status = annal__fail(err, status, "fork a session: out of memory");
    if (status == ANNAL_OK)
        status = annal__context_journal_path(&store->context, child, forking->codec, &path, err);
    if (status == ANNAL_OK) {
        describe(forking, &header, h, frame.len);
        status = put_journal(store, header.file, annal__buf_slice(&frame), path.ptr, err);
    }
    return status;
}

static annal_status make_fork(struct forking *forking, uint64_t at_seq, annal_slice child,
                              annal_error *err)
{
    const struct codec *parents = NULL;
    const struct session *session = forking->change.session;
    annal_status status = ANNAL_OK;
    if (session->create_logged || session->exists)
        return annal__fail(err, ANNAL_ERR_CONFLICT, "session '%.*s' already exists",
                           ANNAL_FMT(child));
    status = annal_store_sync(forking->store, err);
    if (status == ANNAL_OK)
        status = choose_seq(forking, &at_seq, err);
    /* refuse a parent with a missing or replaced ancestor: its fork could not be read either */
    if (status == ANNAL_OK)
        status = annal__lineage_check(forking->store, forking->parent, NULL, err);
    if (status == ANNAL_OK)
        status = find_origin(forking, at_seq, err);
    if (status == ANNAL_OK)
        status = check_depth(forking, err);
    if (status == ANNAL_OK)
        status = sync_origin(forking, &parents, err);
    if (status < 0)
        return status;
    if (forking->codec == NULL)
        forking->codec = parents;
    return publish(forking, child, err);
}

annal_status annal_session_fork(annal_store *store, annal_slice session, uint64_t at_seq,
                                annal_slice child, const annal_fork_options *options,
                                annal_session_info *out_info, annal_error *err)
{
    struct forking forking = {.store = store, .parent = session};
    if (options != NULL && options->format != ANNAL_FORMAT_DEFAULT) {
        forking.codec = annal__codec_of(options->format);
        if (forking.codec == NULL)
            return annal__fail(err, ANNAL_ERR_INVALID,
                               "fork session '%.*s': the given journal format is unknown",
                               ANNAL_FMT(session));
    }
    annal_status status = annal__context_check_writable(&store->context, err);
    if (status == ANNAL_OK)
        status = annal_session_id_check(session, err);
    if (status == ANNAL_OK)
        status = annal_session_id_check(child, err);
    if (status == ANNAL_OK)
        status = refuse_child(store, child, err);
    if (status == ANNAL_OK)
        status = annal__replace_claim(&forking.change, store, child, true, err);
    if (status == ANNAL_OK)
        status = make_fork(&forking, at_seq, child, err);
    annal__replace_end(&forking.change);
    if (status == ANNAL_OK && out_info != NULL)
        *out_info = forking.made;
    return status;
}

/* ---- Looking at forks ---- */

annal_status annal_lineage_each(annal_store *store, annal_slice session, annal_lineage_fn fn,
                                void *arg, annal_error *err)
{
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1] = "";
    struct lineage lineage = {0};
    struct origin origin = {0};
    size_t parts = 0;
    annal_status status = annal__lineage_of(store, session, &lineage, id, &origin, &parts, err);
    annal_lineage_part part = {session, origin.seq + 1, UINT64_MAX, 0};
    for (size_t i = 0; status == ANNAL_OK && i <= parts; i++) {
        if (i > 0) {
            const struct part *up = &lineage.parts[i - 1];
            part = (annal_lineage_part){annal_slice_of(up->session), up->origin.seq + 1, up->to_seq,
                                        up->to_h};
        }
        status = fn(arg, &part);
    }
    annal__lineage_done(&lineage);
    return status;
}
