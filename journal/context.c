/* What every file of this folder asks the store object: paths, time, the log, checks, measured syncs. */
#include "journal/base/error.h"
#include "journal/base/seam.h"
#include "journal/store.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

annal_status annal__store_path(const annal_store *store, struct buf *out, const char *part,
                               const char *name, annal_error *err)
{
    annal__buf_clear(out);
    out->limit = PATH_BYTES_MAX;
    annal_status status =
        annal__buf_printf(out, "%s/%s%s%s", store->path, part, name[0] == '\0' ? "" : "/", name);
    if (status < 0)
        return annal__fail(err, status, "a path in store %.200s is too long", store->path);
    return ANNAL_OK;
}

annal_status annal__journal_path(const annal_store *store, annal_slice session, struct buf *out,
                                 annal_error *err)
{
    char name[ANNAL_SESSION_ID_BYTES_MAX + 8];
    snprintf(name, sizeof name, "%.*s.jsonl", ANNAL_FMT(session));
    return annal__store_path(store, out, "events", name, err);
}

void annal__store_log(const annal_store *store, annal_log_level level, const char *format, ...)
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

const struct io *annal__store_io(const annal_store *store)
{
    return store->io;
}

const struct clock *annal__store_clock(const annal_store *store)
{
    return store->clock;
}

int64_t annal__now_us(const annal_store *store)
{
    return store->clock->monotonic_us(store->clock->arg);
}

annal_status annal__store_check(const annal_store *store, annal_error *err)
{
    if (store->pid != getpid())
        return annal__fail(err, ANNAL_ERR_CLOSED,
                           "this store was opened by process %d; open it again after fork()",
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
    int64_t begun_us = annal__now_us(store);
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
