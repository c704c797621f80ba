/* SPDX-License-Identifier: Apache-2.0 */
/* Syncs of journals and of events/, counted and measured. */
#include "journal/store.h"

#include <errno.h>

int annal__store_fdatasync(annal_store *store, int fd)
{
    int64_t begun_us = annal__context_now_us(&store->context);
    int result = store->context.io->fdatasync(store->context.io->arg, fd);
    int why = errno;
    annal__metrics_synced(&store->metrics, HISTOGRAM_JOURNAL_SYNC_US, begun_us);
    errno = why;
    return result;
}

int annal__store_sync_events(annal_store *store)
{
    int result = 0;
    pthread_mutex_lock(&store->events_lock);
    if (atomic_exchange(&store->events_dirty, false)) {
        annal__metrics_add(&store->metrics, METRIC_SYNCS, 1);
        result = store->context.io->fsync(store->context.io->arg, store->events_dir);
        if (result < 0)
            atomic_store(&store->events_dirty, true);
    }
    pthread_mutex_unlock(&store->events_lock);
    return result;
}
