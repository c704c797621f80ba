/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics: what a store did, counted and measured.
 *
 * They are kept twice: for one store object since it was opened, and for the store as a whole, over
 * all processes that used it. The second are in shared memory (locks/metrics), are never synced,
 * and start over if that file is removed; if the memory cannot be shared, they cover the object
 * alone.
 *
 * Counting costs a few relaxed atomic additions a group, and none an event. Numbers that belong
 * together may be read while a group is being counted.
 */
#ifndef ANNAL_METRICS_H
#define ANNAL_METRICS_H

#include <annal/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How often which size was seen. Each bucket counts the values up to its bound and above the bound
 * before it: 0, 1, 2, 5, 10, 20, 50, … 5,000,000,000, and everything above.
 */
#define ANNAL_HISTOGRAM_BUCKETS 32

typedef struct annal_histogram {
    uint64_t count;
    uint64_t sum;
    uint64_t max;
    uint64_t buckets[ANNAL_HISTOGRAM_BUCKETS];
} annal_histogram;

typedef struct annal_metrics {
    int64_t since_us; /* when counting began */

    uint64_t events;        /* appended */
    uint64_t payload_bytes; /* of their data */
    uint64_t groups;        /* commit log writes that carried events */
    uint64_t log_bytes;     /* written to commit logs, with padding */
    uint64_t journal_bytes; /* written to journals */
    uint64_t syncs;         /* fdatasync and fsync of commit logs, journals and their directory */
    uint64_t slow_syncs;    /* that took longer than a second; each is also logged */
    uint64_t refused;       /* appends that were refused: nothing was written */
    uint64_t unknown;       /* appends whose outcome is not known: storage failed during them */
    uint64_t stopped;       /* store objects that accepted no more work after storage failed */
    uint64_t behind;        /* sessions whose journal could not be written at once */
    uint64_t checkpoints;
    uint64_t opens;            /* of the store for writing */
    uint64_t refused_opens;    /* of sessions to append to: damaged, or in use for too long */
    uint64_t recoveries;       /* commit logs of processes that died, redone */
    uint64_t recovered_groups; /* in them */
    uint64_t torn_bytes;       /* cut from journal tails, kept under events/.torn */

    annal_histogram sync_us;         /* writing and syncing a group: what a sync append waits for */
    annal_histogram journal_sync_us; /* syncing one journal */
    annal_histogram group_events;    /* events that shared one sync */
    annal_histogram group_bytes;     /* of journal in it */
    annal_histogram checkpoint_us;   /* how long a checkpoint took */
    /* from the beginning of a region to the end of its checkpoint */
    annal_histogram checkpoint_lag_us;
    annal_histogram session_wait_us; /* waiting for a session that another process had */

    uint32_t sessions_owned; /* by this store object, now */
} annal_metrics;

typedef enum annal_metrics_of {
    ANNAL_METRICS_OF_STORE =
        0, /* all processes; read-only stores: the state when they were opened */
    ANNAL_METRICS_OF_OBJECT = 1 /* this store object, since it was opened */
} annal_metrics_of;

/* What was counted until now. Any thread. */
ANNAL_API void annal_store_metrics_get(annal_store *store, annal_metrics_of of,
                                       annal_metrics *out_metrics);

#ifdef __cplusplus
}
#endif

#endif
