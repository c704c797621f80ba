/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregates for analysts, which SQLite itself does not have:
 *
 *     median(x)          the middle value; if the count is even, the mean of the two middle values
 *     percentile(x, p)   the value below which p percent (0 to 100) of the values are, interpolated
 *                     between two values as in SQLite's percentile.c and PostgreSQL's
 *                     percentile_cont()
 *     stddev(x)          the standard deviation of a sample (n - 1); NULL for fewer than two values
 *
 * NULLs are ignored; without any number the result is NULL. Text is an error.
 */
#pragma once

#include <sqlite3.h>

/* Add the aggregates to a connection. Returns a result code of SQLite. */
int annal__statistics_add(sqlite3 *db);
