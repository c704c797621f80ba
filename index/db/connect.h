/* SPDX-License-Identifier: Apache-2.0 */
/* Opening SQLite; see connect.c. */
#pragma once

#include <sqlite3.h>

/*
 * Call sqlite3_open_v2(), with its flags and result; nothing else calls it. *out_db must be closed
 * even after a failure. vfs NULL: the default VFS.
 */
int annal__connect_open(const char *vfs, const char *name, int flags, sqlite3 **out_db);
