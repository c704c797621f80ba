/* SPDX-License-Identifier: Apache-2.0 */
/* Opening SQLite; see connect.c. */
#ifndef INDEX_DB_CONNECT_H
#define INDEX_DB_CONNECT_H

#include <sqlite3.h>

/*
 * The only caller of sqlite3_open_v2(), whose flags and result these are; also after a failure
 * *out_db must be closed. vfs NULL: the default one.
 */
int annal__db_connect(const char *vfs, const char *name, int flags, sqlite3 **out_db);

#endif
