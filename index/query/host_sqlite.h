/*
 * Included before all else in what is compiled for the loadable extension: each sqlite3_...()
 * becomes a call of the host's.
 */
#ifndef INDEX_QUERY_HOST_SQLITE_H
#define INDEX_QUERY_HOST_SQLITE_H

#include <sqlite3ext.h>

SQLITE_EXTENSION_INIT3

#endif
