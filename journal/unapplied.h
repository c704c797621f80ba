/*
 * What readers cannot see: events that are durable, in the log of a process that died, and not in
 * their journals, because nobody opened the store for writing since, or who did is stopped. Whoever
 * opens the store says so.
 */
#ifndef JOURNAL_UNAPPLIED_H
#define JOURNAL_UNAPPLIED_H

#include "journal/store.h"

/*
 * Warn, once for the store, of how many there are and of which sessions. missing: a slot that
 * another process is recovering and makes no progress with (annal__slots_recover()).
 */
void annal__unseen_warn(annal_store *store, uint32_t missing);

#endif
