/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL functions that compare messages of errors; message.c describes them. */
#ifndef INDEX_DB_MESSAGE_H
#define INDEX_DB_MESSAGE_H

#include <sqlite3.h>

/* Add the SQL functions to a connection. Returns a result code of SQLite. */
int annal__message_add(sqlite3 *db);

#endif
