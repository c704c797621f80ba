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
 * The keeper hurries: while it is more than eight distances from the end, it skips every due place
 * that is less than half of the way to the end and less than 16,000 events after the last snapshot.
 * So in a burst it takes a snapshot every 16,000 events, then after half of the rest and so on,
 * then the snapshots that are due near its end. Soon the newest state is close to a snapshot, a
 * process that ends early has done useful work, and no state is so far from a snapshot that a
 * person would wait for it. Skipped places are never taken later, because numbers are in the order
 * of seq. To get a snapshot at each place, drop all of them and catch up by hand.
 */
#ifndef SNAPSHOT_POLICY_H
#define SNAPSHOT_POLICY_H

#include <annal/snapshot.h>

/* A place in a session: after event seq, which ends at offset. */
struct snapshot_mark {
    uint64_t seq;
    uint64_t offset;
};

/* Return the policy with its zeros replaced by defaults; policy may be NULL. */
annal_snapshot_policy annal__policy_fill(const annal_snapshot_policy *policy);

/* As above, with the distances multiplied by stride. */
annal_snapshot_policy annal__policy_stretch(const annal_snapshot_policy *policy, uint64_t stride);

/*
 * Return whether here is far enough from last (the last snapshot or due place, or all zero) that a
 * snapshot is due.
 */
bool annal__policy_is_due(const annal_snapshot_policy *policy, struct snapshot_mark last,
                          struct snapshot_mark here);

/* As above, by time: there are events after last, and the oldest has waited for waited_ms. */
bool annal__policy_is_due_by_time(const annal_snapshot_policy *policy, struct snapshot_mark last,
                                  struct snapshot_mark here, uint64_t waited_ms);

/*
 * Return whether to take a snapshot at a due place on the way to end. The newest due place is
 * always taken. An earlier place is skipped while the journal since the last snapshot is smaller
 * than a quarter of the pages that changed since (changed_bytes): so during a burst, or after a
 * large import, writing snapshots costs no more than reading the journal.
 */
bool annal__policy_take_here(const annal_snapshot_policy *policy, struct snapshot_mark last,
                             struct snapshot_mark here, struct snapshot_mark end,
                             uint64_t changed_bytes);

/* Return whether enough is left to fold that the keeper hurries. */
bool annal__policy_is_far_from_end(const annal_snapshot_policy *policy, struct snapshot_mark here,
                                   struct snapshot_mark end);

/* Return whether the keeper, in a hurry, skips a due place. */
bool annal__policy_skips_in_hurry(const annal_snapshot_policy *policy, struct snapshot_mark last,
                                  struct snapshot_mark here, struct snapshot_mark end);

/* Return how many bytes the snapshots of a journal of this size may take. */
uint64_t annal__policy_bytes_max(const annal_snapshot_policy *policy, uint64_t journal_bytes);

#endif
