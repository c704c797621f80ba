/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/recover.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/slice.h"
#include "journal/failure_late.h"
#include "journal/log_void.h"
#include "journal/replace_tombstone.h"
#include "journal/scan.h"
#include "journal/store_journal.h"
#include "journal/torn_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TARGET_BUCKETS 1024u

/* A journal to which recovery writes records of the log. */
struct target {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    const struct codec *codec;
    int fd; /* descriptor of the journal; -1: the journal does not exist, or is not open */
    bool stopped;
    /* why the recovery of the journal was stopped; NULL if it was not, or if memory ran out */
    annal_error *reason;
    /* whether the last record was skipped, because its journal was deleted or replaced */
    bool skipped;
    uint64_t redone; /* number of the last group with a record of this session that was written */
    /* whether the session's last record is a mark: events of level os may follow in the journal
     * (rule 7) */
    bool loose;
    uint64_t loose_offset;
    uint64_t loose_seq;
    uint64_t loose_h; /* hash of the event before this mark of level os */
    struct target *next;
};

struct redo {
    struct session_table *sessions;
    struct log *log;
    struct held *held;
    struct target *buckets[TARGET_BUCKETS];
    uint32_t open; /* number of open journals */
    bool own;      /* whether a living process recovers sessions from its own log (rule 9) */
    /* whether to recover only late sessions, whose journals must be written again (failure.h); else
     * the sessions in the held list */
    bool late_only;
    size_t stopped;
    annal_error first; /* why the recovery of the first stopped journal was stopped */
};

/* ---- Targets ---- */

static size_t bucket_of(annal_slice session)
{
    return annal__hash(session.ptr, session.len, 0) % TARGET_BUCKETS;
}

static void close_target(struct redo *redo, struct target *target)
{
    if (target->fd < 0)
        return;
    redo->sessions->context->io->close(redo->sessions->context->io->arg, target->fd);
    target->fd = -1;
    redo->open--;
}

static void free_targets(struct redo *redo)
{
    for (size_t i = 0; i < TARGET_BUCKETS; i++) {
        while (redo->buckets[i] != NULL) {
            struct target *target = redo->buckets[i];
            redo->buckets[i] = target->next;
            close_target(redo, target);
            annal__free(target->reason);
            annal__free(target);
        }
    }
}

/* Stop the recovery of a journal at this offset: report it, and write no more of its records (rule
 * 3). */
static void stop_target(struct redo *redo, struct target *target, const char *why, uint64_t offset)
{
    annal_error reason;
    annal__fail(&reason, ANNAL_ERR_CORRUPT,
                "session '%s' cannot be recovered at byte %" PRIu64 " of its journal: %.300s",
                target->session, offset, why);
    /* warn; a process that recovers from its own log warns once (failure.c), not at each attempt */
    if (!redo->own)
        annal__context_say(redo->sessions->context, ANNAL_LOG_WARNING, "%s", reason.message);
    target->stopped = true;
    target->reason = annal__zalloc(sizeof *target->reason);
    if (target->reason != NULL)
        *target->reason = reason;
    if (redo->stopped++ == 0)
        redo->first = reason;
}

static struct target *find_target(const struct redo *redo, annal_slice session)
{
    struct target *target = redo->buckets[bucket_of(session)];
    while (target != NULL && !annal__slice_is(session, target->session))
        target = target->next;
    return target;
}

/* Sync all open journals, through the descriptors that wrote them. */
static void sync_targets(struct redo *redo)
{
    for (size_t i = 0; i < TARGET_BUCKETS; i++) {
        for (struct target *target = redo->buckets[i]; target != NULL; target = target->next) {
            annal_error failure;
            atomic_fetch_add(&redo->held->header->redo_moved, 1);
            if (target->fd < 0 || target->stopped ||
                annal__metrics_fdatasync(redo->sessions->metrics, target->fd) == 0)
                continue;
            annal__fail_errno(&failure, "cannot sync the journal of session '%s'", target->session);
            stop_target(redo, target, failure.message, 0);
        }
    }
}

/* Sync and close all journals if half of the descriptors are in use: the dead process may have had
 * more sessions than this process may open in addition to its own. */
static void make_room(struct redo *redo)
{
    if (redo->open < redo->sessions->descriptors_max / 2)
        return;
    sync_targets(redo);
    for (size_t i = 0; i < TARGET_BUCKETS; i++) {
        for (struct target *target = redo->buckets[i]; target != NULL; target = target->next)
            close_target(redo, target);
    }
}

/* Find the journal of a target: an existing journal in any format, or else the path of a journal in
 * the target's format. */
static annal_status find_journal(const struct redo *redo, struct target *target, struct buf *path,
                                 annal_error *err)
{
    const struct io *io = redo->sessions->context->io;
    const struct codec *found = NULL;
    struct stat file = {0};
    annal_slice session = annal_slice_of(target->session);
    annal_status status =
        annal__store_journal_find(redo->sessions->context, session, path, &found, err);
    if (status < 0)
        return status;
    if (found != NULL && io->stat(io->arg, path->ptr, &file) < 0 && errno != ENOENT)
        return annal__fail_errno(err, "cannot examine %s", path->ptr);
    if (found != NULL && file.st_size == 0)
        found = NULL; /* an empty file does not determine the format of the journal */
    if (found != NULL)
        target->codec = found;
    return annal__context_journal_path(redo->sessions->context, session, target->codec, path, err);
}

/* Open the journal of a target. fd stays -1 if the journal does not exist; if it cannot be opened
 * for another reason, the target is stopped. */
static annal_status open_journal(struct redo *redo, struct target *target, int flags,
                                 annal_error *err)
{
    SCOPED_BUF path = {0};
    const struct io *io = redo->sessions->context->io;
    annal_error failure = {0};
    make_room(redo);
    annal_status status = find_journal(redo, target, &path, &failure);
    if (status == ANNAL_OK) {
        target->fd = io->open(io->arg, path.ptr, O_RDWR | flags, 0660);
        redo->open += target->fd >= 0;
        if (target->fd < 0 && errno != ENOENT)
            status = annal__fail_errno(&failure, "cannot open %s", path.ptr);
    }
    if (annal__error_is_io(status)) { /* one bad journal does not stop the recovery of the others */
        stop_target(redo, target, failure.message, 0);
        status = ANNAL_OK;
    } else if (status < 0 && err != NULL) {
        *err = failure;
    }
    return status;
}

/* Return the target of a session, with its journal open if possible. format is the journal's format
 * if the journal is missing or empty. */
static annal_status open_target(struct redo *redo, annal_slice session, annal_format format,
                                struct target **out_target, annal_error *err)
{
    struct target *target = find_target(redo, session);
    if (target == NULL) {
        target = annal__zalloc(sizeof *target);
        if (target == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "recover a commit log: out of memory");
        memcpy(target->session, session.ptr, session.len);
        target->fd = -1;
        target->next = redo->buckets[bucket_of(session)];
        redo->buckets[bucket_of(session)] = target;
    }
    *out_target = target;
    if (target->fd >= 0 || target->stopped)
        return ANNAL_OK;
    target->codec = annal__codec_of(format);
    return open_journal(redo, target, 0, err);
}

/* ---- Records ---- */

/* Whether the header of a journal has the file id of a record. */
enum owner { OWNER_SAME, OWNER_OTHER, OWNER_NONE /* the journal has no valid header */ };

static annal_status compare_file(const struct redo *redo, const struct target *target,
                                 const struct record *record, enum owner *out_owner,
                                 annal_error *err)
{
    char bytes[FRAME_ENVELOPE_BYTES];
    const struct io *io = redo->sessions->context->io;
    ssize_t got = annal__io_read_full(io, target->fd, bytes, sizeof bytes, 0);
    if (got < 0)
        return annal__fail_errno(err, "cannot read the journal of session '%s'", target->session);
    struct frame_header header;
    uint64_t h;
    *out_owner = OWNER_NONE;
    if (annal__codec_first(target->codec, (annal_slice){bytes, (size_t)got}, &header, &h))
        *out_owner =
            memcmp(header.file, record->file, sizeof header.file) == 0 ? OWNER_SAME : OWNER_OTHER;
    return ANNAL_OK;
}

static annal_status is_gone(const struct redo *redo, const struct record *record, bool *out_gone,
                            annal_error *err)
{
    return annal__replace_is_gone(redo->sessions->context, record->session,
                                  annal__codec_of(record->format), record->file, out_gone, err);
}

/*
 * Return why a journal may not be created, or NULL. A living owner knows whether the journal
 * existed (rule 9). If it existed and is missing now, it is not created again; if it did not exist,
 * only a piece of the same header is overwritten.
 */
static const char *refuse_create(const struct redo *redo, const struct target *target,
                                 annal_slice bytes)
{
    char there[FRAME_ENVELOPE_BYTES];
    if (!redo->own)
        return NULL;
    struct session *session =
        annal__session_get(redo->sessions, annal_slice_of(target->session), NULL);
    if (session == NULL)
        return "out of memory";
    pthread_mutex_lock(&session->lock);
    bool existed = session->exists;
    pthread_mutex_unlock(&session->lock);
    if (existed)
        return target->fd < 0 ? "its journal is missing" : NULL;
    if (target->fd < 0)
        return NULL;
    ssize_t got =
        annal__io_read_full(redo->sessions->context->io, target->fd, there, sizeof there, 0);
    size_t len = got < 0 ? 0 : (size_t)got;
    if (got < 0 || memcmp(there, bytes.ptr, len < bytes.len ? len : bytes.len) != 0)
        return "another program created a journal there";
    return NULL;
}

static annal_status redo_create(struct redo *redo, struct target *target,
                                const struct record *record, annal_slice bytes, annal_error *err)
{
    const struct io *io = redo->sessions->context->io;
    const struct codec *codec = annal__codec_of(record->format);
    annal_status status = ANNAL_OK;
    struct stat file;
    const char *why = refuse_create(redo, target, bytes);
    if (why != NULL) {
        stop_target(redo, target, why, 0);
        return ANNAL_OK;
    }
    /* An empty file in another format may be left from an older crash: it is closed, and replaced
     * by the record's journal. */
    if (target->fd >= 0 && target->codec != codec && io->fstat(io->arg, target->fd, &file) == 0 &&
        file.st_size == 0)
        close_target(redo, target);
    if (target->fd < 0) {
        status = is_gone(redo, record, &target->skipped, err);
        if (status < 0 || target->skipped)
            return status;
        target->codec = codec;
        status = open_journal(redo, target, O_CREAT, err);
        if (status < 0 || target->stopped)
            return status;
        atomic_store(&redo->sessions->events->dirty, true);
    }
    target->loose = false; /* the mark of an earlier record belonged to another journal */
    /* Write the header, unless the file has a valid header, or the record's journal was deleted:
     * then the file is the beginning of another journal. */
    enum owner owner;
    bool gone = false;
    status = compare_file(redo, target, record, &owner, err);
    if (status == ANNAL_OK && owner == OWNER_NONE)
        status = is_gone(redo, record, &gone, err);
    if (status == ANNAL_OK && owner == OWNER_NONE && !gone &&
        annal__io_write_all(io, target->fd, bytes.ptr, bytes.len, 0) < 0)
        status =
            annal__fail_errno(err, "cannot write the journal of session '%s'", target->session);
    return status;
}

enum place { PLACE_FITS, PLACE_GAP, PLACE_CONFLICT };

/* Find out whether a record fits at its offset: whether the journal ends there with the hash `h
 * before`, and contains no other event after that. */
static annal_status look_at_place(const struct redo *redo, const struct target *target,
                                  const struct record *record, annal_slice bytes,
                                  enum place *out_place, annal_error *err)
{
    const struct io *io = redo->sessions->context->io;
    const struct codec *codec = target->codec;
    char end[FRAME_TRAILER_BYTES_MAX];
    annal_slice before = {end, codec->trailer_bytes};
    SCOPED_BUF there = {.limit = FRAME_BYTES_MAX};
    uint64_t h = 0;
    annal_status status = ANNAL_OK;
    ssize_t got = 0;
    *out_place = PLACE_GAP;
    if (record->offset >= before.len)
        got = annal__io_read_full(io, target->fd, end, before.len, record->offset - before.len);
    if (got < 0)
        return annal__fail_errno(err, "cannot read the journal of session '%s'", target->session);
    if (got < (ssize_t)before.len || !codec->trailer(before, &h) || h != record->h_before)
        return status;
    *out_place = PLACE_FITS;
    /* a record without bytes states only up to where the journal is durable */
    if (bytes.len == 0)
        return status;

    size_t first = codec->measure(bytes, 0, true);
    if (annal__buf_append_zeros(&there, first) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "recover a commit log: out of memory");
    got = annal__io_read_full(io, target->fd, there.ptr, first, record->offset);
    if (got < 0)
        return annal__fail_errno(err, "cannot read the journal of session '%s'", target->session);
    /* Another valid event at this offset means that the journal has another history. */
    annal_slice other = {there.ptr, (size_t)got};
    if (got > 0 && memcmp(there.ptr, bytes.ptr, (size_t)got) != 0) {
        other.len = codec->measure(other, 0, true);
        if (annal__codec_proves(codec, other, record->offset, record->h_before, &h))
            *out_place = PLACE_CONFLICT;
    }
    return status;
}

/* Find out whether the record may be written: it is for this file, and fits at its offset. If not,
 * the target is stopped, or skipped if its journal was deleted or replaced. */
static annal_status check_record(struct redo *redo, struct target *target,
                                 const struct record *record, annal_slice bytes, bool *out_fits,
                                 annal_error *err)
{
    enum owner owner;
    enum place place = PLACE_GAP;
    bool gone = false;
    annal_status status = ANNAL_OK;
    *out_fits = false;
    if (target->fd < 0) {
        status = is_gone(redo, record, &target->skipped, err);
        if (status == ANNAL_OK && !target->skipped)
            stop_target(redo, target, "its journal is missing", record->offset);
        return status;
    }
    status = compare_file(redo, target, record, &owner, err);
    if (status == ANNAL_OK && owner == OWNER_SAME)
        status = look_at_place(redo, target, record, bytes, &place, err);
    if (status == ANNAL_OK && owner == OWNER_NONE)
        status = is_gone(redo, record, &gone, err);
    if (status < 0)
        return status;
    /* The session has another journal now, or the beginning of another journal: the record is not
     * needed. */
    target->skipped = owner == OWNER_OTHER || gone;
    if (target->skipped)
        return ANNAL_OK;
    if (owner == OWNER_NONE)
        stop_target(redo, target, "its header is damaged", 0);
    else if (place == PLACE_GAP)
        stop_target(redo, target, "the line before has changed", record->offset);
    else if (place == PLACE_CONFLICT)
        stop_target(redo, target, "another event is in its place", record->offset);
    else
        *out_fits = true;
    return ANNAL_OK;
}

static annal_status redo_bytes(struct redo *redo, struct target *target,
                               const struct record *record, annal_slice bytes, annal_error *err)
{
    const struct io *io = redo->sessions->context->io;
    bool fits;
    annal_status status = check_record(redo, target, record, bytes, &fits, err);
    if (status < 0 || !fits)
        return status;
    target->loose = record->type == RECORD_LOOSE;
    target->loose_offset = record->offset;
    target->loose_seq = record->first_seq;
    target->loose_h = record->h_before;
    /* write the bytes even if the journal seems to contain them (rule 5 of recover.h) */
    if (annal__io_write_all(io, target->fd, bytes.ptr, bytes.len, record->offset) < 0)
        return annal__fail_errno(err, "cannot write the journal of session '%s'", target->session);
    return ANNAL_OK;
}

/* Return whether a session's records must be written to its journal. They need not if the owner
 * released the session: then its journal is complete and synced. */
static bool is_needed(const struct redo *redo, annal_slice session)
{
    return redo->late_only ? annal__failure_is_late(redo->sessions, session)
                           : annal__held_find(redo->held, session) >= 0;
}

static annal_status redo_group(struct redo *redo, const struct log_group *group, struct buf *bytes,
                               annal_error *err)
{
    annal_status status = annal__log_read_group(redo->log, group, bytes, err);
    if (status < 0)
        return status;
    annal_slice toc = {bytes->ptr, (size_t)group->toc_bytes};
    annal_slice payload = {bytes->ptr + group->toc_bytes, (size_t)group->payload_bytes};
    struct record record;
    for (uint32_t i = 0; i < group->records && status == ANNAL_OK; i++) {
        if (!annal__log_take_record(&toc, &record) || record.length > payload.len)
            return annal__fail(err, ANNAL_ERR_CORRUPT,
                               "group %" PRIu64 " of commit log %s is not well formed",
                               group->group, redo->log->path);
        annal_slice data = {payload.ptr, (size_t)record.length};
        payload.ptr += record.length;
        payload.len -= (size_t)record.length;
        if (!is_needed(redo, record.session))
            continue;
        struct target *target = NULL;
        status = open_target(redo, record.session, record.format, &target, err);
        if (status < 0 || target->stopped)
            continue;
        target->redone = group->group;
        target->skipped = false;
        annal_error failure;
        status = record.type == RECORD_CREATE ? redo_create(redo, target, &record, data, &failure)
                                              : redo_bytes(redo, target, &record, data, &failure);
        /* A bad journal, or tombstone, does not stop the recovery of the others. */
        if (annal__error_is_io(status) || status == ANNAL_ERR_CORRUPT) {
            stop_target(redo, target, failure.message, record.offset);
            status = ANNAL_OK;
        } else if (status < 0 && err != NULL) {
            *err = failure;
        }
    }
    annal__metrics_add(redo->sessions->metrics, METRIC_RECOVERED_GROUPS, 1);
    return status;
}

/* ---- All groups of a log ---- */

typedef annal_status (*group_fn)(struct redo *redo, const struct log_group *group,
                                 struct buf *bytes, annal_error *err);

/* The groups of a log in order, without those that a void file says to ignore. */
struct walk {
    struct log_group *groups;
    size_t count;
    uint64_t released;
    bool is_void; /* whether the log has a void file, which lists groups to ignore (rule 8) */
};

static annal_status each_group(struct redo *redo, const struct walk *walk, group_fn fn,
                               annal_error *err)
{
    SCOPED_BUF bytes = {0};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < walk->count && status == ANNAL_OK; i++) {
        atomic_fetch_add(&redo->held->header->redo_moved, 1);
        if (walk->groups[i].epoch > walk->released)
            status = fn(redo, &walk->groups[i], &bytes, err);
    }
    return status;
}

static annal_status hold(struct redo *redo, annal_slice session, annal_error *err)
{
    uint32_t index;
    return annal__held_find(redo->held, session) >= 0
               ? ANNAL_OK
               : annal__held_add(redo->held, session, &index, err);
}

static annal_status hold_named(void *arg, annal_slice session, annal_error *err)
{
    return hold(arg, session, err);
}

static annal_status hold_sessions(struct redo *redo, const struct log_group *group,
                                  struct buf *bytes, annal_error *err)
{
    annal_status status = annal__log_read_group(redo->log, group, bytes, err);
    if (status < 0)
        return status;
    annal_slice toc = {bytes->ptr, (size_t)group->toc_bytes};
    struct record record;
    while (status == ANNAL_OK && annal__log_take_record(&toc, &record))
        status = hold(redo, record.session, err);
    return status;
}

/* After a reboot, which invalidates the held list, fill it with every session that the log names,
 * before the first of them is recovered. */
static annal_status hold_all(struct redo *redo, const struct stat *log, const struct walk *walk,
                             annal_error *err)
{
    annal__held_clear(redo->held);
    atomic_store(&redo->held->header->alone, 1);
    /* another process may have asked to overwrite the log in the list that is cleared here: ask
     * again */
    atomic_fetch_add(&redo->held->header->wipe_wanted, 1);
    uint64_t lost;
    annal_status status = each_group(redo, walk, hold_sessions, err);
    if (status == ANNAL_OK && annal__log_lost(redo->log, walk->groups, walk->count, &lost))
        status = annal__log_lost_names(redo->log, hold_named, redo, err);
    if (status == ANNAL_OK)
        annal__held_bind(redo->held, redo->sessions->context->boot, log);
    return status;
}

static annal_status stop_unless_proven(struct redo *redo, annal_slice session, uint64_t lost,
                                       annal_error *err)
{
    struct target *target;
    struct stat file = {0};
    char why[100];
    annal_status status = open_target(redo, session, ANNAL_FORMAT_JSON, &target, err);
    if (status < 0 || target->stopped || target->skipped || target->redone > lost)
        return status;
    if (target->fd >= 0 &&
        redo->sessions->context->io->fstat(redo->sessions->context->io->arg, target->fd, &file) < 0)
        return annal__fail_errno(err, "cannot examine the journal of session '%s'",
                                 target->session);
    snprintf(why, sizeof why, "group %" PRIu64 " is damaged; it may have contained the next events",
             lost);
    stop_target(redo, target, why, (uint64_t)file.st_size);
    return ANNAL_OK;
}

/* Stop every session that may have lost events, because a group is missing before a later group
 * (rule 6). */
static annal_status stop_unproven(struct redo *redo, const struct walk *walk, annal_error *err)
{
    uint64_t lost;
    annal_status status = ANNAL_OK;
    if (!annal__log_lost(redo->log, walk->groups, walk->count, &lost))
        return ANNAL_OK;
    annal__context_say(redo->sessions->context, ANNAL_LOG_WARNING,
                       "group %" PRIu64
                       " of commit log %s is damaged: acknowledged events may be lost",
                       lost, redo->log->path);
    for (uint32_t i = 0; i < annal__held_entries(redo->held) && status == ANNAL_OK; i++) {
        const struct held_entry *entry = annal__held_entry(redo->held, i);
        if (atomic_load(&entry->hash) != 0)
            status = stop_unless_proven(redo, annal__held_id(entry), lost, err);
    }
    return status;
}

/* Open the journals with bytes of level os that were not reported as durable, so that they are
 * synced, too. */
static annal_status open_loose(struct redo *redo, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (uint32_t i = 0; i < annal__held_entries(redo->held) && status == ANNAL_OK; i++) {
        struct held_entry *entry = annal__held_entry(redo->held, i);
        struct target *target;
        if (atomic_load(&entry->hash) != 0 && atomic_load(&entry->loose) != 0)
            status = open_target(redo, annal__held_id(entry), ANNAL_FORMAT_JSON, &target, err);
    }
    return status;
}

/* Find the end of the valid events that follow a mark of level os. */
static annal_status find_loose_end(const struct redo *redo, const struct target *target,
                                   uint64_t *out_end, annal_error *err)
{
    const struct io *io = redo->sessions->context->io;
    SCOPED_BUF path = {0};
    struct scan scan = {.fd = -1};
    annal_event event;
    annal_status status = annal__context_journal_path(
        redo->sessions->context, annal_slice_of(target->session), target->codec, &path, err);
    if (status < 0)
        goto done;
    int fd = io->open(io->arg, path.ptr, O_RDONLY, 0);
    if (fd < 0) {
        status = annal__fail_errno(err, "cannot open %s", path.ptr);
        goto done;
    }
    annal__scan_init(&scan, io, fd, target->codec);
    annal__scan_set(&scan, target->loose_seq, target->loose_offset, target->loose_h);
    *out_end = target->loose_offset;
    while ((status = annal__scan_next(&scan, &event, err)) == ANNAL_OK)
        *out_end = event.offset + event.length;

done:
    annal__scan_done(&scan);
    return status < 0 ? status : ANNAL_OK;
}

/* Cut the journal after the last valid event that follows a mark of level os (rule 7). */
static annal_status cut_loose_tail(struct redo *redo, struct target *target, annal_error *err)
{
    struct stat file;
    uint64_t end = 0;
    annal_status status =
        /* open the journal again if make_room() has closed it */
        target->fd >= 0 ? ANNAL_OK : open_journal(redo, target, 0, err);
    if (status < 0 || target->stopped)
        return status;
    if (target->fd < 0) {
        stop_target(redo, target, "its journal is missing", target->loose_offset);
        return ANNAL_OK;
    }
    annal_error failure;
    status = find_loose_end(redo, target, &end, &failure);
    if (status == ANNAL_OK &&
        redo->sessions->context->io->fstat(redo->sessions->context->io->arg, target->fd, &file) < 0)
        status = annal__fail_errno(&failure, "cannot examine the journal of session '%s'",
                                   target->session);
    if (status == ANNAL_OK && end < (uint64_t)file.st_size)
        status = annal__torn_cut(redo->sessions, annal_slice_of(target->session), target->fd, end,
                                 (uint64_t)file.st_size, &failure);
    if (annal__error_is_io(status)) {
        stop_target(redo, target, failure.message, target->loose_offset);
        return ANNAL_OK;
    }
    return annal__error_pass(err, status, &failure);
}

static annal_status cut_loose_tails(struct redo *redo, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < TARGET_BUCKETS && status == ANNAL_OK; i++) {
        for (struct target *target = redo->buckets[i]; target != NULL && status == ANNAL_OK;
             target = target->next) {
            if (target->loose && !target->stopped && !target->skipped)
                status = cut_loose_tail(redo, target, err);
        }
    }
    return status;
}

/* Record that nothing in the log is needed: in the log, unless it has a void file, and then in the
 * held list. */
static annal_status mark_empty(struct redo *redo, const struct walk *walk, annal_error *err)
{
    static const struct buf nothing;
    struct log *log = redo->log;
    struct held_header *header = redo->held->header;
    if (walk->count > 0 && !walk->is_void) {
        const struct log_group *last = &walk->groups[walk->count - 1];
        log->epoch = last->epoch;
        log->group = last->group;
        log->current = last->region;
        annal__log_switch(log);
        annal_status status = annal__log_write_group(log, 0, &nothing, &nothing, last->epoch, err);
        if (status < 0)
            return status;
    }
    annal__held_remove_all(redo->held);
    if (walk->is_void)
        /* do not mark a log with a void file as empty: no process may continue to write it */
        return ANNAL_OK;
    header->end_region = log->current;
    header->end_epoch = log->epoch;
    header->end_group = log->group;
    atomic_store(&header->alone, 0);
    atomic_store(&header->state, HELD_EMPTY);
    return ANNAL_OK;
}

/* Remove all sessions from the held list whose recovery was not stopped. */
static void keep_stopped(struct redo *redo)
{
    for (uint32_t i = 0; i < annal__held_entries(redo->held); i++) {
        struct held_entry *entry = annal__held_entry(redo->held, i);
        if (atomic_load(&entry->hash) == 0)
            continue;
        const struct target *target = find_target(redo, annal__held_id(entry));
        if (target == NULL || !target->stopped)
            annal__held_remove(redo->held, i);
    }
}

/* Write the needed records to their journals, and sync all these journals and events/. */
static annal_status redo_all(struct redo *redo, const struct walk *walk, annal_error *err)
{
    struct session_table *sessions = redo->sessions;
    annal_status status = each_group(redo, walk, redo_group, err);
    if (status == ANNAL_OK && !redo->own)
        status = stop_unproven(redo, walk, err);
    if (status == ANNAL_OK && !redo->own)
        status = cut_loose_tails(redo, err);
    if (status == ANNAL_OK && !redo->own)
        status = open_loose(redo, err);
    if (status < 0)
        return status;
    sync_targets(redo);
    atomic_store(&sessions->events->dirty, true); /* a killed owner may have created journals */
    if (annal__events_dir_sync(sessions->events) < 0)
        return annal__fail_errno(err, "cannot sync directory %s/events", sessions->context->path);
    return ANNAL_OK;
}

/* Find the groups of a log. The log is synced and its cache dropped first, so that only what is on
 * the disk is read (rule 2). */
static annal_status look_at_log(struct redo *redo, struct walk *out_walk, annal_error *err)
{
    struct session_table *sessions = redo->sessions;
    struct stat file;
    if (sessions->context->io->fstat(sessions->context->io->arg, redo->log->fd, &file) < 0)
        return annal__fail_errno(err, "cannot examine %s", redo->log->path);
    bool held = annal__held_is_for(redo->held, sessions->context->boot, &file);
    /* mark the held list, so that other processes see at once that this process only recovers the
     * log */
    if (held)
        atomic_store(&redo->held->header->state, HELD_REDONE);
    (void)annal__metrics_fdatasync(sessions->metrics, redo->log->fd);
    (void)sessions->context->io->drop_cache(sessions->context->io->arg, redo->log->fd);
    annal__metrics_add(sessions->metrics, METRIC_RECOVERIES, 1);
    redo->log->steps = &redo->held->header->redo_moved;
    annal_status status = annal__log_void_find_groups(redo->log, &out_walk->groups,
                                                      &out_walk->count, &out_walk->is_void, err);
    redo->log->steps = NULL;
    out_walk->released = annal__log_released(out_walk->groups, out_walk->count);
    if (status == ANNAL_OK && !held)
        status = hold_all(redo, &file, out_walk, err);
    return status;
}

annal_status annal__recover(struct session_table *sessions, struct log *log, struct held *held,
                            bool *out_void, annal_error *err)
{
    struct redo *redo = annal__zalloc(sizeof *redo);
    struct walk walk = {0};
    if (redo == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "recover a commit log: out of memory");
    redo->sessions = sessions;
    redo->log = log;
    redo->held = held;
    annal_status status = look_at_log(redo, &walk, err);
    if (status < 0)
        goto done;
    atomic_store(&held->header->state, HELD_REDONE);
    status = redo_all(redo, &walk, err);
    if (status == ANNAL_OK && redo->stopped > 0) {
        keep_stopped(redo);
        status = ANNAL_ERR_CORRUPT;
        if (err != NULL)
            *err = redo->first;
    }
    if (status == ANNAL_OK)
        status = mark_empty(redo, &walk, err);
    *out_void = walk.is_void;

done:
    annal__wakeup_announce_all(sessions->wakeup);
    free_targets(redo);
    annal__free(walk.groups);
    annal__free(redo);
    return status;
}

/* ---- Our own log ---- */

static void report(const struct redo *redo, redo_done_fn done, void *arg)
{
    static const annal_error replaced = {.status = ANNAL_ERR_UNKNOWN,
                                         .message = "its journal was replaced by another file"};
    for (size_t i = 0; i < TARGET_BUCKETS; i++) {
        for (struct target *target = redo->buckets[i]; target != NULL; target = target->next) {
            struct session *session =
                annal__session_get(redo->sessions, annal_slice_of(target->session), NULL);
            if (session != NULL)
                done(arg, session, target->skipped ? &replaced : target->reason);
        }
    }
}

/* Check that all needed groups were read back. This process knows what it wrote, so a missing group
 * is damage, even if it is the last. */
static annal_status check_own(const struct log *log, const struct walk *walk, annal_error *err)
{
    uint64_t lost;
    if (log->epoch <= walk->released || (log->end == 0 && log->epoch - 1 <= walk->released))
        return ANNAL_OK;
    if (walk->count > 0 && walk->groups[walk->count - 1].group == log->group &&
        !annal__log_lost(log, walk->groups, walk->count, &lost))
        return ANNAL_OK;
    return annal__fail(err, ANNAL_ERR_CORRUPT,
                       "commit log %s is corrupt: events that were not yet copied to their "
                       "journals are lost; check the disk",
                       log->path);
}

annal_status annal__recover_redo_own(struct session_table *sessions, bool all, uint64_t released,
                                     redo_done_fn done, void *arg, annal_error *err)
{
    struct redo *redo = annal__zalloc(sizeof *redo);
    struct walk walk = {0};
    if (redo == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "write journals again: out of memory");
    redo->sessions = sessions;
    redo->log = &sessions->own_log->log;
    redo->held = &sessions->own_log->held;
    redo->own = true;
    redo->late_only = !all;
    annal_status status = annal__log_find_groups(redo->log, &walk.groups, &walk.count, err);
    /* Omit the last groups in the log if their write failed: this process did not count them. */
    while (walk.count > 0 && walk.groups[walk.count - 1].group > redo->log->group)
        walk.count--;
    walk.released = released;
    if (status == ANNAL_OK)
        status = check_own(redo->log, &walk, err);
    if (status == ANNAL_OK)
        status = redo_all(redo, &walk, err);
    if (status == ANNAL_OK)
        report(redo, done, arg);
    annal__wakeup_announce_all(sessions->wakeup);
    free_targets(redo);
    annal__free(walk.groups);
    annal__free(redo);
    return status;
}
