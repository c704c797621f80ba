/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs and states.
 *
 * A pack is one SQL file: tables, and the statements that each event type runs on them. A state is
 * the tables of the packs for one session at one seq, in memory: the same handlers that maintain
 * sessions.db, run over the events of that session alone. The core pack is built in; docs/packs.md
 * describes how a pack is written.
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
 * Read a pack. Messages call it name, which is usually the path of its file. Its tables are created
 * and its statements compiled once, in memory, so that a wrong pack is refused here, with file and
 * line. A pack never changes after this, and any thread may use it.
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
 * runs. A user's pack is switched on while its file is in STORE/packs/ (NAME.sql). An open index
 * notices both, and fills the tables when it next catches up. The store's
 * log and annal_pack_each() report a pack with an error, which is not run.
 *
 * The tables of packs are in databases of their own beside sessions.db. annal_index_sql() knows
 * each database by its stem (state.db: "state"), and finds its tables also without the stem if no
 * other database has a table of that name.
 */

/*
 * Switch a built-in pack on, or change the directory of its database. at (may be NULL) is the
 * directory of the database, relative to the store or absolute. Durable when it returns. Any
 * thread.
 *
 * ANNAL_ERR_NOTFOUND  no pack of this name is built in
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_pack_enable(annal_store *store, const char *name,
                                                          const char *at, annal_error *err);

/*
 * Switch a pack off. Its database is kept, and is caught up when the pack is on again. Any
 * thread.
 * ANNAL_ERR_NOTFOUND  the pack is not on
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_pack_disable(annal_store *store, const char *name,
                                                           annal_error *err);

typedef enum annal_pack_state {
    ANNAL_PACK_READY = 0,    /* the pack's tables are up to date */
    ANNAL_PACK_BUILDING = 1, /* the pack's tables are not up to date; the next catch-up continues */
    ANNAL_PACK_FAILED = 2    /* the pack does not run; error says why */
} annal_pack_state;

typedef struct annal_pack_info {
    const char *name;
    uint32_t version; /* version in the pack's first line; 0: the pack could not be read */
    /* path of the pack's database; it contains a * if each session has its own file; NULL if the
     * path is not known */
    const char *database;
    const char *source; /* the file of a user's pack; NULL: built in */
    const char *error;  /* why the pack does not run, or NULL */
    annal_pack_state state;
    uint64_t sessions; /* number of sessions whose events the pack has read */
    /* number of events that the pack has read; most have types that it does not handle */
    uint64_t events_applied;
    uint64_t events_behind; /* number of events that the pack has not read yet */
    uint64_t findings;      /* number of events that a handler could not accept */
} annal_pack_info;

/* A function that is called for each pack. It returns 0 to continue; any other value ends the
 * calls, and is returned to the caller. info is valid only during the call. */
typedef int (*annal_pack_info_fn)(void *arg, const annal_pack_info *info);

/* Report every pack of the store, core first, without catching up. Reads the end of each journal.
 * Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_pack_each(annal_index *index, annal_pack_info_fn fn,
                                                        void *arg, annal_error *err);

typedef struct annal_pack_finding {
    const char *pack;
    const char *database; /* name of the pack's database; NULL if the name is not known */
    const char *table;    /* name of the table; NULL: the finding is about the pack as a whole */
    const char *what;
    /* whether this is a remark and not an error: rows that refer to rows which do not exist, tables
     * of a journal that was replaced */
    bool remark;
    uint64_t count; /* number of equal findings that this finding summarizes; 0 for a remark */
} annal_pack_finding;

/* A function that is called for each finding. It returns 0 to continue; any other value stops the
 * verification, and is returned by it. finding is valid until the function returns. */
typedef int (*annal_pack_finding_fn)(void *arg, const annal_pack_finding *finding);

/*
 * Compare the tables of all packs with the journals, up to the last event that the tables contain:
 * the tables are filled a second time, in memory. Packs that are not run, events that a handler
 * could not accept, and events that were appended past their guard are findings. Nothing is caught
 * up, and databases that do not exist are not created. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_pack_verify(annal_index *index,
                                                          annal_pack_finding_fn fn, void *arg,
                                                          annal_error *err);

/*
 * Rebuild the tables of a pack from the journals. After an interruption the next catch-up continues
 * the work. The default is to wait without limit. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no pack with this name is on
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_pack_rebuild(annal_index *index, const char *name,
                                                           const annal_catch_up_options *options,
                                                           annal_error *err);

/* ---- Appending through the packs ---- */

typedef struct annal_appended {
    uint64_t seq; /* seq of the event that the first draft became */
    /* data of the last event as appended, in JSON; the caller frees it with annal_free() */
    annal_slice data;
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
 * whatever was requested), or none. When the function returns the tables contain the rows of the
 * events. If the process dies before that, the next catch-up adds the rows: an event in the journal
 * is a fact, and no guard runs again.
 *
 * Types that no pack fills or guards are appended as by annal_writer_append(), at the requested
 * level; but at level sync instead of batch if an artifact was stored. If a draft has an id, a
 * repeated append of it returns the seq of the first, even if the guard would refuse it now, or a
 * fill would have another value.
 *
 * Rows that users wrote into the session's own database (of a writable pack) become events first,
 * whatever the type of the drafts. ANNAL_EXPECT_SEQ counts these events.
 *
 * During the call the databases of the packs that guard or fill are locked, for the time of one
 * sync. out may be NULL. Any thread.
 *
 * ANNAL_ERR_REFUSED      a guard refused; the message is the pack's sentence
 * ANNAL_ERR_BUSY         another program keeps the tables locked, other programs append all the
 *                        time, or the tables are being filled (the message says how far they are):
 *                        try again
 * ANNAL_ERR_UNSUPPORTED  the pack that guards this event cannot be run
 * and the statuses of annal_writer_append().
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_pack_append(annal_index *index, annal_writer *writer,
                                                          const annal_draft *drafts, size_t count,
                                                          const annal_append_options *options,
                                                          annal_appended *out, annal_error *err);

/* ---- The state of a session ---- */

typedef struct annal_state annal_state;

/* Free a state. NULL is accepted. */
ANNAL_API void annal_state_free(annal_state *state);

/*
 * Apply one event; call in order of seq. An event that a handler of a pack cannot accept changes
 * nothing in that pack's tables, as in the index. After a failure the state cannot be used any
 * more.
 *
 * ANNAL_ERR_INVALID  the event's seq is not above annal_state_seq()
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_state_apply(annal_state *state,
                                                          const annal_event *event,
                                                          annal_error *err);

/* Return the seq of the last event that was applied, or 0 if none was. */
ANNAL_API uint64_t annal_state_seq(const annal_state *state);

/* A function that is called with each piece of the text. It returns 0 to continue; any other value
 * ends the calls, and is returned to the caller. */
typedef int (*annal_write_fn)(void *arg, const char *bytes, size_t len);

/*
 * Write the state as one JSON object, {"sessions":[{…}],"turns":[…],…}: tables in the order in
 * which the packs create them, rows by primary key, columns as declared. Equal states yield equal
 * bytes. No newline at the end.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_state_json(annal_state *state, annal_write_fn fn,
                                                         void *arg, annal_error *err);

/* Run one SELECT over the state, like annal_index_sql(), but without the table events and without
 * catching up. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_state_sql(annal_state *state, annal_slice sql,
                                                        const annal_sql_options *options,
                                                        annal_row_fn fn, void *arg,
                                                        annal_error *err);

#define ANNAL_STATE_HASH_BYTES 32

/*
 * Compute the SHA-256 of the text that annal_state_json() writes: two states are equal if their
 * hashes are. It takes as long as writing the text.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_state_hash(annal_state *state,
                                                         uint8_t out[ANNAL_STATE_HASH_BYTES],
                                                         annal_error *err);

/* ---- Pruning ---- */

typedef struct annal_prune_options {
    int64_t before_us; /* prune sessions that last changed before this time */
    /* number of sessions that changed last, which are kept even if they are old */
    uint64_t keep_n;
    /* whether to delete the progressions of the pruned sessions too, and with them the messages
     * that no other progression contains */
    bool orphan_progressions;
    /*
     * Whether the caller will delete the journals of pruned sessions that no other session needs:
     * these sessions are then determined, and the rows that their deletion removes are counted; if
     * the disk is full, such a session is reported as pruned although its event session.pruned
     * could not be appended.
     */
    bool delete_journals;
    bool dry_run; /* whether nothing is deleted, and only what would be deleted is reported */
    /* time in ms to wait for a session that another process writes, as in annal_writer_options */
    uint32_t wait_ms;
} annal_prune_options;

/* The result (or the preview) of pruning one session. kept: why it was not pruned, or NULL. */
typedef struct annal_pruned {
    annal_slice session;
    uint64_t branches;
    uint64_t progressions;
    uint64_t messages;
    /* with delete_journals: number of messages of this session to which other sessions refer */
    uint64_t needed;
    /* with delete_journals: a session that refers to these messages, whose existence keeps the
     * journal; empty if there is none */
    annal_slice needed_by;
    const annal_error *kept;
    /* for a kept session: the team whose messages refer to the session, or empty */
    annal_slice linked_by;
} annal_pruned;

/* A function that is called for each session that is pruned or kept. It returns 0 to continue; any
 * other value ends the calls, and is returned to the caller. pruned is valid until it returns. */
typedef int (*annal_prune_fn)(void *arg, const annal_pruned *pruned);

/*
 * Remove old sessions from the tables, each by an event session.pruned in its journal. The journal
 * stays; annal_session_delete() deletes it. Only sessions that began with session.created are
 * removed. With the pack lionagi, sessions are old according to updated_at. A session's branches
 * are removed, and its messages, except those that a progression contains. Its progressions stay,
 * unless orphan_progressions is set. Without the pack, sessions are old according to
 * last_activity_at. fn is called for each old session; last, with kept set, for old sessions to
 * which messages of a team refer, because these sessions stay. Any thread.
 *
 * ANNAL_ERR_BUSY  the tables of packs could not be filled in time; with delete_journals, also: any
 *                 table is not up to date, or the tables of pack lionagi cannot be read. Nothing
 *                 was pruned
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_session_prune(annal_index *index,
                                                            const annal_prune_options *options,
                                                            annal_prune_fn fn, void *arg,
                                                            annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
