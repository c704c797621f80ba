/*
 * Snapshots: the state of a session at one seq, compressed, so that any past state is near.
 *
 * A snapshot is a row of the snapshots table in sessions.db (a large one: a file that the row
 * names), and is bound to the journal that it was made from. It counts only while that journal
 * still holds, at the snapshot's seq, the very event that it was taken at, and only for packs of
 * the same text. What does not count is passed over for the next older one. So snapshots are never
 * precious, and never change an answer: they only make it quicker. snapshot/container.c says what
 * is in one.
 */
#ifndef ANNAL_SNAPSHOT_H
#define ANNAL_SNAPSHOT_H

#include <annal/journal.h>
#include <annal/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When a snapshot is due: as soon as one of these has passed since the last. Zero means default. */
typedef struct annal_snapshot_policy {
    uint64_t every_events; /* default 1,000 */
    uint64_t every_bytes;  /* of journal; default 8 MiB */
    uint64_t every_ms;     /* with at least one event; default 300,000: five minutes */
    /*
     * All snapshots of a session together, as stored; default a tenth of its journal, but 1 MiB at
     * least. When they would take more, three of four go, as often as it takes, and from then on
     * the three distances above are so much longer for this session. While one replaces others,
     * all stand for a moment. One that does not even fit alone is not stored: those before it
     * stay, and the next attempt comes four times as far on.
     */
    uint64_t bytes_max;
} annal_snapshot_policy;

typedef struct annal_snapshot_info {
    uint64_t seq;       /* the state after this event */
    uint64_t bytes;     /* stored */
    uint64_t raw_bytes; /* the state, uncompressed */
    uint64_t base_seq;  /* stored as what differs from the snapshot at this seq; 0: stored whole */
    int64_t created_us;
    bool in_file; /* in STORE/snapshots/, because it is large */
    bool stale;   /* of another journal or of other packs: does not count, and is no damage */
    bool cut;     /* stale, for its journal ends before the event that it was made after: lines were
                     cut off, or a power cut took some of level os */
} annal_snapshot_info;

/* ---- In the background ---- */

typedef struct annal_snapshots annal_snapshots;

/*
 * Take snapshots of the sessions that this store object appends to, as they become due: a chore of
 * the store's keeper, never in an append's way, 50 ms at a time. Close it before the index. Any
 * thread.
 *
 * annal_index_open() does this with the default policy, and annal_index_close() ends it; call this
 * for another policy, which ends that of this index, and has it wait in other indexes of this store
 * object until annal_snapshots_close().
 *
 * What other processes left is taken too: those that had no index open, or died, or had no time. A
 * store is looked through for it when the last look, by whatever process, is a second ago and a
 * hundred times as long as that look took.
 *
 * While it is more than eight distances behind, as after a burst of appends, it passes over due
 * places that are not half the way to the end, so that the newest state is near soon. Those stay
 * without one, for snapshots are stored in order, and catching up later fills nothing in behind
 * them: a state in the first half of a burst is up to half the burst's events away from a snapshot.
 * annal_snapshot_drop() and then annal_snapshot_take() leave one at every place.
 *
 * ANNAL_ERR_IO  the store is open for reading only
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_snapshots_open(annal_index *index,
                                                             const annal_snapshot_policy *policy,
                                                             annal_snapshots **out_snapshots,
                                                             annal_error *err);

/*
 * Take what is due, then stop. This takes 50 ms at most, or until one more is taken; where this was
 * open for long, up to four times as long as that, five seconds at most. What is left, the next
 * process takes. NULL is accepted.
 */
ANNAL_API void annal_snapshots_close(annal_snapshots *snapshots);

/* ---- By hand ---- */

/*
 * Take a snapshot at the session's last event now, due or not, and those that are due on the way
 * there. One that stands there already, and counts, stays. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session, or it has no events
 * ANNAL_ERR_LIMIT     it alone takes more than policy->bytes_max
 * ANNAL_ERR_BUSY      somebody else writes the index, and did not finish in time
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_snapshot_take(annal_index *index, annal_slice session,
                                                            const annal_snapshot_policy *policy,
                                                            annal_snapshot_info *out_info,
                                                            annal_error *err);

/*
 * info: what the snapshot says of itself. problem: NULL when it counts, else why not, in one
 * phrase. Return 0 to go on; anything else stops and is handed through. Slices live until it
 * returns.
 */
typedef int (*annal_snapshot_fn)(void *arg, annal_slice session, const annal_snapshot_info *info,
                                 const char *problem);

/*
 * The snapshots of one session, or of all when session is empty, by session and seq. Each is looked
 * at as loading would: header, journal, packs (the core pack), and that all its bytes decompress.
 * Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_snapshot_each(annal_index *index, annal_slice session,
                                                            annal_snapshot_fn fn, void *arg,
                                                            annal_error *err);

/*
 * Delete the snapshots of one session, or of all when session is empty. Those that others are
 * stored against go too, so it is all or nothing. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_snapshot_drop(annal_index *index, annal_slice session,
                                                            annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
