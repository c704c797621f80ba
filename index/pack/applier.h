/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applying events to the tables of packs: the only place where a handler runs, for sessions.db and
 * for a state in memory alike, so that both always have the same rows.
 */
#pragma once

#include "index/pack/pack.h"
#include "journal/base/buf.h"

#include <sqlite3.h>

struct applier;

/* Create an applier. The packs' tables must exist; db and packs must outlive the applier. */
annal_status annal__applier_new(sqlite3 *db, const annal_pack *const *packs, size_t pack_count,
                                struct applier **out_applier, annal_error *err);
void annal__applier_free(struct applier *applier); /* Free an applier. NULL is accepted. */

/*
 * Create the row of a session in the core table sessions, unless it exists; annal__applier_event()
 * does the same at the first event of the session.
 */
annal_status annal__applier_begin(struct applier *applier, annal_slice session, int64_t ts_us,
                                  annal_error *err);

/*
 * Apply one event of session, inside a transaction. Sums over the events of a session (activity,
 * number of events) are written by annal__applier_flush(), which must be called before another
 * session's first event and before the end of the transaction.
 *
 * If a handler cannot accept the event, *out_refused is a sentence that says why, else NULL; it is
 * valid until the next call. The handler that refused has then changed nothing. A refusal is not a
 * failure: the result is ANNAL_OK.
 */
annal_status annal__applier_event(struct applier *applier, annal_slice session,
                                  const annal_event *event, const char **out_refused,
                                  annal_error *err);

/*
 * Return a number that grows each time a section runs for longer than permit.c allows. Such an
 * event fails with ANNAL_ERR_LIMIT, and the transaction is rolled back. The applier remembers the
 * event and the section, and does not run the section for it again: if the number has grown,
 * another attempt gets further.
 */
size_t annal__applier_spent(const struct applier *applier);

annal_status annal__applier_flush(struct applier *applier, annal_slice session, annal_error *err);

/*
 * Run the packs' `-- settle` sections for a session whose events up to seq were all applied and
 * flushed. *out_refused as in annal__applier_event().
 */
annal_status annal__applier_settle(struct applier *applier, annal_slice session, uint64_t seq,
                                   const char **out_refused, annal_error *err);

/* Return whether a pack has a section `-- settle`. */
bool annal__applier_settles(const struct applier *applier);

/*
 * Try an event: run all sections of its type, in the caller's transaction, to learn whether the
 * guards allow it. Their changes stay until the caller rolls them back. If a guard refuses,
 * *out_refused is its sentence, which is valid until the next call. *out_whole becomes false if
 * annal__applier_event() would change more rows than the trial, or return a refusal; it is never
 * set to true.
 */
annal_status annal__applier_try(struct applier *applier, annal_slice session,
                                const annal_event *event, const char **out_refused, bool *out_whole,
                                annal_error *err);

/*
 * Count an event as applied, instead of calling annal__applier_event(), if the event was tried and
 * all changes of the trial are still in the tables.
 */
void annal__applier_keep(struct applier *applier, const annal_event *event);

/*
 * Check the guards as annal__applier_try() does, for an event that is in the journal. The tables
 * must contain the events before it and no later events. Guards that read other sessions are not
 * checked, because the earlier content of these sessions is no longer known. Neither are the guards
 * of rows that users wrote into these tables, which contain the rows already. *out_applied: whether
 * the event is applied, as by annal__applier_event(); otherwise the tables are unchanged.
 */
annal_status annal__applier_check(struct applier *applier, annal_slice session,
                                  const annal_event *event, const char **out_refused,
                                  bool *out_applied, annal_error *err);

/*
 * Add to data the fields that the fills for the type of event return, if data does not contain them
 * or contains null. If stored is not NULL, the values of this event from the journal are used
 * instead, so that a repeated append can be recognized. event->data is not used.
 */
annal_status annal__applier_fill(struct applier *applier, annal_slice session,
                                 const annal_event *event, const annal_event *stored,
                                 struct buf *data, annal_error *err);

/*
 * Run the packs' `-- forget` sections for a session, inside a transaction. A pack without such a
 * section keeps its rows: see annal__pack_forgets().
 */
annal_status annal__applier_drop(struct applier *applier, annal_slice session, annal_error *err);

/* Reset the sums over the events of the current session, after the transaction was rolled back. */
void annal__applier_forget(struct applier *applier);
