/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before everything else in sources that are compiled for the loadable extension: each
 * sqlite3_...() becomes a call into the host.
 */
#ifndef INDEX_QUERY_HOST_SQLITE_H
#define INDEX_QUERY_HOST_SQLITE_H

#include <sqlite3ext.h>

SQLITE_EXTENSION_INIT3

#endif
