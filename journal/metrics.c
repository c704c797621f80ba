/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/metrics.h"

#include "journal/context.h"
#include "journal/sys/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#define METRICS_MAGIC UINT64_C(0x315254454d4c4e41) /* "ANLMETR1" in little-endian bytes */
#define SYNC_SLOW_US  1000000

/* ---- Histograms ---- */

/* Upper bounds of the buckets. A table instead of a computation, because each group searches it a
 * few times. */
#define DECADE(ten) UINT64_C(1) * (ten), UINT64_C(2) * (ten), UINT64_C(5) * (ten)
static const uint64_t bounds[ANNAL_HISTOGRAM_BUCKETS] = {0,
                                                         DECADE(1),
                                                         DECADE(10),
                                                         DECADE(100),
                                                         DECADE(1000),
                                                         DECADE(10000),
                                                         DECADE(100000),
                                                         DECADE(1000000),
                                                         DECADE(10000000),
                                                         DECADE(100000000),
                                                         DECADE(1000000000),
                                                         UINT64_MAX};

uint64_t annal__metrics_histogram_bound(size_t bucket)
{
    return bucket < ANNAL_HISTOGRAM_BUCKETS ? bounds[bucket] : UINT64_MAX;
}

static size_t bucket_of(uint64_t value)
{
    size_t low = 0, high = ANNAL_HISTOGRAM_BUCKETS - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (value <= bounds[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint64_t annal__metrics_histogram_quantile(const annal_histogram *histogram, double share)
{
    double rank = share * (double)histogram->count;
    double below = 0;
    for (size_t i = 0; i < ANNAL_HISTOGRAM_BUCKETS; i++) {
        double here = (double)histogram->buckets[i];
        if (here > 0 && below + here >= rank) {
            double from = i == 0 ? 0 : (double)annal__metrics_histogram_bound(i - 1);
            double to = i + 1 == ANNAL_HISTOGRAM_BUCKETS
                            ? (double)histogram->max
                            : (double)annal__metrics_histogram_bound(i);
            if (to > (double)histogram->max)
                to = (double)histogram->max;
            double part = rank > below ? (rank - below) / here : 0;
            return to > from ? (uint64_t)(from + (to - from) * part + 0.5) : (uint64_t)to;
        }
        below += here;
    }
    return histogram->max;
}

/* ---- Counting ---- */

static void add_to(_Atomic uint64_t *counter, uint64_t amount)
{
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

void annal__metrics_add(struct metrics *metrics, enum metric metric, uint64_t amount)
{
    add_to(&metrics->own.counters[metric], amount);
    if (metrics->shared != NULL)
        add_to(&metrics->shared->counters[metric], amount);
}

static void record(struct metrics_histogram *histogram, size_t bucket, uint64_t value)
{
    add_to(&histogram->sum, value);
    add_to(&histogram->buckets[bucket], 1);
    uint64_t max = atomic_load_explicit(&histogram->max, memory_order_relaxed);
    while (max < value && !atomic_compare_exchange_weak(&histogram->max, &max, value))
        ;
}

void annal__metrics_record(struct metrics *metrics, enum histogram histogram, uint64_t value)
{
    size_t bucket = bucket_of(value);
    record(&metrics->own.histograms[histogram], bucket, value);
    if (metrics->shared != NULL)
        record(&metrics->shared->histograms[histogram], bucket, value);
}

void annal__metrics_synced(struct metrics *metrics, enum histogram histogram, int64_t begun_us)
{
    int64_t took_us = annal__context_now_us(metrics->context) - begun_us;
    if (took_us < 0)
        took_us = 0;
    annal__metrics_add(metrics, METRIC_SYNCS, 1);
    annal__metrics_record(metrics, histogram, (uint64_t)took_us);
    if (took_us <= SYNC_SLOW_US)
        return;
    annal__metrics_add(metrics, METRIC_SLOW_SYNCS, 1);
    annal__context_say(metrics->context, ANNAL_LOG_WARNING,
                       "a sync of %s took %" PRId64 " ms: the disk is busy or failing",
                       histogram == HISTOGRAM_SYNC_US ? "the commit log" : "a journal",
                       took_us / 1000);
}

int annal__metrics_fdatasync(struct metrics *metrics, int fd)
{
    const struct io *io = metrics->context->io;
    int64_t begun_us = annal__context_now_us(metrics->context);
    int result = io->fdatasync(io->arg, fd);
    int why = errno;
    annal__metrics_synced(metrics, HISTOGRAM_JOURNAL_SYNC_US, begun_us);
    errno = why;
    return result;
}

/* ---- The shared block ---- */

/* Append zeros to the file up to the length of a block, so that no access meets a hole. */
static bool fill(const struct io *io, int fd)
{
    static const struct metrics_block zeros;
    struct stat file;
    if (io->fstat(io->arg, fd, &file) < 0)
        return false;
    uint64_t bytes = (uint64_t)file.st_size;
    return bytes >= sizeof zeros || annal__io_write_all(io, fd, (const char *)&zeros + bytes,
                                                        sizeof zeros - bytes, bytes) == 0;
}

/* Start counting in a new block; false if the block has the magic of another version (rule 2). */
static bool begin(const struct context *context, struct metrics_block *block)
{
    uint64_t magic = 0;
    if (atomic_compare_exchange_strong(&block->magic, &magic, METRICS_MAGIC))
        atomic_store(&block->since_us, context->clock->wall_us(context->clock->arg));
    return magic == 0 || magic == METRICS_MAGIC;
}

static void map(struct metrics *metrics, int fd)
{
    const struct io *io = metrics->context->io;
    void *block =
        fill(io, fd) ? io->map_shared(io->arg, fd, sizeof(struct metrics_block)) : MAP_FAILED;
    if (block == MAP_FAILED)
        return;
    if (begin(metrics->context, block))
        metrics->shared = block;
    else
        io->unmap(io->arg, block, sizeof(struct metrics_block));
}

/* Copy the present values of the file into the store object, which is open for reading only. */
static void copy(struct metrics *metrics, int fd)
{
    struct metrics_block *own = &metrics->own;
    if (annal__io_read_full(metrics->context->io, fd, own, sizeof *own, 0) !=
            (ssize_t)sizeof *own ||
        atomic_load(&own->magic) != METRICS_MAGIC)
        memset(own, 0, sizeof *own);
}

void annal__metrics_open(struct metrics *metrics)
{
    SCOPED_BUF path = {0};
    const struct io *io = metrics->context->io;
    int fd = -1;
    if (annal__context_path(metrics->context, &path, "locks", "metrics", NULL) == ANNAL_OK)
        fd = io->open(io->arg, path.ptr, metrics->context->read_only ? O_RDONLY : O_RDWR | O_CREAT,
                      0660);
    if (fd >= 0 && metrics->context->read_only)
        copy(metrics, fd);
    else if (fd >= 0)
        map(metrics, fd);
    if (fd >= 0)
        io->close(io->arg, fd);
    if (!metrics->context->read_only) {
        atomic_store(&metrics->own.since_us,
                     metrics->context->clock->wall_us(metrics->context->clock->arg));
        annal__metrics_add(metrics, METRIC_OPENS, 1);
    }
}

void annal__metrics_close(struct metrics *metrics)
{
    if (metrics->shared != NULL)
        metrics->context->io->unmap(metrics->context->io->arg, metrics->shared,
                                    sizeof(struct metrics_block));
    metrics->shared = NULL;
}

/* ---- Reading ---- */

static annal_histogram histogram_of(const struct metrics_block *block, enum histogram which)
{
    const struct metrics_histogram *from = &block->histograms[which];
    annal_histogram histogram = {.sum = atomic_load(&from->sum), .max = atomic_load(&from->max)};
    for (size_t i = 0; i < ANNAL_HISTOGRAM_BUCKETS; i++) {
        histogram.buckets[i] = atomic_load(&from->buckets[i]);
        histogram.count += histogram.buckets[i];
    }
    return histogram;
}

void annal__metrics_read(const struct metrics *metrics, annal_metrics_of of,
                         annal_metrics *out_metrics)
{
    const struct metrics_block *block = &metrics->own;
    if (of == ANNAL_METRICS_OF_STORE && metrics->shared != NULL)
        block = metrics->shared;
    const _Atomic uint64_t *counters = block->counters;
    *out_metrics = (annal_metrics){
        .since_us = atomic_load(&block->since_us),
        .events = atomic_load(&counters[METRIC_EVENTS]),
        .payload_bytes = atomic_load(&counters[METRIC_PAYLOAD_BYTES]),
        .groups = atomic_load(&counters[METRIC_GROUPS]),
        .log_bytes = atomic_load(&counters[METRIC_LOG_BYTES]),
        .journal_bytes = atomic_load(&counters[METRIC_JOURNAL_BYTES]),
        .syncs = atomic_load(&counters[METRIC_SYNCS]),
        .slow_syncs = atomic_load(&counters[METRIC_SLOW_SYNCS]),
        .refused = atomic_load(&counters[METRIC_REFUSED]),
        .unknown = atomic_load(&counters[METRIC_UNKNOWN]),
        .stopped = atomic_load(&counters[METRIC_STOPPED]),
        .behind = atomic_load(&counters[METRIC_BEHIND]),
        .checkpoints = atomic_load(&counters[METRIC_CHECKPOINTS]),
        .opens = atomic_load(&counters[METRIC_OPENS]),
        .refused_opens = atomic_load(&counters[METRIC_REFUSED_OPENS]),
        .recoveries = atomic_load(&counters[METRIC_RECOVERIES]),
        .recovered_groups = atomic_load(&counters[METRIC_RECOVERED_GROUPS]),
        .torn_bytes = atomic_load(&counters[METRIC_TORN_BYTES]),
        .sync_us = histogram_of(block, HISTOGRAM_SYNC_US),
        .journal_sync_us = histogram_of(block, HISTOGRAM_JOURNAL_SYNC_US),
        .group_events = histogram_of(block, HISTOGRAM_GROUP_EVENTS),
        .group_bytes = histogram_of(block, HISTOGRAM_GROUP_BYTES),
        .checkpoint_us = histogram_of(block, HISTOGRAM_CHECKPOINT_US),
        .checkpoint_lag_us = histogram_of(block, HISTOGRAM_CHECKPOINT_LAG_US),
        .session_wait_us = histogram_of(block, HISTOGRAM_SESSION_WAIT_US),
        .sessions_owned = atomic_load(&metrics->sessions_owned),
    };
}
