/* SPDX-License-Identifier: Apache-2.0 */
/* Syncs of journals and of events/, counted and measured. */
#include "journal/store.h"

#include <errno.h>

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
