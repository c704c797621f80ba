/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packs of a store: which packs are enabled, and the databases that they fill. packs.c reads
 * the enabled packs, pack_database.c creates and fills one database.
 *
 * struct pack_set *set; annal__packs_get(index, &set, err); … annal__packs_put(index, set);
 * A set never changes; if packs/ does, the next annal__packs_get() returns another set.
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

/* A pack that is enabled. */
struct pack_slot {
    char *name;
    char *source;     /* path of the file, or NULL if it is built in */
    char *at;         /* directory of `enable --at`, or NULL */
    annal_pack *pack; /* NULL if it is wrong; `error` says why */
    annal_error error;
    /* for a wrong pack, the types that it guards or fills; NULL if they cannot be read */
    char *guarded;
    /* whether it is a file of the user, or the list of packs; a wrong file may guard */
    bool is_file;
};

/* The part of one pack in a database of packs. */
struct pack_fill {
    const struct pack_slot *slot;
    const char *star; /* star of the database */
    struct follower follower;
    /* on the writer's connection; NULL until it is needed, like the next member */
    sqlite3_stmt *get_made;
    struct outbox_watch *outbox;
    bool met;             /* for the task: whether it was once caught up on all journals */
    atomic_bool left_out; /* whether it cannot be run here; `why` is the reason */
    annal_error why;      /* written once, before left_out */
};

/* One database, with the tables of one or more packs. */
struct pack_database {
    struct pack_database *next;
    struct derived derived;
    char *stem; /* name in SQL: "state" for state.db */
    char *star; /* text that replaced the * of its file name, or NULL */
    struct pack_fill *fills;
    size_t fill_count;
    struct shape shape;     /* our tables in it */
    struct shape outbox;    /* tables and triggers of the outbox, if users write */
    struct stamp caught_up; /* last catch-up of all sessions; id 0: none; guarded by packs.mutex */
};

struct pack_set {
    unsigned refs; /* guarded by packs.mutex */
    uint64_t seen; /* state of packs/ when the set was read */
    bool again;    /* whether a file could not be read, so that another try may succeed */
    struct pack_slot *slots;
    size_t slot_count;
    /*
     * databases without a star, and the used databases of those with a star; guarded by packs.mutex
     */
    struct pack_database *databases;
};

struct packs {
    pthread_mutex_t mutex;
    struct pack_set *set; /* NULL until it is first requested */
};

/*
 * Return whether a wrong pack may guard this type: its guard cannot be checked, so the event is
 * refused.
 */
bool annal__packs_slot_bars(const struct pack_slot *slot, annal_slice type);

/* ---- kept_guards.c ---- */

/* Note what the valid file of a slot guards and fills. A note that cannot be written is skipped. */
annal_status annal__kept_guards_note(const struct io *io, const struct pack_slot *slot,
                                     annal_error *err);

/* Append the noted types of a file to a list, each with a NUL. *out_known: a note exists. */
annal_status annal__kept_guards_add(const struct io *io, const char *source, struct buf *list,
                                    bool *out_known, annal_error *err);

/* ---- packs.c ---- */

/* Return the packs that are enabled now; release them with annal__packs_put(). */
annal_status annal__packs_get(annal_index *index, struct pack_set **out_set, annal_error *err);
void annal__packs_put(annal_index *index, struct pack_set *set);
void annal__packs_done(annal_index *index);

/* Read a whole text file. ANNAL_ERR_NOTFOUND if it does not exist. */
annal_status annal__packs_read_text(const struct io *io, const char *path, struct buf *out,
                                    annal_error *err);

/*
 * Find the database of a pack (and, if its file has a star, of a session); valid as long as the
 * set. NULL: that session is not fed to the pack.
 */
annal_status annal__packs_database(annal_index *index, struct pack_set *set,
                                   const struct pack_slot *slot, annal_slice session,
                                   struct pack_database **out_database, annal_error *err);

/*
 * Iterate over all databases except those with a star: NULL returns the first, and the last returns
 * NULL.
 */
struct pack_database *annal__packs_next(annal_index *index, struct pack_set *set,
                                        struct pack_database *before);

/* Return whether each session has a database of its own. */
bool annal__packs_slot_has_star(const struct pack_slot *slot);

/* Compose the path of a pack's database; star replaces its *. */
annal_status annal__packs_path(const annal_index *index, const struct pack_slot *slot,
                               annal_slice star, struct buf *out, annal_error *err);

/* ---- packs_run.c ---- */

/* A choice of databases: those that all sessions share, and those of single sessions. */
enum pack_scope {
    PACK_SHARED,  /* also those of the requested sessions */
    PACK_EVERYONE /* also those of all sessions */
};

/* session: the session of the database; empty for a shared database. */
typedef annal_status (*pack_database_fn)(void *arg, struct pack_database *database,
                                         annal_slice session, annal_error *err);

/*
 * Call fn for the shared databases, and then for those of these sessions (PACK_EVERYONE: if count
 * is 0, of all).
 */
annal_status annal__packs_each(annal_index *index, struct pack_set *set, enum pack_scope scope,
                               const annal_slice *sessions, size_t count, pack_database_fn fn,
                               void *arg, annal_error *err);

/*
 * Catch up on these sessions, or on all if count is 0. A pack that fails stops only itself: the
 * failure is logged. ANNAL_ERR_BUSY if time is up.
 */
annal_status annal__packs_catch_up(annal_index *index, enum pack_scope scope,
                                   const annal_slice *sessions, size_t count,
                                   const annal_catch_up_options *options, annal_error *err);

/*
 * Attach the databases to a reader's connection, each under its stem, after catching them up
 * (unless as_indexed). session (may be empty): also the databases of this session. What is still
 * missing is added to *lag (may be NULL).
 */
annal_status annal__packs_attach(annal_index *index, sqlite3 *db, annal_slice session,
                                 bool as_indexed, uint32_t timeout_ms, annal_lag *lag,
                                 annal_error *err);

/*
 * Delete the attached databases that are corrupt, after SQLite found corruption. Returns true if
 * there was any, so that trying again helps.
 */
bool annal__packs_heal(annal_index *index, annal_slice session);

/* Report the findings of packs, for annal_index_findings(). */
annal_status annal__packs_findings(annal_index *index, annal_slice session,
                                   annal_index_finding_fn fn, void *arg, annal_error *err);

/*
 * Turn rows that users wrote into the writable database of a session, or into all of them, into
 * events. Does not create a database. Failures are logged, and the rows stay in the outbox.
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

/*
 * Catch up all packs of the database to the current end of this journal. For guards, in a
 * transaction of annal__derived_begin().
 */
annal_status annal__pack_catch_up(struct pack_database *database, annal_slice session,
                                  annal_error *err);

/*
 * Turn rows that users wrote into the database of a writable pack into events, if there are any.
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
 * Return the name in SQL of the database of a pack at this path: state for state.db. Databases that
 * users write are in folders of their own, and several may have the same file name: they have the
 * name of their pack, prose_agents. The caller frees it; NULL: no memory.
 */
char *annal__pack_stem(const annal_pack *pack, const char *path);

/* Close its connection until it is needed again, unless it is in use. */
void annal__pack_rest(struct pack_database *database);

/* Return the part of a database that belongs to this pack, or NULL. */
struct pack_fill *annal__pack_fill(struct pack_database *database, const struct pack_slot *slot);

#endif
