/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/session.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/lock_holder.h"
#include "journal/base/thread.h"
#include "journal/checkpoint.h"
#include "journal/failure.h"
#include "journal/level_os.h"
#include "journal/lineage.h"
#include "journal/replace.h"
#include "journal/scan.h"
#include "journal/slot.h"
#include "journal/store_journal.h"
#include "journal/sys/inspect.h"
#include "journal/sys/session_trim.h"
#include "journal/torn_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* How long this process does not take a session again after releasing it to another process, in
 * microseconds, so that the other process can take it. */
#define YIELD_US 5000
/* Memory of the buffer for bytes of level os that is kept while the buffer is empty. */
#define LOOSE_KEPT_BYTES ((size_t)4 << 10)
#define PAGE_BYTES       ((uint64_t)4 << 10)

annal_slice annal__session_id(const struct session *session)
{
    return (annal_slice){session->id, session->id_bytes};
}

/* ---- The table ---- */

static const annal_error no_refusal;
static const annal_error unknown_refusal = {
    .status = ANNAL_ERR_IO, .message = "no memory for the reason; open the store again"};

static void drop_refusal(struct session *session)
{
    if (session->refusal != &no_refusal && session->refusal != &unknown_refusal)
        annal__free((void *)(uintptr_t)session->refusal);
    session->refusal = &no_refusal;
}

void annal__session_set_refusal(struct session *session, const annal_error *why)
{
    annal_error *own = annal__zalloc(sizeof *own);
    if (own != NULL)
        *own = *why;
    drop_refusal(session);
    session->refusal = own != NULL ? own : &unknown_refusal;
}

static struct session *session_new(const annal_store *store, annal_slice id)
{
    struct buf path = {0};
    struct session *session = annal__zalloc(sizeof *session);
    if (session == NULL)
        return NULL;
    /* The path is allocated with the suffix of the first codec, which is the longest. */
    if (annal__store_journal_path(store, id, annal__codecs[0], &path, NULL) == ANNAL_OK)
        session->path = annal__strndup(path.ptr, path.len);
    annal__buf_done(&path);
    memcpy(session->id, id.ptr, id.len);
    session->id_bytes = id.len;
    session->fd = -1;
    session->codec = annal__codecs[0];
    session->refusal = &no_refusal;
    session->header.limit = FRAME_ENVELOPE_BYTES;
    session->loose.limit = 2 * (ANNAL_APPEND_BYTES_MAX + SESSION_LOOSE_BYTES_MAX);
    if (session->path == NULL || pthread_mutex_init(&session->lock, NULL) != 0 ||
        annal__thread_cond_init(&session->moved) != 0) {
        annal__free(session->path);
        annal__free(session);
        return NULL;
    }
    return session;
}

/* Return the struct of a session, or NULL if no caller used it yet. sessions_lock is held. */
static struct session *find_in_bucket(const annal_store *store, size_t bucket, annal_slice id)
{
    struct session *session = store->buckets[bucket];
    while (session != NULL &&
           (session->id_bytes != id.len || memcmp(session->id, id.ptr, id.len) != 0))
        session = session->next;
    return session;
}

struct session *annal__session_get(annal_store *store, annal_slice id, annal_error *err)
{
    size_t bucket = annal__hash(id.ptr, id.len, 0) % SESSION_BUCKETS;
    pthread_mutex_lock(&store->sessions_lock);
    struct session *session = find_in_bucket(store, bucket, id);
    if (session == NULL) {
        session = session_new(store, id);
        if (session != NULL) {
            session->next = store->buckets[bucket];
            store->buckets[bucket] = session;
            session->older = store->newest;
            store->newest = session;
        } else {
            annal__fail(err, ANNAL_ERR_NOMEM, "open session '%.*s': out of memory", ANNAL_FMT(id));
        }
    }
    pthread_mutex_unlock(&store->sessions_lock);
    return session;
}

/* Structs are never removed, and new structs become the head of the list, so a walk needs the lock
 * only to read the head. */
annal_status annal__session_each(annal_store *store, session_fn fn, void *arg, annal_error *err)
{
    pthread_mutex_lock(&store->sessions_lock);
    struct session *session = store->newest;
    pthread_mutex_unlock(&store->sessions_lock);
    annal_status status = ANNAL_OK;
    for (; session != NULL && status >= 0; session = session->older)
        status = fn(arg, session, err);
    return status < 0 ? status : ANNAL_OK;
}

void annal__session_trim(annal_store *store, annal_slice id)
{
    size_t bucket = annal__hash(id.ptr, id.len, 0) % SESSION_BUCKETS;
    pthread_mutex_lock(&store->sessions_lock);
    struct session *session = find_in_bucket(store, bucket, id);
    pthread_mutex_unlock(&store->sessions_lock);
    if (session == NULL || pthread_mutex_trylock(&session->lock) != 0)
        return;
    if (session->pending == 0 && session->state != SESSION_BUSY) {
        annal__ids_done(&session->ids);
        session->ids_loaded = false;
        if (session->create_logged && session->exists)
            annal__buf_done(&session->header);
    }
    pthread_mutex_unlock(&session->lock);
}

void annal__sessions_done(annal_store *store)
{
    for (struct session *session; (session = store->newest) != NULL;) {
        store->newest = session->older;
        if (session->fd >= 0)
            store->io->close(store->io->arg, session->fd);
        annal__buf_done(&session->header);
        annal__buf_done(&session->loose);
        annal__ids_done(&session->ids);
        drop_refusal(session);
        pthread_mutex_destroy(&session->lock);
        pthread_cond_destroy(&session->moved);
        annal__free(session->path);
        annal__free(session);
    }
}

/* ---- Descriptors ---- */

static void close_journal(annal_store *store, struct session *session)
{
    if (session->fd < 0)
        return;
    store->io->close(store->io->arg, session->fd);
    session->fd = -1;
    pthread_mutex_lock(&store->sessions_lock);
    store->open_journals--;
    pthread_mutex_unlock(&store->sessions_lock);
}

struct eviction {
    annal_store *store;
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
        annal__session_sync(eviction->store, session, err) == ANNAL_OK)
        close_journal(eviction->store, session);
    pthread_mutex_unlock(&session->lock);
    return ANNAL_OK;
}

static bool has_room(annal_store *store)
{
    pthread_mutex_lock(&store->sessions_lock);
    bool room = store->open_journals < store->descriptors_max;
    pthread_mutex_unlock(&store->sessions_lock);
    return room;
}

/* Close journals of this process that were not used for a second; if too many are still open, close
 * all idle journals except the journal of keep. */
static annal_status make_room(annal_store *store, const struct session *keep, annal_error *err)
{
    static const int64_t ages_us[] = {1000000, 0};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < 2 && status == ANNAL_OK && !has_room(store); i++) {
        struct eviction eviction = {store, keep, annal__store_now_us(store) - ages_us[i]};
        status = annal__session_each(store, evict, &eviction, err);
    }
    return status;
}

/* Open the journal; with `create`, create it if it is missing. *out_found is set if it existed. */
static annal_status open_journal(annal_store *store, struct session *session, bool create,
                                 bool *out_found, annal_error *err)
{
    struct stat file;
    annal_status status = has_room(store) ? ANNAL_OK : make_room(store, session, err);
    if (status < 0)
        return status;
    int fd = store->io->open(store->io->arg, session->path, O_RDWR, 0);
    *out_found = fd >= 0;
    if (fd < 0 && errno == ENOENT && create) {
        fd = store->io->open(store->io->arg, session->path, O_RDWR | O_CREAT | O_EXCL, 0660);
        atomic_store(&store->events_dirty, true);
    }
    if (fd < 0 && errno == ENOENT)
        return ANNAL_OK;
    if (fd < 0 || store->io->fstat(store->io->arg, fd, &file) < 0) {
        status = annal__fail_errno(err, "cannot open %s", session->path);
        if (fd >= 0)
            store->io->close(store->io->arg, fd);
        return status;
    }
    if (!S_ISREG(file.st_mode)) {
        store->io->close(store->io->arg, fd);
        return annal__fail(err, ANNAL_ERR_INVALID, "%s is not a regular file", session->path);
    }
    session->fd = fd;
    session->device = file.st_dev;
    session->inode = file.st_ino;
    pthread_mutex_lock(&store->sessions_lock);
    store->open_journals++;
    pthread_mutex_unlock(&store->sessions_lock);
    return ANNAL_OK;
}

/* ---- Taking ---- */

static void set_codec(struct session *session, const struct codec *codec)
{
    char *suffix = session->path + strlen(session->path) - strlen(session->codec->suffix);
    memcpy(suffix, codec->suffix, strlen(codec->suffix) + 1);
    session->codec = codec;
}

annal_status annal__session_header_new(const annal_store *store, annal_slice session,
                                       const struct codec *codec, struct frame_header *out,
                                       struct buf *frame, uint64_t *out_h, annal_error *err)
{
    *out = (struct frame_header){.session = session,
                                 .created_us = store->clock->wall_us(store->clock->arg)};
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
annal_status annal__session_begin(annal_store *store, struct session *session,
                                  const struct codec *codec, annal_error *err)
{
    struct frame_header header;
    struct buf frame = {.limit = session->header.limit};
    uint64_t h = 0;
    annal_status status = annal__session_header_new(store, annal__session_id(session), codec,
                                                    &header, &frame, &h, err);
    if (status < 0) {
        annal__buf_done(&frame);
        return status;
    }
    if (codec != session->codec) {
        /* if a journal is open, it is an empty journal of the old format */
        close_journal(store, session);
        set_codec(session, codec);
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

/* Return a hash of the state of the journal in this boot: its file, length and times. 0 if its
 * length is not `end`, or if it cannot be examined. */
static uint64_t look_of(const annal_store *store, const struct session *session, uint64_t end)
{
    struct stat file;
    if (store->io->fstat(store->io->arg, session->fd, &file) < 0 || (uint64_t)file.st_size != end)
        return 0;
    const int64_t facts[] = {(int64_t)file.st_dev, (int64_t)file.st_ino, file.st_size,
                             file.st_mtim.tv_sec,  file.st_mtim.tv_nsec, file.st_ctim.tv_sec,
                             file.st_ctim.tv_nsec};
    return annal__hash(facts, sizeof facts, annal__hash(store->boot, sizeof store->boot, 0));
}

/*
 * Leave a hash of the journal's state in the held entry (held_list.h, rule 8). First the journal's
 * time is set to just before its last write, so that every later write changes it, even a write in
 * the same tick of the clock.
 */
static void note_whole(const annal_store *store, const struct session *session)
{
    uint64_t whole = 0;
    struct stat file;
    if (store->io->fstat(store->io->arg, session->fd, &file) == 0) {
        struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, file.st_mtim};
        times[1].tv_sec -= times[1].tv_nsec == 0;
        times[1].tv_nsec = (times[1].tv_nsec == 0 ? 1000000000 : times[1].tv_nsec) - 1;
        if (store->io->futimens(store->io->arg, session->fd, times) == 0)
            whole = look_of(store, session, session->end);
    }
    atomic_store(&annal__held_entry(&store->slot.held, session->held_index)->whole, whole);
}

static annal_status continue_journal(annal_store *store, struct session *session, annal_error *err)
{
    struct journal_tail tail;
    annal_status status = annal__scan_tail(store->io, session->fd, session->codec, &tail, err);
    if (status < 0) {
        annal__error_context(err, "session '%s'", session->id);
        return status;
    }
    tail.header.session = annal_slice_of(tail.session);
    if (tail.has_header)
        status = annal__codec_check_owner(&tail.header, annal__session_id(session), err);
    if (status < 0)
        return status;
    if (tail.has_header && tail.header.version > FRAME_VERSION)
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                           "session '%s' has format version %u, but this library writes version "
                           "%d: the session stays readable but accepts no more events",
                           session->id, tail.header.version, FRAME_VERSION);
    if (tail.state == TAIL_DAMAGED || (tail.size > 0 && tail.end > 0 && !tail.has_header))
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "session '%s' is damaged at byte %" PRIu64
                           " of its journal: the session stays readable but accepts no more "
                           "events; 'annal repair %s --to NEW' copies its undamaged events",
                           session->id, tail.has_header ? tail.end : 0, session->id);
    if (tail.state == TAIL_TORN) {
        status = annal__torn_cut(store, annal__session_id(session), session->fd, tail.end,
                                 tail.size, err);
        if (status < 0)
            return status;
    }
    if (tail.end == 0)
        return annal__session_begin(store, session, session->codec, err);
    /* Sync the journal, which may have been copied into the store and never synced, unless its
     * state is one that the held list has noted. */
    if (!annal__held_has_note(&store->slot.held, look_of(store, session, tail.end)) &&
        annal__store_fdatasync(store, session->fd) < 0)
        return annal__fail_errno(err, "cannot sync the journal of session '%s'", session->id);
    memcpy(session->file, tail.header.file, sizeof session->file);
    session->create_logged = session->exists = true;
    session->seq = tail.seq;
    session->ts_us = tail.seq > 0 ? tail.ts_us : INT64_MIN;
    if (tail.offset == 0 && tail.seq > 0) /* a fork without events of its own */
        session->ts_us =
            annal__lineage_fork_ts(store, annal__session_id(session), tail.header.fork_seq);
    session->h = tail.h;
    session->end = tail.end;
    return ANNAL_OK;
}

/* Find the session's journal, which another process may have created or replaced. Fails if the
 * session has two journals that no conversion left. */
static annal_status find_journal(annal_store *store, struct session *session, annal_error *err)
{
    struct buf path = {0};
    const struct codec *codec = NULL;
    annal_slice id = annal__session_id(session);
    annal_status status = annal__store_journal_find(store, id, &path, &codec, err);
    annal__buf_done(&path);
    if (status < 0)
        return status;
    set_codec(session, codec == NULL ? store->codec : codec);
    if (codec == NULL || !annal__store_journal_is_double(store, id, codec))
        return ANNAL_OK;
    /* if an interrupted conversion left two journals, one is removed */
    annal__replace_sweep(store);
    if (annal__store_journal_is_double(store, id, codec))
        return annal__fail(
            err, ANNAL_ERR_CORRUPT,
            "session '%s' has two journals, one in each format: the session stays readable but "
            "accepts no more events; move the wrong journal out of the store",
            session->id);
    return ANNAL_OK;
}

static annal_status read_journal(annal_store *store, struct session *session, annal_error *err)
{
    bool found = false;
    annal__ids_done(&session->ids);
    session->ids_loaded = false;
    session->refused = false;
    session->lease_until_us = 0;
    session->dirty = false;
    session->marked = false;
    session->mark_group = 0;
    annal__session_drop_loose(session, session->loose.len);
    annal_status status = find_journal(store, session, err);
    if (status == ANNAL_OK)
        status = open_journal(store, session, false, &found, err);
    if (status == ANNAL_OK)
        status = found ? continue_journal(store, session, err)
                       : annal__session_begin(store, session, session->codec, err);
    session->logged = session->end;
    session->logged_h = session->h;
    return status;
}

static annal_status release_if_idle(void *arg, struct session *session, annal_error *err)
{
    annal_store *store = arg;
    if (pthread_mutex_trylock(&session->lock) != 0)
        return ANNAL_OK;
    if (session->state == SESSION_OWNED && session->pending == 0 && !session->in_use)
        (void)annal__session_release(store, session, err);
    pthread_mutex_unlock(&session->lock);
    return ANNAL_OK;
}

/* Fail because another thread is taking or releasing the session, and name the process that this
 * thread waits for, if that is known. */
static annal_status refuse_taken(annal_store *store, const struct session *session,
                                 annal_error *err)
{
    char name[HOLDER_BYTES];
    uint32_t pid = 0;
    if (annal__log_session_owner(store, annal__session_id(session), &pid, NULL) == ANNAL_OK &&
        pid != 0 && pid != (uint32_t)store->pid)
        return annal__fail(err, ANNAL_ERR_BUSY,
                           "session '%s' is in use by %s, and another thread of this process waits "
                           "for the session",
                           session->id, annal__lock_holder_name(pid, name));
    return annal__fail(err, ANNAL_ERR_BUSY,
                       "timed out waiting for another thread to acquire or release session '%s'",
                       session->id);
}

annal_status annal__session_own(annal_store *store, struct session *session, int64_t deadline_us,
                                annal_error *err)
{
    while (session->state == SESSION_BUSY) {
        if (annal__store_wait_on(store, &session->moved, &session->lock, deadline_us) < 0)
            return refuse_taken(store, session, err);
    }
    if (session->state == SESSION_OWNED)
        return ANNAL_OK;

    session->state = SESSION_BUSY;
    int64_t yield_us = session->yield_until_us - annal__store_now_us(store);
    pthread_mutex_unlock(&session->lock);
    if (yield_us > 0) {
        _Atomic uint32_t never = 0;
        annal__futex_wait(&never, 0, yield_us < YIELD_US ? yield_us : YIELD_US);
    }
    uint32_t held_index = 0;
    annal_slice id = annal__session_id(session);
    annal_status status = annal__slot_take(store, id, deadline_us, &held_index, err);
    /* this process's held list, the list of sessions that it owns, has no free entry */
    if (status == ANNAL_ERR_LIMIT) {
        /* Checkpoint once for all sessions, instead of once for each session that is released. */
        (void)annal__commit_rotate(store, NULL);
        (void)annal__session_each(store, release_if_idle, store, NULL);
        status = annal__slot_take(store, id, deadline_us, &held_index, err);
    }
    pthread_mutex_lock(&session->lock);
    bool taken = status == ANNAL_OK;
    if (taken)
        status = read_journal(store, session, err);
    if (status == ANNAL_OK) {
        session->held_index = held_index;
        session->state = SESSION_OWNED;
        atomic_fetch_add(&store->metrics.sessions_owned, 1);
    } else {
        close_journal(store, session);
        if (taken)
            annal__held_remove(&store->slot.held, held_index);
        session->state = SESSION_FREE;
        annal__metrics_add(store, METRIC_REFUSED_OPENS, 1);
    }
    pthread_cond_broadcast(&session->moved);
    return status;
}

/* ---- Releasing a session ---- */

bool annal__session_is_wanted(annal_store *store, const struct session *session)
{
    return session->state == SESSION_OWNED &&
           atomic_load(&annal__held_entry(&store->slot.held, session->held_index)->word) ==
               HELD_WANTED;
}

/* Sync and close the journal. No record is pending, and no append can start. */
static annal_status settle(annal_store *store, struct session *session, annal_error *err)
{
    /* After the store has failed, it keeps its sessions until it is closed, because the recovery of
     * its log includes only sessions in its held list. */
    annal_status status = annal__commit_check(store, err);
    if (status < 0)
        return status;
    if (session->refused || session->late != LATE_NOT)
        return annal__fail(err, ANNAL_ERR_IO, "session '%s' cannot be released: %.300s",
                           session->id, session->refusal->message);
    status = annal__session_sync(store, session, err);
    if (status < 0)
        return status;
    annal__session_set_loose(store, session, false);
    if (session->fd >= 0)
        note_whole(store, session);
    close_journal(store, session);
    return ANNAL_OK;
}

/* Wait until no checkpoint or sync uses the session's descriptor. The caller holds the session's
 * lock. */
static void wait_unused(struct session *session)
{
    while (session->in_use)
        pthread_cond_wait(&session->moved, &session->lock);
}

/* Make new appends wait in annal__session_own(), and sync and close the journal. After a failure
 * the session is owned as before. */
static annal_status quiesce(annal_store *store, struct session *session, annal_error *err)
{
    session->state = SESSION_BUSY;
    annal_status status = ANNAL_OK;
    while (status == ANNAL_OK && (session->pending > 0 || session->in_use)) {
        pthread_mutex_unlock(&session->lock);
        status = annal__commit_flush(store, err);
        pthread_mutex_lock(&session->lock);
        wait_unused(session);
    }
    while (status == ANNAL_OK && !session->refused && annal__level_os_has_mark(store, session))
        status = annal__level_os_end(store, session, err);
    if (status == ANNAL_OK)
        status = settle(store, session, err);
    if (status < 0) {
        session->state = SESSION_OWNED;
        pthread_cond_broadcast(&session->moved);
    }
    return status;
}

annal_status annal__session_release(annal_store *store, struct session *session, annal_error *err)
{
    if (session->state != SESSION_OWNED)
        return ANNAL_OK;
    annal_status status = quiesce(store, session, err);
    if (status < 0)
        return status;
    struct held_entry *entry = annal__held_entry(&store->slot.held, session->held_index);
    if (atomic_load(&entry->word) == HELD_WANTED)
        session->yield_until_us = annal__store_now_us(store) + YIELD_US;
    annal__session_let_go(store, session);
    return ANNAL_OK;
}

bool annal__session_forget(annal_store *store, struct session *session)
{
    if (session->state != SESSION_OWNED || session->pending > 0 || session->in_use)
        return false;
    close_journal(store, session);
    annal__session_let_go(store, session);
    return true;
}

annal_status annal__session_seize(annal_store *store, struct session *session, annal_error *err)
{
    if (session->state == SESSION_BUSY)
        return refuse_taken(store, session, err);
    if (session->state == SESSION_OWNED)
        return quiesce(store, session, err);
    uint32_t held_index = 0;
    annal_error failure = {0};
    annal_slice id = annal__session_id(session);
    session->state = SESSION_BUSY;
    pthread_mutex_unlock(&session->lock);
    annal_status status = annal__slot_take(store, id, 0, &held_index, &failure);
    bool unlisted = status < 0 && annal__error_is_no_space(&failure);
    if (unlisted)
        status = annal__slot_keep_off(store, id, &failure);
    if (unlisted && status == ANNAL_OK)
        annal__slot_let_on(store);
    if (status < 0 && err != NULL)
        *err = failure;
    pthread_mutex_lock(&session->lock);
    if (status == ANNAL_OK) {
        session->held_index = held_index;
        session->unlisted = unlisted;
        atomic_fetch_add(&store->metrics.sessions_owned, 1);
    } else {
        session->state = SESSION_FREE;
        pthread_cond_broadcast(&session->moved);
    }
    return status;
}

void annal__session_let_go(annal_store *store, struct session *session)
{
    if (!session->unlisted)
        annal__held_remove(&store->slot.held, session->held_index);
    session->unlisted = false;
    atomic_fetch_sub(&store->metrics.sessions_owned, 1);
    session->state = SESSION_FREE;
    pthread_cond_broadcast(&session->moved);
}

bool annal__session_is_loose(const annal_store *store, const struct session *session)
{
    return atomic_load(&annal__held_entry(&store->slot.held, session->held_index)->loose) != 0;
}

void annal__session_set_loose(annal_store *store, struct session *session, bool loose)
{
    struct held_entry *entry = annal__held_entry(&store->slot.held, session->held_index);
    if (atomic_exchange(&entry->loose, loose ? 1 : 0) == (loose ? 1u : 0u))
        return;
    if (loose)
        atomic_fetch_add(&store->loose_sessions, 1);
    else
        atomic_fetch_sub(&store->loose_sessions, 1);
}

void annal__session_drop_loose(struct session *session, size_t bytes)
{
    annal__buf_consume(&session->loose, bytes);
    if (session->loose.len == 0 && session->loose.cap > LOOSE_KEPT_BYTES)
        annal__buf_done(&session->loose);
}

annal_status annal__session_sync(annal_store *store, struct session *session, annal_error *err)
{
    /* wait for a running checkpoint, which changes `dirty` when it has finished */
    wait_unused(session);
    annal_error failure = *session->refusal;
    bool late = session->late != LATE_NOT;
    if (!late && session->dirty && session->fd >= 0 &&
        annal__store_fdatasync(store, session->fd) < 0) {
        annal__fail_errno(&failure, "cannot sync the journal of session '%s'", session->id);
        annal__failure_set_late(store, session, LATE_SYNC, &failure);
        late = true;
    }
    if (late) {
        if (err != NULL)
            *err = failure;
        return failure.status;
    }
    session->dirty = false;
    annal_status status = annal__checkpoint_events(store, err);
    if (status < 0)
        return status;
    /* The bytes of level os are on the disk now. The log does not record this yet; annal_sync()
     * adds a mark for it. */
    if (session->loose.len > 0) {
        annal__session_drop_loose(session, session->loose.len);
        session->logged = session->end;
        session->logged_h = session->h;
    }
    return ANNAL_OK;
}

annal_status annal__session_reopen(annal_store *store, struct session *session, annal_error *err)
{
    bool found = false;
    wait_unused(session);
    close_journal(store, session);
    annal_status status = open_journal(store, session, false, &found, err);
    if (status == ANNAL_OK && !found)
        status =
            annal__fail(err, ANNAL_ERR_IO, "the journal of session '%s' was removed", session->id);
    if (status < 0)
        return status;
    session->exists = true;
    session->dirty = false;
    if (session->loose.len > 0 && (annal__io_write_all(store->io, session->fd, session->loose.ptr,
                                                       session->loose.len, session->logged) < 0 ||
                                   annal__store_fdatasync(store, session->fd) < 0))
        return annal__fail_errno(err, "cannot write the journal of session '%s' again",
                                 session->id);
    return ANNAL_OK;
}

/* ---- Writing ---- */

/* Fail if the journal's name no longer belongs to the open file: another program, an editor or a
 * restore, may have replaced it. The caller handles this like a failed write. */
static annal_status check_place(annal_store *store, const struct session *session, annal_error *err)
{
    dev_t device;
    ino_t inode;
    bool found = store->io->identify(store->io->arg, session->path, &device, &inode) == 0;
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
static annal_status reopen_journal(annal_store *store, struct session *session, annal_error *err)
{
    dev_t device = session->device;
    ino_t inode = session->inode;
    bool found = false;
    annal_status status = open_journal(store, session, !session->exists, &found, err);
    if (status < 0)
        return status;
    if (session->fd < 0)
        return annal__fail(err, ANNAL_ERR_UNKNOWN, "the journal of session '%s' was removed",
                           session->id);
    struct stat file = {0};
    if (!session->exists && found && store->io->fstat(store->io->arg, session->fd, &file) < 0) {
        status = annal__fail_errno(err, "cannot examine the journal of session '%s'", session->id);
        /* so that the next write opens and examines the journal again */
        close_journal(store, session);
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

annal_status annal__session_write(annal_store *store, struct session *session, uint64_t offset,
                                  annal_slice bytes, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (session->fd < 0)
        status = reopen_journal(store, session, err);
    if (status < 0)
        return status;
    status = check_place(store, session, err);
    if (status < 0)
        return status;
    if (!session->dirty)
        session->written_back = offset / PAGE_BYTES * PAGE_BYTES;
    if (annal__io_write_all(store->io, session->fd, bytes.ptr, bytes.len, offset) < 0)
        return annal__fail_errno(err, "cannot write the journal of session '%s'", session->id);
    session->exists = true;
    session->dirty = true;
    session->used_us = annal__store_now_us(store);
    session->changed = atomic_fetch_add(&store->changes, 1) + 1;
    annal__metrics_add(store, METRIC_JOURNAL_BYTES, bytes.len);
    return ANNAL_OK;
}

annal_status annal__session_write_back(annal_store *store, struct session *session, uint64_t end,
                                       uint64_t piece_bytes, annal_error *err)
{
    uint64_t shift = (uintptr_t)session / sizeof *session % (piece_bytes / PAGE_BYTES) * PAGE_BYTES;
    uint64_t whole = (end + shift) / piece_bytes * piece_bytes;
    if (whole <= session->written_back + shift)
        return ANNAL_OK;
    uint64_t from = session->written_back;
    session->written_back = whole - shift;
    if (store->io->write_back(store->io->arg, session->fd, from, whole - shift - from) < 0)
        return annal__fail_errno(err, "cannot write the journal of session '%s'", session->id);
    return ANNAL_OK;
}
