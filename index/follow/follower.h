/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A follower: tables that are filled from the journals. It is either the index itself (event_index
 * and the core pack), or one pack in its database. A follower has a cursor for each session, which
 * moves in the transaction that writes the rows; see the rules in indexer.c.
 */
#pragma once

#include "index/db/derived.h"

#include <annal/index.h>
#include <annal/journal.h>

#include <sqlite3.h>
#include <stdatomic.h>

struct applier;
struct follower;
struct plan;

/* The functions of a kind of follower. All except feeds are called inside a transaction. */
struct follower_ops {
    /* Return whether the follower reads this session; NULL: it reads all sessions. */
    bool (*feeds)(const struct follower *follower, annal_slice session);
    /* Write the rows of the session itself, before its first event; may be NULL. */
    annal_status (*begin)(struct follower *follower, annal_slice session, annal_error *err);
    /* Write the rows of one event. */
    annal_status (*event)(struct follower *follower, annal_slice session, const annal_event *event,
                          annal_error *err);
    /* Write the sums over a session's events. */
    annal_status (*flush)(struct follower *follower, annal_slice session, annal_error *err);
    /* Run the sections `-- settle` for a session whose events up to seq were all applied; may be
     * NULL. */
    annal_status (*settle)(struct follower *follower, annal_slice session, uint64_t seq,
                           annal_error *err);
    /* Delete all rows and the cursor of a session whose journal was deleted or replaced. */
    annal_status (*forget)(struct follower *follower, annal_slice session, annal_error *err);
};

/* A store with this number of sessions is watched: below it, examining all journals is as fast. */
#define WATCHED_LEAST 256

/* The last catch-up on all sessions: journal_watch.h. */
struct whole {
    struct stamp stamp;
    uint64_t watched;
};

struct follower {
    struct derived *derived;
    const struct follower_ops *ops;
    const char *pack; /* name of the pack, or NULL for the index */
    void *own;        /* data of the functions in ops */
    /* whether its tables were emptied since the flag was reset, so that an existing plan is
     * useless */
    atomic_bool was_emptied;
    struct whole whole; /* guarded by derived->readers.mutex */
    /* whether a catch-up on all sessions examined WATCHED_LEAST journals */
    atomic_bool is_large;

    /* for a guarded append: the event that the journal must contain next, and whose rows exist
     * already; otherwise NULL */
    const annal_event *tried;

    struct applier *applier; /* used by the functions in ops: pack_follower.h */

    /* Statements that are prepared while derived->db is open. If they are NULL while it is open,
     * the pack cannot run. */
    sqlite3_stmt *get_cursor;
    sqlite3_stmt *put_cursor;
    sqlite3_stmt *insert_finding;
    /* statements on the record of where `-- settle` must run; NULL if no pack has a section `--
     * settle` */
    sqlite3_stmt *put_settled, *drop_settled;
};

/* Prepare the statements that every follower has, on the writer's connection. */
annal_status annal__follower_open(struct follower *follower, annal_error *err);
void annal__follower_close(struct follower *follower);

/*
 * Record from now on, for each session, up to which event the pack's section `-- settle` has run
 * (indexer.c, rule 9). Call it after annal__follower_open(), for a pack with a section `-- settle`.
 */
annal_status annal__follower_note_settled(struct follower *follower, annal_error *err);

/*
 * Prepare a SELECT of cursors. get_cursor: seq, offset, h of session ?1. kept_cursor: the same on a
 * borrowed connection, with a statement that is kept with it (annal__readers_prepare()).
 * all_cursors: seq, offset, h, session_id of all sessions, sorted by session_id.
 */
annal_status annal__follower_get_cursor(const struct follower *follower, sqlite3 *db,
                                        sqlite3_stmt **out_stmt, annal_error *err);
annal_status annal__follower_kept_cursor(const struct follower *follower, sqlite3 *db,
                                         sqlite3_stmt **out_stmt, annal_error *err);
annal_status annal__follower_all_cursors(const struct follower *follower, sqlite3 *db,
                                         sqlite3_stmt **out_stmt, annal_error *err);

/* Run a statement that writes a position in a session's journal into _cursor. */
annal_status annal__follower_put(sqlite3_stmt *stmt, annal_slice session, annal_position position,
                                 annal_error *err);

/* Record a finding: an event or damage that the follower could not use, and after which it
 * continued. */
annal_status annal__follower_finding(struct follower *follower, const annal_index_finding *finding,
                                     annal_error *err);

/* Read a finding from a row with the columns session_id, seq, offset, length, kind, what. Its texts
 * are valid until the next step. */
annal_index_finding annal__follower_read_finding(sqlite3_stmt *stmt);

/* Run the sections `-- settle` for a session whose events before seq `next` were all applied, and
 * delete the record that annal__follower_put_off() made. */
annal_status annal__follower_settle(struct follower *follower, annal_slice session, uint64_t next,
                                    annal_error *err);

/*
 * Record that the sections `-- settle` have seen a session only up to this position, unless an
 * earlier position is recorded. Call this instead of annal__follower_settle() if more events will
 * be applied.
 */
annal_status annal__follower_put_off(struct follower *follower, annal_slice session,
                                     annal_position settled, annal_error *err);

bool annal__follower_feeds(const struct follower *follower, annal_slice session);

/* ---- plan.c ---- */

/*
 * Read the cursor of a session; get_cursor is from annal__follower_get_cursor(). *out_found:
 * whether the session has a cursor; if not, *out_from is before the first event.
 */
annal_status annal__plan_cursor(sqlite3_stmt *get_cursor, annal_slice session,
                                annal_position *out_from, bool *out_found, annal_error *err);

/* ---- indexer.c ---- */

/*
 * Catch up on several sessions, or on all if count is 0 (journals: see annal__plan_make()).
 * *out_stamp: stamp of the database after the last transaction. *out_stuck: whether the database
 * cannot be created or written, or is deleted repeatedly.
 */
annal_status annal__indexer_run(struct follower *follower, const annal_slice *sessions,
                                size_t count, struct plan *journals,
                                const annal_catch_up_options *options, struct stamp *out_stamp,
                                bool *out_stuck, annal_error *err);

/*
 * Apply the events of one session up to the current end of its journal, inside a transaction that
 * the caller began with annal__derived_begin().
 */
annal_status annal__indexer_catch_up(struct follower *follower, annal_slice session,
                                     annal_error *err);
