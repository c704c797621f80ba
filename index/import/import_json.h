/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON for importers: line_json(), which annal/import.h describes, and the operators -> and ->>,
 * json_type(), json_remove() and json_each(), which return the same as SQLite's, and parse a text
 * only once.
 *
 * (1) SQLite parses the JSON of a row again for each statement, and prints it again for each value
 *     that it returns. Here the tokens of a line are listed once, for all statements of its batch,
 *     and a value is a slice of the line.
 * (2) The results must be SQLite's. We compute those that all versions of SQLite compute in the
 *     same way. In all other cases (a number with a point, a name with an escape, half a surrogate
 *     pair, a path like $[#-1], a text with very many tokens) SQLite computes the result, on a
 *     separate connection.
 */
#pragma once

#include "index/import/json_tokens.h"

#include <sqlite3.h>

/*
 * A flag of functions that set a subtype, which SQLite 3.45 and later require, and older versions
 * ignore.
 */
#ifndef SQLITE_RESULT_SUBTYPE
#define SQLITE_RESULT_SUBTYPE 0x001000000
#endif

struct import_json;

/* Add the functions to db, but json_each(). Returns NULL if memory ran out. Close db before you
 * free the result. */
struct import_json *annal__import_json_new(sqlite3 *db);
void annal__import_json_free(struct import_json *json);

/*
 * Begin a batch, and add its lines: each line that is JSON must be added before its row is inserted
 * into the table lines, in the order of the rows. The bytes must stay valid until the next batch.
 */
void annal__import_json_begin(struct import_json *json);
void annal__import_json_line(struct import_json *json, uint64_t row, annal_slice line);

/* ---- For json_each(), in import_each.c ---- */

/* A value in a text whose tokens have been listed. */
struct json_place {
    const struct json_tokens *text;
    uint32_t token;
    bool stays; /* whether the bytes of the value stay valid until the next batch */
};

/*
 * Find the line of the batch that equals these bytes, or the value in the line used last that they
 * are a part of, by address. Returns false if there is none.
 */
bool annal__import_json_line_of(struct import_json *json, annal_slice bytes,
                                struct json_place *out_place);

/* Set the result of an SQL function to a value, as the operator -> (as_json) or ->> returns it. */
void annal__import_json_give(struct import_json *json, sqlite3_context *context,
                             const struct json_place *place, bool as_json);

/* Return the name of the value's type, as json_type() does: a static string. */
const char *annal__import_json_type(const struct json_place *place);

/* Return a connection without our functions, which is created when it is first needed; NULL if
 * memory ran out. */
sqlite3 *annal__import_json_sqlite(struct import_json *json);

/* Add our json_each() to db. Returns a result code of SQLite. */
int annal__import_each_add(sqlite3 *db, struct import_json *json);
