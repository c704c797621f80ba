/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every file of this folder needs of a store: the interfaces to the system, the path, the log
 * callback, and how long the store may wait for other processes.
 */
#pragma once

#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/io.h"
#include "journal/codec.h"

#include <annal/store.h>

#include <pthread.h>
#include <stdarg.h>
#include <sys/types.h>

#define PATH_BYTES_MAX 8192

/* Waiting time of the store object (journal/sys/seam.h). */
struct waits {
    pthread_mutex_t lock;
    /* Guarded by lock. */
    int64_t limit_us;  /* maximum of waited_us; INT64_MAX: no limit */
    int64_t waited_us; /* time in us that threads have waited in total, without the present wait */
    uint32_t threads;  /* number of threads that are waiting now */
    int64_t since_us;  /* time in us since when at least one thread is waiting (monotonic) */
};

struct context {
    /* Members that are set once, when the store is opened. */
    const struct io *io;
    const struct clock *clock;
    uint8_t boot[16];
    char *path;
    bool read_only;
    uint32_t wait_ms;
    annal_log_fn log;
    void *log_arg;
    pid_t pid;
    /* a number that fork() sets to 0 in a child; NULL: not supported, so getpid() is called */
    uint32_t *same_process;

    struct waits waits;
};

/* Fail with ANNAL_ERR_CLOSED in a child of fork(), which must not use its parent's store object.
 * Every public function calls this first. */
annal_status annal__context_check(const struct context *context, annal_error *err);

/* As annal__context_check(), and fail if the store is open for reading only. */
annal_status annal__context_check_writable(const struct context *context, annal_error *err);

/* Compose the path STORE/part/name, or STORE/part if name is "". ANNAL_ERR_LIMIT if it is too
 * long. After a failure *out owns no memory. */
annal_status annal__context_path(const struct context *context, struct buf *out, const char *part,
                                 const char *name, annal_error *err);

/* Compose the path of a session's journal in one format. */
annal_status annal__context_journal_path(const struct context *context, annal_slice session,
                                         const struct codec *codec, struct buf *out,
                                         annal_error *err);

int64_t annal__context_now_us(const struct context *context); /* monotonic */

/* Wait until another thread of this process signals the condition, or until the deadline
 * (monotonic). ANNAL_ERR_BUSY, without a message, if the deadline had passed before. */
annal_status annal__context_wait_on(struct context *context, pthread_cond_t *cond,
                                    pthread_mutex_t *mutex, int64_t deadline_us);

/* Return the deadline (monotonic) of a wait for other processes that begins now. */
int64_t annal__context_deadline(const struct context *context);

/* Limit the waits for other processes, and measure them: seam.h. */
void annal__context_limit_waits(struct context *context, uint32_t limit_ms);
int64_t annal__context_waited_us(struct context *context);
int64_t annal__context_may_wait(struct context *context, int64_t wait_us);
void annal__context_wait(struct context *context, int64_t us);
void annal__context_wait_begin(struct context *context);
void annal__context_wait_end(struct context *context);

/* Pass a message to the log callback of the store, if it has one. Any thread. */
void annal__context_say(const struct context *context, annal_log_level level, const char *format,
                        ...) ANNAL_PRINTF(3, 4);
void annal__context_say_args(const struct context *context, annal_log_level level,
                             const char *format, va_list args) ANNAL_PRINTF(3, 0);
