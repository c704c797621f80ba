/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/hub.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/futex.h"
#include "journal/base/thread.h"
#include "journal/sys/news.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct hub_node {
    struct named named;
    struct hub_link *links;
    char file[33];
    uint64_t first_seq;
    uint64_t end_seq; /* seq up to which the session was announced to the tails */
    uint64_t end_h;   /* hash of the last event when the journal was examined */
    uint64_t end_h_seq;
    /* last seq of the journal when it was last examined, if that event was not announced to the
     * tails yet; else 0 */
    uint64_t found_seq;
    uint64_t bytes; /* size of the journal when it was examined, in bytes */
    /* number of the last examination of all journals that found the session in the store */
    uint64_t look;
    /* number of listeners that name the session and do not look at its journal themselves */
    uint32_t watched;
};

struct hub_entry {
    struct hub_node *node;
    uint64_t end_seq;
    uint64_t round;
};

struct hub {
    annal_store *store;
    pid_t pid;
    pthread_mutex_t lock;
    /* the news that the leader (the listener that reads for all) waits for; guarded by the lock
     * while no listener is the leader */
    annal__news *news;
    bool is_led;
    /* signalled when the leader has read all news, and is not the leader any more */
    pthread_cond_t news_read;
    _Atomic bool crowded;
    /* number of news ANNAL_NEWS_MISSED that were read: news may have been lost */
    _Atomic uint32_t misses;
    struct names nodes;
    size_t listeners, alls;
    struct listener *first;
    struct listener *waits_first, *waits_last;
    /* ring buffer of the last HUB_LOG entries; NULL: no listener has needed the log yet */
    struct hub_entry *log;
    uint64_t log_end; /* number of entries ever written to the hub's log */
    uint64_t rounds;
    uint64_t looks;
    /* Turns to read in a crowd, rule (5). */
    size_t turns; /* maximum number of listeners that have a turn to read at the same time */
    size_t turns_out;
    struct listener *holders[HUB_TURNS_MAX];
    struct listener *queue_first, *queue_last;
    /* number of listeners with a descriptor, for which the hub's thread waits: rule (4) of hub.h */
    size_t descriptors;
    bool has_thread;
    bool is_stopping;
    /* number of listeners told that new events may exist since the hub's thread last paused */
    uint32_t flagged;
    pthread_t thread;
    struct listener thread_waits;
};

static void wake(struct listener *listener)
{
    atomic_fetch_add(&listener->word, 1);
    annal__futex_wake(&listener->word);
}

/* ---- Turns, rule (5); the lock is held ---- */

static void leave_queue(struct hub *hub, struct listener *listener)
{
    *(listener->queue_before == NULL ? &hub->queue_first : &listener->queue_before->queue_behind) =
        listener->queue_behind;
    *(listener->queue_behind == NULL ? &hub->queue_last : &listener->queue_behind->queue_before) =
        listener->queue_before;
    listener->turn = TURN_NONE;
}

static void grant(struct hub *hub)
{
    while (hub->turns_out < hub->turns && hub->queue_first != NULL) {
        struct listener *listener = hub->queue_first;
        leave_queue(hub, listener);
        listener->turn = TURN_MINE;
        listener->turn_events = 0;
        listener->busy_us = 0;
        hub->holders[hub->turns_out++] = listener;
        wake(listener);
    }
}

static void queue_up(struct hub *hub, struct listener *listener)
{
    if (listener->turn != TURN_NONE)
        return;
    listener->turn = TURN_QUEUED;
    listener->queue_before = hub->queue_last;
    listener->queue_behind = NULL;
    *(hub->queue_last == NULL ? &hub->queue_first : &hub->queue_last->queue_behind) = listener;
    hub->queue_last = listener;
    grant(hub);
}

static void take_back(struct hub *hub, struct listener *listener)
{
    if (listener->turn == TURN_QUEUED)
        leave_queue(hub, listener);
    if (listener->turn != TURN_MINE)
        return;
    size_t i = 0;
    while (hub->holders[i] != listener)
        i++;
    hub->holders[i] = hub->holders[--hub->turns_out];
    listener->turn = TURN_NONE;
    grant(hub);
}

/* End the turn of a listener whose caller has been busy with an event for longer than HUB_TURN_US,
 * so that other listeners need not wait for it. */
static void take_back_from_busy(struct hub *hub)
{
    int64_t since_us = annal__clock_monotonic_us() - HUB_TURN_US;
    for (size_t i = 0; i < hub->turns_out; i++) {
        if (hub->holders[i]->busy_us != 0 && hub->holders[i]->busy_us < since_us) {
            take_back(hub, hub->holders[i]);
            return;
        }
    }
}

/* ---- Announcing to the listeners; the lock is held ---- */

static bool is_crowd(const struct hub *hub)
{
    return hub->listeners > HUB_CROWD;
}

static void flag(struct listener *listener)
{
    const uint64_t one = 1;
    if (atomic_exchange(&listener->pending, true))
        return;
    listener->hub->flagged++;
    if (listener->fd >= 0 && write(listener->fd, &one, sizeof one) < 0)
        return; /* the descriptor is readable already */
    /* the listener sleeps until its turn begins */
    if (listener->is_waiting && is_crowd(listener->hub))
        queue_up(listener->hub, listener);
    else if (listener->is_waiting)
        wake(listener);
}

static void flag_alls(const struct hub *hub)
{
    for (struct listener *listener = hub->alls > 0 ? hub->first : NULL; listener != NULL;
         listener = listener->next) {
        if (listener->all)
            flag(listener);
    }
}

static void flag_node(const struct hub_node *node)
{
    for (const struct hub_link *link = node->links; link != NULL; link = link->next)
        flag(link->listener);
}

/* Flag the listeners of a single session without a descriptor, which look at the journal
 * themselves. */
static void flag_unwatched(const struct hub_node *node)
{
    for (const struct hub_link *link = node->links; link != NULL; link = link->next) {
        if (link->listener->is_single && link->listener->fd < 0)
            flag(link->listener);
    }
}

/* Append an entry for the session to the hub's log, rule (2), and flag the session's listeners. */
static void write_down(struct hub *hub, struct hub_node *node, uint64_t round)
{
    if (hub->log != NULL)
        hub->log[hub->log_end % HUB_LOG] = (struct hub_entry){node, node->end_seq, round};
    hub->log_end++;
    flag_node(node);
}

/* ---- Looking at journals ---- */

/* Read the end of the session's journal. A session without a journal is empty. */
static annal_status examine(struct hub *hub, struct hub_node *node, annal_session_info *out_info,
                            annal_error *err)
{
    annal_session_info info;
    annal_status status = annal_session_info_get(
        hub->store, (annal_slice){node->named.name, node->named.len}, &info, err);
    if (status == ANNAL_ERR_NOTFOUND) {
        info = (annal_session_info){.last_seq = 0, .first_seq = 1};
        status = ANNAL_OK;
    }
    if (status == ANNAL_OK)
        *out_info = info;
    return status;
}

/* Copy the end of the session's journal into its entry of the hub's table. */
static void adopt(struct hub_node *node, const annal_session_info *info)
{
    memcpy(node->file, info->file, sizeof node->file);
    node->first_seq = info->first_seq;
    node->end_seq = info->last_seq;
    node->end_h = info->last_h;
    node->end_h_seq = info->last_seq >= info->first_seq ? info->last_seq : 0;
    node->bytes = info->bytes;
    node->found_seq = 0;
}

/*
 * Compare the hub's table with the journal of a session. An event that the table lacks at a regular
 * look may be in news that have not arrived yet, and belongs in the log in the order of those news.
 * So it is added only if the table still lacks it at the next look. If news were missed, it is
 * added at once.
 */
static annal_status compare(struct hub *hub, struct hub_node *node, bool missed, annal_error *err)
{
    annal_session_info info;
    annal_status status = examine(hub, node, &info, err);
    if (status < 0)
        return status;
    bool other = strcmp(info.file, node->file) != 0 || info.last_seq < node->end_seq;
    bool more = info.last_seq > node->end_seq;
    if (more && !other && !missed && (node->found_seq == 0 || node->found_seq <= node->end_seq)) {
        node->found_seq = info.last_seq;
        return ANNAL_OK;
    }
    adopt(node, &info);
    if (other || more)
        write_down(hub, node, hub->rounds);
    return ANNAL_OK;
}

struct look {
    struct hub *hub;
    bool missed;
    bool any;
    annal_status status;
    annal_error *err;
};

static struct hub_node *node_of(struct hub *hub, annal_slice session, annal_error *err)
{
    struct named *named = annal__name_table_find(&hub->nodes, session);
    if (named == NULL)
        named = annal__name_table_add(&hub->nodes, session, sizeof(struct hub_node));
    if (named == NULL)
        (void)annal__fail(err, ANNAL_ERR_NOMEM, "tail session '%.*s': out of memory",
                          ANNAL_FMT(session));
    return (struct hub_node *)named;
}

static int look_at(void *arg, annal_slice session, uint64_t bytes)
{
    struct look *look = arg;
    struct hub_node *node = node_of(look->hub, session, look->err);
    if (node == NULL) {
        look->status = ANNAL_ERR_NOMEM;
        return 1;
    }
    node->look = look->hub->looks;
    if (!look->missed && node->file[0] != '\0' && bytes == node->bytes && node->found_seq == 0)
        return 0;
    /* A journal that cannot be read does not stop the look at the others. */
    if (compare(look->hub, node, look->missed, look->err) < 0 && look->status == ANNAL_OK &&
        !annal__stray_is(look->hub->store, session))
        look->status = ANNAL_ERR_IO;
    return 0;
}

static annal_status look_at_all(struct look *look)
{
    struct hub *hub = look->hub;
    annal_status status = annal_session_each(hub->store, look_at, look, look->err);
    if (status != ANNAL_OK)
        return look->status < 0 ? look->status : status;
    for (struct named *at = annal__name_table_next(&hub->nodes, NULL); at != NULL;
         at = annal__name_table_next(&hub->nodes, at)) {
        struct hub_node *node = (struct hub_node *)at;
        if (node->look == hub->looks || node->file[0] == '\0')
            continue;
        adopt(node, &(annal_session_info){.first_seq = 1}); /* the session was deleted */
        write_down(hub, node, hub->rounds);
    }
    return ANNAL_OK;
}

static annal_status look_at_watched(struct look *look)
{
    struct hub *hub = look->hub;
    annal_status status = ANNAL_OK;
    for (struct named *at = annal__name_table_next(&hub->nodes, NULL);
         at != NULL && status == ANNAL_OK; at = annal__name_table_next(&hub->nodes, at)) {
        struct hub_node *node = (struct hub_node *)at;
        if (node->watched > 0)
            status = compare(hub, node, look->missed, look->err);
    }
    return status;
}

/* Look at the journals, rule (3). missed says whether news were missed. */
static annal_status look(struct hub *hub, bool missed, annal_error *err)
{
    struct look look = {.hub = hub, .missed = missed, .err = err};
    uint64_t log_end = hub->log_end;
    hub->rounds++;
    hub->looks++;
    if (missed)
        atomic_fetch_add(&hub->misses, 1);
    annal_status status = hub->alls > 0 ? look_at_all(&look) : look_at_watched(&look);
    for (struct named *at = missed ? annal__name_table_next(&hub->nodes, NULL) : NULL; at != NULL;
         at = annal__name_table_next(&hub->nodes, at))
        flag_unwatched((struct hub_node *)at);
    if (hub->log_end != log_end)
        flag_alls(hub);
    return status;
}

/* ---- Reading news; the lock is held, and no thread leads ---- */

static void note_session(struct hub *hub, annal_slice session, uint64_t end_seq)
{
    struct hub_node *node = (struct hub_node *)annal__name_table_find(&hub->nodes, session);
    if (node == NULL && hub->alls == 0)
        return;
    if (node == NULL || (node->file[0] == '\0' && (hub->alls > 0 || node->watched > 0))) {
        annal_session_info info;
        node = node_of(hub, session, NULL);
        if (node == NULL || examine(hub, node, &info, NULL) < 0)
            return; /* the hub's next look at the journals finds the session */
        adopt(node, &info);
        node->end_seq = info.file[0] == '\0' || info.last_seq < end_seq ? info.last_seq : end_seq;
    } else if (end_seq > node->end_seq) {
        node->end_seq = end_seq;
    } else {
        return; /* this event was announced to the tails already */
    }
    write_down(hub, node, 0);
    flag_alls(hub);
}

static void read_news(struct hub *hub)
{
    annal__news_item item;
    annal_error err = {0};
    while (annal__news_next(hub->news, &item, &err) == ANNAL_OK) {
        annal_status status = ANNAL_OK;
        if (item.kind == ANNAL_NEWS_SESSION)
            note_session(hub, item.session, item.end_seq);
        else
            status = look(hub, item.kind == ANNAL_NEWS_MISSED, &err);
        if (status < 0) /* the hub's next look at the journals tries again */
            annal__say(hub->store, ANNAL_LOG_WARNING, "%s", err.message);
    }
}

void annal__hub_read_news(struct listener *listener)
{
    struct hub *hub = listener->hub;
    pthread_mutex_lock(&hub->lock);
    if (!hub->is_led)
        read_news(hub);
    pthread_mutex_unlock(&hub->lock);
}

uint32_t annal__hub_misses(const struct listener *listener)
{
    return atomic_load(&listener->hub->misses);
}

bool annal__hub_unflag(struct listener *listener)
{
    uint64_t count;
    struct hub *hub = listener->hub;
    if (!atomic_load(&listener->pending))
        return false;
    /* The lock is held so that the flag and the descriptor change together. */
    pthread_mutex_lock(&hub->lock);
    atomic_store(&listener->pending, false);
    if (listener->fd >= 0 && read(listener->fd, &count, sizeof count) < 0)
        count = 0; /* the descriptor was not readable */
    pthread_mutex_unlock(&hub->lock);
    return true;
}

/* ---- Waiting; the lock is held ---- */

static void lead(struct hub *hub, int64_t left_us)
{
    uint32_t left_ms =
        left_us / 1000 >= ANNAL_NO_TIMEOUT ? ANNAL_NO_TIMEOUT : (uint32_t)((left_us + 999) / 1000);
    annal_error err = {0};
    hub->is_led = true;
    pthread_mutex_unlock(&hub->lock);
    /* fails in a child of fork(), for instance */
    if (annal__news_wait(hub->news, left_ms, &err) < 0) {
        _Atomic uint32_t never = 0;
        annal__futex_wait(&never, 0, left_us < 100000 ? left_us : 100000);
    }
    pthread_mutex_lock(&hub->lock);
    hub->is_led = false;
    read_news(hub);
    pthread_cond_broadcast(&hub->news_read);
}

static void follow(struct hub *hub, struct listener *listener, int64_t left_us)
{
    uint32_t word = atomic_load(&listener->word);
    listener->is_waiting = true;
    listener->wait_before = hub->waits_last;
    listener->wait_behind = NULL;
    *(hub->waits_last == NULL ? &hub->waits_first : &hub->waits_last->wait_behind) = listener;
    hub->waits_last = listener;
    pthread_mutex_unlock(&hub->lock);
    annal__futex_wait(&listener->word, word, left_us);
    pthread_mutex_lock(&hub->lock);
    *(listener->wait_before == NULL ? &hub->waits_first : &listener->wait_before->wait_behind) =
        listener->wait_behind;
    *(listener->wait_behind == NULL ? &hub->waits_last : &listener->wait_behind->wait_before) =
        listener->wait_before;
    listener->is_waiting = false;
}

/* Let the hub's thread pause, rule (5): listeners that wake in the meantime then wake once for
 * several commits. */
static void rest(struct hub *hub)
{
    _Atomic uint32_t never = 0;
    int64_t rest_us =
        hub->flagged < HUB_REST_US_MAX / HUB_REST_US ? hub->flagged * HUB_REST_US : HUB_REST_US_MAX;
    hub->flagged = 0;
    pthread_mutex_unlock(&hub->lock);
    annal__futex_wait(&never, 0, rest_us);
    pthread_mutex_lock(&hub->lock);
    hub->flagged = 0;
}

static void wait_until(struct hub *hub, struct listener *listener, int64_t until_us)
{
    int64_t left_us;
    while (!atomic_load(&listener->pending) && !hub->is_stopping &&
           (left_us = until_us - annal__clock_monotonic_us()) > 0) {
        if (hub->is_led)
            follow(hub, listener, left_us);
        else
            lead(hub, left_us);
        if (listener == &hub->thread_waits && hub->flagged > HUB_CROWD)
            rest(hub);
    }
    if (listener->turn == TURN_QUEUED)
        leave_queue(hub, listener); /* the time to wait is over */
    if (!hub->is_led && hub->waits_first != NULL)
        wake(hub->waits_first); /* rule (4): let another waiting listener become the leader */
}

void annal__hub_wait(struct listener *listener, int64_t until_us)
{
    struct hub *hub = listener->hub;
    pthread_mutex_lock(&hub->lock);
    wait_until(hub, listener, until_us);
    pthread_mutex_unlock(&hub->lock);
}

/* ---- Turns ---- */

bool annal__hub_is_crowd(const struct listener *listener)
{
    return atomic_load(&listener->hub->crowded);
}

void annal__hub_turn_take(struct listener *listener, int64_t until_us)
{
    struct hub *hub = listener->hub;
    int64_t left_us;
    pthread_mutex_lock(&hub->lock);
    listener->busy_us = 0;
    queue_up(hub, listener);
    while (listener->turn == TURN_QUEUED &&
           (left_us = until_us - annal__clock_monotonic_us()) > 0) {
        uint32_t word = atomic_load(&listener->word);
        pthread_mutex_unlock(&hub->lock);
        annal__futex_wait(&listener->word, word, left_us < HUB_BUSY_US ? left_us : HUB_BUSY_US);
        pthread_mutex_lock(&hub->lock);
        if (listener->turn == TURN_QUEUED)
            take_back_from_busy(hub);
    }
    if (listener->turn == TURN_QUEUED)
        /* the time limit has passed without a turn: the caller reads without it */
        leave_queue(hub, listener);
    pthread_mutex_unlock(&hub->lock);
}

void annal__hub_turn_busy(struct listener *listener, bool for_long)
{
    struct hub *hub = listener->hub;
    pthread_mutex_lock(&hub->lock);
    listener->busy_us = annal__clock_monotonic_us();
    if (for_long || ++listener->turn_events >= HUB_TURN_EVENTS)
        take_back(hub, listener);
    pthread_mutex_unlock(&hub->lock);
}

void annal__hub_turn_give(struct listener *listener)
{
    struct hub *hub = listener->hub;
    pthread_mutex_lock(&hub->lock);
    take_back(hub, listener);
    pthread_mutex_unlock(&hub->lock);
}

/* ---- The log and the table ---- */

static void say(const struct hub_node *node, struct hub_session *out)
{
    out->session = (annal_slice){node->named.name, node->named.len};
    memcpy(out->file, node->file, sizeof out->file);
    out->first_seq = node->first_seq;
    out->end_seq = node->end_seq;
    out->end_h = node->end_h;
    out->has_end_h = node->end_h_seq == node->end_seq && node->end_seq > 0;
    out->round = 0;
}

enum hub_taken annal__hub_take(struct listener *listener, uint64_t round, struct hub_session *out)
{
    struct hub *hub = listener->hub;
    enum hub_taken taken = HUB_ENTRY;
    pthread_mutex_lock(&hub->lock);
    if (listener->at == hub->log_end) {
        taken = HUB_NOTHING;
    } else if (hub->log_end - listener->at > HUB_LOG) {
        taken = HUB_BEHIND;
    } else {
        const struct hub_entry *entry = &hub->log[listener->at % HUB_LOG];
        if (round != 0 && entry->round != round) {
            taken = HUB_NOTHING;
        } else {
            say(entry->node, out);
            out->end_seq = entry->end_seq;
            out->round = entry->round;
            listener->at++;
        }
    }
    pthread_mutex_unlock(&hub->lock);
    return taken;
}

annal_status annal__hub_table(struct listener *listener, hub_session_fn fn, void *arg,
                              annal_error *err)
{
    struct hub *hub = listener->hub;
    struct hub_session session;
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&hub->lock);
    listener->at = hub->log_end;
    if (listener->all) {
        for (struct named *at = annal__name_table_next(&hub->nodes, NULL);
             at != NULL && status == ANNAL_OK; at = annal__name_table_next(&hub->nodes, at)) {
            say((struct hub_node *)at, &session);
            status = fn(arg, &session, err);
        }
    }
    for (size_t i = 0; i < listener->link_count && status == ANNAL_OK; i++) {
        say(listener->links[i].node, &session);
        status = fn(arg, &session, err);
    }
    pthread_mutex_unlock(&hub->lock);
    return status;
}

/* ---- Joining; the lock is held ---- */

static void *stand_by(void *arg)
{
    struct hub *hub = arg;
    pthread_mutex_lock(&hub->lock);
    while (!hub->is_stopping) {
        atomic_store(&hub->thread_waits.pending, false);
        wait_until(hub, &hub->thread_waits, INT64_MAX);
    }
    pthread_mutex_unlock(&hub->lock);
    return NULL;
}

/* Read all news that were announced until now. If another listener is waiting for news as the
 * leader, interrupt it, and wait until it has read them, for at most a second. */
static void read_news_now(struct hub *hub)
{
    for (int tries = 0; hub->is_led && tries < 10; tries++) {
        struct timespec until;
        annal__news_interrupt(hub->news);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&hub->news_read, &hub->lock, &until);
    }
    if (!hub->is_led)
        read_news(hub);
}

static annal_status join_all(struct hub *hub, struct listener *listener, annal_error *err)
{
    listener->all = true;
    annal_status status = ANNAL_OK;
    /* look at all journals: until now, no listener of all sessions kept the table up to date */
    if (hub->alls++ == 0)
        status = look(hub, true, err);
    return status;
}

static annal_status join_sessions(struct hub *hub, struct listener *listener,
                                  const annal_slice *sessions, size_t count, annal_error *err)
{
    listener->links = annal__zalloc(count * sizeof *listener->links);
    if (listener->links == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "tail %zu sessions: out of memory", count);
    for (size_t i = 0; i < count; i++) {
        struct hub_node *node = node_of(hub, sessions[i], err);
        if (node == NULL)
            return ANNAL_ERR_NOMEM;
        bool twice = false;
        for (size_t j = 0; j < listener->link_count && !twice; j++)
            twice = listener->links[j].node == node;
        if (twice)
            continue;
        struct hub_link *link = &listener->links[listener->link_count++];
        *link = (struct hub_link){.next = node->links, .listener = listener, .node = node};
        node->links = link;
        node->watched += listener->is_single ? 0 : 1;
        annal_status status = compare(hub, node, true, err);
        if (status < 0)
            return status;
    }
    return ANNAL_OK;
}

static annal_status join(struct hub *hub, struct listener *listener, const annal_slice *sessions,
                         size_t count, annal_error *err)
{
    listener->hub = hub;
    listener->fd = -1;
    listener->pending = true; /* the listener must read its sessions once before it first waits */
    listener->is_single = count == 1;
    listener->next = hub->first;
    if (hub->first != NULL)
        hub->first->previous = listener;
    hub->first = listener;
    hub->listeners++;
    atomic_store(&hub->crowded, is_crowd(hub));
    if (!listener->is_single) {
        if (hub->log == NULL)
            hub->log = annal__zalloc(HUB_LOG * sizeof *hub->log);
        if (hub->log == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "tail store %s: out of memory",
                               annal_store_path(hub->store));
    }
    read_news_now(hub);
    hub->rounds++;
    return count == 0 ? join_all(hub, listener, err)
                      : join_sessions(hub, listener, sessions, count, err);
}

static void unlink_sessions(struct listener *listener)
{
    for (size_t i = 0; i < listener->link_count; i++) {
        struct hub_link *link = &listener->links[i], **at = &link->node->links;
        while (*at != link)
            at = &(*at)->next;
        *at = link->next;
        link->node->watched -= (listener->is_single ? 0u : 1u) + (listener->fd >= 0 ? 1u : 0u);
    }
    annal__free(listener->links);
}

/* Leave the hub. Return whether the thread of the hub must end. */
static bool leave(struct hub *hub, struct listener *listener)
{
    take_back(hub, listener);
    *(listener->previous == NULL ? &hub->first : &listener->previous->next) = listener->next;
    if (listener->next != NULL)
        listener->next->previous = listener->previous;
    hub->listeners--;
    hub->alls -= listener->all;
    atomic_store(&hub->crowded, is_crowd(hub));
    unlink_sessions(listener);
    if (listener->fd < 0)
        return false;
    close(listener->fd);
    hub->descriptors--;
    return hub->descriptors == 0 && hub->has_thread;
}

static void stop_thread(struct hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    hub->is_stopping = true;
    wake(&hub->thread_waits);
    annal__news_interrupt(hub->news);
    pthread_mutex_unlock(&hub->lock);
    pthread_join(hub->thread, NULL);
    hub->is_stopping = false;
    hub->has_thread = false;
}

/* ---- The hub of a store; tails_place.lock is held around these functions ---- */

static void hub_free(struct hub *hub)
{
    if (hub == NULL)
        return;
    annal__news_close(hub->news);
    annal__name_table_done(&hub->nodes);
    annal__free(hub->log);
    pthread_cond_destroy(&hub->news_read);
    pthread_mutex_destroy(&hub->lock);
    annal__free(hub);
}

static annal_status hub_new(annal_store *store, struct hub **out_hub, annal_error *err)
{
    struct hub *hub = annal__zalloc(sizeof *hub);
    if (hub == NULL || pthread_mutex_init(&hub->lock, NULL) != 0 ||
        pthread_cond_init(&hub->news_read, NULL) != 0) {
        annal__free(hub);
        return annal__fail(err, ANNAL_ERR_NOMEM, "tail store %s: out of memory",
                           annal_store_path(store));
    }
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    hub->store = store;
    hub->pid = getpid();
    hub->turns = processors < 4                   ? 1
                 : processors > 2 * HUB_TURNS_MAX ? HUB_TURNS_MAX
                                                  : (size_t)processors / 2;
    hub->thread_waits.fd = -1;
    annal_status status = annal__news_open(store, NULL, &hub->news, err);
    if (status < 0) {
        hub_free(hub);
        return status;
    }
    *out_hub = hub;
    return ANNAL_OK;
}

annal_status annal__hub_join(annal_store *store, struct listener *listener,
                             const annal_slice *sessions, size_t count, annal_error *err)
{
    struct tails_place *place = annal__store_tails(store);
    struct hub *hub = NULL;
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&place->lock);
    if (place->hub == NULL) {
        status = hub_new(store, &hub, err);
        place->hub = hub;
    }
    hub = place->hub;
    if (status == ANNAL_OK) {
        pthread_mutex_lock(&hub->lock);
        status = join(hub, listener, sessions, count, err);
        pthread_mutex_unlock(&hub->lock);
    }
    pthread_mutex_unlock(&place->lock);
    if (status < 0)
        annal__hub_leave(listener);
    return status;
}

void annal__hub_leave(struct listener *listener)
{
    struct hub *hub = listener->hub;
    if (hub == NULL)
        return;
    /* after fork(), a thread of the parent may hold the locks forever: the child only forgets the
     * hub */
    if (hub->pid != getpid()) {
        listener->hub = NULL;
        return;
    }
    struct tails_place *place = annal__store_tails(hub->store);
    pthread_mutex_lock(&place->lock);
    pthread_mutex_lock(&hub->lock);
    bool idle_thread = leave(hub, listener);
    listener->hub = NULL; /* only now no thread can flag the listener any more */
    pthread_mutex_unlock(&hub->lock);
    if (idle_thread)
        stop_thread(hub);
    if (hub->listeners == 0) {
        hub_free(hub);
        place->hub = NULL;
    }
    pthread_mutex_unlock(&place->lock);
}

bool annal__hub_is_here(const struct listener *listener)
{
    return listener->hub->pid == getpid();
}

static annal_status start_thread(struct hub *hub, annal_error *err)
{
    int failed = annal__thread_start(&hub->thread, stand_by, hub);
    if (failed != 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "tail store %s: cannot start a thread: %s",
                           annal_store_path(hub->store), strerror(failed));
    hub->has_thread = true;
    return ANNAL_OK;
}

/* Set the descriptor of a listener; fd is -1 to remove it again. */
static void set_fd(struct listener *listener, int fd)
{
    struct hub *hub = listener->hub;
    pthread_mutex_lock(&hub->lock);
    listener->fd = fd;
    hub->descriptors = fd >= 0 ? hub->descriptors + 1 : hub->descriptors - 1;
    /* the caller of a tail with a descriptor calls the tail only if the hub flags it, so examine
     * the journal for it */
    for (size_t i = 0; i < listener->link_count; i++) {
        uint32_t *watched = &listener->links[i].node->watched;
        *watched = fd >= 0 ? *watched + 1 : *watched - 1;
    }
    if (atomic_exchange(&listener->pending, false))
        flag(listener); /* the descriptor becomes readable, too */
    pthread_mutex_unlock(&hub->lock);
}

annal_status annal__hub_fd(struct listener *listener, annal_error *err)
{
    struct hub *hub = listener->hub;
    struct tails_place *place = annal__store_tails(hub->store);
    annal_status status = ANNAL_OK;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return annal__fail_errno(err, "cannot create a descriptor for a tail of store %s",
                                 annal_store_path(hub->store));
    pthread_mutex_lock(&place->lock);
    set_fd(listener, fd);
    if (!hub->has_thread)
        status = start_thread(hub, err);
    if (status < 0) {
        set_fd(listener, -1);
        close(fd);
    }
    pthread_mutex_unlock(&place->lock);
    return status;
}
