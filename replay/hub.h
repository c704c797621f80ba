/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hub, shared by all tails of a store object: it looks at each commit once and announces it to
 * the tails.
 *
 * (1) It listens to the news (journal/sys/news.h). The table records, for each session that a tail
 *     reads, the seq up to which the session was announced to the tails.
 * (2) Each time the seq of a session in the table grows, an entry is appended to the log, which
 *     keeps the last HUB_LOG entries in the order of commits. A tail of several sessions reads the
 *     log at its own speed. A tail that needs an entry which the log does not keep any more reads
 *     the table instead. The table is always the sum of all entries of the log, so no event is
 *     announced twice or left out.
 * (3) If news were missed, the hub looks at the journals itself, and appends the entries of all
 *     sessions that grew with the same round: the tails merge the events of a round by time.
 * (4) Usually the hub has no thread. One of the waiting listeners leads: it waits for news, reads
 *     them, and flags and wakes the listeners of the sessions in the news. A leader that is flagged
 *     itself makes another waiting listener the leader. Only if a tail has a descriptor, the hub
 *     has a thread, which also waits, and leads if no listener leads.
 * (5) With more than HUB_CROWD tails (a crowd), the tails that wait read in turns: as many at a
 *     time as half of the processors, each for HUB_TURN_EVENTS events or until it has read all.
 *     Otherwise a thousand tails that wake for each commit would leave the appends a thousandth of
 *     the processor. A turn also ends when the caller is busy with an event for longer than
 *     HUB_TURN_US. The thread pauses after it has flagged many tails.
 */
#pragma once

#include "replay/name_table.h"

#include <annal/store.h>

#include <stdatomic.h>

#define HUB_LOG         8192u
#define HUB_CROWD       16u
#define HUB_TURN_EVENTS 256u
#define HUB_TURN_US     2000
/* interval, in microseconds, at which a tail that waits for a turn checks which tails are busy */
#define HUB_BUSY_US   100000
#define HUB_TURNS_MAX 16
/* Pause of the hub's thread after it woke more than HUB_CROWD tails, in us for each of them, at
 * most HUB_REST_US_MAX: with less, the thread would wake a crowd again for each commit. */
#define HUB_REST_US     40
#define HUB_REST_US_MAX 50000

struct hub;
struct hub_node;

struct hub_link {          /* A link from a listener to a session that the listener names. */
    struct hub_link *next; /* next link to the same session */
    struct listener *listener;
    struct hub_node *node;
};

enum turn { TURN_NONE, TURN_QUEUED, TURN_MINE };

struct listener {
    /* Used only by the thread that uses the tail. */
    struct hub *hub;
    uint64_t at; /* number of the entry of the hub's log to take next */
    /* whether the listener follows a single session, which it reads without the hub's log */
    bool is_single;

    _Atomic bool pending;  /* whether new events may exist for the listener: its flag */
    _Atomic uint32_t word; /* futex on which the listener sleeps */

    /* Guarded by the lock of the hub. */
    bool all;
    struct hub_link *links;
    size_t link_count;
    int fd; /* descriptor, or -1 */
    bool is_waiting;
    struct listener *previous, *next;           /* neighbours in the list of all listeners */
    struct listener *wait_before, *wait_behind; /* neighbours in the list of waiting listeners */
    enum turn turn;
    /* neighbours in the list of listeners that wait for a turn */
    struct listener *queue_before, *queue_behind;
    uint32_t turn_events; /* number of events that the tail has returned in this turn */
    /* monotonic time since when the caller of the tail is busy with an event, or 0 */
    int64_t busy_us;
};

/* What the hub knows of a session. The name is valid as long as the hub. */
struct hub_session {
    annal_slice session;
    char file[33]; /* file id of the journal; "": no journal exists */
    uint64_t first_seq;
    uint64_t end_seq;
    uint64_t end_h; /* hash of event end_seq, if has_end_h */
    bool has_end_h;
    uint64_t round; /* number of the round in which the events were found, rule (3), or 0 */
};

/* Listen to these sessions from now on, or to all sessions if count is 0. The members of the
 * listener must be zero, and it must not move until annal__hub_leave(). */
annal_status annal__hub_join(annal_store *store, struct listener *listener,
                             const annal_slice *sessions, size_t count, annal_error *err);
/* end listening; may be called even if the listener did not join */
void annal__hub_leave(struct listener *listener);

/* Return false in a child of the process that joined. */
bool annal__hub_is_here(const struct listener *listener);

/*
 * Call fn for each entry of the hub's table that concerns the listener. The lock is held during all
 * calls, so that all entries belong to the same position of the log; the listener continues at this
 * position.
 */
typedef annal_status (*hub_session_fn)(void *arg, const struct hub_session *session,
                                       annal_error *err);
annal_status annal__hub_table(struct listener *listener, hub_session_fn fn, void *arg,
                              annal_error *err);

enum hub_taken { HUB_NOTHING, HUB_ENTRY, HUB_BEHIND };

/* Take the next entry of the hub's log; if round is not 0, only an entry of that round.
 * HUB_NOTHING: no such entry. HUB_BEHIND: the entry is not in the log any more; call
 * annal__hub_table(). */
enum hub_taken annal__hub_take(struct listener *listener, uint64_t round, struct hub_session *out);

/* Read the news, unless another listener is waiting for them as the leader and will read them. */
void annal__hub_read_news(struct listener *listener);

/* Return the number of ANNAL_NEWS_MISSED read until now. When it changes, a listener of a single
 * session must check its journal. */
uint32_t annal__hub_misses(const struct listener *listener);

/* Clear the flag that new events may exist; the caller reads its sessions after that. Return
 * whether the flag was set. */
bool annal__hub_unflag(struct listener *listener);

/* Wait until new events may exist for the listener (its flag is set), or until until_us (monotonic,
 * in us). With a crowd of tails, the listener has its turn to read when this returns. */
void annal__hub_wait(struct listener *listener, int64_t until_us);

/*
 * Create listener->fd, a descriptor that is readable while new events may exist for the listener.
 */
annal_status annal__hub_fd(struct listener *listener, annal_error *err);

/* Return whether so many tails are open that they read in turns, rule (5). */
bool annal__hub_is_crowd(const struct listener *listener);
/* Wait for a turn to read, at most until until_us (monotonic, in us). */
void annal__hub_turn_take(struct listener *listener, int64_t until_us);
/* Record that the caller of the tail is handling an event. for_long ends the listener's turn at
 * once. */
void annal__hub_turn_busy(struct listener *listener, bool for_long);
void annal__hub_turn_give(struct listener *listener);
