/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What annal import needs besides feeding lines: known ids, databases, and detecting the kind of a
 * log.
 */
#ifndef INDEX_SYS_IMPORT_H
#define INDEX_SYS_IMPORT_H

#include <annal/import.h>

/*
 * Remember the id of an event of the session, or ask whether it is remembered. So a second import
 * does not append the same events again. If there are many ids, they are kept on disk.
 */
ANNAL_MUST_CHECK annal_status annal__import_remember(annal_import *import, annal_slice session,
                                                     annal_slice id, annal_error *err);

ANNAL_MUST_CHECK annal_status annal__import_knows(annal_import *import, annal_slice session,
                                                  annal_slice id, bool *out_known,
                                                  annal_error *err);

/*
 * Add an event of the session to the table recorded, which the section "-- end" reads. An event
 * without an id, or with the id of another event there, is left out.
 */
ANNAL_MUST_CHECK annal_status annal__import_recall(annal_import *import, annal_slice session,
                                                   annal_slice type, annal_slice id, int64_t ts_us,
                                                   annal_slice data, annal_error *err);

/*
 * Reset the importer for another log of the same kind. ANNAL_END: it cannot be reused, because its
 * importer has one-time statements.
 */
ANNAL_MUST_CHECK annal_status annal__import_again(annal_import *import,
                                                  const annal_import_source *source,
                                                  annal_error *err);

/* The memory of the importer's tables and statements. */
size_t annal__import_memory(const annal_import *import);

/*
 * End the log, as far as is known: return what the section "-- end" returns.
 *
 * ANNAL_ERR_SQL  the importer failed; this import accepts no more lines
 */
ANNAL_MUST_CHECK annal_status annal__import_end(annal_import *import, annal_import_fn fn, void *arg,
                                                annal_error *err);

/* The line is valid until the callback returns. Any result but ANNAL_OK stops, and is returned. */
typedef annal_status (*annal__import_row_fn)(void *arg, annal_slice json, annal_error *err);

/*
 * Read the lines of a log that is a SQLite database, by the sections "-- rows" of the importer
 * whose text is sql. The database is only read, and its writers are blocked only during that time.
 * A database that cannot be read in its place is first copied to a temporary directory. Any thread.
 *
 * limits (may be NULL) limit the time of each row, the memory and, by temp_bytes, the lines: these
 * may take temp_bytes or four times the size of the database, whichever is more. So a view without
 * an end does end.
 *
 * ANNAL_ERR_BUSY     another program keeps the database locked for longer than wait_ms of limits
 * ANNAL_ERR_CORRUPT  the database is damaged; what was returned until then is sound
 * ANNAL_ERR_LIMIT    the import exceeded a limit
 * ANNAL_ERR_SQL      the importer is wrong
 */
ANNAL_MUST_CHECK annal_status annal__import_rows(annal_slice sql, const char *path,
                                                 const annal_limits *limits,
                                                 annal__import_row_fn fn, void *arg,
                                                 annal_error *err);

/*
 * Run the section "-- detect" of an importer: how certain it is, 0 to 100, that a log is of its
 * kind; 0 without that section. lines are the first lines of the log. *spare is NULL at first, and
 * is reused for other importers and logs as long as their texts live; it only detects. End with
 * annal_import_close().
 */
ANNAL_MUST_CHECK annal_status annal__import_detect(annal_import **spare, annal_slice sql,
                                                   const annal_import_source *source,
                                                   const annal_import_line *lines, size_t count,
                                                   int *out_sure, annal_error *err);

#endif
