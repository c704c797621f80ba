/*
 * Tail: follow one session, several, or all of a store, live. History first, then each event as
 * soon as it is durable; no gap, no repeat. A slow reader misses nothing, because a tail reads the
 * journals; nobody waits for it.
 *
 *     annal_tail_open(store, &(annal_tail_options){.types = &tools, .type_count = 1}, &tail, &err);
 *     while ((status = annal_tail_next(tail, 1000, &event, &err)) >= 0)
 *         if (status == ANNAL_OK)
 *             …
 *
 * or, in an event loop: poll the descriptor of annal_tail_fd(), and call annal_tail_next() with a
 * time-out of 0 until it answers ANNAL_END.
 *
 * The order. Within a session it is that of seq. Across sessions:
 *   - what was there when the tail was opened comes by ts, then session id. (Of two events of one
 *     session the later never comes first, whatever their ts say.)
 *   - then each append as its process committed it: the events that one process appended, through
 *     one store object, come in the order in which they became readable, those of several processes
 *     in the order in which these said so.
 *   - a tail that falls far behind (some thousand appends), and one that learns late of an append
 *     because its process died before it could say so, gives what it missed by ts again. So do the
 *     first moments of a store in which nobody ever listened.
 *
 * Thousands of tails on one store object share one look at each commit. When there are more than a
 * few, they take turns in reading, so that the appends keep the processor. None misses anything,
 * and each is later then: by milliseconds while they keep up; a thousand that read every event of a
 * busy store together get about a million events a second, and are behind by what that leaves.
 */
#ifndef ANNAL_TAIL_H
#define ANNAL_TAIL_H

#include <annal/journal.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annal_tail annal_tail;

#define ANNAL_TAIL_EVER UINT32_MAX /* as timeout_ms: no time-out */

typedef struct annal_tail_options {
    /*
     * Which sessions; each may not exist yet. None: all, also those that are made later. Of a fork
     * that is named here the whole history is given; among all sessions, its own events only, for
     * the others are given as its parent's.
     */
    const annal_slice *sessions;
    size_t session_count;
    /* Which events: of any of these types, or patterns with *, ? and [abc]: "tool.*". None: all. */
    const annal_slice *types;
    size_t type_count;
    /* Where to begin, in each session. At most one of the four; none: with the first event. */
    uint64_t from_seq; /* with this event, which may not be there yet; of a single session */
    int64_t from_us;   /* behind the last event that is older than this time */
    uint64_t last;     /* with the last so many events, of these types, of all sessions together */
    bool from_now;     /* with what is appended after annal_tail_open() */
    /*
     * A named cursor: begin behind the event at which annal_tail_commit() left it. The above says
     * where to begin as long as there is no cursor of that name. A session that the cursor does not
     * know is new, and begins with its first event. Names are those of sessions.
     */
    annal_slice cursor;
} annal_tail_options;

/*
 * Open a tail; options may be NULL: all sessions, all events. They are used before return, never
 * kept. Without a single session's name it looks at the end of every journal once for each store
 * object. One thread at a time. The store must outlive it.
 *
 * ANNAL_ERR_INVALID  what should be a session or a cursor is no such name; or two beginnings
 * ANNAL_ERR_LIMIT    last is more than ANNAL_TAIL_LAST_MAX
 * ANNAL_ERR_BUSY     somebody else has the cursor
 * ANNAL_ERR_CORRUPT  the file of the cursor is damaged: annal_tail_cursor_drop() forgets it
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_open(annal_store *store,
                                                        const annal_tail_options *options,
                                                        annal_tail **out_tail, annal_error *err);

#define ANNAL_TAIL_LAST_MAX UINT64_C(1000000)

/*
 * The next event; waits for one up to timeout_ms (0: only look). Its slices live until the next
 * call.
 *
 * ANNAL_END           the time is over
 * ANNAL_DAMAGE        bytes that do not prove themselves were passed over, see annal_tail_damage().
 *                     Go on.
 * ANNAL_ERR_CONFLICT  of a tail of one session: its journal was replaced by another one, or
 *                     deleted; what was given stays true of the old one. Open a new tail. (A tail
 *                     of several goes on: a session that is deleted gives nothing more, one that
 *                     begins anew is given from its first event, one that is converted goes on.)
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_next(annal_tail *tail, uint32_t timeout_ms,
                                                        annal_event *out_event, annal_error *err);

/* After ANNAL_OK and ANNAL_DAMAGE: of which session. Lives until the next call. */
ANNAL_API annal_slice annal_tail_session(const annal_tail *tail);

/* After ANNAL_DAMAGE: what was passed over. */
ANNAL_API annal_damage annal_tail_damage(const annal_tail *tail);

/*
 * A descriptor that is readable when there may be something new, until annal_tail_next() has
 * answered ANNAL_END: for poll, epoll, select. Call annal_tail_next() until then before the first
 * wait, too. Owned by the tail; do not read it. The first one of a store object starts a thread,
 * which ends with the last.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_fd(annal_tail *tail, int *out_fd,
                                                      annal_error *err);

/* NULL is accepted. Does not move the named cursor. A child of fork() may call it. */
ANNAL_API void annal_tail_close(annal_tail *tail);

/* ---- Named cursors: STORE/cursors/NAME.json ---- */

/*
 * Every event that this tail has given is dealt with: the tail that is opened next with the same
 * cursor begins behind them. Durable when it returns; replaces the file as a whole, so commit
 * when many events are done, not for each. What was given and not committed when the reader dies is
 * given again: at least once.
 *
 * A cursor says for each session the seq and the hash of the last event. Where a journal has
 * another event there (it was deleted and begun anew, or put back from a backup), that session is
 * given from its first event, and the store's log is told.
 *
 * ANNAL_ERR_INVALID  the tail has no cursor
 * ANNAL_ERR_IO       it cannot be written; the store is open for reading only
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_commit(annal_tail *tail, annal_error *err);

/* Where a cursor stands in one session: behind event seq, whose hash is h. */
typedef struct annal_tail_position {
    annal_slice cursor;
    int64_t committed_us; /* when the cursor was last committed */
    annal_slice session;
    uint64_t seq;
    uint64_t h;
} annal_tail_position;

/* Return 0 to go on; anything else stops and is handed through. Slices live until it returns. */
typedef int (*annal_tail_position_fn)(void *arg, const annal_tail_position *position);

/*
 * Call fn for each session of a cursor. ANNAL_ERR_NOTFOUND: there is no cursor of that name. Any
 * thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_cursor_show(annal_store *store, annal_slice name,
                                                               annal_tail_position_fn fn, void *arg,
                                                               annal_error *err);

typedef struct annal_tail_cursor {
    annal_slice name;
    int64_t committed_us;
    uint64_t sessions;
    bool taken;   /* a tail has it now */
    bool damaged; /* its file is: the two above are 0 */
} annal_tail_cursor;

/* Return 0 to go on; anything else stops and is handed through. Slices live until it returns. */
typedef int (*annal_tail_cursor_fn)(void *arg, const annal_tail_cursor *cursor);

/* Call fn for each named cursor of the store, in order of name. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_cursors(annal_store *store,
                                                           annal_tail_cursor_fn fn, void *arg,
                                                           annal_error *err);

/* Forget a cursor. ANNAL_ERR_NOTFOUND; ANNAL_ERR_BUSY: a tail has it. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_cursor_drop(annal_store *store, annal_slice name,
                                                               annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
