/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only place that opens connections to SQLite.
 *
 * (1) Another program may have written a database file, and a statement may be a user's. Neither
 *     may use what SQLite offers to the program itself.
 * (2) fts3_tokenizer() returns a pointer and takes one from its caller, which SQLite then calls.
 *     SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER does not turn it off for a bound value, so a function
 *     that only fails replaces it. It must be replaced before rule 3 frees the data that it points
 *     to.
 * (3) A connection has the virtual tables that we use, and no others: no statement, and no table of
 *     a file, can name a virtual table of SQLite that we do not know.
 * (4) A schema is not trusted: its views, triggers and columns can call only functions that SQLite
 *     or we have marked as harmless. Before 3.41 SQLite does not mark its JSON functions, which our
 *     views call. There the schema is trusted, with rules 2 and 3, and without load_extension(),
 *     which no connection of ours turns on. A file with another schema than ours is not used
 *     (shape.h).
 * (5) A statement keeps its plan. Otherwise SQLite compiles some statements again whenever another
 *     value is bound: those with LIKE, and in newer versions those with LIMIT or with a table that
 *     has a partial index, as the statements of core for turns. With SQLite 3.54 that took half of
 *     the time of the index.
 */
#include "index/db/connect.h"

#include <stddef.h>

#define JSON_IS_MARKED 3041000

static void sql_refused(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    (void)values;
    sqlite3_result_error(context, "fts3_tokenizer() is turned off", -1);
}

static int harden(sqlite3 *db)
{
    const char *kept[] = {"json_each", "json_tree", "fts5", "fts5vocab", NULL};
    int rc = sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0, NULL);
    if (rc == SQLITE_OK && sqlite3_libversion_number() >= JSON_IS_MARKED)
        rc = sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_QPSG, 1, NULL);
    for (int arguments = 1; rc == SQLITE_OK && arguments <= 2; arguments++)
        rc = sqlite3_create_function_v2(db, "fts3_tokenizer", arguments,
                                        SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, sql_refused, NULL,
                                        NULL, NULL);
    return rc == SQLITE_OK ? sqlite3_drop_modules(db, kept) : rc;
}

int annal__connect_open(const char *vfs, const char *name, int flags, sqlite3 **out_db)
{
    int rc = sqlite3_open_v2(name, out_db, flags | SQLITE_OPEN_NOMUTEX, vfs);
    return rc == SQLITE_OK ? harden(*out_db) : rc;
}
