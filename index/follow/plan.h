/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan of the sessions to index: those whose journals do not end at the session's cursor, found
 * without taking the lock. Each session is indexed up to the size that its journal has when the
 * plan is created, so that a busy writer does not keep a reader waiting forever. A plan for all
 * sessions compares only sizes: in a store with 100,000 sessions, opening every journal to find a
 * replaced journal of equal size, which no program of ours creates, would take each reader some
 * seconds.
 */
#pragma once

#include "index/follow/follower.h"
#include "journal/base/buf.h"

/* A session that is not indexed up to the end of its journal, or, with gone, whose journal no
 * longer exists. */
struct plan_entry {
    size_t name_at; /* offset of the session's id in plan.names */
    size_t name_bytes;
    /* position up to which the session is indexed; seq 0: the session is not in the index */
    annal_position from;
    uint64_t target; /* size of the journal at the time of the plan */
    bool gone;
};

struct plan {
    struct stamp stamp; /* stamp of the database from which the cursors were read */
    /* what annal__journal_watch_changed() returned as the present before the journals were
     * examined; 0: unknown */
    uint64_t watched;
    bool listed;     /* whether the plan is a list of all journals */
    size_t journals; /* number of journals that were examined */
    struct buf names;
    struct plan_entry *entries;
    size_t count;
    size_t next; /* index of the first entry that is not indexed yet */
    size_t turn; /* index of the entry whose turn is next: indexer.c, rule (8) */
    /* for verify: whether the sections `-- settle` must not run at the ends of journals (indexer.c,
     * rule 9) */
    bool unsettled;
    /* whether the plan runs in a task of the keeper, so that a transaction ends early if the keeper
     * is needed */
    bool in_task;
    /* whether other processes waited for the lock during the last transaction: index_lock.h, rule
     * (6) */
    bool wanted;
    /* failure of the first journal that could not be read; status 0: none failed */
    annal_error unreadable;
};

/*
 * Make a plan for these sessions, or for all if count is 0. *plan must be empty; free it even after
 * a failure. journals: a list of all journals, for several plans; it is filled when it is first
 * needed. May be NULL.
 *
 * A plan for all sessions examines only the journals that changed since the follower was last
 * caught up on all, if that is known.
 */
annal_status annal__plan_make(const struct follower *follower, const annal_slice *sessions,
                              size_t count, struct plan *journals, uint32_t wait_ms,
                              struct plan *plan, annal_error *err);

/* Note that the follower was caught up with a plan for all sessions. */
void annal__plan_note_whole(struct follower *follower, const struct plan *plan);
void annal__plan_done(struct plan *plan);

/* Add an entry. Returns ANNAL_ERR_NOMEM, without a message, if memory runs out. */
annal_status annal__plan_add(struct plan *plan, annal_slice session, annal_position from,
                             uint64_t target, bool gone);

annal_slice annal__plan_session(const struct plan *plan, const struct plan_entry *entry);

/* Remove the entries whose journals have no new events. *out_bytes: bytes to read for the other
 * entries. */
void annal__plan_look_ahead(const struct follower *follower, struct plan *plan,
                            uint64_t *out_bytes);

#define PLAN_PROGRESS_BYTES 80 /* size of the buffer for the text of annal__plan_progress() */

/*
 * Describe how far the tables are filled, for a message: "hold 21.4 of 58.0 MB of the journals so
 * far". *out_left: bytes of the journals that are not in the tables yet.
 */
annal_status annal__plan_progress(const struct follower *follower, uint32_t wait_ms,
                                  char out[PLAN_PROGRESS_BYTES], uint64_t *out_left,
                                  annal_error *err);

/*
 * Index entries of the plan from plan->next on, in one transaction (indexer.c, rule 4).
 * lock_until_us: deadline for the lock; 0: try once. work_until_us: when to stop indexing. With
 * must_match, returns ANNAL_ERR_CONFLICT, without a message, if the cursors of the plan are from
 * another database.
 */
annal_status annal__indexer_batch(struct follower *follower, struct plan *plan,
                                  int64_t lock_until_us, int64_t work_until_us, bool must_match,
                                  annal_index_progress *progress, annal_error *err);
