/* SPDX-License-Identifier: Apache-2.0 */
/*
 * News: which sessions have more events than before, announced at once by the process that wrote
 * them. Tails are woken by them.
 *
 *     annal__news_open(store, NULL, &news, &err);
 *     … look at what you follow …
 *     while (annal__news_wait(news, ANNAL_NO_TIMEOUT, &err) >= 0)
 *         while (annal__news_next(news, &item, &err) == ANNAL_OK)
 *             … item.kind says where to look …
 *
 * News are hints: the events are in the journals, and only there. Nothing in a journal stays
 * unannounced for longer than look_ms, whatever process is killed at whatever moment. A writer
 * never waits for a listener, and waking a thousand costs it what waking one does.
 */
#ifndef JOURNAL_SYS_NEWS_H
#define JOURNAL_SYS_NEWS_H

#include <annal/store.h>

typedef struct annal__news annal__news;

typedef struct annal__news_options {
    /* interval of ANNAL_NEWS_LOOK, in milliseconds; default: 1,000 */
    uint32_t look_ms;
} annal__news_options;

typedef enum annal__news_kind {
    /*
     * Events up to end_seq are in the journal of session. News of a store object are in the order
     * of commit, news of several in the order in which they were announced.
     */
    ANNAL_NEWS_SESSION = 1,
    /*
     * Look at everything that you follow: more was announced than is kept (1,024 items), or what
     * happened does not concern one session alone: a journal was deleted or converted, a fork was
     * created, a dead process's log was recovered. News announced later follow this.
     */
    ANNAL_NEWS_MISSED = 2,
    /*
     * look_ms are over. Nothing says that something was missed; but a process that is killed
     * between its write and its announcement announces nothing. What is missing in the news at two
     * such looks in a row was not announced, and will not be. A listener that follows little may
     * use what the first look finds.
     */
    ANNAL_NEWS_LOOK = 3
} annal__news_kind;

typedef struct annal__news_item {
    annal__news_kind kind;
    annal_slice session; /* session of ANNAL_NEWS_SESSION; valid until the next call */
    uint64_t end_seq;
} annal__news_item;

/*
 * Begin to listen: what is committed from now on is announced. So open it first, then look at the
 * journals. Any store will do. If the shared memory cannot be used (on read-only media, or in a
 * store that is open for reading only if no other process has listened yet), ANNAL_NEWS_MISSED is
 * returned four times a second instead. One thread at a time; the store must outlive it.
 *
 * ANNAL_ERR_NOMEM
 */
ANNAL_MUST_CHECK annal_status annal__news_open(annal_store *store,
                                               const annal__news_options *options,
                                               annal__news **out_news, annal_error *err);

/* The next news. ANNAL_END: none for now. Never waits. */
ANNAL_MUST_CHECK annal_status annal__news_next(annal__news *news, annal__news_item *out_item,
                                               annal_error *err);

/*
 * Wait until annal__news_next() has something, up to timeout_ms. ANNAL_END: the time is over, or
 * annal__news_interrupt() was called.
 */
ANNAL_MUST_CHECK annal_status annal__news_wait(annal__news *news, uint32_t timeout_ms,
                                               annal_error *err);

/* End the current wait, or else the next one. Any thread. */
void annal__news_interrupt(annal__news *news);

/* NULL is accepted. */
void annal__news_close(annal__news *news);

#endif
