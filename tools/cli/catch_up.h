/* SPDX-License-Identifier: Apache-2.0 */
/* Open the index and catch it up, with a progress bar if that takes long. */
#ifndef TOOLS_CLI_CATCH_UP_H
#define TOOLS_CLI_CATCH_UP_H

#include "tools/cli/sessions.h"

#include <annal/query.h>

/*
 * Open the index, and index the new events of these sessions (none given: of all). If that takes
 * longer than a reader wants to wait, print a remark; the answer then comes from the index in its
 * current state: query with as_indexed. 0 or an exit status.
 */
int catch_up_open(annal_store *store, const struct session_list *sessions, annal_index **out_index);

/* Do the same for the tables of packs. A query of core tables alone must not wait for them. */
int catch_up_open_with_packs(annal_store *store, annal_index **out_index);

/*
 * Do the same for event queries, which read from the journals what could not be indexed in time:
 * wait for others only briefly, and print nothing yet.
 */
int catch_up_open_for_events(annal_store *store, const struct session_list *sessions,
                             annal_index **out_index);

/*
 * Index all new events, tables of packs included, however long that takes. It stops early if others
 * are in the way or the disk is full: the next query reports what is missing.
 */
void catch_up_wholly(annal_index *index);

/* Print one line on stderr if an event query could not read some events. */
void catch_up_say_lag(const annal_lag *lag);

#endif
