/*
 * Applying events to the tables of packs: the one place where a handler runs, for sessions.db and
 * for a state in memory alike, so that both always say the same.
 */
#ifndef INDEX_PACK_APPLY_H
#define INDEX_PACK_APPLY_H

#include "index/pack/pack.h"
#include "journal/base/buf.h"

#include <sqlite3.h>

struct applier;

/* The packs' tables must be there; db and packs must outlive the applier. */
annal_status annal__applier_new(sqlite3 *db, const annal_pack *const *packs, size_t pack_count,
                                struct applier **out_applier, annal_error *err);
void annal__applier_free(struct applier *applier); /* NULL is fine */

/* The row that core keeps of a session, unless it is there; its first event does the same. */
annal_status annal__applier_begin(struct applier *applier, annal_slice session, int64_t ts_us,
                                  annal_error *err);

/*
 * Apply one event of session, inside a transaction. What the events of a session have in common
 * (activity, number of events) is added up and written by annal__applier_flush(), which must come
 * before another session's first event and before the transaction's end.
 *
 * When a handler cannot take the event *out_refused is one sentence why, else NULL; it lives until
 * the next call. The event then changed nothing in that handler's tables. That is no failure.
 */
annal_status annal__applier_event(struct applier *applier, annal_slice session,
                                  const annal_event *event, const char **out_refused,
                                  annal_error *err);

/*
 * A section that runs for longer than permit.c lets it costs the transaction: ANNAL_ERR_LIMIT. The
 * applier remembers the event, and refuses it the next time. This number grows with each: then
 * trying once more gets further.
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
 * Whether the guards let an event happen: all sections of its type are run, in the caller's
 * transaction, and what they change stays until the caller takes it back. When one says no,
 * *out_refused is its sentence, which lives until the next call. *out_whole becomes false when
 * annal__applier_event() would do more than that, or find something; it never becomes true.
 */
annal_status annal__applier_try(struct applier *applier, annal_slice session,
                                const annal_event *event, const char **out_refused, bool *out_whole,
                                annal_error *err);

/* In the place of annal__applier_event(), when the whole of what was tried is still there. */
void annal__applier_keep(struct applier *applier, const annal_event *event);

/*
 * The same of an event that is in the journal, with the tables as they are before it; they stay so.
 * Guards that read other sessions are not asked: nobody knows any more how those stood.
 */
annal_status annal__applier_check(struct applier *applier, annal_slice session,
                                  const annal_event *event, const char **out_refused,
                                  annal_error *err);

/*
 * Put what the fills of its type say into data, where it is absent or null there. With stored, what
 * that event says in their stead: so a retry is known again. event->data is not looked at.
 */
annal_status annal__applier_fill(struct applier *applier, annal_slice session,
                                 const annal_event *event, const annal_event *stored,
                                 struct buf *data, annal_error *err);

/*
 * Run the packs' `-- forget` sections for a session, inside a transaction. A pack without one keeps
 * its rows: see annal__pack_forgets().
 */
annal_status annal__applier_drop(struct applier *applier, annal_slice session, annal_error *err);

/* Forget what was added up: the transaction was rolled back. */
void annal__applier_forget(struct applier *applier);

#endif
