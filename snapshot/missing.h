/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots that other processes did not take: processes that only write journals, and processes
 * that died or had no time.
 *
 * Looking at every session costs a listing of events/ and a few reads for each, so processes take
 * turns. The file locks/snapshots is one line: the time of the next look (microseconds UTC, 20
 * digits), which is after a hundred times as long as the last look took, and at least a second;
 * then a space, and the session to begin with, where the last look ran out of time. The file may be
 * removed at any time. If it cannot be written, no process looks.
 */
#ifndef SNAPSHOT_MISSING_H
#define SNAPSHOT_MISSING_H

#include "snapshot/policy.h"

/*
 * Call fn for each session of which a snapshot is due, if it is time for a look. Spends us
 * microseconds, counted from the first session on, which is looked at in any case. policy has no
 * zeros. Errors are left for the next look.
 */
void annal__missing_look(annal_index *index, const annal_snapshot_policy *policy, int64_t us,
                         annal_session_fn fn, void *arg);

#endif
