/* What an importer finds in its database, as import.c puts it there. */
#ifndef INDEX_IMPORT_H
#define INDEX_IMPORT_H

#include "journal/base/buf.h"

#include <annal/import.h>

#include <sqlite3.h>

/* time_us(), session_id(), json_text() and json_fields(). A SQLite result code. */
int annal__import_functions(sqlite3 *db);

/* Append {"reason":"…"[,"part":N],"text":"…" or "base64":"…"}: a line that is not JSON. */
annal_status annal__import_hold(struct buf *out, const annal_import_line *line, const char *reason);

#endif
