/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/slot.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/lock_holder.h"
#include "journal/keeper_wake.h"
#include "journal/log_void.h"
#include "journal/recover.h"
#include "journal/slot_log.h"
#include "journal/store.h"
#include "journal/sys/say.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#define SLOTS_KEPT 8
/* age in seconds at which an unfinished log is removed; creating a log never takes this long */
#define LEFTOVER_S 3600
/* longest sleep of a process that waits for a session, in microseconds: an owner that was killed
 * wakes no waiter */
#define WAIT_SLICE_US 50000
/*
 * maximum wait, in us, for an owner that has not answered an earlier request to overwrite its log
 */
#define OWED_US 500000

/* Least wait for locks/claim in microseconds, whatever the limit of the store, because locks/claim
 * is held for microseconds only. */
#define CLAIM_LEAST_US 20000

/* Opening a store waits for processes that recover logs, until none has made progress for this
 * long, in microseconds. */
#define REDO_QUIET_US 250000
#define REDO_LOOK_US  2000

/* ---- Examining the slot of another process ---- */

struct other {
    uint32_t number;
    struct log log;   /* log of the slot; open only while `locked` */
    struct held held; /* held list of the slot; its header is NULL if the file is missing */
    /* whether this process holds the lock of the log, so that no living process owns it */
    bool locked;
    bool bound; /* whether the held list is valid for this log in this boot */
};

static void other_done(struct other *other)
{
    annal__log_close(&other->log);
    annal__held_close(&other->held);
}

static annal_status other_open(annal_store *store, uint32_t number, struct other *out_other,
                               annal_error *err)
{
    SCOPED_BUF path = {0}, list = {0};
    struct stat file = {0};
    ino_t seen;
    struct other other = {.number = number, .log = {.fd = -1}, .held = {.fd = -1}};
    annal_status status = annal__slot_path(&store->context, &path, "commit", number, err);
    if (status == ANNAL_OK)
        status = annal__slot_path(&store->context, &list, "locks", number, err);
    if (status == ANNAL_OK)
        status = annal__held_open(store->context.io, list.ptr, false, &other.held, err);
    /* Repeat while the log's file changes, because its owner may replace the log. */
    do {
        seen = file.st_ino;
        /* Only a log that was certainly removed contains nothing. A log that cannot be examined may
         * contain events of any session, so examining it must not fail silently. */
        if (status == ANNAL_OK &&
            store->context.io->stat(store->context.io->arg, path.ptr, &file) < 0)
            status = errno == ENOENT
                         ? annal__fail(err, ANNAL_ERR_NOTFOUND,
                                       "commit log %02" PRIu32 " was removed", number)
                         : annal__fail_errno(err, "cannot examine commit log %s", path.ptr);
        other.bound =
            status == ANNAL_OK && annal__held_is_for(&other.held, store->context.boot, &file);
    } while (status == ANNAL_OK && !other.bound && file.st_ino != seen);
    if (status < 0)
        goto done;
    *out_other = other;
    other.held = (struct held){.fd = -1}; /* the list belongs to the caller now */

done:
    annal__held_close(&other.held);
    return status;
}

/* Try to lock the log, without reading it, because the caller may hold locks/claim. A log whose
 * name belongs to another file now counts as locked by another process. */
static annal_status other_try(annal_store *store, struct other *other, annal_error *err)
{
    SCOPED_BUF path = {0};
    annal_status status = annal__slot_path(&store->context, &path, "commit", other->number, err);
    if (status == ANNAL_OK)
        status = annal__log_find(store->context.io, path.ptr, true, &other->log, err);
    if (status < 0)
        return status;
    if (store->context.io->flock(store->context.io->arg, other->log.fd, LOCK_EX | LOCK_NB) == 0) {
        status = annal__log_check_place(&other->log, err);
        other->locked = status == ANNAL_OK;
        if (status == ANNAL_ERR_CLOSED)
            status = ANNAL_OK;
    } else if (errno != EWOULDBLOCK) {
        status = annal__fail_errno(err, "cannot lock commit log %s", path.ptr);
    }
    if (!other->locked)
        annal__log_close(&other->log);
    return status;
}

/* Read the first block of a log that other_try() has locked, and write it again from its copy if it
 * is damaged. */
static annal_status other_read(annal_store *store, struct other *other, annal_error *err)
{
    annal_status status = annal__log_read_first(&other->log, err);
    if (status < 0 || !other->log.first_damaged)
        return status;
    annal__say(store, ANNAL_LOG_WARNING,
               "the first block of commit log %02" PRIu32
               " is damaged; this block is written again from its copy",
               other->number);
    return annal__log_mend(&other->log, err);
}

/* Return whether the log is locked only by a process that tests its lock for a moment
 * (log_inspect.c). An owner, or a process that recovers the log, locks it exclusively. */
static bool is_looked_at(annal_store *store, const struct other *other)
{
    SCOPED_BUF path = {0};
    struct log log = {.fd = -1};
    bool looked_at =
        annal__slot_path(&store->context, &path, "commit", other->number, NULL) == ANNAL_OK &&
        annal__log_find(store->context.io, path.ptr, false, &log, NULL) == ANNAL_OK &&
        store->context.io->flock(store->context.io->arg, log.fd, LOCK_SH | LOCK_NB) == 0;
    annal__log_close(&log);
    return looked_at;
}

static bool is_empty(const struct other *other)
{
    return other->bound && atomic_load(&other->held.header->state) == HELD_EMPTY;
}

/* Take the lock locks/claim, under which slots and sessions are taken; wait until the deadline at
 * most (monotonic). */
static annal_status take_claim(annal_store *store, int64_t deadline_us, annal_error *err)
{
    return annal__filelock_take(&store->context, &store->claim_lock, deadline_us, CLAIM_LEAST_US,
                                err);
}

/* Take the lock locks/claim for work that another process can do later as well: wait at most
 * CLAIM_LEAST_US, and less if the store may wait less. */
static annal_status take_claim_if_idle(annal_store *store)
{
    int64_t deadline_us = annal__context_now_us(&store->context) + CLAIM_LEAST_US;
    return annal__filelock_take(&store->context, &store->claim_lock, deadline_us, 0, NULL);
}

/*
 * Remove a log with a void file when nothing in the log is needed: first the log, durably, and then
 * the void file, unless another log has this number by then, which may have a void file of its own.
 * The sessions of the log are free already. If locks/claim stays taken, the next process does this.
 */
static annal_status discard(annal_store *store, const struct other *other, annal_error *err)
{
    SCOPED_BUF path = {0}, list = {0};
    struct stat file;
    annal_status status = annal__slot_path(&store->context, &list, "locks", other->number, err);
    if (status < 0 || take_claim_if_idle(store) < 0)
        return status;
    if (store->context.io->unlink(store->context.io->arg, other->log.path) < 0)
        status = annal__fail_errno(err, "cannot remove %s", other->log.path);
    else
        store->context.io->unlink(store->context.io->arg, list.ptr);
    annal__filelock_drop(&store->context, &store->claim_lock);
    if (status == ANNAL_OK)
        status = annal__context_path(&store->context, &path, "commit", "", err);
    if (status == ANNAL_OK)
        status = annal__io_sync_dir(store->context.io, path.ptr, err);
    if (status < 0 ||
        /* otherwise the process that takes the number removes the void file, too */
        take_claim_if_idle(store) < 0)
        return status;
    if (store->context.io->stat(store->context.io->arg, other->log.path, &file) < 0 &&
        errno == ENOENT)
        annal__log_void_remove(&other->log);
    annal__filelock_drop(&store->context, &store->claim_lock);
    return status;
}

/*
 * Redo the log of a dead process. Its held list is created if it is missing. Logs of an earlier
 * boot, whose held lists are invalid, are recovered by one process at a time, because two such logs
 * may name the same session. *out_read: whether the log's first block was read.
 */
static annal_status other_recover(annal_store *store, struct other *other, int64_t deadline_us,
                                  bool *out_read, annal_error *err)
{
    SCOPED_BUF path = {0};
    bool alone = !other->bound || atomic_load(&other->held.header->alone) != 0;
    annal_status status =
        alone ? annal__filelock_take(&store->context, &store->recovery_lock, deadline_us, 0, err)
              : ANNAL_OK;
    if (status < 0)
        return status;
    /* The held list is created first, because it shows other processes that this process recovers
     * the log and does not own it. */
    if (other->held.header == NULL) {
        status = annal__slot_path(&store->context, &path, "locks", other->number, err);
        if (status == ANNAL_OK)
            status = annal__held_open(store->context.io, path.ptr, true, &other->held, err);
    }
    if (status == ANNAL_OK)
        status = other_read(store, other, err);
    *out_read = status == ANNAL_OK;
    bool is_void = false;
    if (status == ANNAL_OK)
        status = annal__recover(&store->sessions, &other->log, &other->held, &is_void, err);
    if (status == ANNAL_OK && is_void)
        status = discard(store, other, err);
    if (alone)
        annal__filelock_drop(&store->context, &store->recovery_lock);
    return status;
}

static bool is_to_wipe(const struct held *held)
{
    return held->header != NULL && annal__held_is_to_wipe(held, NULL);
}

/*
 * Remove an empty slot whose log this process has locked. Slots below SLOTS_KEPT stay for the next
 * process, unless their log has grown (large logs should not stay on the disk), is smaller than
 * usual, or was to be overwritten. If locks/claim stays taken, the slot is kept.
 */
static void remove_slot(annal_store *store, uint32_t number, const struct log *log,
                        const struct held *held)
{
    SCOPED_BUF path = {0};
    bool usual = log->regions[0].bytes == LOG_REGION_FIRST;
    if ((number < SLOTS_KEPT && usual && !is_to_wipe(held)) || take_claim_if_idle(store) < 0)
        return;
    bool ours = annal__log_is_in_place(log);
    if (ours && annal__slot_path(&store->context, &path, "locks", number, NULL) == ANNAL_OK)
        store->context.io->unlink(store->context.io->arg, path.ptr);
    if (ours)
        store->context.io->unlink(store->context.io->arg, log->path);
    annal__filelock_drop(&store->context, &store->claim_lock);
}

/* ---- Opening a store ---- */

/* Return whether the process that has locked the log is recovering or creating it. An owner whose
 * held list was removed has no list (header NULL). */
static bool is_being_redone(const struct other *other)
{
    return other->held.header != NULL &&
           (!other->bound || atomic_load(&other->held.header->state) == HELD_REDONE);
}

/* Recover one slot, if it needs that. *out_recovering: another process recovers it, or holds a lock
 * that is needed. *out_moved is increased by the progress counter of that process. */
static annal_status recover_one(annal_store *store, uint32_t number, bool *out_recovering,
                                uint64_t *out_moved, annal_error *err)
{
    struct other other = {.log = {.fd = -1}, .held = {.fd = -1}};
    annal_status status = other_open(store, number, &other, err);
    if (status < 0 || (is_empty(&other) && !is_to_wipe(&other.held)))
        goto done;
    status = other_try(store, &other, err);
    if (status == ANNAL_OK && other.locked) {
        bool read = false;
        if (!is_empty(&other))
            status = other_recover(store, &other, 0, &read, err);
        if (status == ANNAL_OK)
            remove_slot(store, number, &other.log, &other.held);
        *out_recovering = status == ANNAL_ERR_BUSY;
    } else if (status == ANNAL_OK && !is_empty(&other)) {
        *out_recovering = is_being_redone(&other) || is_looked_at(store, &other);
        *out_moved += other.held.header == NULL ? 0 : atomic_load(&other.held.header->redo_moved);
    }

done:
    other_done(&other);
    return status;
}

/* Remove an old unfinished log or void file, whose process died while it created the file. */
static int remove_leftover(void *arg, const char *name)
{
    annal_store *store = arg;
    SCOPED_BUF path = {0};
    struct stat file;
    bool leftover = strncmp(name, ".new-", 5) == 0 || strstr(name, ".void.tmp-") != NULL;
    if (leftover && annal__context_path(&store->context, &path, "commit", name, NULL) == ANNAL_OK &&
        store->context.io->stat(store->context.io->arg, path.ptr, &file) == 0 &&
        store->context.clock->wall_us(store->context.clock->arg) / 1000000 - file.st_mtime >
            LEFTOVER_S)
        store->context.io->unlink(store->context.io->arg, path.ptr);
    return 0;
}

static annal_status remove_leftovers(annal_store *store, annal_error *err)
{
    SCOPED_BUF path = {0};
    annal_status status = annal__context_path(&store->context, &path, "commit", "", err);
    if (status == ANNAL_OK &&
        store->context.io->list(store->context.io->arg, path.ptr, remove_leftover, store) < 0)
        status = annal__fail_errno(err, "cannot list %s", path.ptr);
    return status;
}

/*
 * Recover the slots in the list, once; those that other processes are recovering stay in the list.
 * If a slot cannot be recovered, its sessions cannot be written, and the rest of the store
 * works.
 */
static void recover_listed(annal_store *store, struct slot_list *list, uint64_t *out_moved)
{
    size_t kept = 0;
    *out_moved = 0;
    for (size_t i = 0; i < list->count; i++) {
        annal_error failure;
        bool recovering = false;
        annal_status status =
            recover_one(store, list->numbers[i], &recovering, out_moved, &failure);
        if (recovering)
            list->numbers[kept++] = list->numbers[i];
        else if (status < 0 && status != ANNAL_ERR_NOTFOUND)
            annal__say(store, ANNAL_LOG_WARNING, "recover commit log %02" PRIu32 ": %s",
                       list->numbers[i], failure.message);
    }
    list->count = kept;
}

/*
 * Wait for the processes that recover the slots in the list. Such a process may be stopped. Then
 * the store opens without the events that are only in its log, and warns of them (unapplied.h).
 * Sessions that may be in this log cannot be taken until it is recovered.
 */
static void wait_for_others(annal_store *store, struct slot_list *list, uint64_t moved)
{
    int64_t deadline_us = annal__context_deadline(&store->context);
    int64_t quiet_since_us = annal__context_now_us(&store->context);
    while (list->count > 0) {
        uint64_t now_moved;
        int64_t now_us = annal__context_now_us(&store->context);
        if (annal__context_may_wait(&store->context, deadline_us - now_us) <= 0 ||
            now_us - quiet_since_us >= REDO_QUIET_US)
            return;
        annal__context_wait(&store->context, REDO_LOOK_US);
        size_t count = list->count;
        recover_listed(store, list, &now_moved);
        if (now_moved != moved || list->count != count)
            quiet_since_us = annal__context_now_us(&store->context);
        moved = now_moved;
    }
}

annal_status annal__slots_recover(annal_store *store, uint32_t *out_missing, annal_error *err)
{
    struct slot_list *list = annal__zalloc(sizeof *list);
    uint64_t moved;
    if (list == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open store %s: out of memory",
                           store->context.path);
    annal_status status = annal__filelock_reach(&store->context, &store->recovery_lock, err);
    if (status == ANNAL_OK)
        status = remove_leftovers(store, err);
    if (status == ANNAL_OK)
        status = annal__slots_list(&store->context, list, err);
    if (status == ANNAL_OK) {
        recover_listed(store, list, &moved);
        wait_for_others(store, list, moved);
        *out_missing = list->count > 0 ? list->numbers[0] : SLOTS_MAX;
    }
    annal__free(list);
    return status;
}

uint32_t annal__slots_find_redone(annal_store *store)
{
    struct slot_list list = {.count = 0};
    uint32_t redone = SLOTS_MAX;
    (void)annal__slots_list(&store->context, &list, NULL);
    for (size_t i = 0; i < list.count && redone == SLOTS_MAX; i++) {
        struct other other = {.log = {.fd = -1}, .held = {.fd = -1}};
        if (other_open(store, list.numbers[i], &other, NULL) == ANNAL_OK &&
            is_being_redone(&other) && !is_looked_at(store, &other))
            redone = list.numbers[i];
        other_done(&other);
    }
    return redone;
}

/* Return whether the owner of a log is dead: no process has locked the log, or the process that has
 * locked it is recovering it. */
static bool is_dead(annal_store *store, uint32_t number, struct log *log)
{
    struct other other = {.log = {.fd = -1}, .held = {.fd = -1}};
    bool dead = store->context.io->flock(store->context.io->arg, log->fd, LOCK_SH | LOCK_NB) == 0;
    if (dead)
        (void)store->context.io->flock(store->context.io->arg, log->fd, LOCK_UN);
    else if (other_open(store, number, &other, NULL) == ANNAL_OK)
        dead = is_being_redone(&other);
    other_done(&other);
    return dead;
}

static annal_status each_record(struct log *log, slot_record_fn fn, void *arg, annal_error *err)
{
    struct log_group *groups = NULL;
    SCOPED_BUF bytes = {0};
    size_t count = 0;
    bool is_void;
    annal_status status = annal__log_void_find_groups(log, &groups, &count, &is_void, err);
    uint64_t released = status == ANNAL_OK ? annal__log_released(groups, count) : 0;
    for (size_t i = 0; i < count && status == ANNAL_OK; i++) {
        if (groups[i].epoch <= released || groups[i].records == 0)
            continue;
        status = annal__log_read_group(log, &groups[i], &bytes, err);
        annal_slice toc = {bytes.ptr, status == ANNAL_OK ? (size_t)groups[i].toc_bytes : 0};
        struct record record;
        while (status == ANNAL_OK && annal__log_take_record(&toc, &record))
            status = fn(arg, &record, err);
    }
    annal__free(groups);
    return status;
}

annal_status annal__slots_each_record(annal_store *store, enum slots_which which, slot_record_fn fn,
                                      void *arg, annal_error *err)
{
    SCOPED_BUF path = {0};
    struct slot_list *list = annal__zalloc(sizeof *list);
    if (list == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read the commit logs: out of memory");
    annal_status status = annal__slots_list(&store->context, list, err);
    for (size_t i = 0; i < list->count && status == ANNAL_OK; i++) {
        struct log log = {.fd = -1};
        status = annal__slot_path(&store->context, &path, "commit", list->numbers[i], err);
        if (status == ANNAL_OK)
            status = annal__log_open(store->context.io, path.ptr, false, &log, err);
        if (status == ANNAL_OK && (which == SLOTS_ALL || is_dead(store, list->numbers[i], &log)))
            status = each_record(&log, fn, arg, err);
        else if (status == ANNAL_ERR_NOTFOUND)
            status = ANNAL_OK; /* ignore the failure: the log was empty, and its owner removed it */
        annal__log_close(&log);
    }
    annal__free(list);
    return status;
}

/* ---- Claiming ---- */

/*
 * Make an empty slot the slot of this store object. This process has locked the log. Other
 * processes may read the held list meanwhile: the list of an existing empty slot stays valid and
 * states where the log ends; a new log has no list yet.
 */
static annal_status adopt(annal_store *store, uint32_t number, struct log *log, struct held *held,
                          annal_error *err)
{
    struct stat file;
    struct held_header *header = held->header;
    if (store->context.io->fstat(store->context.io->arg, log->fd, &file) < 0)
        return annal__fail_errno(err, "cannot examine commit log %s", log->path);
    bool bound = annal__held_is_for(held, store->context.boot, &file);
    if (bound) {
        log->epoch = log->durable_released = header->end_epoch;
        log->group = header->end_group;
        log->current = header->end_region % LOG_REGIONS;
        /* so that the next group begins an epoch in the other region */
        log->end = log->regions[log->current].bytes;
        header->pid = (uint32_t)store->context.pid;
        annal__held_bind_done(held, &file);
    } else {
        annal__held_clear(held);
    }
    atomic_store(&header->state, HELD_OWNED);
    if (!bound)
        annal__held_bind(held, store->context.boot, &file);
    store->own_log.number = number;
    store->own_log.log = *log;
    store->own_log.held = *held;
    atomic_store(&store->own_log.region_bytes, store->own_log.log.regions[0].bytes);
    *log = (struct log){.fd = -1};
    *held = (struct held){.fd = -1};
    pthread_mutex_lock(&store->commit.lock);
    store->commit.released = store->own_log.log.epoch;
    store->commit.durable = store->commit.applied = store->own_log.log.group;
    store->commit.current->number = store->own_log.log.group + 1;
    pthread_mutex_unlock(&store->commit.lock);
    return ANNAL_OK;
}

enum found {
    FOUND_NONE,
    FOUND_EMPTY, /* a slot whose log needs no recovery; this process has locked the log */
    FOUND_DEAD,  /* a slot whose log must be recovered first */
    FOUND_FRESH  /* a new log of this process, which now has a number */
};

/* Try to lock one existing slot. The caller holds the lock locks/claim. */
static enum found try_slot(annal_store *store, uint32_t number, struct other *out_other)
{
    struct other other = {.log = {.fd = -1}, .held = {.fd = -1}};
    if (other_open(store, number, &other, NULL) == ANNAL_OK &&
        other_try(store, &other, NULL) == ANNAL_OK && other.locked) {
        *out_other = other;
        return is_empty(&other) ? FOUND_EMPTY : FOUND_DEAD;
    }
    other_done(&other); /* another process owns the slot, or its log cannot be used */
    return FOUND_NONE;
}

/* Rename the log to the lowest free number. The caller holds the lock locks/claim. */
static annal_status publish_log(annal_store *store, struct log *log, uint32_t *out_number,
                                annal_error *err)
{
    SCOPED_BUF path = {0};
    struct stat file;
    annal_status status = ANNAL_OK;
    uint32_t number = 0;
    for (; number < SLOTS_MAX; number++) {
        status = annal__slot_path(&store->context, &path, "commit", number, err);
        if (status < 0)
            return status;
        if (store->context.io->stat(store->context.io->arg, path.ptr, &file) == 0)
            continue;
        if (errno == ENOENT)
            break;
        return annal__fail_errno(err, "cannot examine commit log %s", path.ptr);
    }
    if (number == SLOTS_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT,
                           "%d processes already write to store %s, which is the maximum",
                           SLOTS_MAX, store->context.path);
    if (store->context.io->rename(store->context.io->arg, log->path, path.ptr) < 0)
        return annal__fail_errno(err, "cannot rename %s", log->path);
    snprintf(log->path, sizeof log->path, "%s", path.ptr);
    *out_number = number;
    return status;
}

static annal_status publish_and_adopt(annal_store *store, struct log *log, annal_error *err)
{
    SCOPED_BUF path = {0};
    struct held held = {.fd = -1};
    uint32_t number = 0;
    annal_status status = publish_log(store, log, &number, err);
    if (status == ANNAL_OK)
        status = annal__slot_path(&store->context, &path, "locks", number, err);
    if (status == ANNAL_OK) {
        /* Remove an existing list, and create a new one: an owner whose log was removed may still
         * write to the existing list. */
        store->context.io->unlink(store->context.io->arg, path.ptr);
        status = annal__held_open(store->context.io, path.ptr, true, &held, err);
    }
    if (status == ANNAL_OK)
        status = adopt(store, number, log, &held, err);
    annal__held_close(&held);
    return status;
}

/* Look once for a slot that is empty, or whose process is dead, from number `from` on. If none
 * exists and the log `fresh` is open, give it a number. Takes the lock locks/claim. */
static annal_status claim_once(annal_store *store, struct slot_list *list, uint32_t from,
                               struct log *fresh, int64_t deadline_us, enum found *out_found,
                               struct other *out_other, annal_error *err)
{
    *out_found = FOUND_NONE;
    annal_status status = take_claim(store, deadline_us, err);
    if (status < 0)
        return status;
    status = annal__slots_list(&store->context, list, err);
    for (size_t i = 0; i < list->count && status == ANNAL_OK && *out_found == FOUND_NONE; i++) {
        if (list->numbers[i] >= from)
            *out_found = try_slot(store, list->numbers[i], out_other);
    }
    if (status == ANNAL_OK && *out_found == FOUND_NONE && fresh->fd >= 0) {
        status = publish_and_adopt(store, fresh, err);
        *out_found = FOUND_FRESH;
    }
    annal__filelock_drop(&store->context, &store->claim_lock);
    return status;
}

/* Recover the slot that was found if its process has ended; else make it the slot of this store
 * object. Called without locks/claim, because reading and syncing may take long. */
static annal_status take_found(annal_store *store, enum found found, struct other *other,
                               annal_error *err)
{
    annal_status status = ANNAL_OK;
    bool read = false;
    if (found == FOUND_DEAD)
        return other_recover(store, other, 0, &read, err);
    if (found == FOUND_EMPTY) {
        status = other_read(store, other, err);
        if (status == ANNAL_OK)
            status = annal__slot_sync_name(&store->context, &other->held, err);
        if (status == ANNAL_OK)
            status = adopt(store, other->number, &other->log, &other->held, err);
    } else {
        status = annal__slot_sync_name(&store->context, &store->own_log.held, err);
        if (status < 0) {
            store->context.io->unlink(store->context.io->arg, store->own_log.log.path);
            annal__log_close(&store->own_log.log);
            annal__held_close(&store->own_log.held);
        }
    }
    if (status == ANNAL_OK)
        /* the void file of an earlier log with this number */
        annal__log_void_remove(&store->own_log.log);
    return status;
}

/* Create the first log of this process; on an almost full disk, a small log. A small log is enough
 * for deleting and pruning, leaves room for what they write, and is removed at close. */
static annal_status make_first_log(annal_store *store, struct log *out_log, annal_error *err)
{
    struct io_space space = {0};
    annal_error why = {0};
    bool known = store->context.io->space(store->context.io->arg, store->events.fd, &space) == 0;
    annal_status status = ANNAL_ERR_IO;
    if (!known || space.free_bytes >= FREE_RESERVE_BYTES) {
        status = annal__slot_make_log(&store->context, LOG_REGION_FIRST, out_log, &why);
        if (status >= 0 || !annal__error_is_no_space(&why))
            goto done;
    }
    status = annal__slot_make_log(&store->context, LOG_REGION_LEAST, out_log, &why);

done:
    return annal__error_pass(err, status, &why);
}

static annal_status claim(annal_store *store, int64_t deadline_us, annal_error *err)
{
    struct slot_list *list = annal__zalloc(sizeof *list);
    struct log fresh = {.fd = -1};
    uint32_t from = 0; /* number of the first slot to try; lower slots could not be used */
    bool ours = false;
    if (list == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "claim a commit log: out of memory");
    annal_status status = ANNAL_OK;
    while (status == ANNAL_OK && !ours) {
        struct other other = {.log = {.fd = -1}, .held = {.fd = -1}};
        enum found found = FOUND_NONE;
        annal_error failure;
        status = claim_once(store, list, from, &fresh, deadline_us, &found, &other, err);
        if (status < 0)
            break;
        /* create a log without holding locks/claim, because filling the log's file takes
         * milliseconds */
        if (found == FOUND_NONE) {
            status = make_first_log(store, &fresh, err);
            continue;
        }
        annal_status one = take_found(store, found, &other, &failure);
        ours = one == ANNAL_OK && found != FOUND_DEAD;
        if (one < 0 && found == FOUND_FRESH) {
            status = one;
            if (err != NULL)
                *err = failure;
        } else if (one < 0) {
            if (one != ANNAL_ERR_BUSY)
                annal__say(store, ANNAL_LOG_WARNING, "recover commit log %02" PRIu32 ": %s",
                           other.number, failure.message);
            from = other.number + 1;
        }
        other_done(&other);
    }
    annal__slot_drop_log(&store->context, &fresh);
    annal__free(list);
    return status;
}

/* Fail because another thread did not get a slot in time. If that thread waits for locks/claim,
 * name the process that holds locks/claim. */
static annal_status refuse_claiming(annal_store *store, annal_error *err)
{
    annal_status status = take_claim(store, 0, err);
    if (status < 0)
        return status;
    annal__filelock_drop(&store->context, &store->claim_lock);
    return annal__fail(err, ANNAL_ERR_BUSY,
                       "timed out waiting for another thread to claim a commit log of store %.200s",
                       store->context.path);
}

/*
 * Take a slot (commit log and held list) for this store object, unless it has one, waiting until
 * the deadline (monotonic); recovers the slots of dead processes that it finds. One thread does
 * this; the others wait for it until their own deadlines, and try themselves if it failed.
 */
static annal_status claim_slot(annal_store *store, int64_t deadline_us, annal_error *err)
{
    struct slot *slot = &store->slot;
    if (atomic_load(&slot->claimed))
        return ANNAL_OK;
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&slot->lock);
    while (slot->claiming && status == ANNAL_OK)
        status = annal__context_wait_on(&store->context, &slot->moved, &slot->lock, deadline_us);
    bool ours = status == ANNAL_OK && !atomic_load(&slot->claimed);
    slot->claiming = slot->claiming || ours;
    pthread_mutex_unlock(&slot->lock);
    if (status < 0)
        return refuse_claiming(store, err);
    if (!ours)
        return ANNAL_OK;
    status = claim(store, deadline_us, err);
    if (status == ANNAL_OK)
        annal__keeper_change_word(&store->keeper.alarm, &store->own_log.held.header->wakeup_word);
    pthread_mutex_lock(&slot->lock);
    slot->claiming = false;
    atomic_store(&slot->claimed, status == ANNAL_OK);
    pthread_cond_broadcast(&slot->moved);
    pthread_mutex_unlock(&slot->lock);
    return status;
}

void annal__slot_leave(annal_store *store)
{
    struct held_header *header = store->own_log.held.header;
    annal__held_remove_all(&store->own_log.held);
    header->end_region = store->own_log.log.current;
    header->end_epoch = store->own_log.log.epoch;
    header->end_group = store->own_log.log.group;
    atomic_store(&header->state, HELD_EMPTY);
    remove_slot(store, store->own_log.number, &store->own_log.log, &store->own_log.held);
}

/* ---- Taking a session ---- */

static bool is_ours(const annal_store *store, uint32_t number)
{
    return atomic_load(&store->slot.claimed) && store->own_log.number == number;
}

/* Find the slot that owns the session, or may own it: then *out_found is set, and *out_other is
 * open. *out_entry is the session's entry in its held list, or -1. */
static annal_status find_holder(annal_store *store, struct slot_list *list, annal_slice session,
                                struct other *out_other, int *out_entry, bool *out_found,
                                annal_error *err)
{
    *out_found = false;
    annal_status status = annal__slots_list(&store->context, list, err);
    for (size_t i = 0; i < list->count && status == ANNAL_OK; i++) {
        if (is_ours(store, list->numbers[i]))
            continue;
        struct other other;
        status = other_open(store, list->numbers[i], &other, err);
        if (status == ANNAL_ERR_NOTFOUND) {
            status = ANNAL_OK;
            continue;
        }
        if (status < 0)
            return status;
        /* A list that is not valid in this boot may omit any session. */
        int entry = other.bound ? annal__held_find(&other.held, session) : -1;
        if (is_empty(&other) || (other.bound && entry < 0)) {
            other_done(&other);
            continue;
        }
        status = other_try(store, &other, err);
        *out_other = other;
        *out_entry = entry;
        *out_found = status == ANNAL_OK;
        if (status < 0)
            other_done(&other);
        return status;
    }
    return status;
}

static annal_status refuse_busy(const annal_store *store, annal_slice session,
                                const struct other *other, annal_error *err)
{
    char name[HOLDER_BYTES];
    if (other->bound && atomic_load(&other->held.header->state) == HELD_REDONE)
        return annal__fail(
            err, ANNAL_ERR_BUSY,
            "session '%.*s' belonged to a process that died; %s is recovering its "
            "commit log %02" PRIu32,
            ANNAL_FMT(session),
            annal__lock_holder_name(annal__slot_holder(&store->context, other->number), name),
            other->number);
    if (!other->bound)
        return annal__fail(
            err, ANNAL_ERR_BUSY,
            "session '%.*s' may be in use by %s, which has commit log "
            "%02" PRIu32 ", whose list of sessions in locks/ is missing or not complete yet; wait "
            "until that process has closed the store",
            ANNAL_FMT(session),
            annal__lock_holder_name(annal__slot_holder(&store->context, other->number), name),
            other->number);
    uint32_t pid = other->held.header->pid;
    if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
        return annal__fail(
            err, ANNAL_ERR_BUSY,
            "session '%.*s' is held by process %" PRIu32
            ", which has ended, but a process that it forked keeps the lock; end that process",
            ANNAL_FMT(session), pid);
    return annal__fail(err, ANNAL_ERR_BUSY,
                       "session '%.*s' is in use by %s, which did not release the session in time",
                       ANNAL_FMT(session), annal__lock_holder_name(pid, name));
}

/* Wake the owner's background thread, which then releases the session that this process wants. */
static void ask_owner(const struct other *other)
{
    if (other->held.header == NULL)
        return;
    atomic_fetch_add(&other->held.header->wakeup_word, 1);
    annal__futex_wake(&other->held.header->wakeup_word);
}

static void want(const struct other *other, int entry)
{
    atomic_store(&annal__held_entry(&other->held, (uint32_t)entry)->word, HELD_WANTED);
}

/* Sleep until the session's entry changes, at most WAIT_SLICE_US. ANNAL_ERR_BUSY after the
 * deadline, if the session is still owned. */
static annal_status wait_for_owner(annal_store *store, const struct other *other,
                                   annal_slice session, int entry, int64_t deadline_us,
                                   annal_error *err)
{
    int64_t begun_us = annal__context_now_us(&store->context);
    int64_t left_us = annal__context_may_wait(&store->context, deadline_us - begun_us);
    int64_t slice_us = left_us < WAIT_SLICE_US ? left_us : WAIT_SLICE_US;
    if (left_us > 0 && entry < 0) {
        annal__context_wait(&store->context, slice_us);
    } else if (left_us > 0) {
        annal__context_wait_begin(&store->context);
        annal__futex_wait(&annal__held_entry(&other->held, (uint32_t)entry)->word, HELD_WANTED,
                          slice_us);
        annal__context_wait_end(&store->context);
    }
    left_us = annal__context_may_wait(&store->context,
                                      deadline_us - annal__context_now_us(&store->context));
    if (left_us > 0 || (entry >= 0 && annal__held_find(&other->held, session) < 0))
        return ANNAL_OK;
    return refuse_busy(store, session, other, err);
}

/* Redo the log of a dead owner. ANNAL_OK if the session is free after that. */
static annal_status recover_holder(annal_store *store, struct other *other, annal_slice session,
                                   int entry, int64_t deadline_us, annal_error *err)
{
    bool read = false;
    annal_status status = other_recover(store, other, deadline_us, &read, err);
    if (status != ANNAL_ERR_CORRUPT)
        return status;
    /* After a recovery that stopped sessions, the held list names these; without a valid list they
     * are unknown. */
    const struct stat log = {.st_dev = other->log.device, .st_ino = other->log.inode};
    bool known = read && annal__held_is_for(&other->held, store->context.boot, &log);
    if (known && annal__held_find(&other->held, session) < 0)
        return ANNAL_OK; /* the recovery of this log stopped only for other sessions */
    if (!known)
        annal__error_context(
            err, "session '%.*s' %s events in commit log %02" PRIu32 "%s", ANNAL_FMT(session),
            entry >= 0 ? "has" : "may have", other->number,
            read ? "" : ", move this log out of the store to continue without these events");
    return status;
}

/* Try once to take the session, holding locks/claim: on success it is in the held list of this
 * process; otherwise *out_other owns it, and was asked to release it. */
static annal_status take_once(annal_store *store, struct slot_list *list, annal_slice session,
                              int64_t deadline_us, struct other *out_other, int *out_entry,
                              bool *out_found, uint32_t *out_held_index, annal_error *err)
{
    annal_status status = take_claim(store, deadline_us, err);
    if (status < 0) {
        annal__error_context(err, "take session '%.*s'", ANNAL_FMT(session));
        return status;
    }
    status = find_holder(store, list, session, out_other, out_entry, out_found, err);
    if (status == ANNAL_OK && !*out_found)
        status = annal__held_add(&store->own_log.held, session, out_held_index, err);
    bool asks = status == ANNAL_OK && *out_found && !out_other->locked && *out_entry >= 0;
    if (asks)
        want(out_other, *out_entry);
    annal__filelock_drop(&store->context, &store->claim_lock);
    if (asks)
        ask_owner(out_other);
    return status;
}

annal_status annal__slot_take(annal_store *store, annal_slice session, int64_t deadline_us,
                              uint32_t *out_held_index, annal_error *err)
{
    struct slot_list *list = annal__zalloc(sizeof *list);
    if (list == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "take session '%.*s': out of memory",
                           ANNAL_FMT(session));
    int64_t begun_us = annal__context_now_us(&store->context);
    annal_status status = claim_slot(store, deadline_us, err);
    bool found = true, waited = false;
    while (status == ANNAL_OK && found) {
        struct other other = {.log = {.fd = -1}, .held = {.fd = -1}};
        int entry = -1;
        status = take_once(store, list, session, deadline_us, &other, &entry, &found,
                           out_held_index, err);
        if (status < 0)
            break;
        if (found && other.locked)
            status = recover_holder(store, &other, session, entry, deadline_us, err);
        else if (found)
            status = wait_for_owner(store, &other, session, entry, deadline_us, err);
        waited = waited || (found && !other.locked);
        if (found)
            other_done(&other);
    }
    if (waited)
        annal__metrics_record(&store->metrics, HISTOGRAM_SESSION_WAIT_US,
                              (uint64_t)(annal__context_now_us(&store->context) - begun_us));
    annal__free(list);
    return status;
}

annal_status annal__slot_keep_off(annal_store *store, annal_slice session, annal_error *err)
{
    struct other other = {.log = {.fd = -1}, .held = {.fd = -1}};
    struct slot_list *list = annal__zalloc(sizeof *list);
    int entry = -1;
    bool found = false;
    if (list == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "take session '%.*s': out of memory",
                           ANNAL_FMT(session));
    annal_status status = take_claim(store, 0, err);
    if (status < 0)
        goto done;
    status = find_holder(store, list, session, &other, &entry, &found, err);
    if (status == ANNAL_OK && found && other.locked) {
        status =
            annal__fail(err, ANNAL_ERR_IO,
                        "session '%.*s' has events in commit log %02" PRIu32
                        " of a process that has ended, and the disk is too full to recover them",
                        ANNAL_FMT(session), other.number);
    } else if (status == ANNAL_OK && found) {
        if (entry >= 0)
            want(&other, entry);
        ask_owner(&other);
        status = refuse_busy(store, session, &other, err);
    }
    if (status < 0)
        annal__filelock_drop(&store->context, &store->claim_lock);
    if (found)
        other_done(&other);

done:
    annal__free(list);
    return status;
}

void annal__slot_let_on(annal_store *store)
{
    annal__filelock_drop(&store->context, &store->claim_lock);
}

/* ---- Overwriting the logs ---- */

/* A slot whose owner was asked to overwrite its log. */
struct asked {
    uint32_t number;
    uint32_t wanted; /* value that the owner stores in wipe_done as its answer */
    bool is_overdue; /* whether the owner has not answered an earlier request */
};

struct wipe {
    annal_store *store;
    int64_t deadline_us;
    /* logs that were not overwritten, and why: "commit log 03 of process 1234 (stopped), until …;
     * commit log …" */
    struct buf left;
    bool removed; /* whether a log that no process owns was removed */
    struct slot_list list;
    struct asked asked[SLOTS_MAX];
    size_t asked_count;
};

static void note_left(struct wipe *wipe, uint32_t number, const struct other *other,
                      annal_status status, const annal_error *why)
{
    const struct held_header *header = other->held.header;
    char name[HOLDER_BYTES];
    (void)annal__buf_printf(&wipe->left, "%scommit log %02" PRIu32, wipe->left.len == 0 ? "" : "; ",
                            number);
    if (other->locked && status != ANNAL_ERR_BUSY)
        (void)annal__buf_printf(&wipe->left, ", which cannot be recovered: %.200s", why->message);
    else if (other->locked)
        (void)annal__buf_printf(&wipe->left, ", until the store is opened again");
    else
        (void)annal__buf_printf(
            &wipe->left, " of %s, until it continues or ends and the store is opened again",
            annal__lock_holder_name(
                header == NULL ? annal__slot_holder(&wipe->store->context, number) : header->pid,
                name));
}

/* Recover and remove a log that no living process owns. */
static annal_status wipe_idle(struct wipe *wipe, struct other *other, annal_error *err)
{
    annal_status status = ANNAL_OK;
    bool read = false;
    if (other->held.header != NULL)
        atomic_fetch_add(&other->held.header->wipe_wanted, 1);
    if (!is_empty(other))
        status = other_recover(wipe->store, other, wipe->deadline_us, &read, err);
    if (status < 0)
        return status;
    remove_slot(wipe->store, other->number, &other->log, &other->held);
    wipe->removed = true;
    return annal__log_is_in_place(&other->log) ? ANNAL_ERR_BUSY : ANNAL_OK;
}

static bool has_answered(const struct other *other, uint32_t wanted)
{
    const struct held_header *header = other->held.header;
    return header != NULL &&
           (!is_to_wipe(&other->held) || (int32_t)(atomic_load(&header->wipe_done) - wanted) >= 0);
}

static void ask_to_wipe(struct wipe *wipe, const struct other *other)
{
    bool is_overdue = is_to_wipe(&other->held);
    uint32_t wanted = atomic_fetch_add(&other->held.header->wipe_wanted, 1) + 1;
    ask_owner(other);
    wipe->asked[wipe->asked_count++] = (struct asked){other->number, wanted, is_overdue};
}

/*
 * Wait until the owner answers, ends, or turns out to be stopped. Whether it is stopped is checked
 * only after the first sleep. The held list is opened again for each check, because it may belong
 * to another process by then, which received no request.
 */
static annal_status wait_for_answer(struct wipe *wipe, const struct asked *asked,
                                    int64_t deadline_us, struct other *other, annal_error *err)
{
    annal_store *store = wipe->store;
    for (bool first = true;; first = false) {
        annal_status status = other_open(store, asked->number, other, err);
        if (status < 0 || has_answered(other, asked->wanted))
            return status;
        status = other_try(store, other, err);
        if (status < 0 || other->locked)
            return status < 0 ? status : wipe_idle(wipe, other, err);
        int64_t now_us = annal__context_now_us(&store->context);
        int64_t left_us = annal__context_may_wait(&store->context, deadline_us - now_us);
        struct held_header *header = other->held.header;
        if (left_us <= 0 || header == NULL ||
            (!first && annal__lock_holder_is_stopped(header->pid)))
            return ANNAL_ERR_BUSY;
        uint32_t done = atomic_load(&header->wipe_done);
        annal__context_wait_begin(&store->context);
        if (!has_answered(other, asked->wanted))
            annal__futex_wait(&header->wipe_done, done,
                              left_us < WAIT_SLICE_US ? left_us : WAIT_SLICE_US);
        annal__context_wait_end(&store->context);
        other_done(other);
    }
}

/* Remove the log of a slot that no process owns; otherwise ask its owner to overwrite the log. All
 * owners are asked before the first wait. */
static void wipe_or_ask(struct wipe *wipe, uint32_t number)
{
    annal_error why = {0};
    struct other other = {.log = {.fd = -1}, .held = {.fd = -1}};
    annal_status status = other_open(wipe->store, number, &other, &why);
    if (status == ANNAL_OK)
        status = other_try(wipe->store, &other, &why);
    if (status == ANNAL_OK && other.locked)
        status = wipe_idle(wipe, &other, &why);
    else if (status == ANNAL_OK && other.held.header == NULL)
        status = ANNAL_ERR_BUSY;
    else if (status == ANNAL_OK)
        ask_to_wipe(wipe, &other);
    if (status < 0 && status != ANNAL_ERR_NOTFOUND)
        note_left(wipe, number, &other, status, &why);
    other_done(&other);
}

/* Wait for the owners that were asked. An owner that has not answered an earlier request may have
 * no keeper: all such owners together get OWED_US. */
static void wait_for_answers(struct wipe *wipe)
{
    int64_t moment_us = annal__context_now_us(&wipe->store->context) + OWED_US;
    if (moment_us > wipe->deadline_us)
        moment_us = wipe->deadline_us;
    for (size_t i = 0; i < wipe->asked_count; i++) {
        annal_error why = {0};
        const struct asked *asked = &wipe->asked[i];
        struct other other = {.log = {.fd = -1}, .held = {.fd = -1}};
        annal_status status = wait_for_answer(
            wipe, asked, asked->is_overdue ? moment_us : wipe->deadline_us, &other, &why);
        if (status < 0 && status != ANNAL_ERR_NOTFOUND)
            note_left(wipe, asked->number, &other, status, &why);
        other_done(&other);
    }
}

static void wipe_own(struct wipe *wipe)
{
    annal_error why;
    if (annal__commit_wipe(&wipe->store->commit, &why) < 0)
        (void)annal__buf_printf(
            &wipe->left,
            "%scommit log %02" PRIu32 " of this process, which cannot be overwritten: %.200s",
            wipe->left.len == 0 ? "" : "; ", wipe->store->own_log.number, why.message);
}

annal_status annal__slots_wipe(annal_store *store, int64_t deadline_us, annal_error *err)
{
    SCOPED_BUF path = {0};
    struct wipe *wipe = annal__zalloc(sizeof *wipe);
    if (wipe == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "overwrite the commit logs: out of memory");
    *wipe = (struct wipe){.store = store, .deadline_us = deadline_us, .left = {.limit = 400}};
    annal_status status = annal__slots_list(&store->context, &wipe->list, err);
    if (status < 0)
        goto done;
    for (size_t i = 0; i < wipe->list.count; i++) {
        if (!is_ours(store, wipe->list.numbers[i]))
            wipe_or_ask(wipe, wipe->list.numbers[i]);
    }
    /* overwrite this process's log at the same time as the other owners overwrite their logs */
    if (atomic_load(&store->slot.claimed))
        wipe_own(wipe);
    wait_for_answers(wipe);
    if (wipe->removed) {
        status = annal__context_path(&store->context, &path, "commit", "", err);
        if (status == ANNAL_OK)
            status = annal__io_sync_dir(store->context.io, path.ptr, err);
    }
    if (status == ANNAL_OK && wipe->left.len > 0)
        status = annal__fail(err, ANNAL_ERR_BUSY, "deleted content may remain in %.*s",
                             (int)wipe->left.len, wipe->left.ptr);

done:
    annal__buf_done(&wipe->left);
    annal__free(wipe);
    return status;
}
