/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of snapshots for replay and the command: begin a replay at a snapshot, and list and
 * take the snapshots that are due. */
#pragma once

#include <annal/snapshot.h>

/* A session of which a snapshot is due. */
typedef struct annal__snapshot_overdue {
    annal_slice session; /* valid until the callback returns */
    uint64_t events;     /* number of events of the session after its newest snapshot */
    uint64_t bytes;
    int64_t since_us; /* time of the first of these events, in microseconds UTC */
} annal__snapshot_overdue;

/* Receive a session of which a snapshot is due. Return 0 to continue; any other value stops, and is
 * returned. */
typedef int (*annal__snapshot_overdue_fn)(void *arg, const annal__snapshot_overdue *overdue);

/* Call fn for each session of which a snapshot is due now, sorted by session. Reads a few KB of
 * each journal. Any thread. */
ANNAL_MUST_CHECK annal_status annal__due_each(annal_index *index,
                                              const annal_snapshot_policy *policy,
                                              annal__snapshot_overdue_fn fn, void *arg,
                                              annal_error *err);

/*
 * Take the snapshots of a session that are due by events and bytes, for instance after an import.
 * *out_count (may be NULL) receives their number. A due snapshot is skipped only if the changed
 * pages take more than four times the bytes of the journal since the last snapshot. A session
 * without events is accepted; other failures are those of annal_snapshot_take(). Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__snapshot_catch_up(annal_index *index, annal_slice session,
                                                       const annal_snapshot_policy *policy,
                                                       uint64_t *out_count, annal_error *err);

/*
 * Begin a replay: return a state at or before event at_most, and a cursor before the next event.
 * The state is that of the newest valid snapshot, of the session or, at and before the fork point
 * of a fork, of an ancestor. Without a snapshot, and if at_most is 0, the state is empty and the
 * cursor is before the first event. packs may be NULL: the core pack of the index. Index and packs
 * must outlive the state, which reads the snapshot as it needs pages. Most callers want
 * annal_replay_open() instead. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 */
ANNAL_MUST_CHECK annal_status annal__load_begin(annal_index *index, annal_slice session,
                                                uint64_t at_most, const annal_pack *const *packs,
                                                size_t pack_count, annal_state **out_state,
                                                annal_cursor **out_cursor, annal_error *err);
