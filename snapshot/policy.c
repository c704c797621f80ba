/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/policy.h"

#define EVERY_EVENTS  1000
#define EVERY_BYTES   ((uint64_t)8 << 20)
#define EVERY_MS      300000
#define BYTES_MAX     ((uint64_t)1 << 20)
#define JOURNAL_SHARE 10
#define CHANGED_SHARE 4
#define FAR_BEHIND    8
/* At this many events or more after the last snapshot, the keeper skips no snapshot that is due:
 * folding these events takes about 0.1 s. */
#define GAP_EVENTS 16000

annal_snapshot_policy annal__policy_fill(const annal_snapshot_policy *policy)
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

static uint64_t times(uint64_t value, uint64_t factor)
{
    return value > UINT64_MAX / factor ? UINT64_MAX : value * factor;
}

annal_snapshot_policy annal__policy_stretch(const annal_snapshot_policy *policy, uint64_t stride)
{
    annal_snapshot_policy stretched = *policy;
    stretched.every_events = times(policy->every_events, stride);
    stretched.every_bytes = times(policy->every_bytes, stride);
    stretched.every_ms = times(policy->every_ms, stride);
    return stretched;
}

bool annal__policy_is_due(const annal_snapshot_policy *policy, struct snapshot_mark last,
                          struct snapshot_mark here)
{
    return here.seq > last.seq && (here.seq - last.seq >= policy->every_events ||
                                   here.offset - last.offset >= policy->every_bytes);
}

bool annal__policy_is_due_by_time(const annal_snapshot_policy *policy, struct snapshot_mark last,
                                  struct snapshot_mark here, uint64_t waited_ms)
{
    return here.seq > last.seq && waited_ms >= policy->every_ms;
}

bool annal__policy_take_here(const annal_snapshot_policy *policy, struct snapshot_mark last,
                             struct snapshot_mark here, struct snapshot_mark end,
                             uint64_t changed_bytes)
{
    return !annal__policy_is_due(policy, here, end) ||
           here.offset - last.offset >= changed_bytes / CHANGED_SHARE;
}

bool annal__policy_is_far_from_end(const annal_snapshot_policy *policy, struct snapshot_mark here,
                                   struct snapshot_mark end)
{
    const annal_snapshot_policy far = annal__policy_stretch(policy, FAR_BEHIND);
    return annal__policy_is_due(&far, here, end);
}

bool annal__policy_skips_in_hurry(const annal_snapshot_policy *policy, struct snapshot_mark last,
                                  struct snapshot_mark here, struct snapshot_mark end)
{
    uint64_t passed = here.seq - last.seq;
    return annal__policy_is_far_from_end(policy, here, end) && passed < end.seq - here.seq &&
           passed < GAP_EVENTS;
}

uint64_t annal__policy_bytes_max(const annal_snapshot_policy *policy, uint64_t journal_bytes)
{
    if (policy->bytes_max != 0)
        return policy->bytes_max;
    uint64_t share = journal_bytes / JOURNAL_SHARE;
    return share > BYTES_MAX ? share : BYTES_MAX;
}
