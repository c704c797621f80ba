/* SPDX-License-Identifier: Apache-2.0 */
/* Adds functions of a caller to a connection. */
#pragma once

#include "index/db/db.h"
#include "index/sys/sql_functions.h"

/* Add functions, and append their names to the list of struct allowed. NULL is accepted. */
annal_status annal__sql_functions_add(sqlite3 *db, const annal__sql_function *functions,
                                      struct buf *names, annal_error *err);
