/*
 * Slots: who may write which session (commit-log rules 8 to 10).
 *
 * There is one file lock per process, its slot's; a session is owned by being named in the slot's
 * held list. So ownership and unresolved redo die, and are recovered, together.
 *
 * A process may be stopped while it has any lock. So nobody waits for one without a deadline,
 * nobody who only reads waits for locks/claim or locks/recovery at all, and who has locks/claim
 * neither reads nor syncs a file.
 */
#ifndef JOURNAL_SLOT_H
#define JOURNAL_SLOT_H

#include "journal/store.h"

/*
 * Claim a slot for this store object, unless it has one, by the deadline (monotonic). Recovers
 * slots of dead processes on the way.
 */
annal_status annal__slot_claim(annal_store *store, int64_t deadline_us, annal_error *err);

/* Name the session in our held list; waits for another owner until the deadline (monotonic). */
annal_status annal__slot_take(annal_store *store, annal_slice session, int64_t deadline_us,
                              uint32_t *out_held_index, annal_error *err);

/*
 * For a session of which a moment is all that is needed, by one who has no slot and can make none,
 * because the disk is full: locks/claim is held until annal__slot_let_on(), and nobody has the
 * session. Does not wait for another process: ANNAL_ERR_BUSY, but the owner has been asked.
 */
annal_status annal__slot_keep_off(annal_store *store, annal_slice session, annal_error *err);
void annal__slot_let_on(annal_store *store);

/*
 * Make a fresh log, which is no slot's yet; any thread. And put it in the place of ours, of which
 * nothing is needed any more: the leader calls, and waits for nobody. *fresh is empty afterwards,
 * whatever came of it.
 */
annal_status annal__slot_make_log(annal_store *store, uint64_t region_bytes, struct log *out_log,
                                  annal_error *err);
annal_status annal__slot_put_log(annal_store *store, struct log *fresh, annal_error *err);
void annal__slot_drop_log(annal_store *store, struct log *fresh);

/* The slot is empty: everything released, durably. Mark it so and give it back. */
void annal__slot_leave(annal_store *store);

/*
 * Leave nothing in any log that is not needed: overwrite ours, remove those that nobody has, and
 * ask owners to overwrite theirs (held_list.h, rule 7), all of them before one is waited for, until
 * the deadline (monotonic). ANNAL_ERR_BUSY: some log may still hold something; the message says
 * which, and until when.
 */
annal_status annal__slots_wipe(annal_store *store, int64_t deadline_us, annal_error *err);

/* The slots that have a log, in order of number; and where a slot has its file: part is commit or
 * locks. */
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
 * Recover every slot that no living process has. Called at open. *out_missing: one that another
 * process is recovering and makes no progress with; SLOTS_MAX: none.
 */
annal_status annal__slots_recover(annal_store *store, uint32_t *out_missing, annal_error *err);

/* One that another process recovers; SLOTS_MAX: none. For who only looks. */
uint32_t annal__slots_find_redone(annal_store *store);

/* The process that has the lock of a slot, 0: nobody, or it is not told. */
uint32_t annal__slot_holder(const annal_store *store, uint32_t number);

/*
 * Call fn for each record that no checkpoint covers, of every log or of those of dead processes
 * that nobody has recovered. Stops and returns what fn returned below 0, or why a log cannot be
 * read.
 */
enum slots_which { SLOTS_ALL, SLOTS_DEAD };
typedef annal_status (*slot_record_fn)(void *arg, const struct record *record, annal_error *err);
annal_status annal__slots_each_record(annal_store *store, enum slots_which which, slot_record_fn fn,
                                      void *arg, annal_error *err);

#endif
