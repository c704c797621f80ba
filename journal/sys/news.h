/*
 * News: which sessions have more events than before, told at once by whoever wrote them, in this
 * process or another. What tails are woken by.
 *
 *     annal__news_open(store, NULL, &news, &err);
 *     … look at what you follow …
 *     while (annal__news_wait(news, ANNAL_NEWS_EVER, &err) >= 0)
 *         while (annal__news_next(news, &item, &err) == ANNAL_OK)
 *             … item.kind says where to look …
 *
 * News are hints: the events stand in the journals, and only there. Nothing that stands in a
 * journal stays untold for longer than look_ms, whatever process is killed at whatever moment.
 * Nobody who writes waits for anybody who listens, and waking a thousand costs the writer what
 * waking one does.
 */
#ifndef JOURNAL_SYS_NEWS_H
#define JOURNAL_SYS_NEWS_H

#include <annal/store.h>

typedef struct annal__news annal__news;

#define ANNAL_NEWS_EVER UINT32_MAX /* as timeout_ms: no time-out */

typedef struct annal__news_options {
    /* ANNAL_NEWS_LOOK so often, in milliseconds; default: 1,000 */
    uint32_t look_ms;
} annal__news_options;

typedef enum annal__news_kind {
    /*
     * Events up to end_seq stand in the journal of session. Those of one store object come in the
     * order of their commit, those of several in the order in which they were told.
     */
    ANNAL_NEWS_SESSION = 1,
    /*
     * Look at everything that you follow: more was told than is kept (1,024 items), or what
     * happened is not of one session alone: a journal was deleted or converted, a fork was made, a
     * dead process's log was recovered. What is told from now on is behind this.
     */
    ANNAL_NEWS_MISSED = 2,
    /*
     * look_ms are over. Nothing says that something was missed; but a process that is killed
     * between its write and its word tells nobody. What lags behind its journal at two such looks
     * in a row was not told, and will not be. Whoever follows little takes what the first look
     * finds.
     */
    ANNAL_NEWS_LOOK = 3
} annal__news_kind;

typedef struct annal__news_item {
    annal__news_kind kind;
    annal_slice session; /* of ANNAL_NEWS_SESSION; lives until the next call */
    uint64_t end_seq;
} annal__news_item;

/*
 * Begin to listen: what is committed from now on is told. So open it first, then look at the
 * journals. Any store will do; where the shared memory cannot be had (on read-only media, and for a
 * store that is open for reading only when nobody else has listened yet),
 * ANNAL_NEWS_MISSED comes four times a second instead. One thread at a time; the store must outlive
 * it.
 *
 * ANNAL_ERR_NOMEM
 */
ANNAL_MUST_CHECK annal_status annal__news_open(annal_store *store,
                                               const annal__news_options *options,
                                               annal__news **out_news, annal_error *err);

/* What was told next. ANNAL_END: nothing more for now. Never waits. */
ANNAL_MUST_CHECK annal_status annal__news_next(annal__news *news, annal__news_item *out_item,
                                               annal_error *err);

/*
 * Wait until annal__news_next() has something, up to timeout_ms. ANNAL_END: the time is over, or
 * annal__news_interrupt() was called.
 */
ANNAL_MUST_CHECK annal_status annal__news_wait(annal__news *news, uint32_t timeout_ms,
                                               annal_error *err);

/* End the wait that is under way, or else the next one. Any thread. */
void annal__news_interrupt(annal__news *news);

/* NULL is accepted. */
void annal__news_close(annal__news *news);

#endif
