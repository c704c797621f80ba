/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the tables of packs to a PostgreSQL target (packs.sql), session by session.
 *
 * (1) The rows of a session are those that `-- forget` of its pack would delete; a pack without
 *     that section in the expected form is left out. Rows that belong to no session, such as
 *     constants, are sent once.
 * (2) One view of the index provides the rows and the event up to which they are complete. The
 *     target accepts them if it has that event, with the same hash, and its present rows belong to
 *     an earlier event. All rows of the session in the pack are replaced in one transaction. The
 *     newest rows therefore win, whichever process sends them, in any order, and however often it
 *     is killed.
 * (3) The target reports which sessions need rows, for some hundred sessions per query.
 */
#pragma once

#include "tools/ship/ship.h"

#include <annal/index.h>

/* Send the pack tables' rows of each session that has newer rows locally than at the target; with
 * follow, continue until interrupted. Returns an exit status. */
int ship_pack_tables_run(annal_store *store, const struct ship_options *options);
