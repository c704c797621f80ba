/* The view run_list over connections of ours: how runs are, with a look at their processes. */
#ifndef INDEX_QUERY_HEALTH_H
#define INDEX_QUERY_HEALTH_H

#include <annal/store.h>

#include <sqlite3.h>

/*
 * Where the database state of packs lionagi and teams is attached, put a temporary view run_list
 * before the one there, with the same columns; otherwise nothing. The store must outlive db.
 */
annal_status annal__health_add(sqlite3 *db, annal_store *store, annal_error *err);

#endif
