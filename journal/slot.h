/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: which process may write which session (commit-log rules 8 to 10).
 *
 * Each process holds a single file lock, on its slot; it owns a session if the slot's held list
 * names it. So when a process dies, its sessions and its unresolved redo are recovered together.
 *
 * A process may be stopped while it holds any lock. Therefore no wait for a lock is without a
 * deadline, readers never wait for locks/claim or locks/recovery, and a process that holds
 * locks/claim neither reads nor syncs a file.
 */
#ifndef JOURNAL_SLOT_H
#define JOURNAL_SLOT_H

#include "journal/store.h"

/* Add the session to our held list; wait for another owner until the deadline (monotonic). */
annal_status annal__slot_take(annal_store *store, annal_slice session, int64_t deadline_us,
                              uint32_t *out_held_index, annal_error *err);

/*
 * Keep a session from all other processes for a moment, for a caller that has no slot and cannot
 * create one because the disk is full: locks/claim is held until annal__slot_let_on(), and no
 * process owns the session. Does not wait for another process: it returns ANNAL_ERR_BUSY, after
 * asking the owner for the session.
 */
annal_status annal__slot_keep_off(annal_store *store, annal_slice session, annal_error *err);
void annal__slot_let_on(annal_store *store);

/*
 * Create a log that belongs to no slot yet (any thread), and replace ours, of which nothing is
 * needed any more, by it (the leader only, which never waits for other processes). *fresh is empty
 * afterwards, even after a failure.
 */
annal_status annal__slot_make_log(annal_store *store, uint64_t region_bytes, struct log *out_log,
                                  annal_error *err);
annal_status annal__slot_put_log(annal_store *store, struct log *fresh, annal_error *err);
void annal__slot_drop_log(annal_store *store, struct log *fresh);

/* Mark the slot empty and release it. Everything in its log is released, durably. */
void annal__slot_leave(annal_store *store);

/*
 * Remove everything that is not needed from all logs: overwrite ours, remove logs without owner,
 *     and request other owners to overwrite their logs (held_list.h, rule 7). All requests are sent
 *     before the first wait, until the deadline (monotonic). ANNAL_ERR_BUSY: some log may still
 *     contain something;
 * the message says which, and until when.
 */
annal_status annal__slots_wipe(annal_store *store, int64_t deadline_us, annal_error *err);

/* The slots that have a log, in the order of their numbers; and the path of a slot's file, where
 * part is commit or locks. */
#define SLOTS_MAX 1000
struct slot_list {
    uint32_t numbers[SLOTS_MAX];
    size_t count;
};
annal_status annal__slots_list(const annal_store *store, struct slot_list *out_list,
                               annal_error *err);
annal_status annal__slot_path(const annal_store *store, struct buf *out, const char *part,
                              uint32_t number, annal_error *err);

/*
 * Recover every slot that no living process has. Called at open. *out_missing: a slot that another
 * process recovers without progress; SLOTS_MAX: none
 */
annal_status annal__slots_recover(annal_store *store, uint32_t *out_missing, annal_error *err);

/* A slot that another process is recovering, or SLOTS_MAX. For callers that only look. */
uint32_t annal__slots_find_redone(annal_store *store);

/* The process that has the lock of a slot; 0 if no process has it, or if the system does not
 * say. */
uint32_t annal__slot_holder(const annal_store *store, uint32_t number);

/*
 * Call fn for each record that no checkpoint covers, of every log, or only of logs of dead
 * processes that are not recovered yet. Stops if fn returns below 0, and returns that, or why a log
 * cannot be read.
 */
enum slots_which { SLOTS_ALL, SLOTS_DEAD };
typedef annal_status (*slot_record_fn)(void *arg, const struct record *record, annal_error *err);
annal_status annal__slots_each_record(annal_store *store, enum slots_which which, slot_record_fn fn,
                                      void *arg, annal_error *err);

#endif
