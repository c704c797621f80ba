/* SPDX-License-Identifier: Apache-2.0 */
/* How groups end when the store stops (commit.h, rule 4). The caller holds commit->lock, but for
 * annal__commit_announce_stop(). */
#pragma once

#include "journal/commit.h"

/* Publish in the flags `bits` that a group has ended, or that no thread leads it (writes it to the
 * log), and wake up to `sleepers` threads that wait for it. */
void annal__commit_tell(struct group *group, uint32_t bits, int sleepers);

/* Fail with the reason why no appends are accepted, now or until the store is opened again. */
annal_status annal__commit_refuse(const struct commit *commit, annal_error *err);

/* Refuse the group that is being written, the current group, and all later appends, because the
 * store has stopped. */
void annal__commit_stop(struct commit *commit, const annal_error *failure);

/* Count and log that the store has stopped; with no lock held. */
void annal__commit_announce_stop(struct commit *commit, const annal_error *failure);
