/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL functions that every connection of ours has; functions.c describes them. */
#pragma once

#include <sqlite3.h>

/* Add the SQL functions to a connection. Returns a result code of SQLite. */
int annal__functions_add(sqlite3 *db);

/* The parts of annal__functions_add() in other files. Each file describes its functions. */
int annal__periods_add(sqlite3 *db);
int annal__statistics_add(sqlite3 *db);
void annal__message_group(sqlite3_context *context, int count, sqlite3_value **values);
void annal__message_pattern(sqlite3_context *context, int count, sqlite3_value **values);
void annal__vectors_f32(sqlite3_context *context, int count, sqlite3_value **values);
void annal__vectors_l2(sqlite3_context *context, int count, sqlite3_value **values);
void annal__vectors_cosine(sqlite3_context *context, int count, sqlite3_value **values);
