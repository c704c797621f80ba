/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packs of a store: which are on, and the databases that they fill. packs.c reads what is on,
 * pack_database.c creates and fills one database.
 *
 * struct pack_set *set; annal__packs_get(index, &set, err); … annal__packs_put(index, set);
 * A set never changes; if packs/ does, the next annal__packs_get() returns another one.
 */
#ifndef INDEX_PACK_PACKS_H
#define INDEX_PACK_PACKS_H

#include "index/db/shape.h"
#include "index/follow/follower.h"
#include "index/pack/pack.h"
#include "journal/base/buf.h"
#include "journal/base/io.h"

#include <annal/index.h>

#include <stdatomic.h>

/* One pack that is on. */
struct pack_slot {
    char *name;
    char *source;     /* the file's path; NULL: built in */
    char *at;         /* the directory of `enable --at`; NULL: none */
    annal_pack *pack; /* NULL: it is wrong, and error says why */
    annal_error error;
    char *guarded; /* of a wrong one: the types that it guards or fills; NULL: it cannot be read */
    bool is_file;  /* or the list of packs; a wrong one may guard */
};

/* The part of one pack in a database of packs. */
struct pack_fill {
    const struct pack_slot *slot;
    const char *star; /* of the database */
    struct follower follower;
    /* on the writer's connection; NULL until it is needed, like the next one */
    sqlite3_stmt *get_made;
    struct outbox_watch *outbox;
    struct shape_seen shape;
    bool met;             /* for the task: it was once caught up on all journals */
    atomic_bool left_out; /* it cannot be run here: */
    annal_error why;      /* written once, before left_out */
};

/* One database, with the tables of one or more packs. */
struct pack_database {
    struct pack_database *next;
    struct derived derived;
    char *stem; /* its name in SQL: "state" of state.db */
    char *star; /* what the * of its file name was replaced by; NULL: there is none */
    struct pack_fill *fills;
    size_t fill_count;
    struct shape_seen shape; /* of our tables in it */
    struct stamp caught_up;  /* of the last catch-up of all sessions, id 0: none; packs.mutex */
};

struct pack_set {
    unsigned refs; /* packs.mutex */
    uint64_t seen; /* the state of packs/ when it was read */
    bool again;    /* a file could not be read just now: another try may be better */
    struct pack_slot *slots;
    size_t slot_count;
    struct pack_database *databases; /* those without a star are all in it; packs.mutex */
};

struct packs {
    pthread_mutex_t mutex;
    struct pack_set *set; /* NULL until it is first asked for */
};

/* Whether a pack that is wrong may guard this type: it cannot be asked, so the event is refused. */
bool annal__slot_bars(const struct pack_slot *slot, annal_slice type);

/* ---- kept_guards.c ---- */

/* Note what the sound file of a slot guards and fills; a file that cannot be written is let be. */
annal_status annal__kept_guards_note(const struct io *io, const struct pack_slot *slot,
                                     annal_error *err);

/* Append what was noted for a file to a list of types, each with a NUL; *out_known: there was a
 * note. */
annal_status annal__kept_guards_add(const struct io *io, const char *source, struct buf *list,
                                    bool *out_known, annal_error *err);

/* ---- packs.c ---- */

/* The packs that are on now; release them with annal__packs_put(). */
annal_status annal__packs_get(annal_index *index, struct pack_set **out_set, annal_error *err);
void annal__packs_put(annal_index *index, struct pack_set *set);
void annal__packs_done(annal_index *index);

/* A whole text file. ANNAL_ERR_NOTFOUND if there is none. */
annal_status annal__packs_read_text(const struct io *io, const char *path, struct buf *out,
                                    annal_error *err);

/*
 * The database of a pack (and, if its file has a star, of a session); valid as long as the set.
 * NULL: the pack is not fed by that session.
 */
annal_status annal__packs_database(annal_index *index, struct pack_set *set,
                                   const struct pack_slot *slot, annal_slice session,
                                   struct pack_database **out_database, annal_error *err);

/* All except those with a star, one after the other: NULL returns the first, and the last NULL. */
struct pack_database *annal__packs_next(annal_index *index, struct pack_set *set,
                                        struct pack_database *before);

/* Whether each session has a database of its own. */
bool annal__slot_has_star(const struct pack_slot *slot);

/* The path of a pack's database; star replaces its *. */
annal_status annal__packs_path(const annal_index *index, const struct pack_slot *slot,
                               annal_slice star, struct buf *out, annal_error *err);

/* ---- packs_run.c ---- */

/* Which databases: those that all sessions share, and those of single sessions. */
enum pack_scope {
    PACK_SHARED,  /* and those of the sessions that are asked for */
    PACK_EVERYONE /* and those of all sessions */
};

/*
 * Catch up on these sessions, or all if count is 0. A pack that fails stops only itself: it is
 * logged. ANNAL_ERR_BUSY if time is up.
 */
annal_status annal__packs_catch_up(annal_index *index, enum pack_scope scope,
                                   const annal_slice *sessions, size_t count,
                                   const annal_catch_up_options *options, annal_error *err);

/*
 * Attach the databases to a reader's connection, each under its stem; they are caught up before,
 * unless as_indexed. session (may be empty): those of this session too. What is still missing is
 * added to *lag (may be NULL).
 */
annal_status annal__packs_attach(annal_index *index, sqlite3 *db, annal_slice session,
                                 bool as_indexed, uint32_t timeout_ms, annal_lag *lag,
                                 annal_error *err);

/*
 * SQLite found something corrupt, and it may be in an attached database: delete those that are
 * corrupt. True if one was, so that asking again helps.
 */
bool annal__packs_heal(annal_index *index, annal_slice session);

/* The part of annal_index_findings() that packs have. */
annal_status annal__packs_findings(annal_index *index, annal_slice session,
                                   annal_index_finding_fn fn, void *arg, annal_error *err);

/*
 * Move what users wrote into the writable database of a session, or into all of them, to the
 * journals. A database that does not exist is not created. Failures are logged, and the rows stay
 * to be drained.
 */
void annal__packs_drain(annal_index *index, struct pack_set *set, const struct pack_slot *slot,
                        annal_slice session, int64_t deadline_us);
void annal__packs_drain_all(annal_index *index);

/* Rebuild the tables of this pack (NULL: of all) from the journals. */
annal_status annal__packs_rebuild(annal_index *index, const char *name,
                                  const annal_catch_up_options *options, annal_error *err);

/* ---- pack_database.c ---- */

annal_status annal__pack_database_new(annal_index *index, const char *path, const char *star,
                                      const struct pack_slot *const *slots, size_t slot_count,
                                      struct pack_database **out_database, annal_error *err);
void annal__pack_database_free(struct pack_database *database);

/* For guards, in a transaction of annal__derived_begin(): catch up all its packs to the present end
 * of this journal. */
annal_status annal__pack_catch_up(struct pack_database *database, annal_slice session,
                                  annal_error *err);

/*
 * Move what users wrote into the database of a writable pack to the journal, if there is anything.
 */
annal_status annal__pack_take_in(struct pack_database *database, const struct pack_fill *fill,
                                 int64_t deadline_us, annal_error *err);

/*
 * Empty the tables of one pack: they are created again, and filled by the next catch-up.
 * ANNAL_ERR_BUSY after the deadline.
 */
annal_status annal__pack_empty(struct pack_database *database, struct pack_fill *fill,
                               int64_t deadline_us, annal_error *err);

/*
 * The name in SQL of the database of a pack at this path: state for state.db. Databases that users
 * write are in folders of their own, and several may have the same file name: they have the name of
 * their pack, prose_agents. The caller frees it; NULL: no memory.
 */
char *annal__pack_stem(const annal_pack *pack, const char *path);

/* Close its connection until it is needed again, if nobody uses it now. */
void annal__pack_rest(struct pack_database *database);

/* The part of a database that belongs to this pack; NULL if it has none. */
struct pack_fill *annal__pack_fill(struct pack_database *database, const struct pack_slot *slot);

#endif
