/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store: a directory that contains everything. docs/format.md describes its files.
 *
 * Open one store object per directory and keep it: it owns a commit log, the sessions that it
 * writes, and one thread, the keeper, which checkpoints, releases sessions that other processes
 * want, and runs the tasks of the index and of the snapshots. Work that is large at once, as
 * writing or syncing the journals of many sessions, is shared with threads that end with it. All of
 * them block all signals: those are for the program's threads.
 */
#ifndef ANNAL_STORE_H
#define ANNAL_STORE_H

#include <annal/event.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annal_store annal_store;

/* When an append counts as done. */
typedef enum annal_level {
    ANNAL_LEVEL_DEFAULT = 0, /* the next wider setting: append, writer, store; finally sync */
    ANNAL_LEVEL_SYNC = 1,    /* returns when durable: survives a power cut */
    /* returns at once; durable within batch_ms, or when annal_sync() returns */
    ANNAL_LEVEL_BATCH = 2,
    /*
     * in the page cache: survives the end of the process. A power cut leaves a prefix of it. For
     * bulk into few sessions: written once; annal_sync() now and then makes all of it durable. Into
     * many sessions at once, batch is faster: a new journal costs a sync here
     */
    ANNAL_LEVEL_OS = 3
} annal_level;

typedef struct annal_store_options {
    bool create;         /* create the directory, not those above it, and what is in it */
    bool read_only;      /* never write; recovery is left to others */
    bool no_keeper;      /* no permanent thread; call annal_keep() now and then */
    annal_level level;   /* default: sync */
    annal_format format; /* format of new journals; default: JSON lines */
    uint32_t batch_ms;   /* default: 10 */
    /*
     * how long to wait for another process: for a session that it owns, for a lock, for a log that
     * it is recovering; default: 10,000
     */
    uint32_t wait_ms;
    /* a commit log region may grow to this; default: 64 MiB, least: 1 MiB */
    uint64_t region_bytes;
    /*
     * of the disk: appends are refused that would leave less free; default: 16 MiB, but at most a
     * sixteenth of the disk. 1 keeps nothing free
     */
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
 * Open a store, and recover what processes that died left in their commit logs. Any thread.
 *
 * If another process is recovering some of it, wait for that, up to wait_ms, but no longer than 250
 * ms after its last progress: it may be stopped. Then the log callback gets a message that says
 * which durable events cannot be read until it continues.
 *
 * ANNAL_ERR_NOTFOUND     no store exists at path, and create is false; or no directory to create it
 *                        in
 * ANNAL_ERR_IO           the directory cannot be read, or, without read_only, not be written
 * ANNAL_ERR_UNSUPPORTED  a filesystem that only read_only or unsafe_filesystem opens; a store of a
 *                        newer version, which read_only opens with a warning, as far as this
 *                        library can read it; or a system that does not tell its boot id (no
 *                        /proc), where read_only works
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_store_open(const char *path,
                                                         const annal_store_options *options,
                                                         annal_store **out_store, annal_error *err);

/*
 * Make everything durable, checkpoint, release all sessions, free. All writers, cursors and other
 * objects of this store must be closed before. Frees in any case; reports events that could not be
 * written durably, and that a sync of the commit log failed while the store was closed, even if
 * nothing was lost by it. (An earlier failure was reported to the appends of its group, or to the
 * log function.) NULL is accepted. One thread, after all others have left the store.
 *
 * ANNAL_ERR_INVALID  writers are still open: they cannot be used any more, nor be closed. All else
 *                    was done
 */
ANNAL_API annal_status annal_store_close(annal_store *store, annal_error *err);

/* The directory, as an absolute path. Valid as long as the store. Any thread. */
ANNAL_API const char *annal_store_path(const annal_store *store);

/*
 * Return when every append of this store object that has returned is durable, whatever its level:
 * one sync, and one more for each journal that has more than 256 KiB of level os. Any thread.
 *
 * ANNAL_ERR_IO  some events could not be written durably. Batch events that were refused after
 *               their append returned never happened; this is reported once
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_sync(annal_store *store, annal_error *err);

/* One round of the keeper's work, for stores opened with no_keeper. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_keep(annal_store *store, annal_error *err);

/* Sync all journals that this store object wrote, and empty its commit log. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_checkpoint(annal_store *store, annal_error *err);

/* ---- Sessions ---- */

typedef struct annal_session_info {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    char file[33]; /* id of the journal file, 32 hex digits; "" if the header is damaged */
    /* id of the journal that this journal replaced; "": none */
    char replaces[33];
    annal_format format; /* format of the journal */
    int64_t created_us;  /* from the header; 0 if it is damaged */
    uint64_t bytes;      /* size of the journal file */
    /* seq of the last event with a correct hash; fork_seq for a fork without own events; 0: none */
    uint64_t last_seq;
    int64_t last_ts_us; /* 0 if this journal has no such event */
    uint64_t last_h; /* hash of the last line of this journal: the header's, if it has no event */
    /* end of the last line with a correct hash; less than bytes if other bytes follow it */
    uint64_t end_offset;
    /* such a tail is a piece of an event that a crash left: the next owner cuts it */
    bool torn;
    /*
     * Of a fork: the session in whose journal the history up to fork_seq ends, the last event that
     * the two share, and its hash. "" and 0 for a session that is not a fork. A fork of a fork
     * names the session that really contains event fork_seq, not always the session from which it
     * was forked.
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

/* Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal_session_fn)(void *arg, annal_slice session, uint64_t journal_bytes);

/*
 * Call fn for every journal in the store, sorted by session id. This is a directory listing and one
 * stat each, just before its call; in a store of 8,192 journals or more all of them before the
 * first call, half of them on a thread that ends with it. No journal is opened, so files that were
 * copied or renamed are included: 'annal doctor' says which. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_store_sessions(annal_store *store,
                                                             annal_session_fn fn, void *arg,
                                                             annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
