/* SPDX-License-Identifier: Apache-2.0 */
/* The view run_list on our connections, in which the health of runs also depends on their
 * processes. */
#pragma once

#include <annal/store.h>

#include <sqlite3.h>

/*
 * If the database state, of packs lionagi and teams, is attached, create a temporary view run_list
 * with the same columns, which hides the view run_list of state; otherwise do nothing. The store
 * must outlive db.
 */
annal_status annal__run_health_add(sqlite3 *db, annal_store *store, annal_error *err);
