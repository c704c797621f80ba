/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a snapshot is due, and which snapshots may be deleted. Pure functions: no clock, no disk.
 *
 * Snapshots of a session are numbered, and each number exceeds the number before by the session's
 * stride: 1 at first. If all snapshots together take more bytes than they may, the stride becomes
 * four times as large: the snapshots whose numbers are not multiples of it are deleted
 * (container.c, rule 3: no other snapshot depends on them). From then on a snapshot is due only
 * after stride times as many events, bytes or milliseconds. So the snapshots of a session of any
 * length take a bounded share of its own size, at equal distances.
 *
 * The keeper skips snapshots while it is more than eight distances from the end of the journal: a
 * snapshot that is due less than half of the way to the end, and less than 16,000 events after the
 * last snapshot, is not taken. So in a burst of appends it takes a snapshot every 16,000 events;
 * after the burst it takes a snapshot after half of the remaining events, then after half of the
 * rest, and so on, and at last every snapshot that is due near the end. So the newest state is soon
 * close to a snapshot, a process that ends early has still taken a useful snapshot, and no state is
 * so far from a snapshot that a person would wait for it. Skipped snapshots are never taken later,
 * because snapshots are numbered in order of seq. To take every snapshot that is due, delete the
 * session's snapshots (annal_snapshot_drop()) and take them again (annal_snapshot_take()).
 */
#pragma once

#include <annal/snapshot.h>

/* A position in a session: after event seq, whose frame ends at byte `offset` of the journal. */
struct snapshot_mark {
    uint64_t seq;
    uint64_t offset;
};

/* Return a copy of the policy in which defaults replace zeros; policy may be NULL. */
annal_snapshot_policy annal__policy_fill(const annal_snapshot_policy *policy);

/* Return a copy of the policy with its distances multiplied by stride. */
annal_snapshot_policy annal__policy_stretch(const annal_snapshot_policy *policy, uint64_t stride);

/* Return whether a snapshot is due at `here`, because enough events or bytes follow `last`: the
 * last position at which a snapshot was due, taken or not, or all zero. */
bool annal__policy_is_due(const annal_snapshot_policy *policy, struct snapshot_mark last,
                          struct snapshot_mark here);

/* Return whether a snapshot is due by time: events follow `last`, and the oldest of them has waited
 * for waited_ms milliseconds. */
bool annal__policy_is_due_by_time(const annal_snapshot_policy *policy, struct snapshot_mark last,
                                  struct snapshot_mark here, uint64_t waited_ms);

/*
 * Return whether to take the snapshot that is due at `here`. If no other snapshot is due between
 * `here` and `end`, it is always taken. Otherwise it is skipped while the journal since the last
 * snapshot is smaller than a quarter of the pages that changed since then (changed_bytes): so
 * during a burst, or after a large import, writing snapshots costs no more than reading the
 * journal.
 */
bool annal__policy_take_here(const annal_snapshot_policy *policy, struct snapshot_mark last,
                             struct snapshot_mark here, struct snapshot_mark end,
                             uint64_t changed_bytes);

/* Return whether the keeper skips snapshots at `here`, because a large number of events follows and
 * catching up is more urgent. */
bool annal__policy_is_far_from_end(const annal_snapshot_policy *policy, struct snapshot_mark here,
                                   struct snapshot_mark end);

/* Return whether the keeper skips the snapshot that is due at `here`, because many events follow
 * and catching up is more urgent. */
bool annal__policy_skips_in_hurry(const annal_snapshot_policy *policy, struct snapshot_mark last,
                                  struct snapshot_mark here, struct snapshot_mark end);

/* Return the maximum of bytes that all snapshots of a session may take together, for a journal of
 * this size. */
uint64_t annal__policy_bytes_max(const annal_snapshot_policy *policy, uint64_t journal_bytes);
