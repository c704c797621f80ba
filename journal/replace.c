/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/replace.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "journal/checkpoint.h"
#include "journal/keeper.h"
#include "journal/lease.h"
#include "journal/scan.h"
#include "journal/slot.h"
#include "journal/store_journal.h"
#include "journal/sys/delete.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"
#include "journal/torn_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GONE         ".gone"
#define FILE_ID_TEXT (2 * FRAME_FILE_ID_BYTES)
/* first pause between two attempts to own the session, in microseconds, doubled each time up to
 * RETRY_US_MOST */
#define RETRY_US      2000
#define RETRY_US_MOST 20000

/* ---- Tombstones ---- */

static annal_status tombstone_path(const annal_store *store, const char *file, struct buf *out,
                                   annal_error *err)
{
    char name[100];
    snprintf(name, sizeof name, GONE "/%s", file);
    return annal__store_path(store, out, "events", name, err);
}

/* Read the header in a tombstone; *out_found is false if the tombstone does not exist. */
static annal_status read_tombstone(const annal_store *store, const char *path, struct buf *out,
                                   bool *out_found, annal_error *err)
{
    const struct io *io = store->io;
    annal_status status = annal__buf_reserve(out, FRAME_ENVELOPE_BYTES);
    if (status < 0)
        return annal__fail(err, status, "read %s: out of memory", path);
    int fd = io->open(io->arg, path, O_RDONLY, 0);
    *out_found = fd >= 0;
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? ANNAL_OK
                                                   : annal__fail_errno(err, "cannot open %s", path);
    ssize_t got = annal__io_read_full(io, fd, out->ptr, FRAME_ENVELOPE_BYTES, 0);
    if (got < 0)
        status = annal__fail_errno(err, "cannot read %s", path);
    else
        out->len = (size_t)got;
    io->close(io->arg, fd);
    return status;
}

/* Find out whether a tombstone is for this journal (rule 2). */
static annal_status match_tombstone(annal_slice tombstone, const char *path, annal_slice session,
                                    const struct codec *codec,
                                    const uint8_t file[FRAME_FILE_ID_BYTES], bool *out_same,
                                    annal_error *err)
{
    struct frame_header header;
    uint64_t h;
    /* an older version wrote empty tombstones, which are for any journal with this file id */
    *out_same = tombstone.len == 0;
    if (tombstone.len == 0)
        return ANNAL_OK;
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        if (!annal__codec_first(annal__codecs[i], tombstone, &header, &h))
            continue;
        *out_same = annal__codecs[i] == codec && annal__slice_same(header.session, session) &&
                    memcmp(header.file, file, sizeof header.file) == 0;
        return ANNAL_OK;
    }
    return annal__fail(err, ANNAL_ERR_CORRUPT,
                       "the tombstone %s is damaged, so it is unknown which journal was deleted: "
                       "to restore the events of session '%.*s', remove this tombstone",
                       path, ANNAL_FMT(session));
}

annal_status annal__replace_is_gone(const annal_store *store, annal_slice session,
                                    const struct codec *codec,
                                    const uint8_t file[FRAME_FILE_ID_BYTES], bool *out_gone,
                                    annal_error *err)
{
    struct buf path = {0}, tombstone = {.limit = FRAME_ENVELOPE_BYTES};
    char text[FILE_ID_TEXT + 1];
    bool found = false;
    annal__codec_file_id_text(file, text);
    annal_status status = tombstone_path(store, text, &path, err);
    if (status == ANNAL_OK)
        status = read_tombstone(store, path.ptr, &tombstone, &found, err);
    if (status == ANNAL_OK && !found)
        *out_gone = false;
    else if (status == ANNAL_OK)
        status = match_tombstone(annal__buf_slice(&tombstone), path.ptr, session, codec, file,
                                 out_gone, err);
    annal__buf_done(&tombstone);
    annal__buf_done(&path);
    return status;
}

/* Write a durable tombstone with this header (rule 2). */
static annal_status put_tombstone(annal_store *store, const char *file, annal_slice header,
                                  annal_error *err)
{
    struct buf path = {0};
    annal_status status = annal__store_path(store, &path, "events", GONE, err);
    if (status == ANNAL_OK)
        status = annal__io_make_dir(store->io, path.ptr, err);
    /* Another process may have created events/.gone just now, and died before it synced events/. */
    atomic_store(&store->events_dirty, true);
    if (status == ANNAL_OK)
        status = annal__checkpoint_events(store, err);
    if (status == ANNAL_OK)
        status = tombstone_path(store, file, &path, err);
    if (status == ANNAL_OK)
        status = annal__io_publish_file(store->io, path.ptr, header.ptr, header.len, err);
    atomic_store(&store->tombstones, true);
    annal__buf_done(&path);
    return status;
}

struct tombstone_scope {
    annal_store *store;
    annal_slice session;
};

static annal_status put_record_tombstone(void *arg, const struct record *record, annal_error *err)
{
    const struct tombstone_scope *scope = arg;
    struct buf frame = {.limit = FRAME_ENVELOPE_BYTES};
    struct frame_header header = {.session = record->session};
    char text[FILE_ID_TEXT + 1];
    uint64_t h;
    if (!annal__slice_same(record->session, scope->session))
        return ANNAL_OK;
    memcpy(header.file, record->file, sizeof header.file);
    annal__codec_file_id_text(record->file, text);
    annal_status status = annal__codec_of(record->format)->encode_header(&frame, &header, &h);
    if (status < 0)
        status = annal__fail(err, status, "make a tombstone: out of memory");
    else
        status = put_tombstone(scope->store, text, annal__buf_slice(&frame), err);
    annal__buf_done(&frame);
    return status;
}

static annal_status find_record(void *arg, const struct record *record, annal_error *err)
{
    struct change *change = arg;
    (void)err;
    if (annal__slice_same(record->session, annal__session_id(change->session)) &&
        memcmp(record->file, change->header.file, sizeof record->file) == 0)
        change->is_logged = true;
    return ANNAL_OK;
}

/* ---- Leftovers of crashes, and old tombstones ---- */

struct names {
    struct name {
        char text[80];
        bool needed;
    } * list;
    size_t count;
    const char *prefix; /* prefix of the names of the files to list */
};

static int collect(void *arg, const char *text)
{
    struct names *names = arg;
    if (strncmp(text, names->prefix, strlen(names->prefix)) != 0 ||
        strlen(text) >= sizeof names->list->text)
        return 0;
    struct name *name = annal__array_add(&names->list, &names->count, sizeof *name);
    if (name == NULL)
        return 1; /* out of memory: the next sweep lists the rest */
    snprintf(name->text, sizeof name->text, "%s", text);
    return 0;
}

static void list_names(annal_store *store, const char *part, const char *prefix,
                       struct names *out_names)
{
    struct buf path = {0};
    *out_names = (struct names){.prefix = prefix};
    if (annal__store_path(store, &path, "events", part, NULL) == ANNAL_OK)
        (void)store->io->list(store->io->arg, path.ptr, collect, out_names);
    annal__buf_done(&path);
}

static void remove_name(annal_store *store, const char *part, const char *text)
{
    struct buf path = {0};
    char name[96];
    snprintf(name, sizeof name, "%s%s%s", part, part[0] == '\0' ? "" : "/", text);
    if (annal__store_path(store, &path, "events", name, NULL) == ANNAL_OK)
        (void)store->io->unlink(store->io->arg, path.ptr);
    annal__buf_done(&path);
}

static annal_status mark_needed(void *arg, const struct record *record, annal_error *err)
{
    (void)err;
    struct names *names = arg;
    char text[FILE_ID_TEXT + 1];
    annal__codec_file_id_text(record->file, text);
    for (size_t i = 0; i < names->count; i++)
        names->list[i].needed = names->list[i].needed || strcmp(names->list[i].text, text) == 0;
    return ANNAL_OK;
}

/* Read the header of a journal; out contains its frame, or is empty if the header is damaged. */
static annal_status read_header(annal_store *store, const char *path, const struct codec *codec,
                                struct buf *out, struct frame_header *out_header, annal_error *err)
{
    const struct io *io = store->io;
    uint64_t h;
    annal__buf_clear(out);
    annal_status status = annal__buf_reserve(out, FRAME_ENVELOPE_BYTES);
    if (status < 0)
        return annal__fail(err, status, "read %s: out of memory", path);
    int fd = io->open(io->arg, path, O_RDONLY, 0);
    ssize_t got = fd < 0 ? -1 : annal__io_read_full(io, fd, out->ptr, FRAME_ENVELOPE_BYTES, 0);
    if (got < 0)
        status = annal__fail_errno(err, "cannot read %s", path);
    if (fd >= 0)
        io->close(io->arg, fd);
    annal_slice bytes = {out->ptr, got > 0 ? (size_t)got : 0};
    if (annal__codec_first(codec, bytes, out_header, &h))
        out->len = codec->measure(bytes, 0, true);
    return status;
}

/* Read the header of a session's journal in this format; false if it has no valid header. */
static bool header_at(annal_store *store, annal_slice session, const struct codec *codec,
                      struct buf *path, struct buf *frame, struct frame_header *out_header)
{
    return annal__store_journal_path(store, session, codec, path, NULL) == ANNAL_OK &&
           read_header(store, path->ptr, codec, frame, out_header, NULL) == ANNAL_OK &&
           frame->len > 0;
}

static bool replaces(const struct frame_header *one, const struct frame_header *other)
{
    return one->is_replacement && memcmp(one->replaces, other->file, sizeof other->file) == 0;
}

/* Find the seq of the last event of a session's journal in this format; false if that fails. */
static bool last_seq_at(annal_store *store, annal_slice session, const struct codec *codec,
                        uint64_t *out_seq)
{
    struct buf path = {0};
    struct journal_tail tail;
    const struct io *io = store->io;
    annal_status status = annal__store_journal_path(store, session, codec, &path, NULL);
    int fd = status < 0 ? -1 : io->open(io->arg, path.ptr, O_RDONLY, 0);
    if (fd >= 0) {
        status = annal__scan_tail(io, fd, codec, &tail, NULL);
        io->close(io->arg, fd);
    }
    annal__buf_done(&path);
    if (fd < 0 || status < 0 || tail.state != TAIL_WHOLE)
        return false;
    *out_seq = tail.seq;
    return true;
}

/*
 * Remove the second of two journals of a session, which an interrupted conversion leaves (rule 5).
 * Readers have always used the first, in the order of annal__codecs, whichever of the two is the
 * new journal. The second is kept if it has events that the first has not: then a user has copied
 * the old journal back.
 */
static void settle_pair(annal_store *store, annal_slice session)
{
    struct buf path = {0}, frames[CODEC_COUNT] = {0};
    struct frame_header headers[CODEC_COUNT];
    uint64_t last[CODEC_COUNT] = {0};
    bool all = true;
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        frames[i].limit = FRAME_ENVELOPE_BYTES;
        all = all && last_seq_at(store, session, annal__codecs[i], &last[i]) &&
              last[i] <= last[0] &&
              header_at(store, session, annal__codecs[i], &path, &frames[i], &headers[i]) &&
              annal__codec_check_owner(&headers[i], session, NULL) == ANNAL_OK;
    }
    if (all && (replaces(&headers[0], &headers[1]) || replaces(&headers[1], &headers[0]))) {
        /* path is now the path of the session's second journal */
        (void)store->io->unlink(store->io->arg, path.ptr);
        atomic_store(&store->events_dirty, true);
        (void)annal__store_sync_events(store);
    }
    for (size_t i = 0; i < CODEC_COUNT; i++)
        annal__buf_done(&frames[i]);
    annal__buf_done(&path);
}

/* Remove the second of two journals of the session that a tombstone names. */
static void settle_double(annal_store *store, const char *tombstone)
{
    struct buf path = {0}, frame = {.limit = FRAME_ENVELOPE_BYTES};
    struct frame_header header = {0};
    if (tombstone_path(store, tombstone, &path, NULL) < 0)
        goto done;
    for (size_t i = 0; i < CODEC_COUNT && frame.len == 0; i++) {
        if (read_header(store, path.ptr, annal__codecs[i], &frame, &header, NULL) < 0)
            break;
    }
    if (frame.len > 0)
        settle_pair(store, header.session);

done:
    annal__buf_done(&frame);
    annal__buf_done(&path);
}

void annal__replace_sweep(annal_store *store)
{
    struct names tombstones, unfinished = {0};
    list_names(store, GONE, "", &tombstones);
    bool locked = tombstones.count > 0 &&
                  annal__filelock_try(store, &store->structure_lock, NULL) == ANNAL_OK;
    if (!locked)
        goto done;
    list_names(store, "", ".new-", &unfinished);
    for (size_t i = 0; i < unfinished.count; i++)
        remove_name(store, "", unfinished.list[i].text);
    for (size_t i = 0; i < tombstones.count; i++)
        settle_double(store, tombstones.list[i].text);
    /* If a log cannot be read, every tombstone may still be needed. */
    if (annal__slots_each_record(store, SLOTS_ALL, mark_needed, &tombstones, NULL) < 0)
        goto done;
    bool some = false;
    for (size_t i = 0; i < tombstones.count; i++) {
        if (tombstones.list[i].needed)
            some = true;
        else
            remove_name(store, GONE, tombstones.list[i].text);
    }
    atomic_store(&store->tombstones, some);

done:
    if (locked)
        annal__filelock_drop(store, &store->structure_lock);
    annal__free(tombstones.list);
    annal__free(unfinished.list);
}

/* ---- Claiming a session ---- */

/* Take ownership of the session, while the caller holds the lock locks/structure. With sound, fail
 * if the end of its journal is damaged. */
static annal_status seize(struct change *change, bool sound, annal_error *err)
{
    struct session *session = change->session;
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&session->lock);
    if (sound)
        status = annal__session_own(change->store, session, 0, err);
    if (status == ANNAL_OK)
        status = annal__session_seize(change->store, session, err);
    pthread_mutex_unlock(&session->lock);
    return status;
}

/*
 * Lock locks/structure, and take ownership of the session, so that its journal can be replaced. If
 * another process holds one of them, try again, at most as long as the store may wait. Initializes
 * *change.
 */
annal_status annal__replace_claim(struct change *change, annal_store *store, annal_slice id,
                                  bool sound, annal_error *err)
{
    *change = (struct change){.store = store, .frame = {.limit = FRAME_ENVELOPE_BYTES}};
    annal_status status = annal__store_check_writable(store, err);
    if (status == ANNAL_OK)
        status = annal_session_id_check(id, err);
    if (status == ANNAL_OK)
        status = annal__commit_check(store, err);
    if (status < 0)
        return status;
    struct session *session = annal__session_get(store, id, err);
    if (session == NULL)
        return ANNAL_ERR_NOMEM;
    change->session = session;
    change->deadline_us = annal__store_deadline(store);
    int64_t pause_us = RETRY_US;
    for (;;) {
        status = annal__filelock_take(store, &store->structure_lock, change->deadline_us, 0, err);
        if (status == ANNAL_OK) {
            status = seize(change, sound, err);
            if (status == ANNAL_OK)
                return ANNAL_OK;
            annal__filelock_drop(store, &store->structure_lock);
        }
        int64_t left_us =
            annal__store_may_wait(store, change->deadline_us - annal__store_now_us(store));
        if (status != ANNAL_ERR_BUSY || left_us <= 0) {
            change->session = NULL;
            return status;
        }
        annal__store_wait(store, pause_us < left_us ? pause_us : left_us);
        pause_us = pause_us * 2 < RETRY_US_MOST ? pause_us * 2 : RETRY_US_MOST;
    }
}

/* First take ownership of the session, then sync all journals of this process, so that its log
 * contains nothing that the change needs (rule 1). */
annal_status annal__replace_begin(struct change *change, annal_store *store, annal_slice id,
                                  bool sound, annal_error *err)
{
    annal_status status = annal__replace_claim(change, store, id, sound, err);
    return status == ANNAL_OK ? annal_checkpoint(store, err) : status;
}

void annal__replace_end(struct change *change)
{
    struct session *session = change->session;
    annal__buf_done(&change->frame);
    annal__buf_done(&change->path);
    if (session == NULL)
        return;
    pthread_mutex_lock(&session->lock);
    /* so that the tasks of the keeper examine the session again */
    session->changed = atomic_fetch_add(&change->store->changes, 1) + 1;
    annal__session_let_go(change->store, session);
    pthread_mutex_unlock(&session->lock);
    annal__filelock_drop(change->store, &change->store->structure_lock);
    annal__wakeup_announce_all(change->store);
    annal__keeper_wake(change->store);
}

/* ---- Examining the journal ---- */

struct fork_search {
    annal_store *store;
    annal_slice session;
    annal_error *err;
};

static int refuse_fork(void *arg, annal_slice other, uint64_t bytes)
{
    (void)bytes;
    const struct fork_search *search = arg;
    struct buf path = {0};
    struct buf line = {.limit = FRAME_ENVELOPE_BYTES};
    struct frame_header header = {0};
    const struct codec *codec = NULL;
    annal_status status =
        annal__store_journal_find(search->store, other, &path, &codec, search->err);
    if (status == ANNAL_OK && codec != NULL)
        status = read_header(search->store, path.ptr, codec, &line, &header, search->err);
    if (status == ANNAL_OK && line.len > 0 && annal__slice_same(header.fork, search->session))
        status = annal__fail(search->err, ANNAL_ERR_CONFLICT,
                             "session '%.*s' is needed by its fork '%.*s'; delete the fork first",
                             ANNAL_FMT(search->session), ANNAL_FMT(other));
    annal__buf_done(&line);
    annal__buf_done(&path);
    return status;
}

/* Find the session's journal and read its header. ANNAL_ERR_NOTFOUND: it does not exist. */
static annal_status look_at_journal(struct change *change, annal_error *err)
{
    annal_store *store = change->store;
    annal_slice id = annal__session_id(change->session);
    annal_status status = annal__store_journal_find(store, id, &change->path, &change->codec, err);
    if (status == ANNAL_OK && change->codec == NULL)
        status =
            annal__fail(err, ANNAL_ERR_NOTFOUND, "there is no session '%s'", change->session->id);
    if (status == ANNAL_OK)
        status = read_header(store, change->path.ptr, change->codec, &change->frame,
                             &change->header, err);
    /* If the file is a copy of another session's journal, its header does not describe this
     * session: ignore the header. */
    if (status == ANNAL_OK && change->frame.len > 0 &&
        annal__codec_check_owner(&change->header, id, NULL) < 0)
        annal__buf_clear(&change->frame);
    return status;
}

annal_status annal__replace_examine(struct change *change, annal_error *err)
{
    annal_store *store = change->store;
    annal_slice id = annal__session_id(change->session);
    struct stat file;
    annal_status status = look_at_journal(change, err);
    if (status < 0)
        return status;
    struct fork_search search = {store, id, err};
    status = annal__session_list_read(store, refuse_fork, &search, err);
    if (status < 0)
        return status;
    /* A damaged journal can be deleted, too: then less is reported about it. */
    if (annal_session_info_get(store, id, &change->info, NULL) < 0) {
        change->info = (annal_session_info){.format = change->codec->format};
        memcpy(change->info.session, id.ptr, id.len);
        if (store->io->stat(store->io->arg, change->path.ptr, &file) == 0)
            change->info.bytes = (uint64_t)file.st_size;
    }
    return ANNAL_OK;
}

annal_status annal__replace_put_tombstone(struct change *change, annal_error *err)
{
    char file[FILE_ID_TEXT + 1];
    if (change->frame.len > 0) {
        annal_error failure = {0};
        annal__codec_file_id_text(change->header.file, file);
        annal_status status =
            put_tombstone(change->store, file, annal__buf_slice(&change->frame), &failure);
        /* On a full disk no tombstone is needed if no log contains records that recovery would
         * write to the journal. */
        if (annal__error_is_no_space(&failure) &&
            annal__slots_each_record(change->store, SLOTS_ALL, find_record, change, NULL) ==
                ANNAL_OK &&
            !change->is_logged)
            return ANNAL_OK;
        if (status < 0 && err != NULL)
            *err = failure;
        return status;
    }
    /* The header is damaged, or belongs to another session: write a tombstone for every journal of
     * this session that a log names. */
    struct tombstone_scope scope = {change->store, annal__session_id(change->session)};
    return annal__slots_each_record(change->store, SLOTS_ALL, put_record_tombstone, &scope, err);
}

/* ---- Deleting ---- */

/* Write a tombstone, and remove the journal (rule 3). */
static annal_status remove_journal(struct change *change, annal_error *err)
{
    annal_store *store = change->store;
    annal_status status = annal__replace_put_tombstone(change, err);
    if (status < 0)
        return status;
    if (store->io->unlink(store->io->arg, change->path.ptr) < 0)
        return annal__fail_errno(err, "cannot delete %s", change->path.ptr);
    atomic_store(&store->events_dirty, true);
    return annal__checkpoint_events(store, err);
}

/* Delete the journal. If this process's held list does not contain the session, keep other
 * processes from taking it by locking locks/claim, and then look for the journal again. */
static annal_status delete_journal(struct change *change, annal_error *err)
{
    const struct session *session = change->session;
    if (!session->unlisted)
        return remove_journal(change, err);
    annal_status status = annal__slot_keep_off(change->store, annal__session_id(session), err);
    if (status < 0)
        return status;
    status = look_at_journal(change, err);
    if (status == ANNAL_OK)
        status = remove_journal(change, err);
    annal__slot_let_on(change->store);
    return status;
}

/* ---- Deleting everything of a session ---- */

/* Remove copies that interrupted conversions left. Only a process that has locks/structure, as this
 * process has, creates such files. */
static void remove_unfinished(annal_store *store)
{
    struct names unfinished;
    list_names(store, "", ".new-", &unfinished);
    for (size_t i = 0; i < unfinished.count; i++)
        remove_name(store, "", unfinished.list[i].text);
    annal__free(unfinished.list);
}

/* Delete every file of a session. After that, only commit logs may contain its events. */
static annal_status delete_files(struct change *change, annal_store *store, annal_slice session,
                                 annal_session_info *out_info, annal_error *err)
{
    annal_status status = annal__replace_begin(change, store, session, false, err);
    if (status == ANNAL_OK)
        status = annal__replace_examine(change, err);
    /* The journal is removed last: after a failure, the session still exists and can be deleted
     * again. */
    if (status == ANNAL_OK)
        status = annal__torn_forget(store, session, err);
    if (status == ANNAL_OK)
        status = annal__lease_forget(store, session, err);
    if (status == ANNAL_OK)
        remove_unfinished(store);
    if (status == ANNAL_OK)
        status = delete_journal(change, err);
    /* An interrupted conversion may have left a second journal. */
    while (status == ANNAL_OK && annal__store_journal_is_double(store, session, NULL)) {
        status = look_at_journal(change, err);
        if (status == ANNAL_OK)
            status = delete_journal(change, err);
    }
    if (status == ANNAL_OK && out_info != NULL)
        *out_info = change->info;
    annal__replace_end(change);
    return status;
}

annal_status annal__replace_delete_unwiped(annal_store *store, annal_slice session,
                                           annal_session_info *out_info, annal_error *err)
{
    struct change change;
    return delete_files(&change, store, session, out_info, err);
}

annal_status annal__replace_wipe_logs(annal_store *store, annal_error *err)
{
    annal_status status = annal__store_check_writable(store, err);
    if (status == ANNAL_OK)
        status = annal__slots_wipe(store, annal__store_deadline(store), err);
    return status;
}

annal_status annal__replace_delete(annal_store *store, annal_slice session,
                                   annal_session_info *out_info, annal_error *err)
{
    struct change change;
    annal_error why;
    annal_status status = delete_files(&change, store, session, out_info, err);
    /* The session is deleted, so a failure to overwrite a log is only reported to the log
     * callback. */
    if (status == ANNAL_OK && annal__slots_wipe(store, change.deadline_us, &why) < 0)
        annal__say(store, ANNAL_LOG_WARNING, "session '%.*s' is deleted: %s", ANNAL_FMT(session),
                   why.message);
    return status;
}
