/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that every file of this folder needs: paths, time, the log callback, checks, measured
 * syncs. */
#include "journal/base/error.h"
#include "journal/base/futex.h"
#include "journal/base/thread.h"
#include "journal/store.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

uint64_t annal__store_keep_free(const annal_store *store)
{
    return store->keep_free_bytes;
}

annal_status annal__store_path(const annal_store *store, struct buf *out, const char *part,
                               const char *name, annal_error *err)
{
    const char *parts[] = {store->path, "/", part, name[0] == '\0' ? "" : "/", name};
    annal_status status = ANNAL_OK;
    annal__buf_clear(out);
    out->limit = PATH_BYTES_MAX;
    for (size_t i = 0; status >= 0 && i < sizeof parts / sizeof *parts; i++)
        status = annal__buf_append(out, parts[i], strlen(parts[i]));
    if (status >= 0)
        status = annal__buf_reserve(out, 1);
    if (status < 0)
        return annal__fail(err, status, "a path in store %.200s is too long", store->path);
    out->ptr[out->len] = '\0';
    return ANNAL_OK;
}

annal_status annal__store_journal_path(const annal_store *store, annal_slice session,
                                       const struct codec *codec, struct buf *out, annal_error *err)
{
    char name[ANNAL_SESSION_ID_BYTES_MAX + 8];
    snprintf(name, sizeof name, "%.*s%s", ANNAL_FMT(session), codec->suffix);
    return annal__store_path(store, out, "events", name, err);
}

void annal__say(const annal_store *store, annal_log_level level, const char *format, ...)
{
    if (store->log == NULL)
        return;
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    store->log(store->log_arg, level, message);
}

void annal__store_say_damage(annal_store *store, annal_slice session, uint64_t seq, uint64_t offset)
{
    atomic_fetch_add(&store->damages_said, 1);
    annal__say(store, ANNAL_LOG_WARNING,
               "session '%.*s', event %llu at byte %llu is damaged: run 'annal verify' for details",
               ANNAL_FMT(session), (unsigned long long)seq, (unsigned long long)offset);
}

uint64_t annal__store_damages_said(const annal_store *store)
{
    return atomic_load(&store->damages_said);
}

const uint8_t *annal__store_boot(const annal_store *store)
{
    return store->boot;
}

const struct io *annal__store_io(const annal_store *store)
{
    return store->io;
}

const struct clock *annal__store_clock(const annal_store *store)
{
    return store->clock;
}

bool annal__store_has_keeper(const annal_store *store)
{
    return store->keeper.running;
}

struct tails_place *annal__store_tails(annal_store *store)
{
    return &store->tails;
}

int64_t annal__store_now_us(const annal_store *store)
{
    return store->clock->monotonic_us(store->clock->arg);
}

int64_t annal__store_deadline(const annal_store *store)
{
    return annal__store_now_us(store) + (int64_t)store->wait_ms * 1000;
}

uint32_t annal__store_wait_ms(const annal_store *store)
{
    return store->wait_ms;
}

/* Return how long this store object has waited until now. The caller holds waits.lock. */
static int64_t waited_us(const annal_store *store)
{
    const struct waits *waits = &store->waits;
    return waits->waited_us +
           (waits->threads > 0 ? annal__store_now_us(store) - waits->since_us : 0);
}

void annal__store_limit_waits(annal_store *store, uint32_t limit_ms)
{
    struct waits *waits = &store->waits;
    pthread_mutex_lock(&waits->lock);
    waits->limit_us = limit_ms == UINT32_MAX ? INT64_MAX : (int64_t)limit_ms * 1000;
    waits->waited_us = 0;
    waits->since_us = annal__store_now_us(store);
    pthread_mutex_unlock(&waits->lock);
}

int64_t annal__store_waited_us(annal_store *store)
{
    pthread_mutex_lock(&store->waits.lock);
    int64_t us = waited_us(store);
    pthread_mutex_unlock(&store->waits.lock);
    return us;
}

int64_t annal__store_may_wait(annal_store *store, int64_t wait_us)
{
    struct waits *waits = &store->waits;
    pthread_mutex_lock(&waits->lock);
    int64_t left_us = waits->limit_us == INT64_MAX ? INT64_MAX : waits->limit_us - waited_us(store);
    pthread_mutex_unlock(&waits->lock);
    left_us = left_us < 0 ? 0 : left_us;
    return wait_us < left_us ? wait_us : left_us;
}

uint32_t annal__store_may_wait_ms(annal_store *store, uint32_t wait_ms)
{
    return (uint32_t)(annal__store_may_wait(store, (int64_t)wait_ms * 1000) / 1000);
}

void annal__store_wait_begin(annal_store *store)
{
    struct waits *waits = &store->waits;
    pthread_mutex_lock(&waits->lock);
    if (waits->threads++ == 0)
        waits->since_us = annal__store_now_us(store);
    pthread_mutex_unlock(&waits->lock);
}

void annal__store_wait_end(annal_store *store)
{
    struct waits *waits = &store->waits;
    pthread_mutex_lock(&waits->lock);
    if (waits->threads == 1)
        waits->waited_us = waited_us(store);
    waits->threads--;
    pthread_mutex_unlock(&waits->lock);
}

void annal__store_wait(annal_store *store, int64_t us)
{
    _Atomic uint32_t never = 0;
    annal__store_wait_begin(store);
    annal__futex_wait(&never, 0, us);
    annal__store_wait_end(store);
}

/* This wait is not added to the store's waiting time (seam.h), because the thread that signals the
 * condition adds its own. */
annal_status annal__store_wait_on(annal_store *store, pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  int64_t deadline_us)
{
    int64_t left_us = annal__store_may_wait(store, deadline_us - annal__store_now_us(store));
    if (left_us <= 0)
        return ANNAL_ERR_BUSY;
    annal__thread_cond_wait_us(cond, mutex, left_us);
    return ANNAL_OK;
}

/* Return whether this process is a child of the process that opened the store. */
static bool was_forked(const annal_store *store)
{
    return store->same_process != NULL ? *store->same_process == 0 : store->pid != getpid();
}

annal_status annal__store_check(const annal_store *store, annal_error *err)
{
    if (was_forked(store))
        return annal__fail(err, ANNAL_ERR_CLOSED,
                           "this store was opened by process %d; open the store again after fork()",
                           (int)store->pid);
    return ANNAL_OK;
}

annal_status annal__store_check_writable(const annal_store *store, annal_error *err)
{
    annal_status status = annal__store_check(store, err);
    if (status < 0)
        return status;
    if (store->read_only)
        return annal__fail(err, ANNAL_ERR_IO, "store %s is open for reading only", store->path);
    return ANNAL_OK;
}
