/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outbox: rows that users write with the plain sqlite3 shell into the tables of a `writable`
 * pack become events of the session to which the database belongs. See the rules in outbox.c.
 *
 *   outbox.c          the tables; draining into the journal
 *   outbox_capture.c  the triggers that fill these tables
 *   outbox_schema.c   tables, columns, indexes that users created
 *   outbox_apply.c    applying the events to tables
 */
#pragma once

#include "index/pack/pack.h"

#include <annal/journal.h>

/* Maximum number of bytes that the values of one captured row may have: as base64 they still fit
 * into an event. */
#define OUTBOX_ROW_BYTES_MAX (44u << 20)

/*
 * Unless noted otherwise, these functions run on the connection that fills the database, inside a
 * transaction; triggers are off on this connection.
 */

/* SQL that creates the tables of the outbox, without the triggers. */
extern const char annal__outbox_tables[];

/* Create the outbox of a database whose tables were just created: rows written into these tables
 * from now on are captured. */
annal_status annal__outbox_make(sqlite3 *db, annal_error *err);

/*
 * Drop the outbox and all objects that users created, before the pack's tables are dropped and
 * rebuilt from the journal, which contains these objects, too. The outbox must have been drained.
 */
annal_status annal__outbox_drop(sqlite3 *db, annal_error *err);

/* The session and the pack to which the rows of an outbox belong. */
struct outbox_target {
    annal_store *store;
    annal_slice session;
    const annal_pack *pack;
    /* position in the journal up to which the tables contain the session's events; seq 0: they
     * contain none */
    annal_position applied;
};

struct outbox_drained {
    uint64_t changes;  /* number of changes that became events */
    bool must_rebuild; /* whether the tables must be rebuilt from the journal: outbox.c, rule (6) */
};

/*
 * Capture the objects that users created, and move all rows that users wrote to the session's
 * journal, durably.
 *
 * ANNAL_ERR_BUSY  another process owns the session, and did not release it in time
 */
annal_status annal__outbox_drain(sqlite3 *db, const struct outbox_target *target,
                                 struct outbox_drained *out, annal_error *err);

/* Find out whether the outbox contains rows, or users changed the schema. On any connection. */
annal_status annal__outbox_waits(sqlite3 *db, bool *out, annal_error *err);

/* annal__outbox_waits() for callers that call it often: its statements are kept until
 * annal__outbox_watch_free(). */
struct outbox_watch;

annal_status annal__outbox_watch_new(sqlite3 *db, struct outbox_watch **out_watch,
                                     annal_error *err);
void annal__outbox_watch_free(struct outbox_watch *watch); /* Free a watch. NULL is accepted. */
annal_status annal__outbox_watch_ask(struct outbox_watch *watch, bool *out, annal_error *err);

/* ---- outbox_schema.c ---- */

/* Record the current objects of the schema in _outbox_schema, and capture all tables. pack: whether
 * the pack created the objects, and not a user. */
annal_status annal__outbox_baseline(sqlite3 *db, bool pack, annal_error *err);

/*
 * Add the changes that users made to the schema to the outbox, with the rows that no trigger
 * captured. *out_broken is set to whether an object or column of the pack is missing. *left_out is
 * increased by the number of rows that are too large.
 */
annal_status annal__outbox_adopt(sqlite3 *db, bool *out_broken, uint64_t *left_out,
                                 annal_error *err);

/* A column of a table whose changes are captured. */
struct outbox_column {
    char *name;
    char *preset; /* SQL of the column's default, or NULL */
    char *type;
    bool key;      /* whether the column belongs to the primary key */
    bool not_null; /* whether the column is never NULL */
};

struct outbox_table {
    struct outbox_column *columns;
    size_t count;
    /* a name of the rowid ("rowid", "oid" or "_rowid_") that no column has; NULL if there is
     * none */
    const char *rowid;
    bool has_key;
};

/* Look up a table. ANNAL_ERR_NOTFOUND: there is no table with this name whose changes can be
 * captured. */
annal_status annal__outbox_table(sqlite3 *db, const char *name, struct outbox_table *out,
                                 annal_error *err);
void annal__outbox_table_done(struct outbox_table *table);

/* ---- outbox_capture.c ---- */

/* Create the triggers that copy changes of a table to the outbox, replacing existing ones. */
annal_status annal__outbox_capture(sqlite3 *db, const char *name, const struct outbox_table *table,
                                   annal_error *err);

/* Drop the triggers of annal__outbox_capture() of all tables, because SQLite drops no column while
 * triggers exist. */
annal_status annal__outbox_uncapture(sqlite3 *db, annal_error *err);

/* Add a change to the outbox. Its values are added with annal__outbox_put_value(), with part "row",
 * "was" or "ddl". */
annal_status annal__outbox_put(sqlite3 *db, const char *table, const char *op, annal_error *err);
annal_status annal__outbox_put_value(sqlite3 *db, const char *part, const char *name,
                                     sqlite3_value *value, annal_error *err);

/* Drop each object that select returns as its type and its name, one at a time, until it returns
 * none. */
annal_status annal__outbox_drop_each(sqlite3 *db, const char *select, annal_error *err);

/* ---- outbox_apply.c ---- */

struct outbox_reader;

annal_status annal__outbox_reader_new(sqlite3 *db, struct outbox_reader **out_reader,
                                      annal_error *err);
void annal__outbox_reader_free(struct outbox_reader *reader); /* Free a reader. NULL is accepted. */

/* Return whether events of this type are applied by annal__outbox_apply(). */
bool annal__outbox_takes(annal_slice type);

/* Return whether the change in this event was made in this database file, so that its tables
 * contain it already (outbox.c, rule 5). */
bool annal__outbox_holds(struct outbox_reader *reader, const annal_event *event);

/*
 * Apply an event of a user's change, also to tables in memory, which have no outbox. Skips a change
 * that the tables contain already (outbox.c, rule 5). Returns a result code of SQLite; *out_why is
 * the reason if we refused the event with SQLITE_ERROR, or NULL if SQLite's own message applies. It
 * is valid until the next call.
 */
int annal__outbox_apply(struct outbox_reader *reader, const annal_event *event,
                        const char **out_why);
