/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A header that is included first in sources for the loadable extension: each sqlite3_...() becomes
 * a call of the host's SQLite.
 */
#pragma once

#include <sqlite3ext.h>

SQLITE_EXTENSION_INIT3
