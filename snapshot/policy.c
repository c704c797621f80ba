#include "snapshot/policy.h"

#define EVERY_EVENTS 1000
#define EVERY_BYTES  ((uint64_t)8 << 20)
#define EVERY_MS     300000
#define STATE_SHARE  4

annal_snapshot_policy annal__snapshot_policy(const annal_snapshot_policy *policy)
{
    annal_snapshot_policy filled = {0};
    if (policy != NULL)
        filled = *policy;
    if (filled.every_events == 0)
        filled.every_events = EVERY_EVENTS;
    if (filled.every_bytes == 0)
        filled.every_bytes = EVERY_BYTES;
    if (filled.every_ms == 0)
        filled.every_ms = EVERY_MS;
    return filled;
}

bool annal__snapshot_due(const annal_snapshot_policy *policy, struct snapshot_mark last,
                         struct snapshot_mark here)
{
    return here.seq > last.seq && (here.seq - last.seq >= policy->every_events ||
                                   here.offset - last.offset >= policy->every_bytes);
}

bool annal__snapshot_due_by_time(const annal_snapshot_policy *policy, struct snapshot_mark last,
                                 struct snapshot_mark here, uint64_t waited_ms)
{
    return here.seq > last.seq && waited_ms >= policy->every_ms;
}

bool annal__snapshot_take_here(const annal_snapshot_policy *policy, struct snapshot_mark last,
                               struct snapshot_mark here, struct snapshot_mark end,
                               uint64_t raw_bytes)
{
    return !annal__snapshot_due(policy, here, end) ||
           here.offset - last.offset >= raw_bytes / STATE_SHARE;
}
