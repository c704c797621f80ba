/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan of what is to be indexed: the journals that are longer than their cursors, found without
 * the lock. Each session is done up to the size that it had then, so that a busy writer does not
 * keep a reader waiting without end. A plan for all sessions compares sizes only: opening every
 * journal would cost each reader of a store with 100,000 sessions some seconds, to find what no
 * program of ours does.
 */
#ifndef INDEX_FOLLOW_PLAN_H
#define INDEX_FOLLOW_PLAN_H

#include "index/follow/follower.h"
#include "journal/base/buf.h"

/* A session that is not up to date, or (gone) whose journal does not exist any more. */
struct plan_entry {
    size_t name_at; /* in plan.names */
    size_t name_bytes;
    annal_position from; /* seq 0: the index does not know the session */
    uint64_t target;     /* size of the journal */
    bool gone;
};

struct plan {
    struct stamp stamp; /* of the database whose cursors it was made from */
    struct buf names;
    struct plan_entry *entries;
    size_t count;
    size_t next;            /* entries before it are done */
    size_t turn;            /* the entry whose turn it is; indexer.c */
    bool unsettled;         /* for verify: nothing is settled at the targets (indexer.c, rule 9) */
    bool in_task;           /* a transaction ends early if the keeper is needed */
    bool wanted;            /* others waited for the lock meanwhile: index_lock.h, rule 6 */
    annal_error unreadable; /* the first journal that could not be read, and why */
};

/*
 * Plan for these sessions, or all if count is 0. The plan is empty before; free it even after a
 * failure. journals: what annal__plan_list() found a moment ago, to save another look; may be NULL.
 */
annal_status annal__plan_make(const struct follower *follower, const annal_slice *sessions,
                              size_t count, const struct plan *journals, uint32_t wait_ms,
                              struct plan *plan, annal_error *err);

/* Every journal of the store as an entry, sorted by session id: its target is the size that it has
 * now. */
annal_status annal__plan_list(annal_store *store, struct plan *journals, annal_error *err);
void annal__plan_done(struct plan *plan);

/* Add an entry. ANNAL_ERR_NOMEM without a message. */
annal_status annal__plan_add(struct plan *plan, annal_slice session, annal_position from,
                             uint64_t target, bool gone);

annal_slice annal__plan_session(const struct plan *plan, const struct plan_entry *entry);

/* Drop the entries for which there is nothing to read; *out_bytes is how much the others have. */
void annal__plan_look_ahead(const struct follower *follower, struct plan *plan,
                            uint64_t *out_bytes);

/*
 * How far its tables are, for a message: "hold 21.4 of 58.0 MB of the journals so far". *out_left:
 * the bytes that are still missing.
 */
#define PLAN_PROGRESS_BYTES 80
annal_status annal__plan_progress(const struct follower *follower, uint32_t wait_ms,
                                  char out[PLAN_PROGRESS_BYTES], uint64_t *out_left,
                                  annal_error *err);

/*
 * Do entries from plan->next on, as many as one transaction takes (indexer.c). A deadline of 0 only
 * tries the lock. With must_match, returns ANNAL_ERR_CONFLICT, without a message, if the database
 * is no longer the one that the plan was made for.
 */
annal_status annal__follower_batch(struct follower *follower, struct plan *plan,
                                   int64_t lock_until_us, int64_t work_until_us, bool must_match,
                                   annal_index_progress *progress, annal_error *err);

#endif
