/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A follower: what follows the journals, which is the index itself (event_index and the core pack),
 * or one pack in its own database. Each has a cursor per session, which moves in the transaction
 * that writes the rows; see the rules in indexer.c.
 */
#ifndef INDEX_FOLLOW_FOLLOWER_H
#define INDEX_FOLLOW_FOLLOWER_H

#include "index/db/derived.h"

#include <annal/index.h>
#include <annal/journal.h>

#include <sqlite3.h>
#include <stdatomic.h>

struct applier;
struct follower;
struct plan;

/* All except feeds are called inside a transaction. */
struct follower_ops {
    /* Return whether it follows this session; NULL: it follows all. */
    bool (*feeds)(const struct follower *follower, annal_slice session);
    /* Write the rows of the session itself, before its first event; may be NULL. */
    annal_status (*begin)(struct follower *follower, annal_slice session, annal_error *err);
    /* Write the rows of one event. */
    annal_status (*event)(struct follower *follower, annal_slice session, const annal_event *event,
                          annal_error *err);
    /* Write the sums over a session's events. */
    annal_status (*flush)(struct follower *follower, annal_slice session, annal_error *err);
    /* Settle a session whose events up to seq were all applied; may be NULL. */
    annal_status (*settle)(struct follower *follower, annal_slice session, uint64_t seq,
                           annal_error *err);
    /* Delete all rows of this session and its cursor: its journal was deleted or replaced. */
    annal_status (*forget)(struct follower *follower, annal_slice session, annal_error *err);
};

struct follower {
    struct derived *derived;
    const struct follower_ops *ops;
    const char *pack; /* name of the pack, or NULL for the index */
    void *own;        /* for its ops */
    /* whether its tables were emptied in the meantime, so an existing plan is useless */
    atomic_bool was_emptied;

    /* For a guarded append: the next event, whose rows exist already; otherwise NULL. */
    const annal_event *tried;

    struct applier *applier; /* used by its ops: pack_follower.h */

    /* Prepared while derived->db is open; NULL while it is open: the pack cannot be run. */
    sqlite3_stmt *get_cursor;
    sqlite3_stmt *put_cursor;
    sqlite3_stmt *insert_finding;
    sqlite3_stmt *put_settled, *drop_settled; /* NULL if it settles nothing */
};

/* Prepare what every follower needs on the writer's connection. */
annal_status annal__follower_open(struct follower *follower, annal_error *err);
void annal__follower_close(struct follower *follower);

/*
 * Keep up to where it settled (indexer.c, rule 9), if it settles at all. Call it after
 * annal__follower_open().
 */
annal_status annal__follower_note_settled(struct follower *follower, annal_error *err);

/*
 * Prepare three SELECTs of a cursor: seq, offset, h of session ?1; the same on a borrowed
 * connection, by a statement that stays with it (annal__readers_prepare()); and session_id with the
 * same columns for all sessions, sorted.
 */
annal_status annal__follower_get_cursor(const struct follower *follower, sqlite3 *db,
                                        sqlite3_stmt **out_stmt, annal_error *err);
annal_status annal__follower_kept_cursor(const struct follower *follower, sqlite3 *db,
                                         sqlite3_stmt **out_stmt, annal_error *err);
annal_status annal__follower_all_cursors(const struct follower *follower, sqlite3 *db,
                                         sqlite3_stmt **out_stmt, annal_error *err);

/* Run a statement that writes a place of a session's journal into _cursor. */
annal_status annal__follower_put(sqlite3_stmt *stmt, annal_slice session, annal_position position,
                                 annal_error *err);

/* Record something that the follower could not use, and after which it continued. */
annal_status annal__follower_finding(struct follower *follower, const annal_index_finding *finding,
                                     annal_error *err);

/* Read such a finding from a row of session_id, seq, offset, length, kind, what. Its texts are
 * valid until the next step. */
annal_index_finding annal__follower_read_finding(sqlite3_stmt *stmt);

/* Settle a session whose events before `next` were all applied. */
annal_status annal__follower_settle(struct follower *follower, annal_slice session, uint64_t next,
                                    annal_error *err);

/*
 * Note that the session is settled at most up to that place; call this instead if more events
 * follow.
 */
annal_status annal__follower_put_off(struct follower *follower, annal_slice session,
                                     annal_position settled, annal_error *err);

bool annal__follower_feeds(const struct follower *follower, annal_slice session);

/* ---- plan.c ---- */

/*
 * Find the place of a follower in a session; get_cursor is from annal__follower_get_cursor(). Not
 * found: before the first event.
 */
annal_status annal__plan_cursor(sqlite3_stmt *get_cursor, annal_slice session,
                                annal_position *out_from, bool *out_found, annal_error *err);

/* ---- indexer.c ---- */

/*
 * Catch up on several sessions, or on all if count is 0 (journals: see annal__plan_make()).
 * *out_stamp: the database that is caught up now. *out_stuck: the database cannot be created or
 * written, or is deleted repeatedly.
 */
annal_status annal__indexer_run(struct follower *follower, const annal_slice *sessions,
                                size_t count, const struct plan *journals,
                                const annal_catch_up_options *options, struct stamp *out_stamp,
                                bool *out_stuck, annal_error *err);

/*
 * Follow one session to the current end of its journal, inside a transaction that the caller began
 * with annal__derived_begin().
 */
annal_status annal__indexer_catch_up(struct follower *follower, annal_slice session,
                                     annal_error *err);

#endif
