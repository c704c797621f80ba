/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the tables and views that SQL can query, with their columns. */
#pragma once

#include <annal/query.h>

struct schema_table {
    annal_slice name;         /* name as in SQL: "sessions", "state.teams" */
    annal_slice kind;         /* "table", "view" or "virtual" */
    annal_slice columns;      /* names, such as "id, title"; empty for a view over missing tables */
    annal_slice columns_json; /* the same as JSON: {"name":"id","type":"TEXT"},… */
};

/* Receive one table. Return 0 to continue; another value ends the list and is returned. The texts
 * are valid during the call. */
typedef int (*schema_fn)(void *arg, const struct schema_table *table);

/* Pass all tables to fn: the tables of the index, then the tables of the store's packs. */
annal_status schema_list(annal_index *index, schema_fn fn, void *arg, annal_error *err);
