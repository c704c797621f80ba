/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: the background thread of an open store. It runs checkpoints, commits batches when
 * they are due, releases sessions that other processes want, and runs the tasks that other
 * components added (annal__keeper_task_add()).
 */
#pragma once

#include "journal/keeper_wake.h"
#include "journal/sys/keeper_task.h"

#include <pthread.h>

#define TASKS_MAX 16

struct task_state {
    annal__keeper_task task;
    int64_t due_us; /* time before which the task does not run, in us (monotonic) */
    /* time in us at which the task runs even if appends continue (monotonic); 0: no change since
     * its last run */
    int64_t latest_us;
    uint64_t ran_at_change;
};

struct keeper {
    pthread_t thread;
    _Atomic bool is_stopping;
    struct keeper_alarm alarm;
    pthread_mutex_t round; /* held during a round; guards the members below */
    struct task_state tasks[TASKS_MAX];
    size_t task_count;
    bool is_last_run;    /* whether a task runs for the last time, so that it must finish */
    int64_t no_yield_us; /* time before which tasks do not yield the processor (monotonic) */
    /* whether the last task stopped early, because the keeper had other work */
    bool has_task_yielded;
    /* time in us when the keeper last synced all journals, or found nothing to sync (monotonic) */
    int64_t rotated_us;
    /* time before which a failed checkpoint or write is not retried (monotonic); 0: none failed */
    int64_t retry_us;
    /* number of the last group whose journals a checkpoint of the keeper has synced */
    uint64_t rotated_group;
};

annal_status annal__keeper_start(annal_store *store, annal_error *err);
void annal__keeper_stop(annal_store *store);

/* Do all work that is due, and return. */
void annal__keeper_round(annal_store *store);
