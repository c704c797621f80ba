/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs and states.
 *
 * A pack is one SQL file: tables, and what each event type does to them. A state is the tables of
 * the packs for one session at one seq, in memory: the same handlers that maintain sessions.db, run
 * over the events of that session alone. The core pack is built in; docs/packs.md describes how a
 * pack is written.
 */
#ifndef ANNAL_PACK_H
#define ANNAL_PACK_H

#include <annal/journal.h>
#include <annal/query.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annal_pack annal_pack;

/*
 * Read a pack. name is what messages call it, usually the file's path. Its tables are created and
 * its statements compiled once, in memory, so that a wrong pack is refused here, with file and
 * line. A pack never changes; any thread.
 *
 * ANNAL_ERR_SQL      a statement is wrong
 * ANNAL_ERR_INVALID  the file is not a pack
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_pack_parse(const char *name, annal_slice text,
                                                         annal_pack **out_pack, annal_error *err);

/* Free a pack. NULL is accepted. */
ANNAL_API void annal_pack_free(annal_pack *pack);

/* ---- Which packs a store runs ---- */

/*
 * Packs that are built in are switched on and off by name, in STORE/packs/enabled; core always
 * runs. A user's pack is on while its file is in STORE/packs/ (NAME.sql). An open index notices,
 * and fills the tables when it next catches up. A wrong pack stops only itself: the store's log and
 * annal_index_packs() report it.
 *
 * The tables of packs are in databases of their own beside sessions.db. annal_sql() knows each
 * database by its stem (state.db: "state"), and its tables without it too if no other database has
 * that name.
 */

/*
 * Switch a built-in pack on, or change the place of its database. at (may be NULL) is the directory
 * of the database, relative to the store or absolute. Durable when it returns. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no pack of this name is built in
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_pack_enable(annal_store *store, const char *name,
                                                          const char *at, annal_error *err);

/*
 * Switch it off. Its database stays, and is caught up when the pack is on again. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  it is not on
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_pack_disable(annal_store *store, const char *name,
                                                           annal_error *err);

typedef enum annal_pack_state {
    ANNAL_PACK_READY = 0,    /* its tables are up to date */
    ANNAL_PACK_BUILDING = 1, /* its tables are not up to date; the next catch-up continues */
    ANNAL_PACK_FAILED = 2    /* it does not run; error says why */
} annal_pack_state;

typedef struct annal_pack_info {
    const char *name;
    uint32_t version;     /* 0: it could not be read */
    const char *database; /* path of its file, with a * for a file per session; NULL if not known */
    const char *source;   /* the file of a user's pack; NULL: built in */
    const char *error;    /* NULL: none */
    annal_pack_state state;
    uint64_t sessions;       /* number of sessions whose events it has read */
    uint64_t events_applied; /* events that it has seen; most do not concern it */
    uint64_t events_behind;  /* events that it has not seen yet */
    uint64_t findings;       /* events that a handler could not accept */
} annal_pack_info;

/* Return 0 to continue; any other value ends the iteration and is returned to the caller. The
 * arguments are valid only during the call. */
typedef int (*annal_pack_info_fn)(void *arg, const annal_pack_info *info);

/* Every pack of the store, core first; does not catch up. Reads the end of each journal. Any
 * thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_index_packs(annal_index *index, annal_pack_info_fn fn,
                                                          void *arg, annal_error *err);

typedef struct annal_pack_finding {
    const char *pack;
    const char *database; /* NULL: not known */
    const char *table;    /* NULL: the pack as a whole */
    const char *what;
    /* worth knowing, and not an error: rows that name rows which do not exist, tables of a journal
     * that was replaced */
    bool remark;
    uint64_t count; /* how many findings this is; 0 for a remark */
} annal_pack_finding;

/* Return 0 to continue; any other value stops, and is returned. What it gets is valid until it
 * returns. */
typedef int (*annal_pack_finding_fn)(void *arg, const annal_pack_finding *finding);

/*
 * Compare the tables of all packs with what the journals yield, up to where the tables are: they
 * are filled a second time, in memory, to the end of the journals. Packs that are not run, events
 * that a handler could not accept, and events that were appended past their guard are findings.
 * Nothing is caught up, and databases that do not exist are not created. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_packs_verify(annal_index *index,
                                                           annal_pack_finding_fn fn, void *arg,
                                                           annal_error *err);

/*
 * Rebuild the tables of a pack from the journals. What is done stays done: after an interruption
 * the next catch-up continues. The default is to wait without limit. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such pack is on
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_pack_rebuild(annal_index *index, const char *name,
                                                           const annal_catch_up_options *options,
                                                           annal_error *err);

/* ---- Appending through the packs ---- */

typedef struct annal_appended {
    uint64_t seq;     /* seq of the first draft */
    annal_slice data; /* of the last event as appended, in JSON; the caller's: annal_free() */
} annal_appended;

/*
 * Append as annal_writer_append() does, and first apply the packs of the store to the events:
 *
 *   artifacts  fields that are too large for an event are stored in artifacts/, and the event names
 *              them (FIELD_ref)
 *   fills      fields that the caller left out or null, such as the next number, get their value
 *   guards     compare-and-set: if one refuses, nothing is written anywhere
 *
 * Fills and guards see the tables after all events of the session and all guarded appends of any
 * process; each draft sees the rows of the drafts before it. If several processes want something
 * that only one can have, exactly one succeeds. All drafts are appended, durable (level sync,
 * whatever was requested), or none. Then the tables have their rows. If the process dies in
 * between, they catch up: an event in the journal is a fact, and no guard runs again.
 *
 * Types that no pack fills or guards are appended as by annal_writer_append(), at the requested
 * level; but at sync instead of batch if an artifact was stored. With an id a retry gets the first
 * seq, even if the guard would refuse by now, or a fill would have another value.
 *
 * What users wrote into the session's own database (of a writable pack) becomes events first,
 * whatever the type. With ANNAL_EXPECT_SEQ, those count.
 *
 * While it runs it keeps the databases of those packs locked, over one sync. out may be NULL. Any
 * thread.
 *
 * ANNAL_ERR_REFUSED      a guard refused; the message is the pack's sentence
 * ANNAL_ERR_BUSY         another program keeps the tables locked, others append all the time, or
 *                        the tables are being filled: the message says how far they are; try again
 * ANNAL_ERR_UNSUPPORTED  the pack that guards this event cannot be run
 * and the statuses of annal_writer_append().
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_pack_append(annal_index *index, annal_writer *writer,
                                                          const annal_draft *drafts, size_t count,
                                                          const annal_append_options *options,
                                                          annal_appended *out, annal_error *err);

/* ---- The state of a session ---- */

typedef struct annal_state annal_state;

/* NULL is accepted. */
ANNAL_API void annal_state_free(annal_state *state);

/*
 * Apply one event; call in order of seq. An event that a handler cannot take changes nothing of
 * that pack's tables, as in the index. A failure means that the state is of no use any more.
 *
 * ANNAL_ERR_INVALID  the event's seq is not above the state's
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_state_apply(annal_state *state,
                                                          const annal_event *event,
                                                          annal_error *err);

/* The seq of the last event that was applied; 0: none was. */
ANNAL_API uint64_t annal_state_seq(const annal_state *state);

/* Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal_write_fn)(void *arg, const char *bytes, size_t len);

/*
 * Write the state as one JSON object, {"sessions":[{…}],"turns":[…],…}: tables in the order in
 * which the packs create them, rows by primary key, columns as declared. Equal states yield equal
 * bytes. No newline at the end.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_state_json(annal_state *state, annal_write_fn fn,
                                                         void *arg, annal_error *err);

/* Run one SELECT over the state; as annal_sql(), without events and without catching up. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_state_sql(annal_state *state, annal_slice sql,
                                                        const annal_sql_options *options,
                                                        annal_row_fn fn, void *arg,
                                                        annal_error *err);

#define ANNAL_STATE_HASH_BYTES 32

/*
 * SHA-256 of what annal_state_json() writes: two states are equal if it is. Takes as long as
 * writing it.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_state_hash(annal_state *state,
                                                         uint8_t out[ANNAL_STATE_HASH_BYTES],
                                                         annal_error *err);

/* ---- Pruning ---- */

typedef struct annal_prune_options {
    int64_t before_us; /* sessions that last changed before this time, */
    uint64_t keep_n;   /* number of newest changed sessions to keep */
    /* delete the progressions of the pruned too, and with them messages that nothing else has */
    bool orphan_progressions;
    /*
     * the caller will delete the journals of those that are not needed: find out which these are,
     * and count what goes with them; on a full disk these are reported without an event of their
     * own
     */
    bool delete_journals;
    bool dry_run;     /* only report */
    uint32_t wait_ms; /* for a session that another process writes; as annal_writer_options */
} annal_prune_options;

/* The result (or preview) of pruning a session; kept: nothing was pruned, and why. */
typedef struct annal_pruned {
    annal_slice session;
    uint64_t branches;
    uint64_t progressions;
    uint64_t messages;
    uint64_t needed;       /* with delete_journals: how many of its messages others name, and */
    annal_slice needed_by; /* the session that does; if not empty: its journal must stay */
    const annal_error *kept;
    annal_slice linked_by; /* for a kept session: the team whose messages refer to it, or empty */
} annal_pruned;

/* Return 0 to continue; any other value stops, and is returned. Valid until it returns. */
typedef int (*annal_prune_fn)(void *arg, const annal_pruned *pruned);

/*
 * Remove old sessions from the tables: each by an event session.pruned in its own journal, which
 * stays (annal_delete() deletes it). Only sessions that began with session.created are
 * chosen, and none that a team's message refers to: fn is called for these, too, at the end, as for
 * sessions that are kept. With the pack lionagi a session's age is its updated_at, its branches are
 * removed, its progressions stay, and of its messages those are removed that no progression names;
 * without it, its age is last_activity_at. fn is called for each. Any thread.
 *
 * ANNAL_ERR_BUSY  tables of packs are not filled in time; with delete_journals: any table lags, for
 *                 whatever reason, or the tables of pack lionagi cannot be read. Nothing was pruned
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_prune(annal_index *index,
                                                    const annal_prune_options *options,
                                                    annal_prune_fn fn, void *arg, annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
