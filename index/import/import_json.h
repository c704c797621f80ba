/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON for importers: line_json(), which annal/import.h describes, and the operators -> and ->>,
 * json_type(), json_remove() and json_each(), which return what SQLite's return and read a text
 * once.
 *
 * (1) SQLite parses the JSON of a row again for each statement, and prints it again for each value
 *     that it returns. Here the tokens of a line are listed once, for all statements of its batch,
 *     and a value is a slice of the line.
 * (2) SQLite defines what a value is. We answer what all its versions answer in the same way. For
 *     anything else (a number with a point, a name with an escape, half a surrogate pair, a path
 *     like $[#-1], a text with very many tokens) we ask SQLite on a connection of its own.
 */
#ifndef INDEX_IMPORT_IMPORT_JSON_H
#define INDEX_IMPORT_IMPORT_JSON_H

#include "index/import/json_tokens.h"

#include <sqlite3.h>

/*
 * SQLite 3.45 refuses a function that sets a subtype without this flag; older versions ignore it.
 */
#ifndef SQLITE_RESULT_SUBTYPE
#define SQLITE_RESULT_SUBTYPE 0x001000000
#endif

struct import_json;

/* Add these functions to db. NULL: no memory. Close db before you free the result. */
struct import_json *annal__import_json_new(sqlite3 *db);
void annal__import_json_free(struct import_json *json);

/*
 * Begin a batch; then add each of its lines that is JSON before it is inserted, in the order of
 * rows. The bytes must stay valid until the next batch.
 */
void annal__import_json_begin(struct import_json *json);
void annal__import_json_line(struct import_json *json, uint64_t row, annal_slice line);

/* ---- For json_each(), in import_each.c ---- */

/* A value in a text whose tokens are listed. */
struct json_place {
    const struct json_tokens *text;
    uint32_t token;
    bool stays; /* whether its bytes stay valid until the next batch */
};

/*
 * Find the line, or the value inside a line, that these bytes point to. Returns false if there is
 * none.
 */
bool annal__import_json_line_of(struct import_json *json, annal_slice bytes,
                                struct json_place *out_place);

/* Return a value as -> or as ->> does. */
void annal__import_json_give(struct import_json *json, sqlite3_context *context,
                             const struct json_place *place, bool as_json);

/* Return the result of json_type(), which is static. */
const char *annal__import_json_type(const struct json_place *place);

/* Return a connection without our functions. NULL: no memory. */
sqlite3 *annal__import_json_sqlite(struct import_json *json);

/* Add our json_each() to db. Returns a SQLite result code. */
int annal__import_each_add(sqlite3 *db, struct import_json *json);

#endif
