/*
 * Group commit: one sync for everybody who is waiting.
 *
 * Appenders put their lines into the current group. Who waits and finds nobody leading leads: it
 * closes the group, writes it to the commit log, syncs, writes the same bytes to the journals,
 * wakes those it covered, and hands on the lead. Rules 1 to 6 of the commit log, and:
 *
 * (1) durable <= written, and groups become durable and applied in order of their number.
 * (2) At most one thread leads. It holds no mutex over a system call; who applies holds that of the
 *     session that it writes, and no other.
 * (3) Bytes enter a journal after their group's sync returned 0, in order of group.
 * (4) Every group has one of three ends: durable, refused (it never happened, and never will),
 *     unknown. A group that could not be written is refused with all that was added behind it;
 *     failure.h says how that is made certain. When it cannot be, the store stops: no more work is
 *     taken. Then the group under way is unknown, unless nothing of it was written, and what is
 *     behind it is refused.
 */
#ifndef JOURNAL_COMMIT_H
#define JOURNAL_COMMIT_H

#include "journal/base/buf.h"
#include "journal/log.h"
#include "journal/session.h"

#include <stdatomic.h>

#define GROUP_BYTES_SOFT ((size_t)8 << 20) /* a group that has so many takes no more */

/* Bytes of one session in a group; none with neither create nor mark says that it is durable so
 * far. */
struct group_record {
    struct session *session;
    bool create; /* the journal's header comes first in the bytes */
    bool mark;   /* behind them bytes of level os may follow: see level_os.h */
    size_t header_bytes;
    uint64_t offset; /* in the journal, of what follows the header */
    size_t at;       /* in the payload */
    size_t length;   /* header included */
    size_t loose;    /* so many of the first ones stand in the journal already */
    uint64_t first_seq;
    uint64_t last_seq;
    uint64_t h_before;
    uint64_t h_after;
    struct session_tail before; /* where the session stood */
    bool replaced;              /* applying it found another file in the journal's place */
    bool behind;                /* its bytes are not in the journal: see failure.h */
};

/*
 * Those who wait for a group sleep on its word and do not meet at the lock again: with many of them
 * that would cost more than the sync.
 */
enum group_word {
    GROUP_DONE = 1, /* applied, or failed: see outcome */
    GROUP_LEAD = 2  /* nobody leads: whoever takes this bit away tries to */
};

struct group {
    uint64_t number;
    struct buf payload;
    struct group_record *records;
    size_t count;
    size_t room;
    uint32_t appends;
    uint64_t events;
    uint64_t data_bytes;
    int64_t first_us; /* monotonic: when the first append of level batch joined; 0: none */
    uint32_t references;
    annal_status outcome;  /* below 0: refused, or unknown */
    bool replaced;         /* some record is */
    annal_error failure;   /* why */
    _Atomic uint32_t word; /* futex; what of enum group_word is true by now */
};

struct commit {
    pthread_mutex_t lock;
    /* Guarded by lock. */
    struct group *current; /* still takes appends */
    struct group *flying;  /* being written, or NULL */
    struct group *last;    /* it was flying when the store stopped; NULL: none was, or it goes on */
    bool leading;
    uint32_t last_appends; /* in the group that was led last */
    uint64_t durable;
    uint64_t applied;
    uint64_t released;   /* every epoch up to this one is checkpointed */
    uint64_t full;       /* every epoch up to this one has left its region: wants a checkpoint */
    uint64_t wish_bytes; /* the regions that a larger log should have; 0: ours will do */
    uint64_t rotated;    /* every group up to this one is released, and the log says so itself */
    int64_t epoch_us[LOG_REGIONS]; /* monotonic: when the epoch of each region was begun */
    bool failed;                   /* no more work is taken */
    bool refusing;                 /* for a moment: sessions are being taken back */
    annal_error failure;
    uint64_t refusals;   /* how often groups were refused */
    bool lost;           /* a refused group had events of level batch, and nobody was told */
    annal_error loss;    /* why the last refused group was */
    annal_error broken;  /* why the last log without a group of events was replaced */
    pthread_cond_t turn; /* nobody leads any more; applied moves only before that */
    struct group *spare; /* memory to use again */
    /* Not guarded. */
    _Atomic uint64_t unapplied_bytes; /* in groups, and not in their journals yet */
};

annal_status annal__commit_init(struct commit *commit);
void annal__commit_done(struct commit *commit);

/*
 * Put a record into the current group; its place there is filled in, and payload copied. The
 * session's lock is held, so the order of its records is that of its seqs. *out_group is to be
 * passed to one of the two below; it carries a reference. ANNAL_END: the group is full and nothing
 * was added; let go of the session, call annal__commit_make_room(), and begin again.
 */
annal_status annal__commit_add(annal_store *store, struct group_record *record, annal_slice header,
                               annal_slice loose, annal_slice lines, uint64_t events,
                               uint64_t data_bytes, bool batch, struct group **out_group,
                               annal_error *err);

/*
 * Wait until the group is applied, leading if nobody does. ANNAL_ERR_UNKNOWN also when the journal
 * of this session was replaced by another file meanwhile: nobody can say what became of the events.
 */
annal_status annal__commit_wait(annal_store *store, struct group *group,
                                const struct session *session, annal_error *err);

/* Give the reference up without waiting. */
void annal__commit_leave(annal_store *store, struct group *group);

/*
 * See everything that was added before to its end: applied, or refused. Fails only when the store
 * takes no more work.
 */
annal_status annal__commit_flush(annal_store *store, annal_error *err);

/* How often groups were refused so far. */
uint64_t annal__commit_refusals(annal_store *store);

/* The loss of batch events that nobody was told yet: tells it, once. */
annal_status annal__commit_take_loss(annal_store *store, annal_error *err);

/*
 * Once the store takes no more work: from which seq on this session's events are unknown, and from
 * which on they were refused by that; UINT64_MAX: none are. *out_why: why it stopped, or groups
 * were refused last.
 */
void annal__commit_find_lost(annal_store *store, const struct session *session,
                             uint64_t *out_unknown_seq, uint64_t *out_refused_seq,
                             annal_error *out_why);

/* If the current group is full, wait until it is not the current one. No lock is held. */
annal_status annal__commit_make_room(annal_store *store, annal_error *err);

/* The failure that stopped the store, or ANNAL_OK. */
annal_status annal__commit_check(annal_store *store, annal_error *err);

/* Stop the store: rule (4). */
void annal__commit_fail(annal_store *store, const annal_error *failure);

/* Catch up with late sessions, alone: see failure.h. */
annal_status annal__commit_catch_up(annal_store *store, annal_error *err);

/* Why the last log without a group of events was replaced, if one was since the last call. */
annal_error annal__commit_take_broken(annal_store *store);

/* Put a larger log in the place of ours, if the leader wished for one. Made while others append. */
annal_status annal__commit_grow(annal_store *store, annal_error *err);

/* Checkpoint everything and say so in the log: afterwards the log holds nothing that is needed. */
annal_status annal__commit_rotate(annal_store *store, annal_error *err);

/* The same, and then overwrite it: of what was written before nothing is left in it. */
annal_status annal__commit_wipe(annal_store *store, annal_error *err);

#endif
