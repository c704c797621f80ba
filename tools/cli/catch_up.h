/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the index and adds new events to it, with a progress bar if that takes long. */
#pragma once

#include "tools/cli/sessions.h"

#include <annal/query.h>

/*
 * Open the index, and add the new events of these sessions; of all sessions if the list is NULL or
 * empty. If that takes longer than the user wants to wait, print a remark, and use the index
 * without the remaining events. Returns 0 or an exit status.
 */
int catch_up_open(annal_store *store, const struct session_list *sessions, annal_index **out_index);

/* As catch_up_open() for all sessions, and also bring the tables of packs up to date. A query of
 * core tables alone must not wait for those. */
int catch_up_open_with_packs(annal_store *store, annal_index **out_index);

/*
 * As catch_up_open(), for queries of events: wait only briefly for other processes, and print
 * nothing. Such a query reads the events that are not in the index from the journals.
 */
int catch_up_open_for_events(annal_store *store, const struct session_list *sessions,
                             annal_index **out_index);

/*
 * Add all new events to the index and to the tables of packs, however long that takes. Stops early
 * if another process holds a lock or the disk is full: the next query reports what is missing.
 */
void catch_up_wholly(annal_index *index);

/* Print one line on stderr if a query of events could not read some events (lag->bytes > 0). */
void catch_up_say_lag(const annal_lag *lag);
