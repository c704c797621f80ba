/* SPDX-License-Identifier: Apache-2.0 */
/*
 * News: which sessions have new events, announced at once by the process that wrote them. Tails
 * wait for news.
 *
 *     annal__news_open(store, NULL, &news, &err);
 *     … look at what you follow …
 *     while (annal__news_wait(news, ANNAL_NO_TIMEOUT, &err) >= 0)
 *         while (annal__news_next(news, &item, &err) == ANNAL_OK)
 *             … item.kind says where to look …
 *
 * News are hints: the events are in the journals only. A listener also looks at the journals each
 * look_ms, so it misses nothing for longer, even if a writer is killed before it announces. A
 * writer never waits for a listener, and waking a thousand listeners costs it as much as waking a
 * single listener.
 */
#pragma once

#include <annal/store.h>

typedef struct annal__news annal__news;

typedef struct annal__news_options {
    /* interval between two ANNAL_NEWS_LOOK, in milliseconds; default: 1,000 */
    uint32_t look_ms;
} annal__news_options;

typedef enum annal__news_kind {
    /*
     * Events up to end_seq are in the journal of session. News of one store object are in the order
     * of its commits, news of several store objects in the order of their announcements.
     */
    ANNAL_NEWS_SESSION = 1,
    /*
     * Look at all sessions that you follow: more was announced than is kept (1,024 items), or
     * several sessions are affected: a journal was deleted or converted, a fork was created, a dead
     * process's log was recovered. Later announcements follow this item.
     */
    ANNAL_NEWS_MISSED = 2,
    /*
     * look_ms have passed. Usually nothing was missed; but a process that is killed between its
     * write and its announcement announces nothing. Events that were not announced at two such
     * looks in a row will not be announced. A listener that follows few sessions may use what the
     * first look finds.
     */
    ANNAL_NEWS_LOOK = 3
} annal__news_kind;

typedef struct annal__news_item {
    annal__news_kind kind;
    annal_slice session; /* session of ANNAL_NEWS_SESSION; valid until the next call */
    uint64_t end_seq;
} annal__news_item;

/*
 * Begin to listen: events that are committed from now on are announced. So call this first, and
 * then look at the journals. The store may be open for reading only. If the shared memory cannot be
 * used (on read-only media, or in a store that is open for reading only if no other process has
 * listened yet), ANNAL_NEWS_MISSED is returned four times a second instead. One thread at a time.
 * Close it before the store.
 *
 * ANNAL_ERR_NOMEM
 */
ANNAL_MUST_CHECK annal_status annal__news_open(annal_store *store,
                                               const annal__news_options *options,
                                               annal__news **out_news, annal_error *err);

/* Return the next news; ANNAL_END without news. Never waits. */
ANNAL_MUST_CHECK annal_status annal__news_next(annal__news *news, annal__news_item *out_item,
                                               annal_error *err);

/* Wait until annal__news_next() has news, up to timeout_ms. ANNAL_END after timeout_ms, or if
 * annal__news_interrupt() was called. */
ANNAL_MUST_CHECK annal_status annal__news_wait(annal__news *news, uint32_t timeout_ms,
                                               annal_error *err);

/* End the current wait, or otherwise the next wait. Any thread. */
void annal__news_interrupt(annal__news *news);

/* Free the listener. NULL is accepted. */
void annal__news_close(annal__news *news);
