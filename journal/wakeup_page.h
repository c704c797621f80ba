/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wakeup: shared memory in which processes that write journals say so, and wake those that the
 * listeners.
 *
 * STORE/locks/bell is a struct wakeup_page, in the machine's byte order: it never leaves the
 * machine.
 *
 * (1) Everything in it is a hint. It is never synced, and recovery does not read it. Wrong bytes in
 *     it, left by a crash or written by another program, may delay news, but never lose or invent
 *     an event: a listener reads the events in the journals, checks every entry, and looks by
 *     itself each second.
 * (2) Announcing: a process that wrote a journal takes a ticket (one addition), fills slot ticket %
 *     WAKEUP_SLOTS, and stamps it with ticket + 1. There is an entry for each run of records of a
 *     session, in the order of the group, after the whole group is in its journals: so the tickets
 *     of a process are in the order of its commits. An entry without a session means: look at
 *     everything.
 * (3) A listener keeps the ticket that it reads next. In three cases it has missed something:
 *     `tickets` is more than WAKEUP_SLOTS ahead, the check of an entry does not match its ticket,
 *     or a ticket was taken and not stamped within WAKEUP_STUCK_US (its writer was killed). Then it
 *     looks at everything, and continues from `tickets`. Two processes that fill one slot, one lap
 *     apart, spoil its check and nothing else.
 * (4) Waking: `word` changes after the entries are stamped; then, if `asleep` is set, it is cleared
 *     and one sleeper is woken. Each sleeper that is woken by a change wakes two more before it
 *     does anything else, so waking a thousand costs the writer one call. A listener that goes to
 *     sleep sets `asleep`, and sleeps only while the word is unchanged since before it looked:
 *     either it sees the change, or the writer sees `asleep`. Work that a killed process leaves
 *     undone ends with the next sleeper's second.
 * (5) A crowd rests: `woken` counts wakings. A listener that is woken, and sees that others were
 *     woken n times since its own last time, rests for n WAKEUP_REST_US before it sleeps where it
 *     can be woken, and then reads at once all events of that time. So however many listeners there
 *     are, they are woken at most 10,000 times a second, and a single append after a rest wakes
 *     them all at once.
 * (6) The first listener creates the file, of written zeros, so that no access meets a hole. If no
 *     process ever listened, the file does not exist, and writers have nothing to do. The file
 *     belongs to a boot: a process that finds a file of another boot takes it over unchanged. In
 *     the same boot, a file with another magic belongs to another version and is left alone.
 * (7) The file may appear and be deleted at any time. Once a second every process compares the name
 *     with the mapped file; without a mapped file it looks for the name every WAKEUP_SEEK_US. A
 *     listener to a page that may be new to others looks at everything, first after
 *     WAKEUP_UNSURE_US, then after twice as long each time, until the last process has noticed. A
 *     mapping stays until the store is closed: a thread may be using it.
 */
#ifndef JOURNAL_WAKEUP_PAGE_H
#define JOURNAL_WAKEUP_PAGE_H

#include <annal/store.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#define WAKEUP_SLOTS       1024u
#define WAKEUP_REST_US     100
#define WAKEUP_REST_US_MAX 1000000
#define WAKEUP_STUCK_US    20000
#define WAKEUP_CHECK_US    1000000 /* rule (7) */
#define WAKEUP_SEEK_US     10000
#define WAKEUP_UNSURE_US   16000

enum {
    WAKEUP_ID_WORDS = (ANNAL_SESSION_ID_BYTES_MAX + 7) / 8,
    WAKEUP_ENTRY_WORDS = 2 + WAKEUP_ID_WORDS
};

struct wakeup_slot {
    _Atomic uint64_t stamp;
    _Atomic uint64_t check;                     /* checksum of the words, seeded with the ticket */
    _Atomic uint64_t words[WAKEUP_ENTRY_WORDS]; /* end_seq, bytes of the id, the id and zeros */
    uint64_t reserved[32 - 2 - WAKEUP_ENTRY_WORDS];
};

struct wakeup_page {
    _Atomic uint64_t magic;
    _Atomic uint64_t boot[2];
    char pad1[104];
    _Atomic uint64_t tickets; /* tickets taken */
    char pad2[120];
    _Atomic uint32_t word;   /* futex */
    _Atomic uint32_t asleep; /* a listener sleeps, or is about to */
    _Atomic uint64_t woken;
    char pad3[4096 - 272];
    struct wakeup_slot slots[WAKEUP_SLOTS];
};

struct wakeup_map {
    struct wakeup_page *page;
    dev_t device;
    ino_t inode;
    struct wakeup_map *older; /* still mapped: rule (7) */
};

/* Of a store object. */
struct wakeup {
    pthread_mutex_t lock;           /* for mapping */
    struct wakeup_map *_Atomic map; /* NULL: none could be mapped */
    _Atomic int64_t checked_us;     /* 0: never */
};

struct wakeup_entry {
    annal_slice session; /* points into id; empty: everything */
    uint64_t end_seq;
    uint64_t id[WAKEUP_ID_WORDS];
};

enum wakeup_found {
    WAKEUP_NOTHING, /* this ticket was not taken yet */
    WAKEUP_ENTRY,
    WAKEUP_NOT_YET, /* taken, and not stamped yet */
    WAKEUP_LOST     /* rule (3) */
};

annal_status annal__wakeup_init(struct wakeup *wakeup);
void annal__wakeup_done(annal_store *store);

/* The page, mapped if it is not yet; NULL: no page exists. Listeners create it. Any thread. */
struct wakeup_page *annal__wakeup_page(annal_store *store, int64_t now_us, bool make);

/*
 * Announce that a session's journal ends at end_seq; call annal__wakeup_wake() afterwards. page
 * may be NULL.
 */
void annal__wakeup_announce(struct wakeup_page *page, annal_slice session, uint64_t end_seq);
void annal__wakeup_wake(struct wakeup_page *page);

/* Announce that anything may have changed, and wake the listeners. */
void annal__wakeup_announce_all(annal_store *store);

/* Read the entry of this ticket and check it. */
enum wakeup_found annal__wakeup_read(struct wakeup_page *page, uint64_t ticket,
                                     struct wakeup_entry *out);

/* Rule (4): sleep while the word is value, at most timeout_us; false: no wakeup. */
bool annal__wakeup_sleep(struct wakeup_page *page, uint32_t value, int64_t timeout_us);

#endif
