/*
 * Tail: follow one session live. History first, then each event as soon as it is durable; no gap,
 * no repeat. A slow reader misses nothing, because a tail reads the journal; nobody waits for it.
 *
 *     while ((status = annal_tail_next(tail, 1000, &event, &err)) >= 0)
 *         if (status == ANNAL_OK)
 *             …
 *
 * or, in an event loop: poll annal_tail_fd(), and call annal_tail_next() with a time-out of 0 until
 * it answers ANNAL_END.
 */
#ifndef ANNAL_TAIL_H
#define ANNAL_TAIL_H

#include <annal/journal.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annal_tail annal_tail;

#define ANNAL_TAIL_NEW  UINT64_MAX /* as from_seq: only what is appended from now on */
#define ANNAL_TAIL_EVER UINT32_MAX /* as timeout_ms: no time-out */

/*
 * Begin before event from_seq (0 and 1: the first). A session, or an event, that does not exist yet
 * is waited for. One thread at a time. The store must outlive it.
 *
 * ANNAL_ERR_INVALID  session is no session id
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_open(annal_store *store, annal_slice session,
                                                        uint64_t from_seq, annal_tail **out_tail,
                                                        annal_error *err);

/*
 * The next event; waits for one up to timeout_ms (0: only look). Its slices live until the next
 * call.
 *
 * ANNAL_END           the time is over
 * ANNAL_DAMAGE        bytes that do not prove themselves were passed over, see annal_tail_damage().
 *                     Go on.
 * ANNAL_ERR_CONFLICT  the journal was replaced by another one, or deleted: what was given stays
 *                     true of the old one. Open a new tail.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_tail_next(annal_tail *tail, uint32_t timeout_ms,
                                                        annal_event *out_event, annal_error *err);

/* After ANNAL_DAMAGE: what was passed over. */
ANNAL_API annal_damage annal_tail_damage(const annal_tail *tail);

/* The seq of the event that comes next. */
ANNAL_API uint64_t annal_tail_seq(const annal_tail *tail);

/*
 * A descriptor that becomes readable when there may be something new: for poll, epoll, select. It
 * says nothing about what was there before, so call annal_tail_next() until ANNAL_END before the
 * first wait. Look at least every second all the same: a filesystem may fail to wake. Owned by the
 * tail; do not read it.
 */
ANNAL_API int annal_tail_fd(const annal_tail *tail);

/* NULL is accepted. */
ANNAL_API void annal_tail_close(annal_tail *tail);

#ifdef __cplusplus
}
#endif

#endif
