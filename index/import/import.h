/* SPDX-License-Identifier: Apache-2.0 */
/* The functions and tables of an importer's database. */
#pragma once

#include "journal/base/buf.h"

#include <annal/import.h>

#include <sqlite3.h>

/* Add the SQL functions that annal/import.h lists, except those of import_json.h and said().
 * Returns a result code of SQLite. */
int annal__import_functions(sqlite3 *db);
bool annal__import_function_exists(const char *name);

/*
 * The SQL function session_id(text): return text if it is a valid id, else an id derived from it,
 * in id: its first characters, with _ for those that are not allowed, and a hash of the complete
 * text, so that different texts have different ids.
 */
annal_slice annal__import_session_id(annal_slice given, char id[ANNAL_SESSION_ID_BYTES_MAX + 1]);

/* Add the SQL function said(). Returns a result code of SQLite. */
int annal__import_said(sqlite3 *db);

/*
 * Return the text of the next section: after the next line that equals mark ("-- rows"), up to the
 * next section. *at is 0 for the first call; the ptr of the result is NULL after the last section.
 */
annal_slice annal__import_section(annal_slice sql, const char *mark, size_t *at);

/*
 * Append one msgpack value as JSON. ANNAL_ERR_INVALID: the bytes are not exactly one value, or it
 * is nested too deep.
 */
annal_status annal__import_msgpack(struct buf *out, annal_slice msgpack);
/* Append a value of OpenTelemetry (JSON that names its type) as plain JSON. */
annal_status annal__import_otlp(struct buf *out, annal_slice value);

/*
 * Append a line that is not JSON, wrapped as {"reason":"…"[,"part":N],"text":"…", "base64":"…" or
 * "zero_bytes":N}.
 */
annal_status annal__import_hold(struct buf *out, const annal_import_line *line, const char *reason);
