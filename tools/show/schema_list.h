/* SPDX-License-Identifier: Apache-2.0 */
/* List the tables and views that SQL can query, with their columns. */
#ifndef TOOLS_SHOW_SCHEMA_LIST_H
#define TOOLS_SHOW_SCHEMA_LIST_H

#include <annal/query.h>

struct schema_table {
    annal_slice name;         /* "sessions", "state.teams" */
    annal_slice kind;         /* table, view, virtual */
    annal_slice columns;      /* "id, title": none for a view over missing tables */
    annal_slice columns_json; /* {"name":"id","type":"TEXT"},… */
};

/* Callback: 0 continues; any other value stops, and is returned. Valid until it returns. */
typedef int (*schema_fn)(void *arg, const struct schema_table *table);

/* List the tables of the index first, then the tables of the store's packs. */
annal_status schema_list(annal_index *index, schema_fn fn, void *arg, annal_error *err);

#endif
