/* SPDX-License-Identifier: Apache-2.0 */
/* Examine the commit logs of a store, for verify and doctor, without changing or claiming any
 * log. */
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/slot_files.h"
#include "journal/store.h"
#include "journal/sys/inspect.h"

#include <inttypes.h>
#include <sys/file.h>

/* number of times that a log is read again, with pauses of SETTLE_US microseconds: a group that is
 * being written looks damaged */
#define SETTLE_TRIES 20
#define SETTLE_US    5000

/*
 * Return whether no process has locked the log. This tries to lock it, under locks/claim, so that a
 * process that claims a log does not find it locked by this check. If locks/claim is taken, the
 * lock is tried without it, because verify and doctor never wait.
 */
static bool is_free(annal_store *store, struct log *log)
{
    bool locked = !store->context.read_only &&
                  annal__filelock_try(&store->context, &store->claim_lock, NULL) == 0;
    bool got = store->context.io->flock(store->context.io->arg, log->fd, LOCK_SH | LOCK_NB) == 0;
    if (got)
        (void)store->context.io->flock(store->context.io->arg, log->fd, LOCK_UN);
    if (locked)
        annal__filelock_drop(&store->context, &store->claim_lock);
    return got;
}

static void look_at_list(annal_store *store, struct log *log, annal__log_info *info)
{
    SCOPED_BUF path = {0};
    struct held held = {.fd = -1};
    struct stat file;
    if (annal__slot_path(&store->context, &path, "locks", info->number, NULL) < 0 ||
        store->context.read_only ||
        annal__held_open(store->context.io, path.ptr, false, &held, NULL) < 0 ||
        store->context.io->fstat(store->context.io->arg, log->fd, &file) < 0)
        goto done;
    if (!annal__held_is_for(&held, store->context.boot, &file))
        goto done;
    info->pid = held.header->pid;
    for (uint32_t i = 0; i < annal__held_entries(&held); i++)
        info->sessions += atomic_load(&annal__held_entry(&held, i)->hash) != 0;

done:
    annal__held_close(&held);
}

/* Count the groups; ANNAL_DAMAGE if a group is missing before a later group. */
static annal_status look_at_groups(struct log *log, annal__log_info *info, annal_error *err)
{
    struct log_group *groups = NULL;
    size_t count = 0;
    uint64_t last;
    annal_status status = annal__log_find_groups(log, &groups, &count, err);
    if (status < 0)
        return status;
    uint64_t released = annal__log_released(groups, count);
    info->groups = info->unreleased = info->unreleased_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        info->groups += groups[i].records > 0;
        if (groups[i].epoch > released && groups[i].records > 0) {
            info->unreleased++;
            info->unreleased_bytes += groups[i].payload_bytes;
        }
    }
    if (annal__log_lost(log, groups, count, &last))
        status = ANNAL_DAMAGE;
    annal__free(groups);
    return status;
}

static annal_status look_at_log(annal_store *store, uint32_t number, annal__log_info *out_info,
                                annal_error *err)
{
    SCOPED_BUF path = {0};
    struct log log = {.fd = -1};
    struct stat file;
    annal__log_info info = {.number = number};
    annal_status status = annal__slot_path(&store->context, &path, "commit", number, err);
    if (status == ANNAL_OK && store->context.io->stat(store->context.io->arg, path.ptr, &file) == 0)
        info.bytes = (uint64_t)file.st_size;
    if (status == ANNAL_OK)
        status = annal__log_open(store->context.io, path.ptr, false, &log, err);
    if (status == ANNAL_ERR_CORRUPT) {
        info.what = "its first block is damaged: its events cannot be redone";
        status = ANNAL_OK;
        goto done;
    }
    if (status < 0)
        goto done;
    info.living = !is_free(store, &log);
    look_at_list(store, &log, &info);
    status = look_at_groups(&log, &info, err);
    for (int tries = 0; status == ANNAL_DAMAGE && info.living && tries < SETTLE_TRIES; tries++) {
        _Atomic uint32_t never = 0;
        annal__futex_wait(&never, 0, SETTLE_US);
        status = look_at_groups(&log, &info, err);
    }
    if (status == ANNAL_DAMAGE) {
        info.what = "a group is missing before another group: events may be lost";
        status = ANNAL_OK;
    }

done:
    annal__log_close(&log);
    if (status == ANNAL_OK)
        *out_info = info;
    return status;
}

annal_status annal__log_each(annal_store *store, annal__log_info_fn fn, void *arg, annal_error *err)
{
    struct slot_list list = {.count = 0};
    annal_status status = annal__context_check(&store->context, err);
    if (status == ANNAL_OK)
        status = annal__slots_list(&store->context, &list, err);
    for (size_t i = 0; i < list.count && status == ANNAL_OK; i++) {
        annal__log_info info;
        status = look_at_log(store, list.numbers[i], &info, err);
        if (status == ANNAL_ERR_NOTFOUND)
            status = ANNAL_OK; /* the owner removed the log in the meantime */
        else if (status == ANNAL_OK)
            status = fn(arg, &info);
    }
    return status;
}

/* Set *pid to the owner of this slot if it owns the session; otherwise leave *pid unchanged. */
static annal_status look_for_session(annal_store *store, uint32_t number, annal_slice session,
                                     uint32_t *pid, annal_error *err)
{
    SCOPED_BUF path = {0}, list = {0};
    struct log log = {.fd = -1};
    struct held held = {.fd = -1};
    struct stat file;
    annal_status status = annal__slot_path(&store->context, &path, "commit", number, err);
    if (status == ANNAL_OK)
        status = annal__slot_path(&store->context, &list, "locks", number, err);
    if (status == ANNAL_OK)
        status = annal__log_open(store->context.io, path.ptr, false, &log, err);
    if (status == ANNAL_ERR_NOTFOUND || status == ANNAL_ERR_CORRUPT)
        /* ignore the failure: the log was removed in the meantime, or is damaged, and then no
         * process owns it */
        status = ANNAL_OK;
    if (status < 0 || log.fd < 0 || is_free(store, &log))
        goto done;
    if (annal__held_open(store->context.io, list.ptr, false, &held, NULL) < 0 ||
        held.header == NULL ||
        store->context.io->fstat(store->context.io->arg, log.fd, &file) < 0 ||
        !annal__held_is_for(&held, store->context.boot, &file))
        status = annal__fail(
            err, ANNAL_ERR_BUSY,
            "cannot find the owner of session '%.*s': the process that writes commit log %02" PRIu32
            " has no list of its sessions in locks/; wait until this process has closed the store",
            ANNAL_FMT(session), number);
    else if (annal__held_find(&held, session) >= 0)
        *pid = held.header->pid;

done:
    annal__held_close(&held);
    annal__log_close(&log);
    return status;
}

annal_status annal__log_session_owner(annal_store *store, annal_slice session, uint32_t *out_pid,
                                      annal_error *err)
{
    struct slot_list list = {.count = 0};
    uint32_t pid = 0;
    annal_status status = annal__context_check(&store->context, err);
    if (status == ANNAL_OK)
        status = annal_session_id_check(session, err);
    if (status == ANNAL_OK)
        status = annal__slots_list(&store->context, &list, err);
    for (size_t i = 0; i < list.count && status == ANNAL_OK && pid == 0; i++)
        status = look_for_session(store, list.numbers[i], session, &pid, err);
    if (status == ANNAL_OK)
        *out_pid = pid;
    return status;
}
