/*
 * What readers cannot see: events that are durable, in the log of a process that died, and not in
 * their journals, because nobody opened the store for writing since. One that may not write says
 * so.
 */
#ifndef JOURNAL_UNSEEN_H
#define JOURNAL_UNSEEN_H

#include "journal/store.h"

/* Warn, once for the store, of how many there are and of which sessions. */
void annal__unseen_warn(annal_store *store);

#endif
