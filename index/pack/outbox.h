/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outbox: rows that users write with the plain sqlite3 shell into the tables of a `writable`
 * pack become events of the session to which the database belongs. See the rules in outbox.c.
 *
 *   outbox.c          the tables and triggers; draining into the journal
 *   outbox_schema.c   tables, columns, indexes that users created
 *   outbox_apply.c    applying such events to tables
 */
#ifndef INDEX_PACK_OUTBOX_H
#define INDEX_PACK_OUTBOX_H

#include "index/pack/pack.h"

#include <annal/journal.h>

/* The most that the values of one captured row may take: as base64 they still fit into an event. */
#define OUTBOX_ROW_BYTES_MAX (44u << 20)

/*
 * All of these functions run on the connection that fills the database, on which triggers are off,
 * inside a transaction.
 */

/* The tables of the outbox, without the triggers. */
extern const char annal__outbox_tables[];

/* Capture what is written into the pack's tables from now on; they were just created. */
annal_status annal__outbox_make(sqlite3 *db, annal_error *err);

/*
 * Drop the outbox and what users created, which is in the journal too: the pack's tables will be
 * dropped and rebuilt from the journal. The outbox must be drained.
 */
annal_status annal__outbox_drop(sqlite3 *db, annal_error *err);

/* The destination of the rows. */
struct outbox_target {
    annal_store *store;
    annal_slice session;
    const annal_pack *pack;
    /* place up to which the tables have the session's events; seq 0: none */
    annal_position applied;
};

struct outbox_drained {
    uint64_t changes;  /* number of changes that became events */
    bool must_rebuild; /* whether the tables must be rebuilt from the journal: rule 6 */
};

/*
 * Adopt what users created, and move everything that they wrote to the session's journal, durably.
 *
 * ANNAL_ERR_BUSY  another process owns the session, and did not release it in time
 */
annal_status annal__outbox_drain(sqlite3 *db, const struct outbox_target *target,
                                 struct outbox_drained *out, annal_error *err);

/* Find out whether something is to be drained or adopted. On any connection. */
annal_status annal__outbox_waits(sqlite3 *db, bool *out, annal_error *err);

/* As above, for callers that ask often: statements are kept until the connection is closed. */
struct outbox_watch;

annal_status annal__outbox_watch_new(sqlite3 *db, struct outbox_watch **out_watch,
                                     annal_error *err);
void annal__outbox_watch_free(struct outbox_watch *watch); /* watch may be NULL */
annal_status annal__outbox_watch_ask(struct outbox_watch *watch, bool *out, annal_error *err);

/* ---- outbox_schema.c ---- */

/* Note the current tables as their original form. pack: the pack created them, not a user. */
annal_status annal__outbox_baseline(sqlite3 *db, bool pack, annal_error *err);

/*
 * Put the user's changes of the schema into the outbox, with the rows that they involve.
 * *out_broken: something of the pack is missing. *left_out counts rows that are too large.
 */
annal_status annal__outbox_adopt(sqlite3 *db, bool *out_broken, uint64_t *left_out,
                                 annal_error *err);

/* A column that can be written. */
struct outbox_column {
    char *name;
    char *preset; /* SQL of its default, or NULL */
    char *type;
    bool key;      /* whether it belongs to the primary key */
    bool not_null; /* whether it is never NULL */
};

struct outbox_table {
    struct outbox_column *columns;
    size_t count;
    const char *rowid; /* a name for the rowid that no column has, or NULL */
    bool has_key;
};

/* Look up a table. ANNAL_ERR_NOTFOUND: no table of that name has changes that can be captured. */
annal_status annal__outbox_table(sqlite3 *db, const char *name, struct outbox_table *out,
                                 annal_error *err);
void annal__outbox_table_done(struct outbox_table *table);

/* Create the triggers of a table, replacing existing ones. */
annal_status annal__outbox_capture(sqlite3 *db, const char *name, const struct outbox_table *table,
                                   annal_error *err);

/* Drop the triggers of all tables: while they exist, no column can be dropped. */
annal_status annal__outbox_uncapture(sqlite3 *db, annal_error *err);

/* Put a change into the outbox; its values follow, with part "row", "was" or "ddl". */
annal_status annal__outbox_put(sqlite3 *db, const char *table, const char *op, annal_error *err);
annal_status annal__outbox_put_value(sqlite3 *db, const char *part, const char *name,
                                     sqlite3_value *value, annal_error *err);

/* ---- outbox_apply.c ---- */

struct outbox_reader;

annal_status annal__outbox_reader_new(sqlite3 *db, struct outbox_reader **out_reader,
                                      annal_error *err);
void annal__outbox_reader_free(struct outbox_reader *reader); /* reader may be NULL */

/* Return whether events of this type are for annal__outbox_apply(). */
bool annal__outbox_takes(annal_slice type);

/* Return whether such a change was made in this very file, so that its tables contain it. */
bool annal__outbox_holds(struct outbox_reader *reader, const annal_event *event);

/*
 * Apply such an event, also in memory, where there is no outbox. Skips what the tables have already
 * (rule 5). Returns a result code of SQLite; *out_why says more if it is SQLITE_ERROR and not the
 * database's own error, else NULL. Valid until the next call.
 */
int annal__outbox_apply(struct outbox_reader *reader, const annal_event *event,
                        const char **out_why);

#endif
