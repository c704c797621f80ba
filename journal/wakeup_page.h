/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wakeup page: shared memory in which processes that write journals announce new events, and
 * wake listeners.
 *
 * STORE/locks/bell is a struct wakeup_page, in the machine's byte order: it never leaves the
 * machine.
 *
 * (1) Everything in it is a hint. It is never synced, and recovery does not read it. Wrong bytes in
 *     it, left by a crash or written by another program, may delay news, but never lose or invent
 *     an event: a listener reads the events in the journals, checks every entry, and looks at the
 *     journals by itself each second.
 * (2) Announcing: a process that wrote a journal takes a ticket (one addition), fills slot ticket %
 *     WAKEUP_SLOTS, and stamps it with ticket + 1. There is an entry for each run of records of a
 *     session, in the order of the group, after the whole group is in its journals: so the tickets
 *     of a process are in the order of its commits. An entry without a session tells listeners to
 *     look at all sessions.
 * (3) A listener keeps the number of the ticket that it reads next. In three cases it has missed
 *     entries: `tickets` is more than WAKEUP_SLOTS ahead, the check of an entry does not match its
 *     ticket, or a ticket was taken and not stamped within WAKEUP_STUCK_US (its writer was killed).
 *     Then it looks at all sessions, and continues from `tickets`. If two processes fill the same
 *     slot, with tickets that differ by WAKEUP_SLOTS, the check of the entry fails, with no other
 *     effect.
 * (4) Waking: `word` changes after the entries are stamped; then, if `asleep` is set, it is cleared
 *     and one sleeper is woken. Each sleeper that is woken by a change wakes two more before it
 *     does anything else, so waking a thousand costs the writer one call. A listener that goes to
 *     sleep sets `asleep`, and sleeps only if the word has not changed since before it looked:
 *     either it sees the change, or the writer sees `asleep`. If a process is killed before it
 *     wakes others, they wake by themselves after a second at most.
 * (5) Many listeners rest: `woken` counts wakings. A listener that is woken, and sees that others
 *     were woken n times since it was last woken, does not sleep on the word for n *
 *     WAKEUP_REST_US; after this rest it reads all events of that time at once. So however many
 *     listeners there are, they are woken at most 10,000 times a second, and a single append after
 *     a rest wakes them all at once.
 * (6) The first listener creates the file, of written zeros, so that no access meets a hole. If no
 *     process ever listened, the file does not exist, and writers announce nothing. The file
 *     belongs to a boot: a process that finds a file of an earlier boot writes the present boot
 *     into it, and uses it. In the same boot, a file with another magic belongs to another version
 *     and is not used.
 * (7) The file may appear and be deleted at any time. Once a second every process compares the name
 *     with the mapped file; without a mapped file it looks for the name every WAKEUP_SEEK_US. A
 *     listener whose page may be unknown to others looks at all sessions, first after
 *     WAKEUP_UNSURE_US, then after twice as long each time, until every process has noticed the
 *     page. A mapping stays until the store is closed, because a thread may be using it.
 */
#pragma once

#include "journal/context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#define WAKEUP_SLOTS       1024u
#define WAKEUP_REST_US     100
#define WAKEUP_REST_US_MAX 1000000
#define WAKEUP_STUCK_US    20000
#define WAKEUP_CHECK_US    1000000 /* see rule (7) */
#define WAKEUP_SEEK_US     10000
#define WAKEUP_UNSURE_US   16000

enum {
    WAKEUP_ID_WORDS = (ANNAL_SESSION_ID_BYTES_MAX + 7) / 8,
    WAKEUP_ENTRY_WORDS = 2 + WAKEUP_ID_WORDS
};

struct wakeup_slot {
    _Atomic uint64_t stamp;
    _Atomic uint64_t check; /* checksum of the words, seeded with the ticket */
    /* end_seq, number of bytes of the id, the id padded with zeros */
    _Atomic uint64_t words[WAKEUP_ENTRY_WORDS];
    uint64_t reserved[32 - 2 - WAKEUP_ENTRY_WORDS];
};

struct wakeup_page {
    _Atomic uint64_t magic;
    _Atomic uint64_t boot[2];
    char pad1[104];
    _Atomic uint64_t tickets; /* number of tickets that were taken */
    char pad2[120];
    /* futex on which listeners sleep; changes after new entries are complete */
    _Atomic uint32_t word;
    _Atomic uint32_t asleep; /* whether a listener sleeps, or is about to */
    _Atomic uint64_t woken;
    char pad3[4096 - 272];
    struct wakeup_slot slots[WAKEUP_SLOTS];
};

struct wakeup_map {
    struct wakeup_page *page;
    dev_t device;
    ino_t inode;
    struct wakeup_map *older; /* an earlier mapping, which stays (rule 7); or NULL */
};

/* The mappings of the wakeup page of a store object. */
struct wakeup {
    const struct context *context;
    /* held while a thread checks the file's name and maps the file */
    pthread_mutex_t lock;
    struct wakeup_map *_Atomic map; /* newest mapping; NULL: no page could be mapped */
    /* time in us when the name locks/bell was last compared with the mapped file (monotonic); 0:
     * never */
    _Atomic int64_t checked_us;
};

struct wakeup_entry {
    /* session with new events; points into id; empty: any session may have new events */
    annal_slice session;
    uint64_t end_seq;
    uint64_t id[WAKEUP_ID_WORDS];
};

enum wakeup_found {
    WAKEUP_NOTHING, /* no process has taken this ticket: no later entry exists */
    WAKEUP_ENTRY,
    WAKEUP_NOT_YET, /* a process has taken the ticket, but has not completed its entry yet */
    WAKEUP_LOST     /* the entry was overwritten, or is invalid (rule 3) */
};

annal_status annal__wakeup_init(struct wakeup *wakeup, const struct context *context);
void annal__wakeup_done(struct wakeup *wakeup);

/* Return the page, and map it if necessary; NULL if the file does not exist. With `make`, for
 * listeners, create the file. Any thread. */
struct wakeup_page *annal__wakeup_page(struct wakeup *wakeup, int64_t now_us, bool make);

/* Announce that a session's journal ends at event end_seq; call annal__wakeup_wake() after the last
 * announcement. page may be NULL. */
void annal__wakeup_announce(struct wakeup_page *page, annal_slice session, uint64_t end_seq);
void annal__wakeup_wake(struct wakeup_page *page);

/* Announce that the journal of any session may have changed, and wake the listeners. */
void annal__wakeup_announce_all(struct wakeup *wakeup);

/* Read and check the entry of this ticket. */
enum wakeup_found annal__wakeup_read(struct wakeup_page *page, uint64_t ticket,
                                     struct wakeup_entry *out);

/* Sleep while the word has this value, at most timeout_us; return whether it has changed (rule
 * 4). */
bool annal__wakeup_sleep(struct wakeup_page *page, uint32_t value, int64_t timeout_us);
