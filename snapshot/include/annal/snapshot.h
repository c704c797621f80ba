/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots: the state of a session at one seq, compressed, so that any past state is near.
 *
 * A snapshot is a row of the snapshots table in sessions.db (for a large one the row names a file),
 * and is bound to the journal from which it was computed. It counts only while that journal still
 * has, at the snapshot's seq, the very event that it was taken at, and only for packs with the same
 * text. One that does not count is skipped for the next older one. So snapshots are never precious,
 * and never change an answer: they only save time. docs/format.md describes their bytes.
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
    uint64_t every_bytes;  /* bytes of journal between snapshots; default 8 MiB */
    uint64_t every_ms;     /* with at least one event; default 300,000: five minutes */
    /*
     * All snapshots of a session together, as stored; default a tenth of its journal, but at least
     * 1 MiB. If they would take more, three of four are deleted, as often as necessary, and from
     * then on the three distances above are that much longer for this session. While one replaces
     * others, all exist for a moment. One that does not even fit alone is not stored: earlier
     * snapshots stay, and the next attempt follows four times as far on.
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
    /* whether it belongs to another journal or other packs: not used, and not damaged */
    bool stale;
    /* stale, because its journal ends before the event of the snapshot: lines were cut off, or a
     * power cut took some of level os */
    bool cut;
} annal_snapshot_info;

/* ---- In the background ---- */

typedef struct annal_snapshots annal_snapshots;

/*
 * Take snapshots of the sessions that this store object appends to, as they become due: a task of
 * the store's keeper, which never delays an append, 50 ms at a time. While the index that follows
 * these sessions lags, it waits, for a tenth of every_ms at most. Close it before the index. Any
 * thread.
 *
 * annal_index_open() does this with the default policy, and annal_index_close() ends it. Call this
 * for another policy: it ends the policy of this index, and suspends the policy of other indexes of
 * this store object until annal_snapshots_close().
 *
 * Snapshots that other processes left are taken too: processes that had no index open, or died, or
 * had no time. The store is searched for it if the last search, by whatever process, is at least a
 * second ago, and at least a hundred times as long ago as it took.
 *
 * While it is more than eight distances from the end, as after a burst of appends, it skips due
 * places that are less than half of the way to the end and less than 16,000 events after the last
 * snapshot, so that soon the newest state is near. Those places stay without a snapshot, because
 * snapshots are stored in order, and catching up later does not fill them in. annal_snapshot_drop()
 * and then annal_snapshot_take() leave a snapshot at every place.
 *
 * ANNAL_ERR_IO  the store is open for reading only
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_snapshots_open(annal_index *index,
                                                             const annal_snapshot_policy *policy,
                                                             annal_snapshots **out_snapshots,
                                                             annal_error *err);

/*
 * Take what is due, then stop. This takes 50 ms at most, or until one more is taken; if this was
 * open for long, up to four times as long as that, five seconds at most. The next process takes
 * what is left. NULL is accepted.
 */
ANNAL_API void annal_snapshots_close(annal_snapshots *snapshots);

/* ---- By hand ---- */

/*
 * Take a snapshot at the session's last event now, due or not, and those that are due on the way
 * there. An existing valid snapshot stays. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session, or it has no events
 * ANNAL_ERR_LIMIT     it alone takes more than policy->bytes_max
 * ANNAL_ERR_BUSY      another process writes the index, and did not finish in time
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_snapshot_take(annal_index *index, annal_slice session,
                                                            const annal_snapshot_policy *policy,
                                                            annal_snapshot_info *out_info,
                                                            annal_error *err);

/*
 * info: what the snapshot says of itself. problem: NULL if it counts, else a phrase that says why
 * not. Return 0 to continue; any other value stops, and is returned. Slices are valid until it
 * returns.
 */
typedef int (*annal_snapshot_fn)(void *arg, annal_slice session, const annal_snapshot_info *info,
                                 const char *problem);

/*
 * The snapshots of a session, or of all if session is empty, by session and seq. Each is checked as
 * loading would: header, journal, packs (the core pack), the hash of its bytes, and that its pages
 * are a state with the tables that Annal creates. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_snapshot_each(annal_index *index, annal_slice session,
                                                            annal_snapshot_fn fn, void *arg,
                                                            annal_error *err);

/*
 * Delete the snapshots of a session, or of all if session is empty. Those that others are stored
 * against are deleted too, so it is all or nothing. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_snapshot_drop(annal_index *index, annal_slice session,
                                                            annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
