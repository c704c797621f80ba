/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots: states of a session, saved compressed so that any past state is computed quickly.
 *
 * A snapshot is a row of the table snapshots in sessions.db; for a large snapshot the row names a
 * file. It is the state after one event, computed from one journal with certain packs. It is valid
 * only while that journal still has the same event at the snapshot's seq, and only for packs with
 * the same text. An invalid snapshot is skipped, and the next older snapshot is used. So snapshots
 * can be lost without harm, and never change an answer: they only save time. docs/format.md
 * describes their bytes.
 */
#ifndef ANNAL_SNAPSHOT_H
#define ANNAL_SNAPSHOT_H

#include <annal/journal.h>
#include <annal/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When a snapshot is due: as soon as one of these distances from the last snapshot is reached. 0
 * means the default. */
typedef struct annal_snapshot_policy {
    uint64_t every_events; /* distance in events; default 1,000 */
    uint64_t every_bytes;  /* distance in bytes of the journal; default 8 MiB */
    /* distance in ms, if at least one event was appended; default 300,000 (five minutes) */
    uint64_t every_ms;
    /*
     * Maximum of stored bytes of all snapshots of a session; default a tenth of its journal, but at
     * least 1 MiB. If they would take more, three of four snapshots are deleted, as often as
     * necessary, and each time the three distances above become four times as long for this
     * session. The new snapshot is stored before the old snapshots are deleted, so for a moment all
     * exist. A snapshot that does not fit even alone is not stored: earlier snapshots stay, and the
     * next attempt follows after four times the distance.
     */
    uint64_t bytes_max;
} annal_snapshot_policy;

typedef struct annal_snapshot_info {
    uint64_t seq;       /* seq of the last event that the state contains */
    uint64_t bytes;     /* size of the stored snapshot, in bytes */
    uint64_t raw_bytes; /* size of the uncompressed state, in bytes */
    /* seq of the snapshot on which this one is based: only differences from it are stored; 0:
     * none */
    uint64_t base_seq;
    int64_t created_us;
    bool in_file; /* whether the body is a file in STORE/snapshots/, because it is large */
    /* whether the snapshot is of another journal or other packs, so that it is not used; it is not
     * damaged */
    bool stale;
    /* whether it is stale because its journal ends before its event: lines were cut off, or a power
     * cut took events of level os */
    bool cut;
} annal_snapshot_info;

/* ---- In the background ---- */

typedef struct annal_snapshots annal_snapshots;

/*
 * Take snapshots of the sessions to which this store object appends, as they become due. A task of
 * the store's keeper does this, for 50 ms at a time (200 ms if much is to be folded and no thread
 * appends), and never delays an append. While the index lags behind these sessions, the task waits
 * for it, for a tenth of every_ms at most. Close *out_snapshots before the index. Any thread.
 *
 * annal_index_open() starts such a task with the default policy, and annal_index_close() ends it.
 * Call this function for another policy: it ends the default task of this index, and suspends the
 * default tasks of other indexes of this store object until annal_snapshots_close().
 *
 * The task also takes due snapshots that other processes did not take: processes that had no index
 * open, or died, or had no time. The store is searched for such sessions if the last search, by any
 * process, was at least a second ago, and at least a hundred times as long ago as it took.
 *
 * While the task is more than eight distances from the end of a session, as after a burst of
 * appends, it skips snapshots that are due less than half of the way to the end and less than
 * 16,000 events after the last snapshot, so that the newest state is soon near a snapshot. Skipped
 * snapshots are not taken later, because snapshots are stored in order of seq.
 * annal_snapshot_drop() and then annal_snapshot_take() take a snapshot wherever one is due.
 *
 * ANNAL_ERR_READONLY  the store is open for reading only
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_snapshots_open(annal_index *index,
                                                             const annal_snapshot_policy *policy,
                                                             annal_snapshots **out_snapshots,
                                                             annal_error *err);

/*
 * Take snapshots that are due, then end the task and free snapshots. This takes up to 50 ms, or
 * longer if no snapshot was taken until then; if the task was open for long, up to four times as
 * long as it was open; five seconds at most. The next process takes the snapshots that remain. NULL
 * is accepted.
 */
ANNAL_API void annal_snapshots_close(annal_snapshots *snapshots);

/* ---- Snapshots on request ---- */

/*
 * Take a snapshot at the session's last event now, due or not, and the snapshots that are due
 * before it. *out_info describes the newest snapshot. A valid snapshot that exists stays. policy
 * may be NULL: the defaults. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session, or it has no events of its own
 * ANNAL_ERR_LIMIT     the snapshot alone takes more than policy->bytes_max
 * ANNAL_ERR_BUSY      another process writes the index, and did not finish in time
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_snapshot_take(annal_index *index, annal_slice session,
                                                            const annal_snapshot_policy *policy,
                                                            annal_snapshot_info *out_info,
                                                            annal_error *err);

/*
 * Receive a snapshot. info is from its header. problem is NULL if the snapshot is valid, else a
 * phrase that says why it is not. Return 0 to continue; any other value stops, and is returned.
 * info and the slices are valid until this function returns.
 */
typedef int (*annal_snapshot_fn)(void *arg, annal_slice session, const annal_snapshot_info *info,
                                 const char *problem);

/*
 * Call fn for each snapshot of a session, or of all sessions if session is empty, sorted by session
 * and seq. Each snapshot is checked as when it is loaded: its header, its journal, its packs (the
 * core pack), the hash of its bytes, and that its pages are a state with the tables that Annal
 * creates. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_snapshot_each(annal_index *index, annal_slice session,
                                                            annal_snapshot_fn fn, void *arg,
                                                            annal_error *err);

/* Delete all snapshots of a session, or of all sessions if session is empty. Single snapshots
 * cannot be deleted, because others may be based on them. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_snapshot_drop(annal_index *index, annal_slice session,
                                                            annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
