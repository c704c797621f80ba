/* SPDX-License-Identifier: Apache-2.0 */
/* The functions and tables that import.c provides for an importer in its database. */
#ifndef INDEX_IMPORT_IMPORT_H
#define INDEX_IMPORT_IMPORT_H

#include "journal/base/buf.h"

#include <annal/import.h>

#include <sqlite3.h>

/* Add the functions that annal/import.h lists. Returns a SQLite result code. */
int annal__import_functions(sqlite3 *db);
bool annal__import_function_exists(const char *name);

/* Add said(). Returns a SQLite result code. */
int annal__import_said(sqlite3 *db);

/*
 * Return the text after the next line that is this mark ("-- rows"), up to the next mark. Begin
 * with *at = 0; ptr is NULL if there are no more.
 */
annal_slice annal__import_section(annal_slice sql, const char *mark, size_t *at);

/*
 * Append msgpack, one value, as JSON. ANNAL_ERR_INVALID: it is not one value, or is nested too
 * deep.
 */
annal_status annal__import_msgpack(struct buf *out, annal_slice msgpack);
annal_status annal__import_otlp(struct buf *out, annal_slice value); /* JSON */

/*
 * Append {"reason":"…"[,"part":N],"text":"…", "base64":"…" or "zero_bytes":N}: a line that is not
 * JSON.
 */
annal_status annal__import_hold(struct buf *out, const annal_import_line *line, const char *reason);

#endif
