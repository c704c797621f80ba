/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/context.h"

#include "journal/base/error.h"
#include "journal/base/futex.h"
#include "journal/base/thread.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

annal_status annal__context_path(const struct context *context, struct buf *out, const char *part,
                                 const char *name, annal_error *err)
{
    const char *parts[] = {context->path, "/", part, name[0] == '\0' ? "" : "/", name};
    annal_status status = ANNAL_OK;
    annal__buf_clear(out);
    out->limit = PATH_BYTES_MAX;
    for (size_t i = 0; status >= 0 && i < sizeof parts / sizeof *parts; i++)
        status = annal__buf_append(out, parts[i], strlen(parts[i]));
    if (status >= 0)
        status = annal__buf_reserve(out, 1);
    if (status < 0) {
        annal__buf_done(out);
        return annal__fail(err, status, "a path in store %.200s is too long", context->path);
    }
    out->ptr[out->len] = '\0';
    return ANNAL_OK;
}

annal_status annal__context_journal_path(const struct context *context, annal_slice session,
                                         const struct codec *codec, struct buf *out,
                                         annal_error *err)
{
    char name[ANNAL_SESSION_ID_BYTES_MAX + 8];
    snprintf(name, sizeof name, "%.*s%s", ANNAL_FMT(session), codec->suffix);
    return annal__context_path(context, out, "events", name, err);
}

int64_t annal__context_now_us(const struct context *context)
{
    return context->clock->monotonic_us(context->clock->arg);
}

int64_t annal__context_deadline(const struct context *context)
{
    return annal__context_now_us(context) + (int64_t)context->wait_ms * 1000;
}

/* Return how long this store object has waited until now. The caller holds waits.lock. */
static int64_t waited_us(const struct context *context)
{
    const struct waits *waits = &context->waits;
    return waits->waited_us +
           (waits->threads > 0 ? annal__context_now_us(context) - waits->since_us : 0);
}

void annal__context_limit_waits(struct context *context, uint32_t limit_ms)
{
    struct waits *waits = &context->waits;
    pthread_mutex_lock(&waits->lock);
    waits->limit_us = limit_ms == UINT32_MAX ? INT64_MAX : (int64_t)limit_ms * 1000;
    waits->waited_us = 0;
    waits->since_us = annal__context_now_us(context);
    pthread_mutex_unlock(&waits->lock);
}

int64_t annal__context_waited_us(struct context *context)
{
    pthread_mutex_lock(&context->waits.lock);
    int64_t us = waited_us(context);
    pthread_mutex_unlock(&context->waits.lock);
    return us;
}

int64_t annal__context_may_wait(struct context *context, int64_t wait_us)
{
    struct waits *waits = &context->waits;
    pthread_mutex_lock(&waits->lock);
    int64_t left_us =
        waits->limit_us == INT64_MAX ? INT64_MAX : waits->limit_us - waited_us(context);
    pthread_mutex_unlock(&waits->lock);
    left_us = left_us < 0 ? 0 : left_us;
    return wait_us < left_us ? wait_us : left_us;
}

void annal__context_wait_begin(struct context *context)
{
    struct waits *waits = &context->waits;
    pthread_mutex_lock(&waits->lock);
    if (waits->threads++ == 0)
        waits->since_us = annal__context_now_us(context);
    pthread_mutex_unlock(&waits->lock);
}

void annal__context_wait_end(struct context *context)
{
    struct waits *waits = &context->waits;
    pthread_mutex_lock(&waits->lock);
    if (waits->threads == 1)
        waits->waited_us = waited_us(context);
    waits->threads--;
    pthread_mutex_unlock(&waits->lock);
}

void annal__context_wait(struct context *context, int64_t us)
{
    _Atomic uint32_t never = 0;
    annal__context_wait_begin(context);
    annal__futex_wait(&never, 0, us);
    annal__context_wait_end(context);
}

/* This wait is not added to the store's waiting time (seam.h), because the thread that signals the
 * condition adds its own. */
annal_status annal__context_wait_on(struct context *context, pthread_cond_t *cond,
                                    pthread_mutex_t *mutex, int64_t deadline_us)
{
    int64_t left_us =
        annal__context_may_wait(context, deadline_us - annal__context_now_us(context));
    if (left_us <= 0)
        return ANNAL_ERR_BUSY;
    annal__thread_cond_wait_us(cond, mutex, left_us);
    return ANNAL_OK;
}

/* Return whether this process is a child of the process that opened the store. */
static bool was_forked(const struct context *context)
{
    return context->same_process != NULL ? *context->same_process == 0 : context->pid != getpid();
}

annal_status annal__context_check(const struct context *context, annal_error *err)
{
    if (was_forked(context))
        return annal__fail(err, ANNAL_ERR_CLOSED,
                           "this store was opened by process %d; open the store again after fork()",
                           (int)context->pid);
    return ANNAL_OK;
}

annal_status annal__context_check_writable(const struct context *context, annal_error *err)
{
    annal_status status = annal__context_check(context, err);
    if (status < 0)
        return status;
    if (context->read_only)
        return annal__fail(err, ANNAL_ERR_READONLY, "store %s is open for reading only",
                           context->path);
    return ANNAL_OK;
}

void annal__context_say(const struct context *context, annal_log_level level, const char *format,
                        ...)
{
    va_list args;
    va_start(args, format);
    annal__context_say_args(context, level, format, args);
    va_end(args);
}

void annal__context_say_args(const struct context *context, annal_log_level level,
                             const char *format, va_list args)
{
    char message[512];
    if (context->log == NULL)
        return;
    vsnprintf(message, sizeof message, format, args);
    context->log(context->log_arg, level, message);
}
