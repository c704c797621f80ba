/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL functions that every connection of ours has; functions.c describes them. */
#pragma once

#include <sqlite3.h>

/* Add the SQL functions to a connection. Returns a result code of SQLite. */
int annal__functions_add(sqlite3 *db);
