/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: the background thread of an open store. It runs checkpoints, commits batches when
 * they are due, releases sessions that other processes want, and runs the tasks that other
 * components added (annal__keeper_task_add()).
 */
#ifndef JOURNAL_KEEPER_H
#define JOURNAL_KEEPER_H

#include "journal/store.h"

annal_status annal__keeper_start(annal_store *store, annal_error *err);
void annal__keeper_stop(annal_store *store);

/* Do all work that is due, and return. */
void annal__keeper_round(annal_store *store);

#endif
