/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/events_dir.h"

int annal__events_dir_sync(struct events_dir *events)
{
    const struct io *io = events->context->io;
    int result = 0;
    pthread_mutex_lock(&events->lock);
    if (atomic_exchange(&events->dirty, false)) {
        annal__metrics_add(events->metrics, METRIC_SYNCS, 1);
        result = io->fsync(io->arg, events->fd);
        if (result < 0)
            atomic_store(&events->dirty, true);
    }
    pthread_mutex_unlock(&events->lock);
    return result;
}
