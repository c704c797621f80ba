/* SPDX-License-Identifier: Apache-2.0 */
/* The index, open and caught up, with a progress bar if that takes long. */
#ifndef TOOLS_CLI_CATCH_UP_H
#define TOOLS_CLI_CATCH_UP_H

#include "tools/cli/sessions.h"

#include <annal/query.h>

/*
 * Open the index, and index what is new in these sessions (none: in all). If that takes longer than
 * a reader wants to wait, a remark says so, and the answer is that of the index as it is: ask with
 * as_indexed. 0 or an exit status.
 */
int index_open_caught_up(annal_store *store, const struct session_list *sessions,
                         annal_index **out_index);

/* As above, with the tables of packs. A query of core tables alone must not wait for them. */
int index_open_with_packs(annal_store *store, annal_index **out_index);

/*
 * As above, for event queries, which read from the journals what could not be indexed in time:
 * waits for others only shortly, and prints nothing yet.
 */
int index_open_for_events(annal_store *store, const struct session_list *sessions,
                          annal_index **out_index);

/*
 * Index all that is new, tables of packs too, however long that takes. It ends early if others are
 * in the way or the disk is full: the next query reports what is missing.
 */
void index_catch_up_wholly(annal_index *index);

/* One line on stderr about what an event query could not read either, if there is anything. */
void say_lag(const annal_lag *lag);

#endif
