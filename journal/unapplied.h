/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that readers cannot see: they are durable in the log of a dead process and not in their
 * journals, because no process has opened the store for writing since, or that process is stopped.
 * Opening the store reports them.
 */
#ifndef JOURNAL_UNAPPLIED_H
#define JOURNAL_UNAPPLIED_H

#include "journal/store.h"

/*
 * Warn, once for each store object, how many there are and of which sessions. missing: a slot that
 * another process is recovering without making progress (annal__slots_recover()).
 */
void annal__unapplied_warn(annal_store *store, uint32_t missing);

#endif
