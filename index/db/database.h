/* SQLite, as this folder uses it: opening, errors, SQL functions, reading rows. */
#ifndef INDEX_DB_DATABASE_H
#define INDEX_DB_DATABASE_H

#include <annal/query.h>

#include <sqlite3.h>

/* The file is ours. */
#define INDEX_APPLICATION_ID 0x416e6e6c /* "Annl" */

/* To be raised when apply.c or indexer.c do something else with the same events. */
#define INDEX_CODE_VERSION 2

extern const char annal__sql_schema[];
extern const char annal__sql_core[];
extern const char annal__sql_packs_schema[];

/*
 * Fill err with what was tried and SQLite's reason, and return the status that result code rc
 * stands for. A lock of another program is told in words that a user can act on.
 */
annal_status annal__db_fail(annal_error *err, sqlite3 *db, int rc, const char *format, ...)
    ANNAL_PRINTF(4, 5);

/*
 * Why a row could not be written, for whoever gave the event and does not know our tables: in our
 * words, never in SQLite's. rc is an extended result code, and the failure db's last. What a
 * trigger of the pack says is the pack's own sentence, and stays.
 */
void annal__db_reason(sqlite3 *db, int rc, char *out, size_t room);

/*
 * Open a database the way all ours are: our SQL functions, extended result codes, no checkpoint on
 * close (only the holder of the index lock may do that). flags as for sqlite3_open_v2().
 */
annal_status annal__db_open(const char *name, int flags, sqlite3 **out_db, annal_error *err);

/* The same on a VFS of this name; NULL: the usual one. */
annal_status annal__db_open_on(const char *vfs, const char *name, int flags, sqlite3 **out_db,
                               annal_error *err);

/* What the journals are to a connection on which virtual table events is wanted; see virtual.c. */
annal_status annal__db_add_events(sqlite3 *db, annal_store *store, annal_error *err);

/* Load an extension of SQLite; its functions take the place of ours of the same name. */
annal_status annal__db_load(sqlite3 *db, const char *path, annal_error *err);

void annal__db_close(sqlite3 *db); /* NULL is fine */

annal_status annal__db_exec(sqlite3 *db, const char *sql, annal_error *err);
annal_status annal__db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out_stmt,
                               annal_error *err);

/* One statement that only reads; of a user's, so whatever else it is gets a sentence. */
annal_status annal__db_prepare_select(sqlite3 *db, annal_slice sql, sqlite3_stmt **out_stmt,
                                      annal_error *err);

/* Step a statement that gives no rows, and reset it. */
annal_status annal__db_run(sqlite3_stmt *stmt, annal_error *err);

/* The first column of the first row, as an integer; 0 when there is no row. */
annal_status annal__db_integer(sqlite3 *db, const char *sql, int64_t *out, annal_error *err);

/* Bind a slice as text; it must live until the statement is reset. */
void annal__db_bind_text(sqlite3_stmt *stmt, int column, annal_slice text);

/* A column as a slice; lives until the next step. */
annal_slice annal__db_column(sqlite3_stmt *stmt, int column);
annal_value annal__db_value(sqlite3_stmt *stmt, int column);

/*
 * Run one statement that only reads, with options->params and ->columns, and hand each row to fn. A
 * statement that would write is refused. Returns what fn returned when that was not 0.
 */
annal_status annal__db_select(sqlite3 *db, annal_slice sql, const annal_sql_options *options,
                              annal_row_fn fn, void *arg, annal_error *err);

#endif
