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
#include <fcntl.h>
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

/* Return the format of the first journal whose header does not name another session (stray.h), or
 * of the first journal. */
static const struct codec *choose_journal(const annal_store *store, annal_slice session,
                                          const struct codec *const *there, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!annal__stray_is_anothers(store, session, there[i]))
            return there[i];
    return there[0];
}

annal_status annal__store_journal_find(const annal_store *store, annal_slice session,
                                       struct buf *out_path, const struct codec **out_codec,
                                       annal_error *err)
{
    const struct codec *there[CODEC_COUNT], *empty = NULL;
    size_t count = 0;
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        struct stat file;
        annal_status status =
            annal__store_journal_path(store, session, annal__codecs[i], out_path, err);
        if (status < 0)
            return status;
        if (store->io->stat(store->io->arg, out_path->ptr, &file) == 0) {
            if (file.st_size > 0)
                there[count++] = annal__codecs[i];
            else if (empty == NULL)
                empty = annal__codecs[i];
        } else if (errno != ENOENT && count == 0) {
            return annal__fail_errno(err, "cannot examine %s", out_path->ptr);
        }
    }
    *out_codec = count == 0   ? empty
                 : count == 1 ? there[0]
                              : choose_journal(store, session, there, count);
    return annal__store_journal_path(
        store, session, *out_codec == NULL ? annal__codecs[0] : *out_codec, out_path, err);
}

annal_status annal__store_journal_open(const annal_store *store, annal_slice session, int *out_fd,
                                       const struct codec **out_codec, annal_error *err)
{
    struct buf path = {0};
    annal_status status = ANNAL_OK;
    int fd = -1;
    /*
     * Try twice, because one journal may replace the other between the two attempts to open them.
     */
    for (int tries = 0; tries < 2 && fd < 0 && status == ANNAL_OK; tries++) {
        status = annal__store_journal_find(store, session, &path, out_codec, err);
        if (status == ANNAL_OK && *out_codec != NULL) {
            fd = store->io->open(store->io->arg, path.ptr, O_RDONLY, 0);
            if (fd < 0 && errno == EACCES)
                status = annal__stray_fail_denied(err, session);
            else if (fd < 0 && errno != ENOENT)
                status = annal__fail_errno(err, "cannot open %s", path.ptr);
        }
    }
    if (status == ANNAL_OK && fd < 0)
        status =
            annal__fail(err, ANNAL_ERR_NOTFOUND, "there is no session '%.*s'", ANNAL_FMT(session));
    if (status == ANNAL_OK)
        *out_fd = fd;
    annal__buf_done(&path);
    return status;
}

bool annal__store_journal_is_double(const annal_store *store, annal_slice session,
                                    const struct codec *codec)
{
    struct buf path = {0};
    bool found = false;
    for (size_t i = 0; i < CODEC_COUNT && !found; i++) {
        struct stat file;
        found =
            annal__codecs[i] != codec &&
            annal__store_journal_path(store, session, annal__codecs[i], &path, NULL) == ANNAL_OK &&
            store->io->stat(store->io->arg, path.ptr, &file) == 0 && S_ISREG(file.st_mode) &&
            file.st_size > 0;
    }
    annal__buf_done(&path);
    return found;
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

annal_status annal__store_check(const annal_store *store, annal_error *err)
{
    if (annal__store_was_forked(store))
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

int annal__store_fdatasync(annal_store *store, int fd)
{
    int64_t begun_us = annal__store_now_us(store);
    int result = store->io->fdatasync(store->io->arg, fd);
    int why = errno;
    annal__metrics_synced(store, HISTOGRAM_JOURNAL_SYNC_US, begun_us);
    errno = why;
    return result;
}

int annal__store_sync_events(annal_store *store)
{
    int result = 0;
    pthread_mutex_lock(&store->events_lock);
    if (atomic_exchange(&store->events_dirty, false)) {
        annal__metrics_add(store, METRIC_SYNCS, 1);
        result = store->io->fsync(store->io->arg, store->events_dir);
        if (result < 0)
            atomic_store(&store->events_dirty, true);
    }
    pthread_mutex_unlock(&store->events_lock);
    return result;
}
