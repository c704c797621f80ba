/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan of what is to be indexed: the journals that are longer than their cursors, found without
 * the lock. Each session is indexed up to the size that its journal had then, so that a busy writer
 * does not keep a reader waiting forever. A plan for all sessions compares only sizes: in a store
 * with 100,000 sessions, opening every journal would cost each reader some seconds, to find changes
 * that no program of ours makes.
 */
#ifndef INDEX_FOLLOW_PLAN_H
#define INDEX_FOLLOW_PLAN_H

#include "index/follow/follower.h"
#include "journal/base/buf.h"

/* A session that is not up to date, or (gone) whose journal no longer exists. */
struct plan_entry {
    size_t name_at; /* in plan.names */
    size_t name_bytes;
    annal_position from; /* seq 0: the session is not in the index */
    uint64_t target;     /* size of the journal */
    bool gone;
};

struct plan {
    struct stamp stamp; /* the database that had these cursors */
    struct buf names;
    struct plan_entry *entries;
    size_t count;
    size_t next;    /* index of the first entry that is not done */
    size_t turn;    /* the entry whose turn it is; indexer.c */
    bool unsettled; /* for verify: nothing is settled at the targets (indexer.c, rule 9) */
    bool in_task;   /* whether a transaction ends early if the keeper is needed */
    /* whether others waited for the lock in the meantime: index_lock.h, rule 6 */
    bool wanted;
    annal_error unreadable; /* the first journal that could not be read, and why */
};

/*
 * Plan for these sessions, or for all if count is 0. The plan is empty before; free it even after a
 * failure. journals: what annal__plan_list() found a moment ago, to save another look; may be NULL.
 */
annal_status annal__plan_make(const struct follower *follower, const annal_slice *sessions,
                              size_t count, const struct plan *journals, uint32_t wait_ms,
                              struct plan *plan, annal_error *err);

/*
 * List every journal of the store as an entry, sorted by session id. Its target is the current size
 * of the journal.
 */
annal_status annal__plan_list(annal_store *store, struct plan *journals, annal_error *err);
void annal__plan_done(struct plan *plan);

/* Add an entry. ANNAL_ERR_NOMEM without a message. */
annal_status annal__plan_add(struct plan *plan, annal_slice session, annal_position from,
                             uint64_t target, bool gone);

annal_slice annal__plan_session(const struct plan *plan, const struct plan_entry *entry);

/* Drop the entries that have nothing to read. *out_bytes: how much the others have. */
void annal__plan_look_ahead(const struct follower *follower, struct plan *plan,
                            uint64_t *out_bytes);

/*
 * Describe the progress of the tables, for a message: "hold 21.4 of 58.0 MB of the journals so
 * far". *out_left: the bytes that are still missing.
 */
#define PLAN_PROGRESS_BYTES 80
annal_status annal__plan_progress(const struct follower *follower, uint32_t wait_ms,
                                  char out[PLAN_PROGRESS_BYTES], uint64_t *out_left,
                                  annal_error *err);

/*
 * Index entries from plan->next on, as many as one transaction takes (indexer.c). A deadline of 0
 * only tries the lock. With must_match, returns ANNAL_ERR_CONFLICT, without a message, if the
 * database is no longer that of the plan.
 */
annal_status annal__indexer_batch(struct follower *follower, struct plan *plan,
                                  int64_t lock_until_us, int64_t work_until_us, bool must_match,
                                  annal_index_progress *progress, annal_error *err);

#endif
