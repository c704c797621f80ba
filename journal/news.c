/* SPDX-License-Identifier: Apache-2.0 */
/* Listen to the wakeup page of a store; wakeup_page.h describes the shared memory, and what may go
 * wrong in it. */
#include "journal/sys/news.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/store.h"

#define LOOK_MS_DEFAULT 1000
/* time between two looks at the journals if the store has no wakeup page */
#define BLIND_LOOK_US 250000
/* greatest value of unsure_us, the interval at which journals are examined while wakeups may be
 * missed (rule 7 of wakeup_page.h) */
#define UNSURE_US_MAX (2 * WAKEUP_CHECK_US)

struct annal__news {
    annal_store *store;
    int64_t look_every_us;
    struct wakeup_page *page; /* wakeup page; NULL if it could not be mapped */
    uint64_t ticket;          /* number of the ticket whose entry is read next */
    struct wakeup_entry entry;
    bool missed;
    /* time in us at which the listener examines the journals next; all times here are monotonic */
    int64_t look_us;
    /* interval in us at which to examine the journals while wakeups may be missed, because the page
     * is new (rule 7 of wakeup_page.h); 0: none are missed */
    int64_t unsure_us;
    /* time in us since when the next ticket is taken while its entry is incomplete; 0: this is not
     * the case */
    int64_t stuck_us;
    /* time in us that the listener sleeps on `interrupts` before it sleeps on the page's word (rule
     * 5 of wakeup_page.h) */
    int64_t rest_us;
    int64_t woken_us; /* time in us when the page last woke the listener */
    uint64_t woken;   /* value of page->woken at the time woken_us */
    /* futex on which the listener sleeps if no page exists, or while it rests; set by
     * annal__news_interrupt(), cleared by a wait */
    _Atomic uint32_t interrupts;
};

static void begin_at_end(annal__news *news)
{
    news->stuck_us = 0;
    news->ticket = news->page == NULL ? 0 : atomic_load(&news->page->tickets);
}

static void use_page(annal__news *news, struct wakeup_page *page, int64_t now_us)
{
    news->page = page;
    news->woken = page == NULL ? 0 : atomic_load(&page->woken);
    news->woken_us = now_us;
    news->rest_us = 0;
    begin_at_end(news);
}

static void put_off_look(annal__news *news, int64_t now_us)
{
    int64_t every_us = news->look_every_us;
    if (news->page == NULL)
        every_us = BLIND_LOOK_US;
    else if (news->unsure_us > 0 && news->unsure_us < every_us)
        every_us = news->unsure_us;
    news->look_us = now_us + every_us;
}

annal_status annal__news_open(annal_store *store, const annal__news_options *options,
                              annal__news **out_news, annal_error *err)
{
    annal_status status = annal__context_check(&store->context, err);
    if (status < 0)
        return status;
    annal__news *news = annal__zalloc(sizeof *news);
    if (news == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "listen to store %s: out of memory",
                           store->context.path);
    int64_t now_us = annal__context_now_us(&store->context);
    uint32_t look_ms = options == NULL ? 0 : options->look_ms;
    news->store = store;
    news->look_every_us = (int64_t)(look_ms == 0 ? LOOK_MS_DEFAULT : look_ms) * 1000;
    use_page(news, annal__wakeup_page(&store->wakeup, now_us, true), now_us);
    /* A page without a single wakeup may be unknown to processes that write already. */
    news->unsure_us = news->ticket == 0 ? WAKEUP_UNSURE_US : 0;
    put_off_look(news, now_us);
    *out_news = news;
    return ANNAL_OK;
}

void annal__news_close(annal__news *news)
{
    annal__free(news);
}

/* If the wakeup page was replaced, use the new page, and assume that wakeups were missed (rule 7 of
 * wakeup_page.h). */
static void follow_page(annal__news *news, int64_t now_us)
{
    struct wakeup_page *page = annal__wakeup_page(&news->store->wakeup, now_us, true);
    if (page == news->page)
        return;
    use_page(news, page, now_us);
    news->missed = true;
    news->unsure_us = WAKEUP_UNSURE_US;
}

/* Return the kind of the next news, or 0 for no news. ANNAL_NEWS_SESSION: see news->entry. */
static annal__news_kind find_item(annal__news *news, int64_t now_us)
{
    follow_page(news, now_us);
    if (news->missed)
        return ANNAL_NEWS_MISSED;
    if (now_us >= news->look_us)
        return news->page == NULL || news->unsure_us > 0 ? ANNAL_NEWS_MISSED : ANNAL_NEWS_LOOK;
    if (news->page == NULL)
        return 0;
    switch (annal__wakeup_read(news->page, news->ticket, &news->entry)) {
    case WAKEUP_ENTRY:
        return news->entry.session.len > 0 ? ANNAL_NEWS_SESSION : ANNAL_NEWS_MISSED;
    case WAKEUP_LOST:
        return ANNAL_NEWS_MISSED;
    case WAKEUP_NOT_YET:
        if (news->stuck_us == 0)
            news->stuck_us = now_us;
        return now_us - news->stuck_us >= WAKEUP_STUCK_US ? ANNAL_NEWS_MISSED : 0;
    case WAKEUP_NOTHING:
        break;
    }
    return 0;
}

/* After a look of a listener that may miss wakeups, double the interval of such looks, up to
 * UNSURE_US_MAX; after that, stop them (rule 7 of wakeup_page.h). */
static void look_again(annal__news *news, int64_t now_us)
{
    if (news->unsure_us > 0 && now_us >= news->look_us)
        news->unsure_us = news->unsure_us < UNSURE_US_MAX ? news->unsure_us * 2 : 0;
}

annal_status annal__news_next(annal__news *news, annal__news_item *out_item, annal_error *err)
{
    annal_status status = annal__context_check(&news->store->context, err);
    if (status < 0)
        return status;
    int64_t now_us = annal__context_now_us(&news->store->context);
    annal__news_item item = {.kind = find_item(news, now_us)};
    switch (item.kind) {
    case ANNAL_NEWS_SESSION:
        item.session = news->entry.session;
        item.end_seq = news->entry.end_seq;
        news->ticket++;
        news->stuck_us = 0;
        break;
    case ANNAL_NEWS_MISSED:
        look_again(news, now_us);
        news->missed = false;
        begin_at_end(news);
        put_off_look(news, now_us);
        break;
    case ANNAL_NEWS_LOOK:
        put_off_look(news, now_us);
        break;
    default:
        return ANNAL_END;
    }
    *out_item = item;
    return ANNAL_OK;
}

static bool take_interrupt(annal__news *news)
{
    return atomic_exchange(&news->interrupts, 0) != 0;
}

/* Choose how long this listener pauses (rests) before it sleeps on the page again, after it was
 * woken together with others (rule 5 of wakeup_page.h). */
static void choose_rest(annal__news *news, int64_t now_us)
{
    uint64_t woken = atomic_load_explicit(&news->page->woken, memory_order_relaxed);
    uint64_t others = woken - news->woken - 1;
    news->rest_us = others < WAKEUP_REST_US_MAX / WAKEUP_REST_US ? (int64_t)others * WAKEUP_REST_US
                                                                 : WAKEUP_REST_US_MAX;
    news->woken_us = now_us;
    news->woken = woken;
}

/* Sleep until a wakeup, an interrupt or the next due time. value is the page's word before the
 * caller looked for news. */
static void sleep_once(annal__news *news, uint32_t value, int64_t until_us, int64_t now_us)
{
    struct wakeup_page *page = news->page;
    int64_t rested_us = news->woken_us + news->rest_us;
    bool rests = page == NULL || rested_us > now_us;
    if (page != NULL && rests && rested_us < until_us)
        until_us = rested_us;
    if (news->look_us < until_us)
        until_us = news->look_us;
    if (news->stuck_us != 0 && news->stuck_us + WAKEUP_STUCK_US < until_us)
        until_us = news->stuck_us + WAKEUP_STUCK_US;
    if (until_us - now_us > WAKEUP_CHECK_US)
        until_us = now_us + WAKEUP_CHECK_US;
    if (rests)
        annal__futex_wait(&news->interrupts, 0, until_us - now_us);
    else if (annal__wakeup_sleep(page, value, until_us - now_us))
        choose_rest(news, annal__context_now_us(&news->store->context));
}

annal_status annal__news_wait(annal__news *news, uint32_t timeout_ms, annal_error *err)
{
    annal_status status = annal__context_check(&news->store->context, err);
    if (status < 0)
        return status;
    int64_t now_us = annal__context_now_us(&news->store->context);
    int64_t until_us =
        timeout_ms == ANNAL_NO_TIMEOUT ? INT64_MAX : now_us + (int64_t)timeout_ms * 1000;
    for (;; now_us = annal__context_now_us(&news->store->context)) {
        const struct wakeup_page *page = news->page;
        uint32_t value = page == NULL ? 0 : atomic_load(&page->word);
        if (find_item(news, now_us) != 0)
            return ANNAL_OK;
        if (take_interrupt(news) || now_us >= until_us)
            return ANNAL_END;
        if (page == news->page)
            sleep_once(news, value, until_us, now_us);
    }
}

void annal__news_interrupt(annal__news *news)
{
    atomic_store(&news->interrupts, 1);
    annal__futex_wake(&news->interrupts);
    /* Wake the listener if it sleeps on the page's word, together with all others. */
    struct wakeup_page *page = annal__wakeup_page(
        &news->store->wakeup, annal__context_now_us(&news->store->context), true);
    if (page == NULL)
        return;
    atomic_fetch_add(&page->word, 1);
    annal__futex_wake(&page->word);
}
