/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tail: follow one session, several, or all of a store, live. History first, then each event once
 * it is durable; no gap, no repeat. A slow reader misses nothing, because a tail reads the
 * journals; no writer waits for it.
 *
 *     annal_tail_open(store, &(annal_tail_options){.types = &tools, .type_count = 1}, &tail, &err);
 *     while ((status = annal_tail_next(tail, 1000, &event, &err)) >= 0)
 *         if (status == ANNAL_OK)
 *             …
 *
 * or, in an event loop: poll the descriptor of annal_tail_fd(), and call annal_tail_next() with a
 * time-out of 0 until it returns ANNAL_END.
 *
 * The order. Within a session, events are in order of seq. Across sessions:
 *   - events that existed when the tail was opened, by ts, then session id. (Of two events of a
 *     session the later is never returned first, whatever their ts are.)
 *   - then each append as its process committed it: the events of a process, through one store
 *     object, in the order in which they became readable, events of several processes in the order
 *     in which these announced them.
 *   - a tail that lags far (some thousand appends), or learns late of an append because its process
 *     died before it could announce it, returns the missed events by ts again. So do the first
 *     moments of a store to which no tail ever listened.
 *
 * Thousands of tails on one store object share one look at each commit. If there are more than a
 * few, they take turns in reading, so that the appends keep the processor. None misses anything,
 * and each is later then: by milliseconds while they keep up; a thousand that read every event of a
 * busy store together get about a million events a second, and lag by what exceeds that.
 */
#ifndef ANNAL_TAIL_H
#define ANNAL_TAIL_H

#include <annal/journal.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annal_tail annal_tail;

typedef struct annal_tail_options {
    /*
     * Which sessions; each may not exist yet. None: all, including those that are created later.
     * For a fork in this list the whole history is returned; among all sessions, only its own
     * events, because the others are returned as its parent's.
     */
    const annal_slice *sessions;
    size_t session_count;
    /* Which events: of any of these types, or patterns with *, ? and [abc]: "tool.*". None: all. */
    const annal_slice *types;
    size_t type_count;
    /* Where to begin, in each session. At most one of the four; none: with the first event. */
    uint64_t from_seq; /* with this event, which may not exist yet; for a single session */
    int64_t from_us;   /* after the last event that is older than this time */
    uint64_t last;     /* with the last events, up to this number, of these types, of all sessions
                        * together */
    bool from_now;     /* with what is appended after annal_tail_open() */
    /*
     * A named cursor: begin after the event at which annal_tail_commit() left it. The fields above
     * say where to begin if no cursor has that name. A session that the cursor does not know is
     * new, and begins with its first event. The rules for names are those for sessions.
     */
    annal_slice cursor;
} annal_tail_options;

/*
 * Open a tail; options may be NULL: all sessions, all events. They are used before return, never
 * kept. Unless it is for a single session it looks at the end of every journal, once for each store
 * object. One thread at a time. The store must outlive it.
 *
 * ANNAL_ERR_INVALID  an id of a session or a name of a cursor that is not accepted; or two
 *                    beginnings
 * ANNAL_ERR_LIMIT    last is more than ANNAL_TAIL_LAST_MAX
 * ANNAL_ERR_BUSY     another tail has the cursor
 * ANNAL_ERR_CORRUPT  the file of the cursor is damaged: annal_tail_cursor_drop() removes it
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_open(annal_store *store,
                                                        const annal_tail_options *options,
                                                        annal_tail **out_tail, annal_error *err);

#define ANNAL_TAIL_LAST_MAX UINT64_C(1000000)

/*
 * The next event; waits for one up to timeout_ms (0: only look). Its slices are valid until the
 * next call.
 *
 * ANNAL_END           the time is over
 * ANNAL_DAMAGE        bytes that do not prove themselves were skipped, see annal_tail_damage().
 *                     Continue.
 * ANNAL_ERR_CONFLICT  for a tail of a single session: its journal was replaced or deleted; the
 *                     returned events belong to the old journal. Open a new tail. (A tail of
 *                     several continues: a deleted session returns no more events, a session that
 *                     starts over is returned from its first event, a converted session continues.)
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_next(annal_tail *tail, uint32_t timeout_ms,
                                                        annal_event *out_event, annal_error *err);

/* After ANNAL_OK and ANNAL_DAMAGE: the session of the event. Valid until the next call. */
ANNAL_API annal_slice annal_tail_session(const annal_tail *tail);

/* After ANNAL_DAMAGE: what was skipped. */
ANNAL_API annal_damage annal_tail_damage(const annal_tail *tail);

/*
 * A descriptor that is readable if there may be something new, until annal_tail_next() has returned
 * ANNAL_END: for poll, epoll, select. Call annal_tail_next() until then before the first wait, too.
 * The tail owns it; do not read it. The first one of a store object starts a thread, which ends
 * with the last.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_fd(annal_tail *tail, int *out_fd,
                                                      annal_error *err);

/* End the tail and free it. NULL is accepted. Does not move the named cursor. A child of fork()
 * may call it. */
ANNAL_API void annal_tail_close(annal_tail *tail);

/* ---- Named cursors: STORE/cursors/NAME.json ---- */

/*
 * Every event that this tail has returned is dealt with: the next tail that is opened with the same
 * cursor begins after them. Durable when it returns; replaces the file as a whole, so commit after
 * many events, not after each. Events that were returned and not committed when the reader dies are
 * returned again: at least once.
 *
 * A cursor has for each session the seq and the hash of the last event. If a journal has another
 * event there (it was deleted and started over, or restored from a backup), that session is
 * returned from its first event, and the store's log says so.
 *
 * ANNAL_ERR_INVALID  the tail has no cursor
 * ANNAL_ERR_IO       it cannot be written; the store is open for reading only
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_commit(annal_tail *tail, annal_error *err);

/* The position of a cursor in one session: after event seq, whose hash is h. */
typedef struct annal_tail_position {
    annal_slice cursor;
    int64_t committed_us; /* when the cursor was last committed */
    annal_slice session;
    uint64_t seq;
    uint64_t h;
} annal_tail_position;

/*
 * Return 0 to continue; any other value stops, and is returned. Slices are valid until it returns.
 */
typedef int (*annal_tail_position_fn)(void *arg, const annal_tail_position *position);

/*
 * Call fn for each session of a cursor. ANNAL_ERR_NOTFOUND: no cursor has that name. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_cursor_show(annal_store *store, annal_slice name,
                                                               annal_tail_position_fn fn, void *arg,
                                                               annal_error *err);

typedef struct annal_tail_cursor {
    annal_slice name;
    int64_t committed_us;
    uint64_t sessions;
    bool taken;   /* a tail uses it now */
    bool damaged; /* its file is damaged: the two above are 0 */
} annal_tail_cursor;

/*
 * Return 0 to continue; any other value stops, and is returned. Slices are valid until it returns.
 */
typedef int (*annal_tail_cursor_fn)(void *arg, const annal_tail_cursor *cursor);

/* Call fn for each named cursor of the store, in order of name. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_cursors(annal_store *store,
                                                           annal_tail_cursor_fn fn, void *arg,
                                                           annal_error *err);

/* Remove a cursor. ANNAL_ERR_NOTFOUND; ANNAL_ERR_BUSY: a tail uses it. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_cursor_drop(annal_store *store, annal_slice name,
                                                               annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
