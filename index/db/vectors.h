/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL functions over vectors; vectors.c describes them. */
#ifndef INDEX_DB_VECTORS_H
#define INDEX_DB_VECTORS_H

#include <sqlite3.h>

/* Add the SQL functions for vectors to a connection. Returns a result code of SQLite. */
int annal__vectors_add(sqlite3 *db);

#endif
