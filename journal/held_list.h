/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The held list of a slot: the sessions that the slot owns. locks/<nn>.held, memory shared between
 * processes, never synced.
 *
 * (1) The list is valid only in the boot and for the log (device, inode) that it names; for two
 *     logs while its owner replaces one by the other.
 * (2) Names are added under locks/claim only, and by the slot's owner only. Removing a name needs
 *     no lock.
 * (3) An entry's id is written before its hash, and the hash validates the entry; hash 0 is a free
 *     entry.
 * (4) A process that wants a session sets the word of its entry to HELD_WANTED, raises the owner's
 *     wakeup word, and sleeps on the word; the owner frees the entry and wakes it.
 * (5) A list is filled before it is bound (1), so that a partial list is never taken for a complete
 *     list.
 * (6) The file grows by written zeros, so that no access meets a hole, and never shrinks.
 * (7) A process that deleted a session raises `wipe_wanted`, raises the owner's wakeup word, and
 *     sleeps on `wipe_done`. The owner overwrites what its log does not need, and answers with the
 *     number that it saw. If the owner ends before it answers, the slot's log is removed once it is
 *     empty.
 * (8) An owner that gives a session back notes in the entry what the journal looks like now that
 *     all of it is on the disk. The note outlives the name, until another is noted there: a process
 *     that gets the slot in this boot, takes the session and finds the journal as noted, need not
 *     sync what it did not write.
 *
 * All numbers are in the machine's byte order: the file never leaves the machine.
 */
#ifndef JOURNAL_HELD_LIST_H
#define JOURNAL_HELD_LIST_H

#include "journal/base/futex.h"
#include "journal/base/io.h"

#include <annal/event.h>

#include <stdatomic.h>

#define HELD_ENTRIES_MAX 16384 /* sessions that a slot owns at a time */

enum held_state {
    HELD_UNKNOWN = 0,
    HELD_EMPTY = 1, /* the log holds nothing that is needed */
    HELD_OWNED = 2, /* a process writes, or died writing */
    HELD_REDONE = 3 /* the process died, and another process is recovering the log, or died doing
                     * so */
};

enum held_word { HELD_QUIET = 0, HELD_WANTED = 1 };

struct held_header {
    _Atomic uint64_t magic; /* 0: while the entries are being written; see annal__held_clear() */
    uint8_t boot[16];
    uint64_t device;
    _Atomic uint64_t inode;
    _Atomic uint32_t state;
    _Atomic uint32_t wakeup_word; /* futex: raised when an entry is wanted */
    uint32_t pid;                 /* process id of the owner, for messages */
    _Atomic uint32_t entries;     /* how many the file has room for */
    /* The end of the log, valid while EMPTY. */
    uint32_t end_region;
    _Atomic uint32_t
        alone; /* the log is of another boot, and was not recovered since; see slot.c */
    uint64_t end_epoch;
    uint64_t end_group;
    _Atomic uint64_t redo_moved; /* changes as long as its recovery makes progress */
    _Atomic uint32_t wipe_wanted;
    _Atomic uint32_t wipe_done;  /* futex */
    _Atomic uint32_t named;      /* the log's name in commit/ is durable, as far as we know */
    _Atomic uint64_t next_inode; /* inode of the log that replaces ours; 0: none */
};

struct held_entry {
    _Atomic uint64_t hash;
    _Atomic uint32_t word;  /* futex */
    _Atomic uint32_t loose; /* has bytes of level os that were not reported as durable */
    uint32_t id_bytes;
    char id[ANNAL_SESSION_ID_BYTES_MAX + 28];
    _Atomic uint64_t whole; /* rule (8): a hash; 0: nothing is noted */
};

struct held {
    const struct io *io;
    int fd;
    struct held_header *header; /* one page, followed by the entries; mapped at full length */
    _Atomic uint32_t entries;   /* how many may be touched; see annal__held_entries() */
    uint32_t next;              /* where the search for a free entry begins */
};

/* Map the file, and create it if `create`; *out_held is empty (header NULL) if it is missing. */
annal_status annal__held_open(const struct io *io, const char *path, bool create,
                              struct held *out_held, annal_error *err);
void annal__held_close(struct held *held);

/* Rule (1). */
bool annal__held_is_for(const struct held *held, const uint8_t boot[16], const struct stat *log);

/*
 * Make an empty list that is not valid yet: entries are added, and only then is it bound. So a
 * process that dies in between leaves a list whose content is unknown, never a partial list.
 */
void annal__held_clear(struct held *held);
void annal__held_bind(struct held *held, const uint8_t boot[16], const struct stat *log);

/* Rule (1): call the first before the name moves to the other log, the second once it certainly
 * belongs to one of the two. */
void annal__held_bind_next(const struct held *held, const struct stat *next);
void annal__held_bind_done(const struct held *held, const struct stat *log);

/* Rule (7). *out_wanted (may be NULL): the number to answer with. */
bool annal__held_is_to_wipe(const struct held *held, uint32_t *out_wanted);
void annal__held_wiped(const struct held *held, uint32_t wanted);

/*
 * How many entries may be touched: those that the file had when it was opened, whatever the header
 * says, and those that we added since. The file's size is not read again, because that could fail,
 * and a caller that took the failure for an empty list would take sessions that others own, or skip
 * their redo. A list of another slot is opened for one look under locks/claim, so its owner does
 * not add to it during that time (2).
 */
uint32_t annal__held_entries(const struct held *held);
struct held_entry *annal__held_entry(const struct held *held, uint32_t index);

/* The session that an entry names; empty if it cannot be one. */
annal_slice annal__held_id(const struct held_entry *entry);

/* The index of a session's entry, or -1. */
int annal__held_find(const struct held *held, annal_slice session);
annal_status annal__held_add(struct held *held, annal_slice session, uint32_t *out_index,
                             annal_error *err);
void annal__held_remove(const struct held *held, uint32_t index);
void annal__held_remove_all(const struct held *held);

/* Whether an entry has this note, rule (8). */
bool annal__held_has_note(const struct held *held, uint64_t whole);

#endif
