/* SPDX-License-Identifier: Apache-2.0 */
/* The view run_list on our connections: the health of runs, including a look at their processes. */
#ifndef INDEX_QUERY_RUN_HEALTH_H
#define INDEX_QUERY_RUN_HEALTH_H

#include <annal/store.h>

#include <sqlite3.h>

/*
 * If the database state of packs lionagi and teams is attached, create a temporary view run_list
 * that hides its run_list, with the same columns; otherwise do nothing. The store must outlive db.
 */
annal_status annal__run_health_add(sqlite3 *db, annal_store *store, annal_error *err);

#endif
