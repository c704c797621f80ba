/* SPDX-License-Identifier: Apache-2.0 */
/* What annal import needs besides feeding lines: known ids, databases, and what kind a log is. */
#ifndef INDEX_SYS_IMPORT_H
#define INDEX_SYS_IMPORT_H

#include <annal/import.h>

/*
 * Remember the id of an event that the session has, or ask whether it is remembered: this keeps a
 * second import from appending what the first one did. If there are many, ids are kept on disk.
 */
ANNAL_MUST_CHECK annal_status annal__import_remember(annal_import *import, annal_slice session,
                                                     annal_slice id, annal_error *err);

ANNAL_MUST_CHECK annal_status annal__import_knows(annal_import *import, annal_slice session,
                                                  annal_slice id, bool *out_known,
                                                  annal_error *err);

/*
 * Use it for another log of the same kind. ANNAL_END: this one cannot be, as its importer does what
 * is done only once.
 */
ANNAL_MUST_CHECK annal_status annal__import_again(annal_import *import,
                                                  const annal_import_source *source,
                                                  annal_error *err);

/*
 * The log ends here, as far as is known: return what the section "-- end" gives.
 *
 * ANNAL_ERR_SQL  the importer failed; this import accepts no more lines
 */
ANNAL_MUST_CHECK annal_status annal__import_end(annal_import *import, annal_import_fn fn, void *arg,
                                                annal_error *err);

/* A line, which is valid until it returns. Any result but ANNAL_OK stops, and is returned. */
typedef annal_status (*annal__import_row_fn)(void *arg, annal_slice json, annal_error *err);

/*
 * The lines of a log that is a SQLite database, by the sections "-- rows" of the importer whose
 * text is sql. The database is only read, and its writers wait no longer than that takes; one that
 * cannot be read in its place is copied to a temporary directory first. Any thread.
 *
 * limits (may be NULL) limit each row's time, the memory, and, by temp_bytes, also the lines: they
 * may take that, or four times the database if that is more. So a view without an end ends.
 *
 * ANNAL_ERR_BUSY     another program keeps it locked for longer than the wait_ms of limits
 * ANNAL_ERR_CORRUPT  it is damaged; what was returned until then is sound
 * ANNAL_ERR_LIMIT    it exceeded a limit
 * ANNAL_ERR_SQL      the importer is wrong
 */
ANNAL_MUST_CHECK annal_status annal__import_rows(annal_slice sql, const char *path,
                                                 const annal_limits *limits,
                                                 annal__import_row_fn fn, void *arg,
                                                 annal_error *err);

/*
 * How sure an importer is, 0 to 100, that a log is of its kind, by its section "-- detect"; 0
 * without one. lines are the first of the log. *spare is NULL at first, and is used again for other
 * importers and logs, as long as their texts live; it detects only. End with annal_import_close().
 */
ANNAL_MUST_CHECK annal_status annal__import_detect(annal_import **spare, annal_slice sql,
                                                   const annal_import_source *source,
                                                   const annal_import_line *lines, size_t count,
                                                   int *out_sure, annal_error *err);

#endif
