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

/* The packs' tables must exist; db and packs must outlive the applier. */
annal_status annal__applier_new(sqlite3 *db, const annal_pack *const *packs, size_t pack_count,
                                struct applier **out_applier, annal_error *err);
void annal__applier_free(struct applier *applier); /* reader may be NULL */

/* Create the row that core keeps of a session, unless it exists; its first event does the same. */
annal_status annal__applier_begin(struct applier *applier, annal_slice session, int64_t ts_us,
                                  annal_error *err);

/*
 * Apply one event of session, inside a transaction. What the events of a session have in common
 * (activity, number of events) is added up and written by annal__applier_flush(), which must be
 * called before another session's first event and before the transaction's end.
 *
 * If a handler cannot accept the event *out_refused is a sentence that says why, else NULL; it is
 * valid until the next call. The event then changed nothing in that handler's tables. This is not a
 * failure.
 */
annal_status annal__applier_event(struct applier *applier, annal_slice session,
                                  const annal_event *event, const char **out_refused,
                                  annal_error *err);

/*
 * A section that runs for longer than permit.c allows costs the transaction: ANNAL_ERR_LIMIT. The
 * applier remembers the event, and refuses it the next time. This number grows each time this
 * happens: then another try gets further.
 */
size_t annal__applier_spent(const struct applier *applier); /* NULL: 0 */

annal_status annal__applier_flush(struct applier *applier, annal_slice session, annal_error *err);

/*
 * Run the packs' `-- settle` sections for a session whose events up to seq were all applied, after
 * the flush. *out_refused as in annal__applier_event().
 */
annal_status annal__applier_settle(struct applier *applier, annal_slice session, uint64_t seq,
                                   const char **out_refused, annal_error *err);

/* Whether there is any such section. */
bool annal__applier_settles(const struct applier *applier);

/*
 * Whether the guards allow an event: all sections of its type are run, in the caller's transaction,
 * and what they change stays until the caller rolls it back. If one refuses, *out_refused is its
 * sentence, which is valid until the next call. *out_whole becomes false if annal__applier_event()
 * would do more than that, or have a finding; it never becomes true.
 */
annal_status annal__applier_try(struct applier *applier, annal_slice session,
                                const annal_event *event, const char **out_refused, bool *out_whole,
                                annal_error *err);

/* Call this instead of annal__applier_event() if everything that was tried is still there. */
void annal__applier_keep(struct applier *applier, const annal_event *event);

/*
 * As above, for an event that is in the journal, with the tables as they are before it; they stay
 * so. Guards that read other sessions are not asked: what those contained is not known any more.
 * Nor are the guards of a change that users wrote into these very tables: they have it already.
 */
annal_status annal__applier_check(struct applier *applier, annal_slice session,
                                  const annal_event *event, const char **out_refused,
                                  annal_error *err);

/*
 * Add to data what the fills of its type return, where it is absent or null there. With stored, use
 * what that event has instead: so a retry is recognized. event->data is not used.
 */
annal_status annal__applier_fill(struct applier *applier, annal_slice session,
                                 const annal_event *event, const annal_event *stored,
                                 struct buf *data, annal_error *err);

/*
 * Run the packs' `-- forget` sections for a session, inside a transaction. A pack without one keeps
 * its rows: see annal__pack_forgets().
 */
annal_status annal__applier_drop(struct applier *applier, annal_slice session, annal_error *err);

/* Drop what was added up: the transaction was rolled back. */
void annal__applier_forget(struct applier *applier);

#endif
