/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hub: shared by all tails of a store object, so that each commit is looked at once.
 *
 * (1) It listens to the news (journal/sys/news.h). The table records, for each session that a tail
 *     reads, the last event that the tails know of.
 * (2) Each time an entry of the table grows, this is appended to the log, which keeps the last
 *     HUB_LOG entries: the order of commits. A tail of several sessions walks along the log at its
 *     own pace. A tail that falls back further takes the table instead. At any place of the log the
 *     table is the sum of all entries before it, so no event is announced twice or left out.
 * (3) If the news report that something was missed, the hub looks at the journals itself, and
 *     appends the new events as one round: the tails merge it by time.
 * (4) The hub has no thread. One of the waiting listeners leads: it waits for the news, takes them,
 *     sets the flag of the tails that they concern, and wakes these. A leader that has something to
 *     read passes on the lead. Only if a tail has a descriptor does a thread of the hub wait too,
 *     and it leads if no listener does.
 * (5) Crowds: with more than HUB_CROWD tails, the waiting tails read in turns, some at a time, each
 *     for HUB_TURN_EVENTS or until it has no more. Otherwise a thousand tails that wake for each
 *     commit would leave the appends a thousandth of the processor. A turn ends when the caller is
 *     busy with an event for longer than HUB_TURN_US. The thread rests after it has flagged many
 *     tails.
 */
#ifndef REPLAY_HUB_H
#define REPLAY_HUB_H

#include "replay/name_table.h"

#include <annal/store.h>

#include <stdatomic.h>

#define HUB_LOG         8192u
#define HUB_CROWD       16u
#define HUB_TURN_EVENTS 256u
#define HUB_TURN_US     2000
/* interval at which a tail that waits for a turn checks which tails are busy */
#define HUB_BUSY_US     100000
#define HUB_TURNS_MAX   16
#define HUB_REST_US     40 /* rest of the thread, for each tail that it flagged */
#define HUB_REST_US_MAX 50000

struct hub;
struct hub_node;

struct hub_link {          /* A link from a listener to a session that it names. */
    struct hub_link *next; /* next link of the session */
    struct listener *listener;
    struct hub_node *node;
};

enum turn { TURN_NONE, TURN_QUEUED, TURN_MINE };

struct listener {
    /* Used by the owner only. */
    struct hub *hub;
    uint64_t at;    /* next entry of the log to take */
    bool is_single; /* whether it follows a single session: it reads to the end, without the log */

    _Atomic bool pending;  /* whether there may be something new */
    _Atomic uint32_t word; /* futex */

    /* Guarded by the hub's lock. */
    bool all;
    struct hub_link *links;
    size_t link_count;
    int fd; /* -1: no descriptor */
    bool is_waiting;
    struct listener *previous, *next;           /* in the list of all listeners */
    struct listener *wait_before, *wait_behind; /* in the list of waiting listeners */
    enum turn turn;
    /* in the list of listeners that wait for a turn */
    struct listener *queue_before, *queue_behind;
    uint32_t turn_events; /* number of events returned in this turn */
    int64_t busy_us;      /* since when its caller is busy with an event, or 0 */
};

/* What the hub knows of a session. The name is valid as long as the hub. */
struct hub_session {
    annal_slice session;
    char file[33]; /* file id of its journal, or "" */
    uint64_t first_seq;
    uint64_t end_seq;
    uint64_t end_h; /* hash of event end_seq, if has_end_h */
    bool has_end_h;
    uint64_t round; /* round of events that were found together, or 0; rule (3) */
};

/*
 * Listen to these sessions from now on, or to all if count is 0. The listener is zeroed before, and
 * must not move until annal__hub_leave().
 */
annal_status annal__hub_join(annal_store *store, struct listener *listener,
                             const annal_slice *sessions, size_t count, annal_error *err);
void annal__hub_leave(struct listener *listener); /* allowed even if it did not join */

/* Return false in a child of the process that joined. */
bool annal__hub_is_here(const struct listener *listener);

/*
 * Call fn for each entry of the table, at one place of the log; the listener continues from that
 * place.
 */
typedef annal_status (*hub_session_fn)(void *arg, const struct hub_session *session,
                                       annal_error *err);
annal_status annal__hub_table(struct listener *listener, hub_session_fn fn, void *arg,
                              annal_error *err);

enum hub_taken { HUB_NOTHING, HUB_ENTRY, HUB_BEHIND };

/*
 * Take the next entry of the log; if round is not 0, only an entry of that round. HUB_BEHIND: take
 * the table.
 */
enum hub_taken annal__hub_take(struct listener *listener, uint64_t round, struct hub_session *out);

/* Take the news, unless another listener is about to. */
void annal__hub_read_news(struct listener *listener);

/*
 * Return a number that changes when the news report that something was missed, or that a journal
 * was replaced.
 */
uint32_t annal__hub_misses(const struct listener *listener);

/* Clear the flag before looking. Returns whether it was set. */
bool annal__hub_unflag(struct listener *listener);

/*
 * Wait until the listener is flagged or until that time (monotonic); in a crowd it then has a turn.
 */
void annal__hub_wait(struct listener *listener, int64_t until_us);

/* Create listener->fd. */
annal_status annal__hub_fd(struct listener *listener, annal_error *err);

/* Return whether rule (5) applies. */
bool annal__hub_is_crowd(const struct listener *listener);
void annal__hub_turn_take(struct listener *listener, int64_t until_us); /* gives up at that time */
/* the caller handles an event */
void annal__hub_turn_busy(struct listener *listener, bool for_long);
void annal__hub_turn_give(struct listener *listener);

#endif
