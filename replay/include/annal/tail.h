/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tails: follow one session, several sessions, or all sessions of a store, live. A tail first
 * returns the history, then each event as soon as it is durable. It returns no event twice and
 * misses no event, also if its caller is slow, because it reads the journals. No writer waits for a
 * tail.
 *
 *     annal_tail_open(store, &(annal_tail_options){.types = &tools, .type_count = 1}, &tail, &err);
 *     while ((status = annal_tail_next(tail, 1000, &event, &err)) >= 0)
 *         if (status == ANNAL_OK)
 *             …
 *
 * In an event loop, poll the descriptor of annal_tail_fd() instead, and call annal_tail_next() with
 * a time-out of 0 until it returns ANNAL_END.
 *
 * Within a session, events are returned in order of seq. Events of several sessions are returned in
 * this order:
 *   - first the events that existed when the tail was opened, sorted by ts and then by session id.
 *     (Within a session the order of seq is kept, whatever the ts are.)
 *   - then each append as it was committed: the appends of a process through one store object are
 *     in the order in which they became readable, and appends of several processes are in the order
 *     in which the processes announced them.
 *   - missed events are sorted by ts again: if the tail lags far (by some thousand appends), if a
 *     process died before it could announce an append, and in the first moments of a store to which
 *     no tail has listened before.
 *
 * All tails of a store object share one look at each commit, even thousands of tails. If more than
 * a few are open, they take turns in reading, so that most of the processor is left for the
 * appends. No tail misses an event, but each receives events later: by milliseconds as long as all
 * keep up. A thousand tails that read every event of a busy store together return about a million
 * events a second, and lag if more are appended.
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
     * Sessions to follow; a session may not exist yet. No sessions: all, including sessions that
     * are created later. If a fork is in this list, its whole history is returned. If all sessions
     * are followed, only a fork's own events are returned, because the earlier events are returned
     * as its parent's.
     */
    const annal_slice *sessions;
    size_t session_count;
    /* Types of events to return, or patterns of types with *, ? and [abc], such as "tool.*". No
     * types: events of all types. */
    const annal_slice *types;
    size_t type_count;
    /* Where to begin in each session. Set at most one of these four members. If none is set, the
     * tail begins with the first event. */
    /* begin with this event, which may not exist yet; only for a single session */
    uint64_t from_seq;
    /* begin after the last event that is older than this time (microseconds UTC) */
    int64_t from_us;
    /* begin with the last events of the types above, of all sessions together: up to this number */
    uint64_t last;
    bool from_now; /* begin with the events that are appended after annal_tail_open() */
    /*
     * Name of a named cursor: begin after the events of the last annal_tail_commit(). The four
     * members above apply only if no cursor has that name. A session that the cursor does not know
     * is new, and is returned from its first event. The rules for names are those for session ids.
     */
    annal_slice cursor;
} annal_tail_options;

/*
 * Open a tail. options may be NULL: all events of all sessions. The memory of options is not used
 * after return. Unless the tail is for a single session, the first tail of a store object looks at
 * the end of every journal. One thread at a time. The store must outlive the tail.
 *
 * ANNAL_ERR_INVALID  the id of a session, the name of the cursor or a type is invalid, or several
 *                    members say where to begin
 * ANNAL_ERR_LIMIT    last is more than ANNAL_TAIL_LAST_MAX
 * ANNAL_ERR_BUSY     another tail has the cursor
 * ANNAL_ERR_CORRUPT  the file of the cursor is damaged; annal_tail_cursor_drop() removes it
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_open(annal_store *store,
                                                        const annal_tail_options *options,
                                                        annal_tail **out_tail, annal_error *err);

#define ANNAL_TAIL_LAST_MAX UINT64_C(1000000)

/*
 * Return the next event, for which the function waits up to timeout_ms (0: it does not wait). The
 * slices of the event are valid until the next call.
 *
 * ANNAL_END           the time is over
 * ANNAL_DAMAGE        damaged bytes were skipped; annal_tail_damage() describes them. Continue.
 * ANNAL_ERR_CONFLICT  a tail of a single session: its journal was replaced or deleted; the returned
 *                     events are of the old journal. Open a new tail. (A tail of several sessions
 *                     continues: a deleted session returns no more events, a session that starts
 *                     over is returned from its first event, a converted session continues.)
 * ANNAL_ERR_CLOSED    the process is a child of fork() of the process that opened the tail
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_next(annal_tail *tail, uint32_t timeout_ms,
                                                        annal_event *out_event, annal_error *err);

/* Return the session of the event or damage that annal_tail_next() returned last. Valid until the
 * next call of annal_tail_next(). */
ANNAL_API annal_slice annal_tail_session(const annal_tail *tail);

/* Return what was skipped when annal_tail_next() returned ANNAL_DAMAGE. */
ANNAL_API annal_damage annal_tail_damage(const annal_tail *tail);

/*
 * Return a descriptor for poll, epoll or select. It is readable while there may be new events,
 * until annal_tail_next() has returned ANNAL_END. Before the first poll, too, call
 * annal_tail_next() until it returns ANNAL_END. The tail owns the descriptor; do not read from it.
 * The first descriptor of a store object starts a thread, which ends with the last tail that has a
 * descriptor.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_fd(annal_tail *tail, int *out_fd,
                                                      annal_error *err);

/* Close the tail and free it, without committing its named cursor. NULL is accepted. A child of
 * fork() may call this. */
ANNAL_API void annal_tail_close(annal_tail *tail);

/* ---- Named cursors: STORE/cursors/NAME.json ---- */

/*
 * Record in the tail's named cursor that every event returned until now is dealt with: the next
 * tail that is opened with the cursor begins after these events. The cursor is durable when the
 * function returns. It replaces the cursor's file each time, so commit after many events, not after
 * each. Events that were returned and not committed when the reader dies are returned again, so
 * each event is returned at least once.
 *
 * A cursor contains for each session the seq and the hash of the last event. If the journal has
 * another event at that seq (the session was deleted and started over, or restored from a backup),
 * the session is returned from its first event, and the store's log reports this.
 *
 * ANNAL_ERR_INVALID  the tail has no cursor
 * ANNAL_ERR_IO       the cursor cannot be written
 * ANNAL_ERR_READONLY the store is open for reading only
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_commit(annal_tail *tail, annal_error *err);

/* The position of a cursor in one session: after event seq, whose hash is h. */
typedef struct annal_tail_position {
    annal_slice cursor;
    int64_t committed_us; /* time of the last commit, in microseconds UTC */
    annal_slice session;
    uint64_t seq;
    uint64_t h;
} annal_tail_position;

/* Receive a position. Return 0 to continue; any other value stops, and is returned. Slices are
 * valid until this function returns. */
typedef int (*annal_tail_position_fn)(void *arg, const annal_tail_position *position);

/* Call fn for each session of a cursor. ANNAL_ERR_NOTFOUND: no cursor has that name.
 * ANNAL_ERR_CORRUPT: its file is damaged. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_position_each(annal_store *store,
                                                                 annal_slice name,
                                                                 annal_tail_position_fn fn,
                                                                 void *arg, annal_error *err);

typedef struct annal_tail_cursor {
    annal_slice name;
    int64_t committed_us;
    uint64_t sessions;
    bool taken;   /* whether a tail uses the cursor now */
    bool damaged; /* whether its file is damaged; if so, committed_us and sessions are 0 */
} annal_tail_cursor;

/* Receive a cursor. Return 0 to continue; any other value stops, and is returned. Slices are valid
 * until this function returns. */
typedef int (*annal_tail_cursor_fn)(void *arg, const annal_tail_cursor *cursor);

/* Call fn for each named cursor of the store, in order of name. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_cursor_each(annal_store *store,
                                                               annal_tail_cursor_fn fn, void *arg,
                                                               annal_error *err);

/* Delete a named cursor. ANNAL_ERR_NOTFOUND: no cursor has that name. ANNAL_ERR_BUSY: a tail uses
 * it. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_cursor_drop(annal_store *store, annal_slice name,
                                                               annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
