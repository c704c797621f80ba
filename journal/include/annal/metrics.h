/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics: counters and measurements of what a store has done.
 *
 * Metrics are kept twice: for one store object since it was opened, and for the store, summed over
 * all processes that used it. The metrics of the store are in a shared file (locks/metrics), are
 * never synced, and start at 0 again if that file is removed; if the file cannot be shared, they
 * are those of this store object only.
 *
 * Counting costs a few relaxed atomic additions for each group, and none for an event. The numbers
 * may be inconsistent, because they may be read while a group is being counted.
 */
#ifndef ANNAL_METRICS_H
#define ANNAL_METRICS_H

#include <annal/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* number of buckets of a histogram. Each bucket counts the values up to its bound and above the
 * previous bound. The bounds are 0, 1, 2, 5, 10, 20, 50, … 5,000,000,000; the last has none. */
#define ANNAL_HISTOGRAM_BUCKETS 32

typedef struct annal_histogram {
    uint64_t count;
    uint64_t sum;
    uint64_t max;
    uint64_t buckets[ANNAL_HISTOGRAM_BUCKETS];
} annal_histogram;

typedef struct annal_metrics {
    int64_t since_us; /* time when counting began */

    uint64_t events;        /* events that were appended */
    uint64_t payload_bytes; /* bytes of their data */
    uint64_t groups;        /* writes to commit logs that contained events */
    uint64_t log_bytes;     /* bytes written to commit logs, with padding */
    uint64_t journal_bytes; /* bytes written to journals */
    uint64_t syncs;         /* syncs of commit logs, journals and the directory of journals */
    uint64_t slow_syncs;    /* syncs that took longer than a second; each is also logged */
    uint64_t refused;       /* appends that were refused: nothing was written */
    uint64_t unknown;       /* appends with an unknown result, because storage failed during them */
    uint64_t stopped;       /* store objects that accepted no more work after storage failed */
    /* times that a write to a journal failed, so that its events waited in the commit log */
    uint64_t behind;
    uint64_t checkpoints;
    uint64_t opens; /* times that the store was opened for writing */
    /* sessions that could not be opened for appends: damaged, or in use for too long */
    uint64_t refused_opens;
    /* commit logs of dead processes whose events were copied to the journals */
    uint64_t recoveries;
    uint64_t recovered_groups; /* groups of events in the commit logs that `recoveries` counts */
    /* bytes cut from the ends of journals, and kept under events/.torn */
    uint64_t torn_bytes;

    /* time in us of writing and syncing a group: the wait of an append of level sync */
    annal_histogram sync_us;
    annal_histogram journal_sync_us; /* time in us of syncing a journal */
    annal_histogram group_events;    /* events in one group */
    annal_histogram group_bytes;     /* size in bytes of the journal lines in one group */
    annal_histogram checkpoint_us;   /* time in us of a checkpoint */
    /* microseconds from the first use of a region of the log to the end of its checkpoint */
    annal_histogram checkpoint_lag_us;
    /* time in us of waiting for a session that another process owned */
    annal_histogram session_wait_us;

    uint32_t sessions_owned; /* sessions that this store object owns now */
} annal_metrics;

typedef enum annal_metrics_of {
    ANNAL_METRICS_OF_STORE =
        /* all processes; in a store that is open for reading only, the state when it was opened */
    0,
    ANNAL_METRICS_OF_OBJECT = 1 /* only this store object, since it was opened */
} annal_metrics_of;

/* Return the counters and measurements until now. Any thread. */
ANNAL_API void annal_store_metrics_get(annal_store *store, annal_metrics_of of,
                                       annal_metrics *out_metrics);

#ifdef __cplusplus
}
#endif

#endif
