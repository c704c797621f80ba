/* SPDX-License-Identifier: Apache-2.0 */
/* The tables and views that SQL can ask, with their columns. */
#ifndef TOOLS_SHOW_SCHEMA_LIST_H
#define TOOLS_SHOW_SCHEMA_LIST_H

#include <annal/query.h>

struct schema_table {
    annal_slice name;         /* "sessions", "state.teams" */
    annal_slice kind;         /* table, view, virtual */
    annal_slice columns;      /* "id, title": none of a view over tables that are not there */
    annal_slice columns_json; /* {"name":"id","type":"TEXT"},… */
};

/* Return 0 to continue; any other value stops, and is returned. Valid until it returns. */
typedef int (*schema_fn)(void *arg, const struct schema_table *table);

/* Those of the index first, then those of the store's packs. */
annal_status schema_list(annal_index *index, schema_fn fn, void *arg, annal_error *err);

#endif
