/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: which process may write which session (rules 8 to 10 of the commit log).
 *
 * Each process holds a single file lock, on the commit log of its slot; it owns a session if the
 * held list of the slot names the session. So when a process dies, its sessions and the events that
 * are only in its log are recovered together.
 *
 * A process may be stopped while it holds any lock. Therefore no wait for a lock is without a
 * deadline, readers never wait for locks/claim or locks/recovery, and a process that holds
 * locks/claim neither reads nor syncs a file.
 */
#pragma once

#include "journal/log.h"
#include "journal/slot_files.h"

#include <stdatomic.h>

/* Whether this store object has a slot: its own_log (slot_log.h). */
struct slot {
    pthread_mutex_t lock;
    pthread_cond_t moved; /* signaled when a thread has finished claiming a slot */
    bool claiming;        /* whether a thread is claiming a slot; guarded by lock */
    /* whether this store object has a slot, so that its own_log is set */
    _Atomic bool claimed;
};

/* Take a session: add it to the held list of this process, and wait for another owner until the
 * deadline (monotonic). *out_held_index is the index of its entry. */
annal_status annal__slot_take(annal_store *store, annal_slice session, int64_t deadline_us,
                              uint32_t *out_held_index, annal_error *err);

/*
 * Prevent all other processes from taking a session, for a caller that has no slot and cannot
 * create one because the disk is full: the lock locks/claim is held until annal__slot_let_on().
 * Fails with ANNAL_ERR_BUSY if a process owns the session, after asking it to release the session.
 */
annal_status annal__slot_keep_off(annal_store *store, annal_slice session, annal_error *err);
void annal__slot_let_on(annal_store *store);

/* Mark the slot as empty, and unlock it for other processes. Every event of its log is in a synced
 * journal, and the log records this. */
void annal__slot_leave(annal_store *store);

/*
 * Remove what is not needed from all logs: overwrite our log, remove logs without an owner, and ask
 * other owners to overwrite their logs (held_list.h, rule 7), waiting until the deadline
 * (monotonic). ANNAL_ERR_BUSY if a log may still contain deleted content; the message names the log
 * and says until when.
 */
annal_status annal__slots_wipe(annal_store *store, int64_t deadline_us, annal_error *err);

/* Recover every slot that no living process owns. Called when a store is opened. *out_missing: a
 * slot that another process is recovering without progress, or SLOTS_MAX. */
annal_status annal__slots_recover(annal_store *store, uint32_t *out_missing, annal_error *err);

/* Return a slot that another process is recovering, or SLOTS_MAX. Changes nothing. */
uint32_t annal__slots_find_redone(annal_store *store);

/*
 * Call fn for each record that recovery may still need, in every log or, with SLOTS_DEAD, in the
 * logs of dead processes that are not recovered yet. Stops if fn returns below 0, and returns this
 * status, or the reason why a log cannot be read.
 */
enum slots_which { SLOTS_ALL, SLOTS_DEAD };
typedef annal_status (*slot_record_fn)(void *arg, const struct record *record, annal_error *err);
annal_status annal__slots_each_record(annal_store *store, enum slots_which which, slot_record_fn fn,
                                      void *arg, annal_error *err);
