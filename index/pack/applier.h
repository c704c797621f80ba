/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applying events to the tables of packs: the only place where a handler runs, for sessions.db and
 * for a state in memory alike, so that both always have the same rows.
 */
#ifndef INDEX_PACK_APPLIER_H
#define INDEX_PACK_APPLIER_H

#include "index/pack/pack.h"
#include "journal/base/buf.h"

#include <sqlite3.h>

struct applier;

/* Create an applier. The packs' tables must exist; db and packs must outlive it. */
annal_status annal__applier_new(sqlite3 *db, const annal_pack *const *packs, size_t pack_count,
                                struct applier **out_applier, annal_error *err);
void annal__applier_free(struct applier *applier); /* applier may be NULL */

/*
 * Create the row that core keeps for a session, unless it exists; the session's first event does
 * the same.
 */
annal_status annal__applier_begin(struct applier *applier, annal_slice session, int64_t ts_us,
                                  annal_error *err);

/*
 * Apply one event of session, inside a transaction. Sums over the events of a session (activity,
 * number of events) are written by annal__applier_flush(), which must be called before another
 * session's first event and before the end of the transaction.
 *
 * If a handler cannot accept the event, *out_refused is a sentence that says why, else NULL; it is
 * valid until the next call. The event then changed nothing in that handler's tables. This is not a
 * failure.
 */
annal_status annal__applier_event(struct applier *applier, annal_slice session,
                                  const annal_event *event, const char **out_refused,
                                  annal_error *err);

/*
 * Return how often a section ran for longer than permit.c allows, which costs the transaction:
 * ANNAL_ERR_LIMIT. The applier remembers the event, and refuses it the next time. If the number has
 * grown, another try gets further.
 */
size_t annal__applier_spent(const struct applier *applier); /* NULL: 0 */

annal_status annal__applier_flush(struct applier *applier, annal_slice session, annal_error *err);

/*
 * Run the packs' `-- settle` sections for a session whose events up to seq were all applied, after
 * the flush. *out_refused as in annal__applier_event().
 */
annal_status annal__applier_settle(struct applier *applier, annal_slice session, uint64_t seq,
                                   const char **out_refused, annal_error *err);

/* Return whether a pack has a section `-- settle`. */
bool annal__applier_settles(const struct applier *applier);

/*
 * Try an event: run all sections of its type, in the caller's transaction, to learn whether the
 * guards allow it. Their changes stay until the caller rolls them back. If a guard refuses,
 * *out_refused is its sentence, which is valid until the next call. *out_whole becomes false if
 * annal__applier_event() would do more than that, or have a finding; it never becomes true.
 */
annal_status annal__applier_try(struct applier *applier, annal_slice session,
                                const annal_event *event, const char **out_refused, bool *out_whole,
                                annal_error *err);

/*
 * Count a tried event as applied, instead of annal__applier_event(), if all its changes are still
 * in the tables.
 */
void annal__applier_keep(struct applier *applier, const annal_event *event);

/*
 * As annal__applier_try(), for an event that is in the journal; the tables must be in the state
 * before it, and stay unchanged. Guards that read other sessions are not checked: the earlier
 * content of those is no longer known. Neither are the guards of a change that users wrote into
 * these very tables: these contain it already.
 */
annal_status annal__applier_check(struct applier *applier, annal_slice session,
                                  const annal_event *event, const char **out_refused,
                                  annal_error *err);

/*
 * Add to data the fields that the fills of its type return, where they are absent or null there.
 * With stored, use the values of that event instead, so that a retry is recognized. event->data is
 * not used.
 */
annal_status annal__applier_fill(struct applier *applier, annal_slice session,
                                 const annal_event *event, const annal_event *stored,
                                 struct buf *data, annal_error *err);

/*
 * Run the packs' `-- forget` sections for a session, inside a transaction. A pack without such a
 * section keeps its rows: see annal__pack_forgets().
 */
annal_status annal__applier_drop(struct applier *applier, annal_slice session, annal_error *err);

/* Drop the sums: the transaction was rolled back. */
void annal__applier_forget(struct applier *applier);

#endif
