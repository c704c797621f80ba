/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoint: sync the journals whose bytes an epoch of the commit log contains, so that the region
 * of that epoch can be reused (rule 7 of the commit log). */
#pragma once

#include "journal/commit.h"

/* Sync the directory events/ if file names in it changed. A failure stops the store. */
annal_status annal__checkpoint_events(struct events_dir *events, annal_error *err);

/*
 * Sync the journals of these sessions, in up to 16 threads. The caller has set in_use of each
 * session, so that the descriptors stay open. A session whose sync fails becomes late: its events
 * must be written to its journal again from the log (failure.h).
 */
annal_status annal__checkpoint_journals(struct commit *commit, struct session **sessions,
                                        size_t count, annal_error *err);

/*
 * Sync every journal with events of the commit log's epochs up to this epoch, and then the
 * directory events/; afterwards commit.released is at least epoch. A session whose sync fails
 * becomes late: its journal must be written again (failure.h). ANNAL_ERR_IO while any session is
 * late; then commit.released does not change.
 */
annal_status annal__checkpoint_epoch(struct commit *commit, uint64_t epoch, annal_error *err);
