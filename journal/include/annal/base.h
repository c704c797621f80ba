/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every header of Annal uses: status, error, slice, log callback, version.
 *
 * Conventions of the whole library:
 *   - A function returns 0 for success, below 0 for failure, above 0 for a result that is neither
 *     (ANNAL_END).
 *   - Outputs are written on success only, unless the function says otherwise.
 *   - The last parameter of a function that can fail is an annal_error of the caller, or NULL. It
 *     is filled on failure only, with a sentence: what was tried, on what, and why it failed.
 *   - In an options struct zero means default, and NULL for the struct means all defaults.
 *   - A slice that a function returns is borrowed; the function says how long it is valid.
 *   - Strings are UTF-8. Times are microseconds since 1970-01-01T00:00:00Z, in an int64_t.
 *   - The library does not print, does not exit, does not read the environment, and has no global
 *     mutable state.
 */
#ifndef ANNAL_BASE_H
#define ANNAL_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANNAL_VERSION "0.2.0"

#if defined(__GNUC__)
#define ANNAL_API          __attribute__((visibility("default")))
#define ANNAL_MUST_CHECK   __attribute__((warn_unused_result))
#define ANNAL_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define ANNAL_API
#define ANNAL_MUST_CHECK
#define ANNAL_PRINTF(f, a)
#endif

typedef enum annal_status {
    ANNAL_OK = 0,
    ANNAL_END = 1,        /* nothing more to read at the moment; not a failure */
    ANNAL_DAMAGE = 2,     /* a cursor skipped damaged bytes */
    ANNAL_ERR_NOMEM = -1, /* allocation failed */
    /* the operating system refused, for instance because a permission is missing; see os_errno. A
     * full, a read-only and a failing disk have statuses of their own */
    ANNAL_ERR_IO = -2,
    ANNAL_ERR_CORRUPT = -3,  /* bytes on the disk are damaged */
    ANNAL_ERR_NOTFOUND = -4, /* the store, session, event or snapshot does not exist */
    ANNAL_ERR_INVALID = -5,  /* the caller passed a value that is not accepted */
    /* another process or thread uses what the call needs, such as the session, and did not release
     * it in time */
    ANNAL_ERR_BUSY = -6,
    ANNAL_ERR_LIMIT = -7, /* a value is larger than a documented limit */
    /* the object failed earlier, or was opened by the parent process, before fork() */
    ANNAL_ERR_CLOSED = -8,
    /* the session is not as the caller expects: for instance another last seq, or another event
     * with the same id */
    ANNAL_ERR_CONFLICT = -9,
    /* storage failed during an append: reopen the store to learn the result */
    ANNAL_ERR_UNKNOWN = -10,
    /* the store is on a network filesystem, or a newer version wrote it */
    ANNAL_ERR_UNSUPPORTED = -11,
    ANNAL_ERR_SQL = -12, /* a query or a pack is wrong; the message contains SQLite's message */
    /* a guard of a pack refused the append, and its sentence is the message; or the session's lease
     * does not allow it */
    ANNAL_ERR_REFUSED = -13,
    ANNAL_ERR_FULL = -14, /* the disk, or the quota of the user, has no room: nothing was written */
    /* the store is open for reading only, or its filesystem is read-only */
    ANNAL_ERR_READONLY = -15,
    ANNAL_ERR_DISK = -16 /* the disk failed: the system reports EIO, or that the device is gone */
} annal_status;

/* Return the name of a status, for instance "conflict". Static. Any thread. */
ANNAL_API const char *annal_status_name(annal_status status);

typedef struct annal_error {
    annal_status status;
    int os_errno;      /* errno at the point of failure, or 0 */
    char message[512]; /* one sentence, no newline */
} annal_error;

/* Bytes that belong to another object. The empty slice is {NULL, 0}. */
typedef struct annal_slice {
    const char *ptr;
    size_t len;
} annal_slice;

#define ANNAL_SLICE(literal) ((annal_slice){(literal), sizeof(literal) - 1})
#define ANNAL_FMT(slice)     (int)(slice).len, (slice).ptr /* for "%.*s" */

/* Return the slice of a C string; the empty slice for NULL. */
ANNAL_API annal_slice annal_slice_of(const char *string);

/* Free bytes that the library allocated for the caller; a function that returns such bytes says so.
 * NULL is accepted. Any thread. */
ANNAL_API void annal_free(const void *bytes);

#define ANNAL_NO_TIMEOUT UINT32_MAX /* value of timeout_ms: wait without a limit */

typedef enum annal_log_level {
    ANNAL_LOG_INFO = 1,   /* for instance: a torn tail was cut */
    ANNAL_LOG_WARNING = 2 /* for instance: a snapshot was skipped as damaged */
} annal_log_level;

/* Receives messages for which no caller waits. May be called from the keeper, and from any thread
 * that is inside the library; must not call the library. message is one sentence. */
typedef void (*annal_log_fn)(void *arg, annal_log_level level, const char *message);

/* Return the version of the running library, such as "0.2.0". Static. Any thread. */
ANNAL_API const char *annal_version(void);

/* Size of a time as text: "2026-01-06T07:24:00.123456Z" has 27 characters, and a final NUL. */
#define ANNAL_TIME_BYTES 28

/* Write a time as fixed-width ISO 8601 in UTC. Times before the year 0000 or after 9999 become the
 * first or last time of these years. Any thread. */
ANNAL_API void annal_time_format(int64_t time_us, char out[ANNAL_TIME_BYTES]);

/*
 * Read an ISO 8601 time: date, 'T' or space, hours and minutes, optional seconds and fraction
 * (digits after the sixth are ignored), and 'Z' or an offset. A date alone means its midnight; a
 * time without zone is UTC. ANNAL_ERR_INVALID for any other text. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_time_parse(annal_slice text, int64_t *out_time_us,
                                                         annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
