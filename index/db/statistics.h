/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregates for analysts, which SQLite itself does not have:
 *
 *     median(x)          the middle value; of an even number, halfway between the two middle ones
 *     percentile(x, p)   the value below which p percent are, 0 to 100, between two by a straight
 *                        line, as percentile.c of SQLite and PostgreSQL's percentile_cont()
 *     stddev(x)          the standard deviation of a sample (n - 1); NULL of fewer than two
 *
 * NULLs are left out; without any number the answer is NULL. Text is an error.
 */
#ifndef INDEX_DB_STATISTICS_H
#define INDEX_DB_STATISTICS_H

#include <sqlite3.h>

/* Add the aggregates to a connection. Returns a result code of SQLite. */
int annal__statistics_add(sqlite3 *db);

#endif
