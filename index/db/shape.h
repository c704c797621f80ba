/*
 * Whether the tables of a derived database are still as they were made. Somebody may drop a table,
 * a column or an index with the sqlite3 shell; then what is left answers wrongly, and must be made
 * anew before it is asked.
 *
 * (1) _shape holds the SQL of every object that was made, as sqlite_schema had it then. What others
 *     add (an index, a view) is not in it, and is theirs.
 * (2) The comparison is only needed when SQLite's schema cookie is another one than it was when the
 *     shape last held, in the same database.
 * (3) Rows are not looked at: annal verify compares those.
 */
#ifndef INDEX_DB_SHAPE_H
#define INDEX_DB_SHAPE_H

#include <annal/base.h>

#include <sqlite3.h>
#include <stdatomic.h>

/* Rule 2; all zero at first. Any thread. */
struct shape_seen {
    _Atomic uint64_t key;
};

/* The tables of ours are as they are now: in the transaction that made them. */
annal_status annal__shape_note_own(sqlite3 *db, annal_error *err);

/* The same for what a pack made, as _object names it. Makes _shape in a file that has none. */
annal_status annal__shape_note_pack(sqlite3 *db, const char *pack, annal_error *err);

/* pack: its objects; NULL: those of ours. seen may be NULL. */
annal_status annal__shape_holds(sqlite3 *db, const char *pack, struct shape_seen *seen,
                                bool *out_holds, annal_error *err);

#endif
