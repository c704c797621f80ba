/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL functions that make the title of a session; title.c describes them. */
#ifndef INDEX_DB_TITLE_H
#define INDEX_DB_TITLE_H

#include <sqlite3.h>

/* Returns a result code of SQLite's. */
int annal__title_add(sqlite3 *db);

#endif
