/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All of Annal, an event store for agent sessions.
 *
 * Every session is a journal that only grows and that a person can read: events/<session>.jsonl in
 * the store's directory (or, as an option, msgpack: .mpk). A SQLite index (sessions.db) makes all
 * journals queryable, and snapshots make it fast to compute any past state. Index and snapshots are
 * rebuilt from the journals if they are lost.
 *
 *   <annal/store.h>     open a store; list sessions
 *   <annal/event.h>     an event, a draft, and their limits
 *   <annal/journal.h>   append with a writer, read with a cursor, verify
 *   <annal/artifact.h>  content too large for an event
 *   <annal/index.h>     open the index; catch up
 *   <annal/query.h>     events by session, seq, time and type; SQL
 *   <annal/search.h>    full-text search
 *   <annal/pack.h>      packs (what events do to tables) and states
 *   <annal/verb.h>      the verbs that packs define
 *   <annal/diff.h>      the differences between two states
 *   <annal/snapshot.h>  states on disk
 *   <annal/delete.h>    delete sessions, with all that was computed from them
 *   <annal/replay.h>    the state at any past moment
 *   <annal/recovery.h>  what was in progress when the process of a session ended
 *   <annal/step.h>      work that a session records, so that it is done once
 *   <annal/reduce.h>    fold a session's events into a state of your program, with snapshots of it
 *   <annal/tail.h>      follow a session live
 *   <annal/backup.h>    a copy of a store that is in use, and back
 *   <annal/import.h>    foreign logs become events
 *   <annal/metrics.h>   what a store did, counted and measured
 *   <annal/process.h>   which process runs a session, and whether it is proven dead
 *   <annal/packs/lifecycle.h> the end of sessions whose process died
 *
 * <annal/base.h> has what these headers share: the status (0: success; below 0: failure; above 0: a
 * result that is neither), the error with a message, the slice of borrowed bytes. A complete
 * program:
 *
 *     #include <annal/annal.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         annal_store *store = NULL;
 *         annal_writer *writer = NULL;
 *         annal_cursor *cursor = NULL;
 *         annal_event event;
 *         annal_error err = {0};
 *         uint64_t seq;
 *         const annal_slice session = ANNAL_SLICE("run-1");
 *         const annal_draft draft = {.type = ANNAL_SLICE("message.added"),
 *                                    .data = ANNAL_SLICE("{\"role\":\"user\"}")};
 *         const annal_store_options options = {.create = true};
 *
 *         if (annal_store_open("store", &options, &store, &err) == 0 &&
 *             annal_writer_open(store, session, NULL, &writer, &err) == 0 &&
 *             annal_writer_append(writer, &draft, 1, NULL, &seq, &err) == 0 && // durable now
 *             annal_cursor_open(store, session, 1, &cursor, &err) == 0)
 *             while (annal_cursor_next(cursor, &event, &err) == ANNAL_OK)
 *                 printf("%llu %.*s\n", (unsigned long long)event.seq, ANNAL_FMT(event.data));
 *
 *         annal_cursor_close(cursor);
 *         annal_writer_close(writer);
 *         if (annal_store_close(store, &err) < 0 || err.status < 0)
 *             fprintf(stderr, "%s\n", err.message);
 *         return err.status < 0;
 *     }
 */
#ifndef ANNAL_ANNAL_H
#define ANNAL_ANNAL_H

#include <annal/artifact.h>
#include <annal/backup.h>
#include <annal/delete.h>
#include <annal/diff.h>
#include <annal/event.h>
#include <annal/import.h>
#include <annal/index.h>
#include <annal/journal.h>
#include <annal/lease.h>
#include <annal/metrics.h>
#include <annal/pack.h>
#include <annal/packs/lifecycle.h>
#include <annal/process.h>
#include <annal/query.h>
#include <annal/recovery.h>
#include <annal/reduce.h>
#include <annal/replay.h>
#include <annal/search.h>
#include <annal/snapshot.h>
#include <annal/step.h>
#include <annal/store.h>
#include <annal/tail.h>
#include <annal/verb.h>

#endif
