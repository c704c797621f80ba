/* When a snapshot is due. Pure functions: no clock, no disk. */
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
 * is. An earlier one is passed over while less journal lies behind the last than a quarter of a
 * state (raw_bytes): so under a burst, or after a large import, writing snapshots of a large state
 * costs no more than reading the journal, while a small state leaves one at every due place.
 */
bool annal__snapshot_take_here(const annal_snapshot_policy *policy, struct snapshot_mark last,
                               struct snapshot_mark here, struct snapshot_mark end,
                               uint64_t raw_bytes);

#endif
