/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of packs at a PostgreSQL target (packs.sql): each session's rows, as they are here.
 *
 * (1) The rows of a session are what its pack's `-- forget` would delete; a pack that does not say
 *     it in that form is left out. Rows that belong to no session, such as constants, go once.
 * (2) One view of the index has the rows and the event up to which they are complete. The target
 *     takes them if it has that event, with its hash, and rows of an earlier one; all of a
 *     session's rows of a pack are replaced, in one transaction. So whoever sends them, in
 *     whatever order, and however often it is killed, the newest stay.
 * (3) What is to be sent is asked of the target, for some hundred sessions at a time.
 */
#ifndef TOOLS_SHIP_PACK_TABLES_H
#define TOOLS_SHIP_PACK_TABLES_H

#include "tools/ship/ship.h"

#include <annal/index.h>

/* Send what is older there; with follow, go on. An exit status. */
int pack_tables_run(annal_store *store, const struct ship_options *options);

#endif
