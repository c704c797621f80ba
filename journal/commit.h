/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit: one sync for all appenders that wait.
 *
 * Appenders copy their lines into the current group. An appender that waits while no thread leads
 * becomes the leader: it closes the group, writes it to the commit log, syncs the log, writes the
 * same bytes to the journals, wakes the appenders of this group, and passes on the lead. Rules 1 to
 * 6 of the commit log apply, and:
 *
 * (1) durable <= written, and groups become durable and applied in the order of their numbers.
 * (2) At most one thread leads. It holds no mutex during a system call. A thread that applies
 *     records holds the mutex of the session that it writes, and no other.
 * (3) Bytes are written to a journal after the sync of their group returned 0, in the order of
 *     groups.
 * (4) Every group ends in one of three ways: durable, refused (it never happened, and never will),
 *     or unknown. A group that could not be written is refused together with everything that was
 *     added after it; failure.h says how this is ensured. If it cannot be ensured, the store stops:
 *     it accepts no more work. Then the group that was being written is unknown, unless nothing of
 *     it was written, and what was added after it is refused.
 */
#ifndef JOURNAL_COMMIT_H
#define JOURNAL_COMMIT_H

#include "journal/base/buf.h"
#include "journal/log.h"
#include "journal/session.h"

#include <stdatomic.h>

#define GROUP_BYTES_SOFT ((size_t)8 << 20) /* a group of this size accepts no more records */

/* Bytes of a session in a group. A record without bytes, create or mark says that the journal is
 * durable up to its offset. */
struct group_record {
    struct session *session;
    bool create; /* the bytes begin with the journal's header */
    bool mark;   /* bytes of level os may follow it: see level_os.h */
    size_t header_bytes;
    uint64_t offset; /* offset in the journal of the bytes after the header */
    size_t at;       /* offset of these bytes in the payload */
    size_t length;   /* with the header */
    size_t loose;    /* how many of the first bytes are in the journal already */
    uint64_t first_seq;
    uint64_t last_seq;
    uint64_t h_before;
    uint64_t h_after;
    struct session_tail before; /* the session's end before it */
    size_t next;                /* the session's next record in the group; 0: none */
    bool first;                 /* the session's first one in the group */
    bool replaced;              /* applying it found another file under the journal's name */
    bool behind;                /* whether the journal lacks these bytes: see failure.h */
};

/*
 * Threads that wait for a group sleep on its word and do not take the lock when they wake: with
 * many threads that would cost more than the sync.
 */
enum group_word {
    GROUP_DONE = 1, /* applied, or failed: see outcome */
    GROUP_LEAD = 2  /* no thread leads: the thread that clears this bit tries to */
};

struct group {
    uint64_t number;
    struct buf payload;
    struct group_record *records;
    size_t count;
    size_t room;
    uint32_t waiting; /* appends whose threads wait for its end */
    uint32_t wanted;  /* number of appends for which the leader waits; 0: it does not wait */
    uint64_t events;
    uint64_t data_bytes;
    int64_t first_us; /* monotonic: when the first append of level batch joined; 0: none did */
    uint32_t references;
    annal_status outcome;      /* below 0: refused, or unknown */
    bool replaced;             /* a record has `replaced` set */
    annal_error failure;       /* why */
    _Atomic uint32_t word;     /* futex: the flags of enum group_word */
    _Atomic uint32_t gathered; /* futex: 1 when as many wait as are wanted */
};

struct commit {
    pthread_mutex_t lock;
    /* Guarded by lock. */
    struct group *current; /* still accepts appends */
    struct group *flying;  /* being written, or NULL */
    struct group *last;    /* the `flying` group when the store stopped, or NULL */
    bool leading;
    uint32_t last_waiting; /* for the group that was led last */
    uint32_t absent;       /* groups since a leader waited in vain */
    uint64_t durable;
    uint64_t applied;
    uint64_t released;   /* last checkpointed epoch */
    uint64_t full;       /* last epoch that has left its region and needs a checkpoint */
    uint64_t wish_bytes; /* the regions that a larger log should have; 0: ours are large enough */
    uint64_t rotated;    /* last group that is released, as recorded in the log */
    int64_t epoch_us[LOG_REGIONS]; /* monotonic: when the epoch of each region was begun */
    bool failed;                   /* no more work is accepted */
    bool refusing;                 /* for a moment: sessions are being rolled back */
    annal_error failure;
    uint64_t refusals; /* how often groups were refused */
    /* a refused group had events of level batch, and no caller got an error yet */
    bool lost;
    annal_error loss;    /* why the last refused group was refused */
    annal_error broken;  /* why the log was last replaced after a failure that refused no events */
    pthread_cond_t turn; /* a thread stopped leading; `applied` moves only before that */
    struct group *spare; /* memory to reuse */
    /* Not guarded. */
    _Atomic uint64_t unapplied_bytes; /* in groups, and not yet in their journals */
};

annal_status annal__commit_init(struct commit *commit);
void annal__commit_done(struct commit *commit);

/*
 * Add a record to the current group; fills in its place there, and copies the payload. The caller
 * holds the session's lock, so a session's records are in the order of its seqs. Pass *out_group,
 * which is a reference, to one of the two functions below. ANNAL_END: the group is full, and
 * nothing was added; release the session, call annal__commit_make_room(), and try again.
 */
annal_status annal__commit_add(annal_store *store, struct group_record *record, annal_slice header,
                               annal_slice loose, annal_slice lines, uint64_t events,
                               uint64_t data_bytes, bool batch, struct group **out_group,
                               annal_error *err);

/*
 * Wait until the group is applied; lead if no thread does. Also returns ANNAL_ERR_UNKNOWN if the
 * journal of this session was replaced by another file in the meantime: the fate of the events is
 * unknown.
 */
annal_status annal__commit_wait(annal_store *store, struct group *group,
                                const struct session *session, annal_error *err);

/* Drop the reference without waiting. */
void annal__commit_leave(annal_store *store, struct group *group);

/*
 * Wait until everything that was added before is applied or refused. Fails only if the store
 * accepts no more work.
 */
annal_status annal__commit_flush(annal_store *store, annal_error *err);

/* How often groups have been refused. */
uint64_t annal__commit_refusals(annal_store *store);

/* If batch events were lost and no caller got an error for it yet: return that error, once. */
annal_status annal__commit_take_loss(annal_store *store, annal_error *err);

/*
 * After the store stopped: the seqs from which on this session's events are unknown, and from which
 * on they were refused because of it; UINT64_MAX if there is no such event. *out_why: why the store
 * stopped, or why groups were last refused.
 */
void annal__commit_find_lost(annal_store *store, const struct session *session,
                             uint64_t *out_unknown_seq, uint64_t *out_refused_seq,
                             annal_error *out_why);

/* If the current group is full, wait until another group is current. The caller holds no lock. */
annal_status annal__commit_make_room(annal_store *store, annal_error *err);

/* The failure that stopped the store, or ANNAL_OK. */
annal_status annal__commit_check(annal_store *store, annal_error *err);

/* Stop the store: rule (4). */
void annal__commit_fail(annal_store *store, const annal_error *failure);

/* Catch up with late sessions and do nothing else: see failure.h. */
annal_status annal__commit_catch_up(annal_store *store, annal_error *err);

/*
 * Why the log was replaced after a failure that refused no events, if it was since the last call.
 */
annal_error annal__commit_take_broken(annal_store *store);

/*
 * Replace our log by a larger one if the leader asked for one. Appends continue during the
 * checkpoint.
 */
annal_status annal__commit_grow(annal_store *store, annal_error *err);

/* Checkpoint everything and write to the log that it is released: after that nothing in the log is
 * needed. */
annal_status annal__commit_rotate(annal_store *store, annal_error *err);

/* As above, and then overwrite the log, so that it contains nothing of what was written before. */
annal_status annal__commit_wipe(annal_store *store, annal_error *err);

#endif
