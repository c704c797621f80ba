/*
 * When a snapshot is due, and which may go. Pure functions: no clock, no disk.
 *
 * Snapshots of a session are numbered, and each number is higher than the one before by the
 * session's stride: 1 at first. When all together take more than they may, the stride becomes four
 * times as large: the numbers that are no multiple of it go (container.c, rule 3: nobody depends on
 * them), and from then on one is due only after stride times as many events, bytes or milliseconds.
 * So a session of any length has a bounded share of its own size in snapshots, at equal distances.
 *
 * The keeper hurries: while it is more than eight distances behind, it passes over every due place
 * that is not yet half the way to the end. So a burst of any length gets one snapshot after half
 * of it, one after half of the rest and so on, then those that are due near its end: the newest
 * state is near soon, and a process that ends early has not worked for nothing. What was passed
 * over stays so, for numbers are in order of seq; to drop all and to catch up by hand leaves one
 * everywhere.
 */
#ifndef SNAPSHOT_POLICY_H
#define SNAPSHOT_POLICY_H

#include <annal/snapshot.h>

/* A place in a session: behind event seq, which ends at offset. */
struct snapshot_mark {
    uint64_t seq;
    uint64_t offset;
};

/* The policy with its zeros filled in; NULL gives all defaults. */
annal_snapshot_policy annal__snapshot_policy(const annal_snapshot_policy *policy);

/* The same with stride times the distances. */
annal_snapshot_policy annal__snapshot_stretch(const annal_snapshot_policy *policy, uint64_t stride);

/*
 * Whether so much lies between last (the last snapshot or due place, or nothing at all) and here
 * that one is due.
 */
bool annal__snapshot_due(const annal_snapshot_policy *policy, struct snapshot_mark last,
                         struct snapshot_mark here);

/* The same by time: events stand behind last, and the oldest of them for waited_ms. */
bool annal__snapshot_due_by_time(const annal_snapshot_policy *policy, struct snapshot_mark last,
                                 struct snapshot_mark here, uint64_t waited_ms);

/*
 * On the way to end, at a due place: whether one is to be taken here. The newest that is due always
 * is. An earlier one is passed over while less journal lies behind the last than a quarter of the
 * pages that changed since (changed_bytes): so under a burst, or after a large import, writing
 * snapshots costs no more than reading the journal.
 */
bool annal__snapshot_take_here(const annal_snapshot_policy *policy, struct snapshot_mark last,
                               struct snapshot_mark here, struct snapshot_mark end,
                               uint64_t changed_bytes);

/* Whether so much is still to be folded that the keeper hurries. */
bool annal__snapshot_far_behind(const annal_snapshot_policy *policy, struct snapshot_mark here,
                                struct snapshot_mark end);

/* Whether the keeper, in a hurry, passes over a due place. */
bool annal__snapshot_hurry_on(const annal_snapshot_policy *policy, struct snapshot_mark last,
                              struct snapshot_mark here, struct snapshot_mark end);

/* How many bytes the snapshots of a journal of so many bytes may take. */
uint64_t annal__snapshot_bytes_max(const annal_snapshot_policy *policy, uint64_t journal_bytes);

#endif
