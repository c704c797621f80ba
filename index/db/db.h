/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite as this folder uses it: opening, errors, SQL functions, reading rows. */
#pragma once

#include "index/db/allowed.h"
#include "journal/base/buf.h"

#include <annal/query.h>

#include <sqlite3.h>

/* Application id in the header of our database files: "Annl". */
#define INDEX_APPLICATION_ID 0x416e6e6c

/* Version of our code: increase it when applier.c or indexer.c handle the same events differently.
 * Existing tables are then rebuilt. */
#define INDEX_CODE_VERSION 3

extern const char annal__sql_schema[];
extern const char annal__sql_core[];
extern const char annal__sql_packs_schema[];

/*
 * Fill err with the description of the attempt (format) and SQLite's reason, and return the status
 * for the result code rc. If another program holds a lock, the message tells the user what to do.
 */
annal_status annal__db_fail(annal_error *err, sqlite3 *db, int rc, const char *format, ...)
    ANNAL_PRINTF(4, 5);

/*
 * Write to out why a row could not be written, in our own words instead of SQLite's, for a caller
 * that appended the event and does not know our tables. rc is the extended result code of the last
 * failure on db. A sentence from a trigger of the pack is kept unchanged.
 */
void annal__db_reason(sqlite3 *db, int rc, char *out, size_t room);

/*
 * Open a database of ours with annal__connect_open(): with our SQL functions, extended result
 * codes, no checkpoint on close (only the holder of the index lock may checkpoint). flags as for
 * sqlite3_open_v2().
 */
annal_status annal__db_open(const char *name, int flags, sqlite3 **out_db, annal_error *err);

/* Open a database as annal__db_open() does, on the VFS with this name; NULL: the default VFS. */
annal_status annal__db_open_on(const char *vfs, const char *name, int flags, sqlite3 **out_db,
                               annal_error *err);

/* Add the virtual table events to a connection, over the journals of this store; see
 * events_table.c. */
annal_status annal__events_table_add(sqlite3 *db, annal_store *store, annal_error *err);

/*
 * Load an extension of SQLite; its functions replace ours of the same name. *out_functions: the
 * names that it added, in the form of allowed.functions.
 */
annal_status annal__db_load(sqlite3 *db, const char *path, struct buf *out_functions,
                            annal_error *err);

void annal__db_close(sqlite3 *db);    /* Close a connection. NULL is accepted. */
void annal__db_finalize(sqlite3 *db); /* Finalize all statements of a connection. */

annal_status annal__db_exec(sqlite3 *db, const char *sql, annal_error *err);
/* Begin a transaction, unless one has begun. */
annal_status annal__db_begin(sqlite3 *db, annal_error *err);
/* Roll back the transaction, if one has begun. */
void annal__db_rollback(sqlite3 *db);
annal_status annal__db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out_stmt,
                               annal_error *err);

/*
 * Prepare one statement that only reads. Since the text is a user's, any other statement is refused
 * with a sentence, and so is every name that allowed.c does not list. After success db stays
 * restricted to this statement, and *allowed must stay valid, until annal__db_end_select().
 */
annal_status annal__db_prepare_select(sqlite3 *db, annal_slice sql, struct allowed *allowed,
                                      sqlite3_stmt **out_stmt, annal_error *err);
void annal__db_end_select(sqlite3 *db);

/* Step a statement that returns no rows, and reset it. */
annal_status annal__db_run(sqlite3_stmt *stmt, annal_error *err);

/* Return the first column of the first row as an integer, or 0 if there is no row. */
annal_status annal__db_integer(sqlite3 *db, const char *sql, int64_t *out, annal_error *err);

/* Bind a slice as text; it must stay valid until the statement is reset. */
void annal__db_bind_text(sqlite3_stmt *stmt, int column, annal_slice text);

/* Return a column as a slice, valid until the next step. */
annal_slice annal__db_column(sqlite3_stmt *stmt, int column);
annal_value annal__db_value(sqlite3_stmt *stmt, int column);

/*
 * Run one statement that only reads, with options->params and ->columns, and pass each row to fn. A
 * statement that would write is refused. If fn returns a value other than 0, that value is
 * returned.
 */
annal_status annal__db_select(sqlite3 *db, annal_slice sql, const annal_sql_options *options,
                              annal_row_fn fn, void *arg, annal_error *err);

/* Run a SELECT of this program as annal__db_select() does, without the check of a user's text, and
 * with a statement that annal__readers_prepare() keeps for the next call. */
annal_status annal__db_ask(sqlite3 *db, const char *sql, const annal_sql_options *options,
                           annal_row_fn fn, void *arg, annal_error *err);

/* Run a statement of annal__db_prepare_select() as annal__db_select() does; it is finalized, and
 * the restriction of its connection ends. */
annal_status annal__db_select_with(sqlite3_stmt *stmt, const annal_sql_options *options,
                                   annal_row_fn fn, void *arg, annal_error *err);
