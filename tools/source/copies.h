/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of the logs that were imported, byte for byte, so that an agent can get a log back that it
 * deleted or rewrote.
 *
 * (1) The copies are files in STORE/sources; journal/sys/sources.h describes their names. In the
 *     name, LOG is the XXH3-64 of the log's path as 16 hex digits.
 * (2) A log that only grows adds records to its file. A log that was cut short, rewritten or
 *     replaced begins a new generation. The generation before it is renamed to SESSION.LOG.N, where
 *     N is its number from 1.
 * (3) A file consists of records. A record has a header of 40 bytes, all numbers little-endian, and
 *     then its payload:
 *
 *       u32 magic "ANS1"   u8 kind   u8[3] zeros   u32 bytes of payload   u64 bytes of the log
 *       u64 chain          u32 zeros   u64 check
 *
 *     COPIES_INFO   payload: JSON with the log's path, its kind, its sessions, and the number of
 *                   the generation; the first record. If the log is not a file, also its form and
 *                   the hash of its pieces (copies_text.h)
 *     COPIES_BYTES  payload: a zstd frame of bytes of the log, with the COPIES_WINDOW bytes of the
 *                   log before them as its prefix
 *     COPIES_SAME   payload: u64 offset of the same bytes in the generation before
 *     COPIES_MARK   payload: i64 mtime_ns   i64 ctime_ns   u64 inode   i64 copied_us   u32 mode
 *                   u32 synced   u8[16] boot: at copied_us the log was the bytes before this record
 *
 *     chain is the XXH3-64 of the record's bytes of the log, or of the payload of INFO and MARK,
 *     with the chain of the record before as seed: it proves everything before it. check is the
 *     XXH3-64 of the first 32 bytes of the header.
 * (4) Only the bytes before the last mark count, because only they were the whole log at one
 *     moment: the log had the same times and size before and after it was read, and no write was so
 *     recent that its time would not show. The next copy removes what a killed process left after
 *     them. At last the file gets the time of the log.
 * (5) A mark of this boot of the system is trusted. After another boot the file is read and proved
 *     before anything is added to it, because a power cut may have lost a part.
 * (6) A generation refers to the generation before, and that one to its own, at most COPIES_DEEP
 *     times, and less often for large logs: then a generation has all of its bytes.
 * (7) The file of an older generation gets the time 0 when the change after it was noted
 *     (tools/import/changes.h).
 */
#pragma once

#include "journal/sys/sources.h"
#include "tools/source/copies_text.h"

#include <annal/store.h>

#include <stdbool.h>
#include <sys/types.h>

/* ---- Writing ---- */

/* A session of a log that is copied. */
struct copies_session {
    const char *id;
    /* buffer of 33 bytes with the id of the session's journal. "": copies_take() fills it in. If it
     * differs from the current id, the session was deleted. */
    char *journal;
};

struct copies_log {
    const char *path; /* absolute path without symbolic links */
    const char *kind;
    /* sessions with events of the log; the first gives the copy its name */
    const struct copies_session *sessions;
    size_t session_count;
    struct copies_text *text;  /* text of a log that is not a file; else NULL */
    struct copies_zstd **zstd; /* compressor to reuse, NULL at first; NULL: none is kept */
    bool sync;                 /* whether to sync the copy before the return */
    bool waits;                /* whether to wait some milliseconds if the log was just written */
};

/*
 * Make the newest generation equal to the log. ANNAL_END if nothing was written, because the copy
 * is equal already, a session of the log was deleted, or a program is writing the log; only in the
 * last case *out_settled is false.
 */
annal_status copies_take(annal_store *store, const struct copies_log *log, bool *out_settled,
                         annal_error *err);

/* Return whether the file of the newest generation has this modification time, that of the log
 * (rule 4). */
bool copies_are_current(annal_store *store, const char *path, const char *session,
                        int64_t mtime_ns);

/* Sync the copies that were written without log->sync. */
annal_status copies_sync(annal_store *store, annal_error *err);

/* ---- Reading ---- */

/* One generation of a log. */
struct copy {
    const char *name; /* name of its file in STORE/sources */
    annal_slice session, log;
    uint64_t generation;
    bool newest;
    uint64_t bytes;  /* size of the log, in bytes */
    uint64_t began;  /* size of the log when the generation began, in bytes */
    uint64_t stored; /* size of its file, in bytes */
    mode_t mode;
    int64_t mtime_ns;
    int64_t copied_us; /* time in us at which the log was equal to this generation */
    /* number of bytes in the file after the last record COPIES_MARK, which do not count (rule 4) */
    uint64_t torn;
    int64_t current_ns; /* modification time of the log when it was last found to be equal */
    annal_slice info;   /* JSON: path, kind, sessions; form, if the log is not a file */
};

/* Receive one copy of a log. Return 0 to continue; copies_each() stops at any other value, and
 * returns it. */
typedef int (*copies_fn)(void *arg, const struct copy *copy);

/*
 * Call fn for the newest generation of each log with events of a session, or of any session if
 * `session` is empty; with all, for every generation. fault (may be NULL) is called for each file
 * that cannot be read.
 */
typedef void (*copies_fault_fn)(void *arg, const char *name, const annal_error *err);
annal_status copies_each(annal_store *store, annal_slice session, bool all, copies_fn fn,
                         copies_fault_fn fault, void *arg, annal_error *err);

/* Call fn for one file of a copy, if it is valid. */
void copies_one(annal_store *store, const char *name, copies_fn fn, void *arg);

/* Receive the next bytes of a log. Return 0 to continue; copies_read() stops at any other value,
 * and returns it. */
typedef int (*copies_sink)(void *arg, annal_slice bytes);

/*
 * Pass the bytes of a copied log to sink, which may use them only after ANNAL_OK; without a sink,
 * prove them only. name is the name of the file. If generation is not 0 and the file was renamed to
 * that generation since copies_each(), the renamed file is read. ANNAL_ERR_CORRUPT: the copy is
 * damaged. ANNAL_END: the copy is damaged at its end, and the bytes are an earlier state of the
 * log.
 */
annal_status copies_read(annal_store *store, const char *name, uint64_t generation,
                         copies_sink sink, void *arg, annal_error *err);
