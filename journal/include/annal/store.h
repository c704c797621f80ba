/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store: a directory that contains everything. docs/format.md describes its files.
 *
 * Open one store object per directory and keep it: it owns a commit log, the sessions that it
 * writes, and one thread, the keeper, which checkpoints, releases sessions that other processes
 * want, and runs the tasks of the index and of the snapshots. Large work, such as writing or
 * syncing the journals of many sessions, is shared with threads that end after it. All these
 * threads block all signals, which the threads of the program handle.
 */
#ifndef ANNAL_STORE_H
#define ANNAL_STORE_H

#include <annal/event.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annal_store annal_store;

/* The point at which an append returns. */
typedef enum annal_level {
    /* the level of the append, or else of the writer, or else of the store; otherwise sync */
    ANNAL_LEVEL_DEFAULT = 0,
    ANNAL_LEVEL_SYNC = 1, /* after the events are durable: they survive a power cut */
    /* at once; the events are durable within batch_ms, or when annal_store_sync() returns */
    ANNAL_LEVEL_BATCH = 2,
    /*
     * after the events are in the page cache: they survive the end of the process. After a power
     * cut, only the events before the first lost event remain. For much data in few sessions: it is
     * written once, and annal_store_sync() makes it durable. For many sessions batch is faster,
     * because at level os each new journal costs a sync
     */
    ANNAL_LEVEL_OS = 3
} annal_level;

typedef struct annal_store_options {
    /* create the store's directory and its content if they are missing; its parent must exist */
    bool create;
    bool read_only;      /* never write; other processes recover the store */
    bool no_keeper;      /* start no permanent thread; call annal_store_keep() repeatedly instead */
    annal_level level;   /* default: sync */
    annal_format format; /* format of new journals; default: JSON lines */
    uint32_t batch_ms;   /* time in ms until an append of level batch is durable; default: 10 */
    /* time in ms to wait for another process: for a session that it owns, for a lock, for a log
     * that it is recovering; default: 10,000 */
    uint32_t wait_ms;
    /* size in bytes to which a region of the commit log may grow; default: 64 MiB, at least 1
     * MiB */
    uint64_t region_bytes;
    /* bytes of the disk to keep free: appends that would leave less are refused; default: 16 MiB,
     * but at most a sixteenth of the disk. 1 keeps nothing free */
    uint64_t keep_free_bytes;
    /*
     * write on a filesystem where locks, syncs or shared memory may not work (FUSE, NFS, 9P).
     * Nothing is promised there: after a crash, or with a second process or host, acknowledged
     * events may be lost and journals damaged
     */
    bool unsafe_filesystem;
    annal_log_fn log;
    void *log_arg;
} annal_store_options;

/*
 * Open a store, and write to the journals what the commit logs of dead processes contain. Any
 * thread.
 *
 * If another process is recovering such a commit log, wait for it, up to wait_ms, but at most 250
 * ms after its last progress, because it may be stopped. If it has not finished, the log callback
 * receives a message that says which durable events cannot be read until it continues.
 *
 * ANNAL_ERR_NOTFOUND     no store exists at path, and create is false; or the
 *                        parent directory does not exist
 * ANNAL_ERR_IO           the directory cannot be read, or, without read_only, not be written
 * ANNAL_ERR_READONLY     the filesystem is read-only, and read_only is false
 * ANNAL_ERR_UNSUPPORTED  a filesystem that only read_only or unsafe_filesystem opens; a store of a
 *                        newer version, which read_only opens with a warning, as far as this
 *                        library can read it; or a system that does not tell its boot id (no
 *                        /proc), where read_only works
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_store_open(const char *path,
                                                         const annal_store_options *options,
                                                         annal_store **out_store, annal_error *err);

/*
 * Make everything durable, checkpoint, release all sessions, and free the store object. All
 * writers, cursors and other objects of this store must be closed before. The store object is freed
 * even after a failure. Fails if events could not be written durably, and if a sync of the commit
 * log failed while the store was closed, even if no event was lost. (An earlier failure was
 * reported to the appends of its group, or to the log callback.) NULL is accepted. One thread,
 * while no other thread uses the store.
 *
 * ANNAL_ERR_INVALID  writers are still open: they cannot be used or closed any more. Everything
 *                    else was done
 */
ANNAL_API annal_status annal_store_close(annal_store *store, annal_error *err);

/* Return the path of the store's directory, as an absolute path. Valid as long as the store. Any
 * thread. */
ANNAL_API const char *annal_store_path(const annal_store *store);

/*
 * Return when every append of this store object that has returned is durable, whatever its level:
 * it takes one sync, and one more for each journal with more than 256 KiB of events of level os.
 * Any thread.
 *
 * ANNAL_ERR_IO  some events could not be written durably. Events of level batch that were refused
 *               after their append returned are reported once
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_store_sync(annal_store *store, annal_error *err);

/* Do one round of the keeper's work, for a store opened with no_keeper. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_store_keep(annal_store *store, annal_error *err);

/* Sync all journals that this store object wrote, and empty its commit log. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_store_checkpoint(annal_store *store,
                                                               annal_error *err);

/* ---- Sessions ---- */

typedef struct annal_session_info {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    char file[33]; /* file id of the journal, 32 hex digits; "" if the header is damaged */
    /* id of the journal that this journal replaced; "": none */
    char replaces[33];
    annal_format format; /* format of the journal */
    int64_t created_us;  /* time when the journal was created; 0 if the header is damaged */
    uint64_t bytes;      /* size of the journal file */
    /* seq of the last valid event; for a fork without events of its own, fork_seq; 0: no event */
    uint64_t last_seq;
    int64_t last_ts_us; /* time of the last event; 0 if this journal has no valid event */
    uint64_t last_h;    /* hash of the last event, or of the header if the journal has no event */
    /* offset of the end of the last valid event; less than `bytes` if other bytes follow it */
    uint64_t end_offset;
    /* whether the bytes from end_offset on are a piece of an event that a crash left, which the
     * next owner cuts off */
    bool torn;
    /*
     * For a fork: the session whose journal contains event fork_seq, the last event that the two
     * share, and the hash of this event. "" and 0 for a session that is not a fork. A fork of a
     * fork names the session that really contains event fork_seq, not always the session from which
     * it was forked.
     */
    char fork_session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t fork_seq;
    uint64_t fork_h;
    uint64_t first_seq; /* seq of the first event in this journal: fork_seq + 1 */
} annal_session_info;

/*
 * Read the header and the last lines of a journal. Reads a few KB. Any thread.
 *
 * ANNAL_ERR_CORRUPT  the file is the journal of another session, copied or renamed
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_session_info_get(annal_store *store,
                                                               annal_slice session,
                                                               annal_session_info *out_info,
                                                               annal_error *err);

/* Receive a session, and the size of its journal. Return 0 to continue; any other value stops, and
 * is returned. */
typedef int (*annal_session_fn)(void *arg, annal_slice session, uint64_t journal_bytes);

/*
 * Call fn for every journal in the store, sorted by session id. This lists a directory, and
 * examines each file just before its call; in a store of 8,192 journals or more, all files before
 * the first call, half of them on another thread. No journal is opened, so files that were copied
 * or renamed are included; 'annal doctor' lists these. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_session_each(annal_store *store, annal_session_fn fn,
                                                           void *arg, annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
