/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters and histograms, in the store object and in memory that all processes of the store share.
 *
 * (1) locks/metrics is a struct metrics_block, in the machine's byte order: it never leaves the
 *     machine. It consists of written zeros, so that no access meets a hole, and counts from the
 *     moment that its magic is set.
 * (2) It is never synced and may be deleted at any time: processes that have mapped it continue to
 *     count in a file without a name. A block with the magic of another version is not changed.
 * (3) All additions are relaxed; nothing depends on these numbers.
 */
#pragma once

#include "journal/context.h"

#include <annal/metrics.h>

#include <stdatomic.h>

enum metric {
    METRIC_EVENTS,
    METRIC_PAYLOAD_BYTES,
    METRIC_GROUPS,
    METRIC_LOG_BYTES,
    METRIC_JOURNAL_BYTES,
    METRIC_SYNCS,
    METRIC_SLOW_SYNCS,
    METRIC_REFUSED,
    METRIC_UNKNOWN,
    METRIC_STOPPED,
    METRIC_BEHIND,
    METRIC_CHECKPOINTS,
    METRIC_OPENS,
    METRIC_REFUSED_OPENS,
    METRIC_RECOVERIES,
    METRIC_RECOVERED_GROUPS,
    METRIC_TORN_BYTES,
    METRICS_COUNT
};

enum histogram {
    HISTOGRAM_SYNC_US,
    HISTOGRAM_JOURNAL_SYNC_US,
    HISTOGRAM_GROUP_EVENTS,
    HISTOGRAM_GROUP_BYTES,
    HISTOGRAM_CHECKPOINT_US,
    HISTOGRAM_CHECKPOINT_LAG_US,
    HISTOGRAM_SESSION_WAIT_US,
    HISTOGRAMS_COUNT
};

struct metrics_histogram {
    _Atomic uint64_t sum;
    _Atomic uint64_t max;
    _Atomic uint64_t buckets[ANNAL_HISTOGRAM_BUCKETS];
};

struct metrics_block {
    _Atomic uint64_t magic;
    _Atomic int64_t since_us;
    _Atomic uint64_t counters[METRICS_COUNT];
    struct metrics_histogram histograms[HISTOGRAMS_COUNT];
};

struct metrics {
    const struct context *context;
    struct metrics_block own;
    /* block that all processes of the store share, mapped; NULL if it could not be mapped */
    struct metrics_block *shared;
    _Atomic uint32_t sessions_owned;
};

/* Begin to count. If the store is open for reading only, read the present values instead. Never
 * fails. */
void annal__metrics_open(struct metrics *metrics);
void annal__metrics_close(struct metrics *metrics);

void annal__metrics_add(struct metrics *metrics, enum metric metric, uint64_t amount);
void annal__metrics_record(struct metrics *metrics, enum histogram histogram, uint64_t value);

/* Count and measure a sync that has ended and that began at begun_us (monotonic, microseconds), and
 * warn if it took longer than a second. */
void annal__metrics_synced(struct metrics *metrics, enum histogram histogram, int64_t begun_us);

/* Sync a journal, and count and measure the sync. Return 0, or -1 and set errno. */
int annal__metrics_fdatasync(struct metrics *metrics, int fd);

/* Read the counters: annal_store_metrics_get(). */
void annal__metrics_read(const struct metrics *metrics, annal_metrics_of of,
                         annal_metrics *out_metrics);
