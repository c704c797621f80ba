/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The held list of a slot: the sessions that the slot owns. locks/<nn>.held, memory shared between
 * processes, never synced.
 *
 * (1) The list is valid only in the boot and for the log (device, inode) that it names. While its
 *     owner replaces the log, it names both logs.
 * (2) Names are added under locks/claim only, and by the slot's owner only. Removing a name needs
 *     no lock.
 * (3) An entry's id is written before its hash, and the hash validates the entry; hash 0 is a free
 *     entry.
 * (4) A process that wants a session sets the word of its entry to HELD_WANTED, raises the owner's
 *     wakeup word, and sleeps on the word; the owner frees the entry and wakes it.
 * (5) A list is filled before it names a log (1), so that a partial list is never taken for a
 *     complete list.
 * (6) The file grows by written zeros, so that no access meets a hole, and never shrinks.
 * (7) A process that deleted a session raises `wipe_wanted`, raises the owner's wakeup word, and
 *     sleeps on `wipe_done`. The owner overwrites what its log does not need, and copies the number
 *     that it read from `wipe_wanted` to `wipe_done`. If the owner ends before that, the slot's log
 *     is removed once nothing in it is needed.
 * (8) An owner that releases a session has synced its journal, and leaves a hash of the journal's
 *     state (`whole`) in the entry. The hash stays after the name is removed, until another
 *     journal's hash replaces it. A process that takes the session later in this boot and finds the
 *     journal in this state need not sync it first.
 *
 * All numbers are in the machine's byte order: the file never leaves the machine.
 */
#pragma once

#include "journal/base/futex.h"
#include "journal/base/io.h"

#include <annal/event.h>

#include <stdatomic.h>

#define HELD_ENTRIES_MAX 16384 /* maximum number of sessions that a slot owns at a time */

enum held_state {
    HELD_UNKNOWN = 0,
    HELD_EMPTY = 1, /* recovery needs nothing in the log of the slot */
    HELD_OWNED = 2, /* a process writes the log, or died while it wrote */
    /* the owner died, and another process is recovering the log, or died while recovering */
    HELD_REDONE = 3
};

enum held_word { HELD_QUIET = 0, HELD_WANTED = 1 };

struct held_header {
    /* HELD_MAGIC; 0 while the entries are being written (annal__held_clear()) */
    _Atomic uint64_t magic;
    uint8_t boot[16];
    uint64_t device;
    _Atomic uint64_t inode;
    _Atomic uint32_t state;
    /* futex on which the owner of the list sleeps; increased when another process asks it to
     * release a session */
    _Atomic uint32_t wakeup_word;
    uint32_t pid;             /* process id of the owner, for messages */
    _Atomic uint32_t entries; /* number of entries that the file has room for */
    /* Where the log ended, for its next owner: the region here, the epoch and group below; valid in
     * state HELD_EMPTY. */
    uint32_t end_region;
    _Atomic uint32_t
        /* whether the log was written in an earlier boot, and was not recovered since (slot.c) */
        alone;
    uint64_t end_epoch;
    uint64_t end_group;
    /* counter that changes as long as the recovery of the log makes progress */
    _Atomic uint64_t redo_moved;
    _Atomic uint32_t wipe_wanted;
    /* futex: last value of wipe_wanted for which the log was overwritten */
    _Atomic uint32_t wipe_done;
    _Atomic uint32_t named;      /* whether the log's name in commit/ is known to be durable */
    _Atomic uint64_t next_inode; /* inode of the log that replaces the present log, or 0 */
};

struct held_entry {
    _Atomic uint64_t hash;
    _Atomic uint32_t word; /* futex: HELD_WANTED if another process wants the session */
    /* whether the journal has bytes of level os that were not reported as durable */
    _Atomic uint32_t loose;
    uint32_t id_bytes;
    char id[ANNAL_SESSION_ID_BYTES_MAX + 28];
    /* hash of the journal's state when its owner last released the session and synced the journal,
     * or 0 (rule 8) */
    _Atomic uint64_t whole;
};

struct held {
    const struct io *io;
    int fd;
    /* first page of the mapped file, followed by the entries; NULL: no file */
    struct held_header *header;
    /* number of entries that may be accessed; see annal__held_entries() */
    _Atomic uint32_t entries;
    uint32_t next; /* index at which the search for a free entry begins */
};

/* Map the file; with `create`, create it if it is missing. Without `create`, *out_held is empty
 * (header NULL) if it is missing. */
annal_status annal__held_open(const struct io *io, const char *path, bool create,
                              struct held *out_held, annal_error *err);
void annal__held_close(struct held *held);

/* Return whether the list is valid: it was bound in this boot, and to this log file (rule 1). */
bool annal__held_is_for(const struct held *held, const uint8_t boot[16], const struct stat *log);

/*
 * Empty the list and make it invalid. Add entries, and only then call annal__held_bind(), which
 * makes it valid for a log. So a process that dies in between leaves an invalid list, never a
 * partial list.
 */
void annal__held_clear(struct held *held);
void annal__held_bind(struct held *held, const uint8_t boot[16], const struct stat *log);

/* Make the list valid for the log `next`, too, before the log's name is given to `next`; and for
 * one log only, once the name certainly belongs to it (rule 1). */
void annal__held_bind_next(const struct held *held, const struct stat *next);
void annal__held_bind_done(const struct held *held, const struct stat *log);

/* Return whether another process wants the log overwritten (rule 7). *out_wanted (out_wanted may be
 * NULL) is the number to pass to annal__held_wiped() after that. */
bool annal__held_is_to_wipe(const struct held *held, uint32_t *out_wanted);
void annal__held_wiped(const struct held *held, uint32_t wanted);

/*
 * Return the number of entries that may be accessed: those for which the file had room when it was
 * opened, whatever the header states, and those that this process added since. The file's size is
 * not read again, because that could fail, and a caller that took the failure for an empty list
 * would take sessions that other processes own, or skip their redo. A list of another slot is read
 * only under locks/claim, so its owner does not add entries in the meantime (rule 2).
 */
uint32_t annal__held_entries(const struct held *held);
struct held_entry *annal__held_entry(const struct held *held, uint32_t index);

/* Return the session that an entry names; empty if its length is invalid. */
annal_slice annal__held_id(const struct held_entry *entry);

/* Return the index of a session's entry, or -1. */
int annal__held_find(const struct held *held, annal_slice session);
annal_status annal__held_add(struct held *held, annal_slice session, uint32_t *out_index,
                             annal_error *err);
void annal__held_remove(const struct held *held, uint32_t index);
void annal__held_remove_all(const struct held *held);

/* Return whether an entry has this hash of a journal's state (rule 8). */
bool annal__held_has_note(const struct held *held, uint64_t whole);
