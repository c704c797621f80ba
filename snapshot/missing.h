/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Find snapshots that other processes did not take: processes that only write journals, and
 * processes that died or had no time.
 *
 * Examining every session costs a listing of events/ and a few reads for each session, so one
 * process at a time does it. The file locks/snapshots is one line: the time of the next look
 * (microseconds UTC, 20 digits), which is a hundred times as long after the last look as that look
 * took, and at least a second; then a space, and the first session of the next look, at which the
 * last look ran out of time. The file may be removed at any time. If it cannot be written, no
 * process looks.
 */
#pragma once

#include "snapshot/policy.h"

/*
 * If a look is due, call fn for each session of which a snapshot is due. The look takes up to `us`
 * microseconds from its first session on, and examines at least one session. No member of policy is
 * 0. Errors are ignored; the next look finds the same sessions.
 */
void annal__missing_look(annal_index *index, const annal_snapshot_policy *policy, int64_t us,
                         annal_session_fn fn, void *arg);
