/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a derived database, or of the image in a snapshot: the tables, indexes, views and
 * triggers that this program creates in it. Whoever can write the file can also write its schema:
 * SQLite would then run a planted view, trigger, default or index expression for one of our
 * statements that names its table. A user may also drop a table with the sqlite3 shell. So a file
 * whose schema differs from the expected shape is not used.
 *
 * (1) The expected shape never comes from the file: the schema of the file is compared with the
 *     text from which this program creates the tables. This text is the schema of a built-in pack,
 *     or, for the file of a user's pack, the schema that SQLite created from the pack in memory.
 * (2) The comparison reads sqlite_schema only. No other statement runs on a connection before it.
 * (3) A part is our tables, or the tables of a pack. Each row must have the type, name, table and
 *     SQL of an object of a part. The SQL may differ in spaces and comments: ALTER TABLE does not
 *     keep those. A part that is ours must be complete; the caller decides about the others.
 * (4) The schema is compared in the transaction in which SQLite parses it, and again only if its
 *     cookie changes: with the same cookie, SQLite keeps the schema that it has parsed. A reader
 *     continues in the transaction in which schema or cookie were compared.
 * (5) Rows are not compared; annal verify does that.
 */
#pragma once

#include "journal/base/buf.h"

#include <annal/base.h>

#include <sqlite3.h>

struct shape_object {
    const char *type; /* "table", "index", "view" or "trigger" */
    annal_slice name;
    annal_slice table; /* name of the table, also for an index or a trigger */
    /* beginning of its CREATE statement, up to the name: "CREATE UNIQUE INDEX " */
    annal_slice head;
    annal_slice sql; /* rest of its CREATE statement, from the name on */
};

struct shape {
    struct shape_object *objects;
    size_t count;
    /* text of the objects, to be freed with the shape; NULL if the caller owns the text */
    char *copy;
};

/*
 * Add each CREATE statement of a built-in text, which must stay valid. Each statement begins a
 * line, in capital letters, and ends with the first ; at the end of a line (a trigger with END;).
 */
annal_status annal__shape_of_text(struct shape *shape, const char *text, annal_error *err);

/*
 * Fill an empty shape with the objects of a database that was just created, except for SQLite's own
 * tables and the table _state. After a failure the shape is empty.
 */
annal_status annal__shape_of_database(struct shape *shape, sqlite3 *db, annal_error *err);
void annal__shape_done(struct shape *shape);

/* A part of a database, and the result of its comparison. All members are zero at first, except for
 * shape and ours. */
struct shape_part {
    const struct shape *shape;
    bool ours;    /* whether all objects of the part must exist and be unchanged */
    size_t found; /* number of the part's objects that exist unchanged in the database */
    bool differs; /* whether the SQL of an object of the part differs in the database */
    /* whether an object that differs is not a table: SQLite runs it for other statements */
    bool moves;
};

/*
 * Compare the schema of a database that is attached under this name with its parts. In a part that
 * is not ours an object may differ or be missing. open: users create objects, too, so no object of
 * a part may differ, and an object whose name is in no part is ignored. ANNAL_ERR_CORRUPT: the
 * message names the object that differs.
 */
annal_status annal__shape_compare(sqlite3 *db, const char *schema, struct shape_part *parts,
                                  size_t count, bool open, annal_error *err);

/*
 * Drop the indexes, views and triggers that differ, in the same transaction as the comparison.
 * parts[i].found is counted again.
 */
annal_status annal__shape_drop_moves(sqlite3 *db, struct shape_part *parts, size_t count,
                                     annal_error *err);
