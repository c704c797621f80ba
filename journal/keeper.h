/*
 * The keeper: the one background thread of an open store. Checkpoints, commits batches in time,
 * gives sessions back to who wants them, runs the chores of higher floors.
 */
#ifndef JOURNAL_KEEPER_H
#define JOURNAL_KEEPER_H

#include "journal/store.h"

annal_status annal__keeper_start(annal_store *store, annal_error *err);
void annal__keeper_stop(annal_store *store);

/* Do what is due. */
void annal__keeper_round(annal_store *store);

/* Let it sleep on another word from now on. */
void annal__keeper_change_bell(annal_store *store, _Atomic uint32_t *bell);

/* Wake it: there is something to do. */
void annal__keeper_ring(annal_store *store);

#endif
