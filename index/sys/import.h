/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Further functions for annal import: ids of earlier imports, logs that are databases, and
 * detecting the format of a log.
 */
#pragma once

#include <annal/import.h>

/*
 * Remember the id of an event of the session, or find out whether it was remembered, so that a
 * second import does not append the same events again. Many ids are kept on disk.
 */
ANNAL_MUST_CHECK annal_status annal__import_remember(annal_import *import, annal_slice session,
                                                     annal_slice id, annal_error *err);

ANNAL_MUST_CHECK annal_status annal__import_knows(annal_import *import, annal_slice session,
                                                  annal_slice id, bool *out_known,
                                                  annal_error *err);

/*
 * Add an event of the session to the table recorded, which the section "-- end" reads. An event
 * without an id, or with an id that recorded contains already, is left out.
 */
ANNAL_MUST_CHECK annal_status annal__import_recall(annal_import *import, annal_slice session,
                                                   annal_slice type, annal_slice id, int64_t ts_us,
                                                   annal_slice data, annal_error *err);

/*
 * Reset the importer for another log of the same format. ANNAL_END: it cannot be reused, because it
 * failed, its section "-- once" has too many statements, or emptying its tables would run triggers.
 */
ANNAL_MUST_CHECK annal_status annal__import_again(annal_import *import,
                                                  const annal_import_source *source,
                                                  annal_error *err);

/* Return the bytes of memory of the importer's tables and statements. */
size_t annal__import_memory(const annal_import *import);

/*
 * Call fn for the events that the section "-- end" returns, at the current end of the log.
 *
 * ANNAL_ERR_SQL  the importer failed; this import accepts no more lines
 */
ANNAL_MUST_CHECK annal_status annal__import_end(annal_import *import, annal_import_fn fn, void *arg,
                                                annal_error *err);

/* A function that is called with each line of a log, as JSON that is valid until it returns. Any
 * result except ANNAL_OK ends the calls, and is returned to the caller. */
typedef annal_status (*annal__import_row_fn)(void *arg, annal_slice json, annal_error *err);

/*
 * Read the lines of a log that is a SQLite database, with the sections "-- rows" of the importer
 * whose text is sql. The database is only read; its writers are blocked while it is read. A
 * database that cannot be read at its path is first copied to a temporary directory. limits (may be
 * NULL) limit the time of each row, the memory, and the total size of the lines, to temp_bytes or
 * four times the size of the database, whichever is more: so the rows of an endless view end. Any
 * thread.
 *
 * ANNAL_ERR_BUSY     another program keeps the database locked for longer than wait_ms of limits
 * ANNAL_ERR_CORRUPT  the database is damaged; the lines that were returned before are sound
 * ANNAL_ERR_LIMIT    the import exceeded a limit
 * ANNAL_ERR_SQL      the importer has an error
 */
ANNAL_MUST_CHECK annal_status annal__import_rows(annal_slice sql, const char *path,
                                                 const annal_limits *limits,
                                                 annal__import_row_fn fn, void *arg,
                                                 annal_error *err);

/*
 * Run the section "-- detect" of an importer. *out_sure: how certain the importer is, from 0 to
 * 100, that the log has its format; 0 if it has no such section. lines are the first lines of the
 * log. *spare is NULL at first; it keeps an import that is reused for other importers and logs
 * while their texts are valid, and that can only detect. Free it with annal_import_close(). With
 * same_lines the lines are those of the call before, which need not be inserted again.
 */
ANNAL_MUST_CHECK annal_status annal__import_detect(annal_import **spare, annal_slice sql,
                                                   const annal_import_source *source,
                                                   const annal_import_line *lines, size_t count,
                                                   bool same_lines, int *out_sure,
                                                   annal_error *err);
