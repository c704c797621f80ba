/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL functions that build the title of a session; title.c describes them. */
#ifndef INDEX_DB_TITLE_H
#define INDEX_DB_TITLE_H

#include <sqlite3.h>

/* Add the functions to a connection. Returns a result code of SQLite. */
int annal__title_add(sqlite3 *db);

#endif
