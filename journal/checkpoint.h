/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoint (commit-log rule 7): sync the journals whose bytes an epoch of the log contains, so
 * that its region can be reused.
 */
#ifndef JOURNAL_CHECKPOINT_H
#define JOURNAL_CHECKPOINT_H

#include "journal/store.h"

/* Sync events/ if names in it changed. A failure stops the store. */
annal_status annal__checkpoint_events(annal_store *store, annal_error *err);

/*
 * Sync the journals of these sessions, which are in use, four at a time. A failure stops the store.
 */
annal_status annal__checkpoint_journals(annal_store *store, struct session **sessions, size_t count,
                                        annal_error *err);

/*
 * Sync every journal that was written in epochs up to this epoch, and then events/; afterwards
 * commit.released is at least epoch. A session whose sync fails becomes late, and while a session
 * is late nothing is released: ANNAL_ERR_IO.
 */
annal_status annal__checkpoint_epoch(annal_store *store, uint64_t epoch, annal_error *err);

#endif
