/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session that this store object writes, or wrote.
 *
 * The struct exists from its first use until the store is closed. Its members that describe the
 * journal are valid while the state is SESSION_OWNED; otherwise another process may have written to
 * the journal since.
 *
 *      0 ────────── logged ────────── end        bytes of the journal
 *      in the log or synced  │ level os: in the page cache, and in `loose`
 *
 * (1) Everything below `logged` is in a group (durable or being written) or synced in the journal.
 *     The next record starts there (commit-log rule 3).
 * (2) `pending` records in groups contain bytes of this session that are not yet in the journal.
 *     While there are any, an append of level os joins the current group.
 * (3) While `marked`, a durable group records that bytes may follow in the journal which no sync
 *     covers. Only then does level os write to the journal directly. Before the group is released,
 *     `marked` is cleared.
 * (4) The descriptor stays open from a write until the sync that covers it: the kernel would not
 *     report a failed writeback to a descriptor that was opened later.
 */
#pragma once

#include "journal/context.h"
#include "journal/events_dir.h"
#include "journal/ids.h"
#include "journal/keeper_wake.h"
#include "journal/metrics.h"
#include "journal/slot_log.h"
#include "journal/wakeup_page.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

enum session_state { SESSION_FREE, SESSION_BUSY, SESSION_OWNED };

/* Whether the session's journal must be written again from the commit log of this process, which
 * alone contains all events of the session for certain (failure.h). */
enum session_late {
    LATE_NOT,
    LATE_SYNC, /* a sync of the journal failed: its bytes must be written again */
    LATE_BYTES /* the journal could not be written, and the session accepts no appends */
};

/* The end of a session, saved so that it can be restored after a refused group. */
struct session_tail {
    bool create_logged;
    uint64_t mark_group;
    uint64_t logged;
    uint64_t logged_h;
    uint64_t end;
    uint64_t seq;
    int64_t ts_us;
    uint64_t h;
    size_t loose_bytes;
    uint64_t loose_first_seq;
};

/* The events of a writer that may be lost after their append returned. Guarded by the session's
 * lock. */
struct session_loss {
    /* seq of the writer's last event of level batch; 0: the writer is not in session->lossy */
    uint64_t batched_seq;
    /* seq of the writer's first event that was refused; 0: none was, or it was reported */
    uint64_t lost_seq;
    /* whether an append has reported the loss; until the next append, annal_writer_sync() reports
     * it, too */
    bool is_reported;
    /* seq of the writer's first event of which it is unknown whether it was written, or 0 */
    uint64_t doubt_seq;
    struct session_loss *next; /* next in session->lossy */
};

#define SESSION_LOOSE_BYTES_MAX ((size_t)1 << 20)

struct session {
    /* Members that are set once, when the struct is created. */
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    size_t id_bytes;
    struct session *next;  /* next session in the same bucket of the table */
    struct session *older; /* next session in the list of all sessions */

    pthread_mutex_t lock;
    pthread_cond_t moved; /* signaled when state or in_use changes */

    /* Guarded by lock. */
    enum session_state state;
    uint32_t held_index;
    /* whether this process owns the session without a slot, and thus without an entry in a held
     * list (annal__session_seize()) */
    bool unlisted;
    /* time in us before which this process does not take the session again, because another process
     * wants it (monotonic) */
    int64_t yield_until_us;
    bool refused; /* whether the session refuses all appends until the store is opened again */
    enum session_late late;
    /* why the session refuses appends; its status is 0 if the session accepts appends */
    const annal_error *refusal;
    /* end of the session's lease (lease.h); INT64_MAX: no lease; 0: not read yet */
    int64_t lease_until_us;
    /* whether the running annal__failure_catch_up() has written this session's journal already */
    bool redone;
    /* Numbers of the last rollbacks that restored create_logged and mark_group (rolled_marks), and
     * the end of the journal (rolled_back), so that each rollback does this once. */
    uint64_t rolled_marks;
    uint64_t rolled_back;
    /* list of the writers with events of level batch that are not durable yet */
    struct session_loss *lossy;
    /* whether a thread is syncing the session's descriptor, which must then stay open */
    bool in_use;
    int fd; /* descriptor of the journal, -1: not open */
    dev_t device;
    ino_t inode;
    const struct codec *codec; /* format of the journal */
    char *path;                /* path of the journal, with the suffix of its format */
    uint8_t file[FRAME_FILE_ID_BYTES];
    /* whether the journal's header survives a crash: it is in the commit log, or in the synced
     * journal */
    bool create_logged;
    bool exists;       /* whether the journal exists with its header */
    struct buf header; /* header frame of a new journal */
    uint64_t logged;
    uint64_t logged_h; /* hash of the last frame before `logged` */
    uint64_t end;
    uint64_t seq;
    int64_t ts_us;
    uint64_t h;
    struct buf loose;
    /* seq of the first event in `loose`, the bytes of level os that are not durable */
    uint64_t loose_first_seq;
    uint32_t pending;
    /* number of the group with the session's last record, and the record's index in this group */
    uint64_t last_group;
    size_t last_record;
    /* whether a mark of level os is in the log, or in a group that is still pending (rule 3) */
    bool marked;
    /* number of the group with the session's last mark of level os, or 0 if a later record made the
     * mark unnecessary */
    uint64_t mark_group;
    bool dirty; /* whether the journal has bytes that no sync has covered */
    /* offset up to which the kernel was asked to write the journal to the disk, without a sync */
    uint64_t written_back;
    struct ids ids;
    bool ids_loaded;
    /* value of sessions->changes when the journal was last written, so that tasks find sessions
     * that changed */
    uint64_t changed;
    /* time in us when the journal was last written (monotonic); the journals that were idle longest
     * are closed first */
    int64_t used_us;
};

#define SESSION_BUCKETS 4096u

/* The sessions that this store object has used. */
struct session_table {
    const struct context *context;
    struct metrics *metrics;
    struct keeper_alarm *alarm;
    struct wakeup *wakeup;
    struct events_dir *events;
    struct own_log *own_log;  /* whose held list names the sessions that this process owns */
    uint32_t descriptors_max; /* number of journals that may be open */

    pthread_mutex_t lock;
    /* sessions by the hash of their ids; guarded by lock */
    struct session *buckets[SESSION_BUCKETS];
    struct session *newest; /* head of the list of all sessions; guarded by lock */
    uint32_t open_journals; /* guarded by lock */

    /* number of changes of journals so far; session->changed refers to it */
    _Atomic uint64_t changes;
    /* number of sessions with bytes of level os that are not durable (level_os.h) */
    _Atomic uint32_t loose;
    /* number of sessions whose journal must be written again (failure.h) */
    _Atomic uint32_t late;
    /* time in us when events were last written to a journal (monotonic) */
    _Atomic int64_t appended_us;
};

/* Set the reason why the session refuses appends. The caller holds the session's lock. */
void annal__session_set_refusal(struct session *session, const annal_error *why);

/* Tell the writers of a session that its events of level batch from this seq on were refused, so
 * that their next call fails. The caller holds the session's lock. */
void annal__session_lose(struct session *session, uint64_t seq);

/* Tell the writers of a session that the fate of their events is unknown, because another file has
 * the journal's name. The caller holds the session's lock. */
void annal__session_doubt(struct session *session);

/* Return the struct of a session, or NULL if no caller used it yet. */
struct session *annal__session_find(struct session_table *sessions, annal_slice id);

/* Return the struct of a session, which is created at first use and exists until the store is
 * closed. */
struct session *annal__session_get(struct session_table *sessions, annal_slice id,
                                   annal_error *err);

/* Call fn for each session that this process has used; fn may lock the session. If fn returns below
 * 0, stop, and return this result. */
typedef annal_status (*session_fn)(void *arg, struct session *session, annal_error *err);
annal_status annal__session_each(struct session_table *sessions, session_fn fn, void *arg,
                                 annal_error *err);
void annal__sessions_done(struct session_table *sessions);

annal_slice annal__session_id(const struct session *session);
