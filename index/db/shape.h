/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a derived database: whether its tables are still as they were created. A user may
 * drop a table, a column or an index with the sqlite3 shell; what is left would give wrong answers,
 * and must be rebuilt before it is queried.
 *
 * (1) _shape has the SQL of every object that was created, as sqlite_schema had it then. It does
 *     not list objects that others add (an index, a view). They stay until the database is rebuilt,
 *     which also happens if a page of theirs reaches the file without a hash (page_proof.h, rule
 *     4).
 * (2) The comparison is needed only if SQLite's schema cookie differs from the cookie with which
 *     the shape was last correct, in the same database.
 * (3) Rows are not compared; annal verify does that.
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

/* Note our tables in their current form, in the transaction that created them. */
annal_status annal__shape_note_own(sqlite3 *db, annal_error *err);

/*
 * As above, for the objects of a pack, as _object names them. Creates _shape if the file lacks it.
 */
annal_status annal__shape_note_pack(sqlite3 *db, const char *pack, annal_error *err);

/* Check the objects of a pack, or ours if pack is NULL. seen may be NULL. */
annal_status annal__shape_holds(sqlite3 *db, const char *pack, struct shape_seen *seen,
                                bool *out_holds, annal_error *err);

#endif
