/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a session in a SQLite database of another program, as a text, and a database that is
 * built from such a text.
 *
 * (1) The section "-- copies" of an importer says which rows belong to a session:
 *
 *       ids: SELECT SESSION, ID FROM ...    each session of the database, and its id there; may
 *                                           occur several times
 *       TABLE: CONDITION                    the rows of a table; in the condition, ids is a table
 *                                           with the ids of the session
 *       *: CONDITION                        for tables that no line names
 *
 *     If several lines apply to a table, the first line counts whose tables and columns exist. If
 *     there is no such line, a named table cannot be copied, and no row of an unnamed table is
 *     copied.
 * (2) The first line of the text is {"annal_rows":1,"encoding":…,"user_version":…,
 *     "application_id":…,"tables":[SQL, …],"others":[SQL, …]}: the whole schema, except virtual
 *     tables of other modules than fts5.
 * (3) Each further line is a row: its table and its key, two JSON strings, a tab, and a JSON string
 *     with its values as literals of SQL: the rowid, unless the table lacks it, and columns. The
 *     key is the primary key, else the columns of a unique index, else the rowid.
 * (4) If several rows have the same key, the last row counts.
 */
#pragma once

#include "index/sys/import.h"

#include <annal/query.h>

#include <stdio.h>

typedef struct annal__row_text annal__row_text;

/*
 * Open a database. sql: text of the importer, valid until the text is closed. limits (may be NULL)
 * as for annal__import_rows(). ANNAL_END: the importer has no section "-- copies".
 */
ANNAL_MUST_CHECK annal_status annal__row_text_open(annal_slice sql, const char *path,
                                                   const annal_limits *limits,
                                                   annal__row_text **out, annal_error *err);

/* Pass the lines of a session, all from the same moment, without line breaks. ANNAL_END: the
 * database does not have this session. */
ANNAL_MUST_CHECK annal_status annal__row_text_read(annal__row_text *text, annal_slice session,
                                                   annal__import_row_fn fn, void *arg,
                                                   annal_error *err);
void annal__row_text_close(annal__row_text *text); /* accepts NULL */

/*
 * Build a database from a text, in an empty file. The text is not trusted: its SQL may only create
 * tables, indexes, views and triggers. ANNAL_ERR_CORRUPT: it is not valid.
 */
ANNAL_MUST_CHECK annal_status annal__row_text_build(FILE *text, const char *path, annal_error *err);
