/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packs of a store: which packs are enabled, and the databases that they fill. packs.c reads
 * the enabled packs, pack_database.c creates and fills one database.
 *
 * struct pack_set *set; annal__packs_get(index, &set, err); … annal__packs_put(index, set);
 * A set never changes; after a change in packs/ the next annal__packs_get() returns another set.
 */
#pragma once

#include "index/db/shape.h"
#include "index/follow/follower.h"
#include "index/pack/pack.h"
#include "journal/base/buf.h"
#include "journal/base/io.h"

#include <annal/index.h>

#include <stdatomic.h>

/* A pack that is enabled. */
struct pack_slot {
    char *name;
    char *source;     /* path of the file of a user's pack; NULL: built in */
    char *at;         /* directory given with `annal pack enable NAME --at DIR`, or NULL */
    annal_pack *pack; /* NULL if the pack has an error, which is in error */
    annal_error error;
    /* for a pack with an error: the types that it guards or fills; NULL if they are not known */
    char *guarded;
    /* whether the slot stands for a file that could not be read completely: a user's pack, or the
     * list of packs. If such a file has an error and guarded is NULL, all types may be guarded. */
    bool is_file;
};

/*
 * A pack in a database that one or several packs fill: its follower, its statements and its outbox.
 */
struct pack_fill {
    const struct pack_slot *slot;
    const char *star; /* text that replaced the * in the database's file name, or NULL */
    struct follower follower;
    /* statement on the writer's connection; NULL until it is needed, like the next member */
    sqlite3_stmt *get_made;
    struct outbox_watch *outbox;
    /* used by the background task: whether the pack was once caught up on all journals */
    bool met;
    atomic_bool left_out; /* whether the pack cannot run in this database, for the reason in why */
    annal_error why;      /* why the pack cannot run; written once, before left_out */
};

/* One database, with the tables of one or more packs. */
struct pack_database {
    struct pack_database *next;
    struct derived derived;
    char *stem; /* name of the database in SQL: "state" for state.db */
    char *star; /* text that replaced the * of its file name, or NULL */
    struct pack_fill *fills;
    size_t fill_count;
    struct shape shape; /* expected shape of our own tables in the database */
    /* expected shape of the outbox's tables, if users write the database; else empty */
    struct shape outbox;
    /* stamp of the database after the last catch-up of all sessions; id 0: there was no catch-up;
     * guarded by packs.mutex */
    struct stamp caught_up;
};

struct pack_set {
    /* number of holders: index->packs.set, and callers of annal__packs_get() before
     * annal__packs_put(); guarded by packs.mutex */
    unsigned refs;
    uint64_t seen; /* hash of the names, sizes, times and inodes in packs/ when the set was read */
    /* whether a file could not be read because of an I/O error, so that the set is read again */
    bool again;
    struct pack_slot *slots;
    size_t slot_count;
    /* all databases that sessions share, and the databases of single sessions that were used;
     * guarded by packs.mutex */
    struct pack_database *databases;
};

struct packs {
    pthread_mutex_t mutex;
    struct pack_set *set; /* the enabled packs; NULL until they are first requested */
};

/*
 * Return whether a pack with an error may guard this type. Its guard cannot be checked, so an event
 * of this type is refused.
 */
bool annal__packs_slot_bars(const struct pack_slot *slot, annal_slice type);

/* ---- kept_guards.c ---- */

/* Write the types that a valid file guards and fills to the list beside it. A list that cannot be
 * written is skipped. */
annal_status annal__kept_guards_note(const struct io *io, const struct pack_slot *slot,
                                     annal_error *err);

/* Append the types in the list beside a file to `list`, each with a NUL. *out_known: whether the
 * list exists. */
annal_status annal__kept_guards_add(const struct io *io, const char *source, struct buf *list,
                                    bool *out_known, annal_error *err);

/* ---- packs_text.c ---- */

/* Read a whole text file. ANNAL_ERR_NOTFOUND if it does not exist. */
annal_status annal__packs_read_text(const struct io *io, const char *path, struct buf *out,
                                    annal_error *err);

/* ---- packs.c ---- */

/* Return the packs that are enabled now; release them with annal__packs_put(). */
annal_status annal__packs_get(annal_index *index, struct pack_set **out_set, annal_error *err);
void annal__packs_put(annal_index *index, struct pack_set *set);
void annal__packs_done(annal_index *index);

/*
 * Find the database of a pack, or its database for this session if its file name contains a *.
 * *out_database is valid as long as the set; it is NULL if the session is not fed to the pack.
 */
annal_status annal__packs_database(annal_index *index, struct pack_set *set,
                                   const struct pack_slot *slot, annal_slice session,
                                   struct pack_database **out_database, annal_error *err);

/*
 * Return the database after `before` (NULL: the first) among those without a * in their file name;
 * NULL after the last.
 */
struct pack_database *annal__packs_next(annal_index *index, struct pack_set *set,
                                        struct pack_database *before);

/* Return whether the pack has a database for each session: its file name contains a *. */
bool annal__packs_slot_has_star(const struct pack_slot *slot);

/* Compose the path of a pack's database, with star in place of the * in the file name. */
annal_status annal__packs_path(const annal_index *index, const struct pack_slot *slot,
                               annal_slice star, struct buf *out, annal_error *err);

/* ---- packs_run.c ---- */

/* A choice of databases: the shared databases, and databases of single sessions. */
enum pack_scope {
    PACK_SHARED,  /* the shared databases, and those of the requested sessions */
    PACK_EVERYONE /* the shared databases, and those of all sessions */
};

/* A function that is called for a database. session: the session of the database; empty for a
 * shared database. */
typedef annal_status (*pack_database_fn)(void *arg, struct pack_database *database,
                                         annal_slice session, annal_error *err);

/*
 * Call fn for the shared databases, and then for the databases of these sessions (of all sessions
 * if scope is PACK_EVERYONE and count is 0).
 */
annal_status annal__packs_each(annal_index *index, struct pack_set *set, enum pack_scope scope,
                               const annal_slice *sessions, size_t count, pack_database_fn fn,
                               void *arg, annal_error *err);

/*
 * Catch up the databases of packs on these sessions, or on all if count is 0. The failure of a pack
 * is logged, and all other packs are caught up. ANNAL_ERR_BUSY if the time limit has passed.
 */
annal_status annal__packs_catch_up(annal_index *index, enum pack_scope scope,
                                   const annal_slice *sessions, size_t count,
                                   const annal_catch_up_options *options, annal_error *err);

/*
 * Attach the databases to a reader's connection, each under its stem, after catching them up
 * (unless as_indexed). If session is not empty, its own databases are attached, too. The sessions
 * and bytes that are still missing are added to *lag; lag may be NULL.
 */
annal_status annal__packs_attach(annal_index *index, sqlite3 *db, annal_slice session,
                                 bool as_indexed, uint32_t timeout_ms, annal_lag *lag,
                                 annal_error *err);

/*
 * Delete the attached databases that are corrupt, after SQLite found corruption. Returns true if a
 * database was deleted, so that trying again helps.
 */
bool annal__packs_heal(annal_index *index, annal_slice session);

/* Report the findings of packs, for annal_index_finding_each(). */
annal_status annal__packs_findings(annal_index *index, annal_slice session,
                                   annal_index_finding_fn fn, void *arg, annal_error *err);

/*
 * Turn rows that users wrote into the writable database of a session (drain), or of any session
 * (drain_all), into events. Does not create a database. Failures are logged, and the rows stay in
 * the outbox.
 */
void annal__packs_drain(annal_index *index, struct pack_set *set, const struct pack_slot *slot,
                        annal_slice session, int64_t deadline_us);
void annal__packs_drain_all(annal_index *index);

/* Rebuild the tables of this pack from the journals; name NULL: of all packs. */
annal_status annal__packs_rebuild(annal_index *index, const char *name,
                                  const annal_catch_up_options *options, annal_error *err);

/* ---- pack_database.c ---- */

annal_status annal__pack_database_new(annal_index *index, const char *path, const char *star,
                                      const struct pack_slot *const *slots, size_t slot_count,
                                      struct pack_database **out_database, annal_error *err);
void annal__pack_database_free(struct pack_database *database);

/*
 * Catch up all packs of the database to the current end of the session's journal. For guards: it
 * runs within a transaction of annal__derived_begin().
 */
annal_status annal__pack_catch_up(struct pack_database *database, annal_slice session,
                                  annal_error *err);

/* Turn rows that users wrote into the database of a writable pack into events. */
annal_status annal__pack_take_in(struct pack_database *database, const struct pack_fill *fill,
                                 int64_t deadline_us, annal_error *err);

/*
 * Drop the tables of one pack and create them again, empty; the next catch-up fills them.
 * ANNAL_ERR_BUSY after the deadline.
 */
annal_status annal__pack_empty(struct pack_database *database, struct pack_fill *fill,
                               int64_t deadline_us, annal_error *err);

/* Close the connection of a database until it is needed again, unless it is in use. */
void annal__pack_rest(struct pack_database *database);

/* Return the part of a database that belongs to this pack, or NULL. */
struct pack_fill *annal__pack_fill(struct pack_database *database, const struct pack_slot *slot);
