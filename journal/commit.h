/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit: one sync for all appenders that wait.
 *
 * Appenders copy their lines into the current group. An appender that waits while no thread leads
 * becomes the leader: it closes the group, writes it to the commit log, syncs the log, writes the
 * same bytes to the journals, wakes the appenders of this group, and passes on the lead. Rules 1 to
 * 6 of the commit log apply, and:
 *
 * (1) Groups become durable and applied in the order of their numbers.
 * (2) At most one thread leads. It holds no mutex during a system call. A thread that applies
 *     records holds the mutex of the session that it writes, and no other.
 * (3) Bytes are written to a journal after the sync of their group returned 0, in the order of
 *     groups.
 * (4) Every group ends in one of three ways: durable, refused (it never happened, and never will),
 *     or unknown. A group that could not be written is refused together with everything that was
 *     added after it; failure.h says how this is ensured. If it cannot be ensured, the store stops:
 *     it accepts no more work. The group that was being written is then unknown, or refused if no
 *     byte of it was written; groups after it are refused.
 */
#pragma once

#include "journal/base/buf.h"
#include "journal/log.h"
#include "journal/session.h"

#include <stdatomic.h>

#define GROUP_BYTES_SOFT ((size_t)8 << 20) /* a group of this size accepts no more records */

/* Bytes of a session in a group. A record without bytes, whose create and mark are false, states
 * that the journal is durable up to `offset`. */
struct group_record {
    struct session *session;
    bool create; /* whether the bytes begin with the header of a new journal */
    bool mark;   /* whether bytes of level os may follow the record in the journal (level_os.h) */
    size_t header_bytes;
    uint64_t offset; /* offset in the journal of the bytes after the header */
    size_t at;       /* offset of the record's bytes in the payload of the group */
    size_t length;   /* number of the record's bytes, with the header of a new journal */
    /*
     * how many bytes of the record, from its first, are in the journal already (bytes of level os)
     */
    size_t loose;
    uint64_t first_seq;
    uint64_t last_seq;
    uint64_t h_before;
    uint64_t h_after;
    /* end of the session's journal before this record, for a rollback */
    struct session_tail before;
    size_t next; /* index of the session's next record in the group, or 0 */
    bool first;  /* whether this is the session's first record in the group */
    /* whether the journal's name belonged to another file when the record was applied */
    bool replaced;
    /* whether the record's bytes could not be written to the journal yet (failure.h) */
    bool behind;
};

/* Flags of a group. Threads that wait for the group sleep on the word that contains them, and do
 * not take the lock when they wake: with many threads, taking it would cost more than the sync. */
enum group_word {
    GROUP_DONE = 1, /* the group is in its journals, or failed: see `outcome` */
    /* no thread writes the group: the thread that clears this flag tries to become the leader */
    GROUP_LEAD = 2
};

struct group {
    uint64_t number;
    struct buf payload;
    struct group_record *records;
    size_t count;
    size_t room;
    uint32_t waiting; /* number of appends whose threads wait for the group's end */
    /*
     * number of appends for which the leader waits before it closes the group; 0: it does not wait
     */
    uint32_t wanted;
    uint64_t events;
    uint64_t data_bytes;
    /* time in us when the first append of level batch joined the group (monotonic); 0: none did */
    int64_t first_us;
    uint32_t references;
    /* ANNAL_OK; below 0: the group was refused, or its fate is unknown */
    annal_status outcome;
    bool replaced; /* whether one of the group's records has `replaced` set */
    /* why the group was refused, or why its fate is unknown, if outcome is below 0 */
    annal_error failure;
    _Atomic uint32_t word; /* futex: the flags of enum group_word */
    /* futex on which the leader sleeps: 1 when `wanted` appends wait for the group */
    _Atomic uint32_t gathered;
};

struct commit {
    const struct context *context;
    struct metrics *metrics;
    struct session_table *sessions;
    struct own_log *own_log;
    uint64_t region_bytes; /* size that the regions of the log may have at most */

    pthread_mutex_t lock;
    /* Guarded by lock. */
    struct group *current; /* group that still accepts appends */
    struct group *flying;  /* group that is being written, or NULL */
    struct group *last;    /* group that was being written when the store stopped, or NULL */
    bool leading;
    uint32_t last_waiting; /* number of appends that waited for the previous group */
    /* number of groups since a leader (the thread that writes a group) last waited for appends that
     * did not arrive */
    uint32_t absent;
    uint64_t durable;
    uint64_t applied;
    /*
     * last epoch (filling of a region of the commit log) whose events are synced in their journals
     */
    uint64_t released;
    /* last epoch whose region is full, or is not written any more: it needs a checkpoint */
    uint64_t full;
    /* size of regions that a larger log should have; 0: the log is large enough */
    uint64_t wish_bytes;
    /* number of the last group of which the commit log records that recovery does not need it */
    uint64_t rotated;
    /* time in us when the epoch of each region of the log began (monotonic) */
    int64_t epoch_us[LOG_REGIONS];
    bool failed; /* whether the store has stopped and accepts no more work */
    /* whether a thread is refusing groups and rolling back their sessions now */
    bool refusing;
    annal_error failure;
    uint64_t refusals; /* number of times that groups were refused */
    /* whether a refused group had events of level batch, and no caller got an error for it yet */
    bool lost;
    annal_error loss; /* why the group that was refused last was refused */
    /* why the log had to be replaced, if this failure refused no events; reported when the store is
     * closed */
    annal_error broken;
    /* signaled when the leader has finished with a group, and so after each change of `applied` */
    pthread_cond_t turn;
    struct group *spare; /* empty group whose memory the next group uses, or NULL */
    /* Not guarded. */
    pthread_mutex_t checkpoint_lock; /* held during a checkpoint */
    /* number of bytes in groups that are not in their journals yet */
    _Atomic uint64_t unapplied_bytes;
};

annal_status annal__commit_init(struct commit *commit);
void annal__commit_done(struct commit *commit);

/*
 * Add a record to the current group, which copies its payload; fills in the record's place in the
 * group. The caller holds the session's lock, so a session's records have the order of its seqs.
 * Pass *out_group, which is a reference, to annal__commit_wait() or annal__commit_leave().
 * ANNAL_END: the group is full, and nothing was added; release the session, call
 * annal__commit_make_room(), and try again.
 */
annal_status annal__commit_add(struct commit *commit, struct group_record *record,
                               annal_slice header, annal_slice loose, annal_slice lines,
                               uint64_t events, uint64_t data_bytes, bool batch,
                               struct group **out_group, annal_error *err);

/*
 * Wait until the group is in its journals; if no thread writes it, this thread does. Also returns
 * ANNAL_ERR_UNKNOWN if the journal of this session was replaced by another file in the meantime:
 * the fate of the events is unknown.
 */
annal_status annal__commit_wait(struct commit *commit, struct group *group,
                                const struct session *session, annal_error *err);

/* Drop a reference to a group, without waiting for the group. */
void annal__commit_leave(struct commit *commit, struct group *group);

/* Wait until every record that was added before this call is applied or refused. Fails only if the
 * store accepts no more work. */
annal_status annal__commit_flush(struct commit *commit, annal_error *err);

/* Return how often groups have been refused. */
uint64_t annal__commit_refusals(struct commit *commit);

/* Return the error of refused events of level batch, once, unless a caller got it already; else
 * ANNAL_OK. */
annal_status annal__commit_take_loss(struct commit *commit, annal_error *err);

/*
 * After the store stopped: find the seq from which on it is unknown whether this session's events
 * were written, and the seq from which on they were refused; UINT64_MAX if no such event exists.
 * *out_why: why the store stopped, or why groups were last refused.
 */
void annal__commit_find_lost(struct commit *commit, const struct session *session,
                             uint64_t *out_unknown_seq, uint64_t *out_refused_seq,
                             annal_error *out_why);

/* If the current group is full, wait until another group is current. The caller holds no lock. */
annal_status annal__commit_make_room(struct commit *commit, annal_error *err);

/* Return the failure that stopped the store, or ANNAL_OK. */
annal_status annal__commit_check(struct commit *commit, annal_error *err);

/* Stop the store, so that it accepts no more work (rule 4). */
void annal__commit_fail(struct commit *commit, const annal_error *failure);

/* Write the events of late sessions, whose journals could not be written or synced, to the journals
 * again, from the log (failure.h, rule 5). Waits until no other thread is the leader. */
annal_status annal__commit_catch_up(struct commit *commit, annal_error *err);

/* Return why the log was last replaced after a failure that refused no events, and clear this;
 * status ANNAL_OK if it was not replaced since the last call. */
annal_error annal__commit_take_broken(struct commit *commit);

/* Replace the log by a larger log if a leader asked for one (commit.wish_bytes). Appends continue
 * during the first checkpoint. */
annal_status annal__commit_grow(struct commit *commit, annal_error *err);

/* Checkpoint everything, and record this in the log: after that nothing in the log is needed. */
annal_status annal__commit_rotate(struct commit *commit, annal_error *err);

/* As annal__commit_rotate(), and then overwrite the log, so that no earlier event can be read from
 * it. */
annal_status annal__commit_wipe(struct commit *commit, annal_error *err);
