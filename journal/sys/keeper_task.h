/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: work of the index and of the snapshots that the keeper does in the background. */
#pragma once

#include <annal/store.h>

/*
 * A task of the keeper, which belongs to the index, the snapshots or a program.
 *
 * run is called by the keeper, or by annal_store_keep(), on one thread at a time: soon after
 * appends of this store object became readable in their journals, but period_ms after its last run,
 * and once more from annal__keeper_task_remove(). It must not wait for other processes, and must
 * not append to this store. A failure is logged. After ANNAL_END, which means that work is left,
 * run is called again after period_ms, or at once if it stopped early for the keeper
 * (annal__keeper_is_needed()).
 */
typedef struct annal__keeper_task {
    const char *name; /* name for messages; static */
    uint32_t period_ms;
    /* If quiet_ms is not 0, the task waits until nothing was appended for quiet_ms, but at most
     * latest_ms after the first append. After ANNAL_END it does not wait for this. */
    uint32_t quiet_ms;
    uint32_t latest_ms;
    annal_status (*run)(void *arg, annal_error *err);
    void *arg;
    /* whether to skip this task while another task with this name exists, unless this is the first
     * of several single tasks */
    bool single;
    /* whether the first run is period_ms after the task was added, even if nothing was appended */
    bool early;
} annal__keeper_task;

/*
 * For run: return whether the keeper has other work that is due, such as a batch or a checkpoint. A
 * task that works for more than some milliseconds calls this between its steps, and returns
 * ANNAL_END if the result is true. While the task is being removed, the result is false.
 */
bool annal__keeper_is_needed(annal_store *store);

/*
 * For run, after each 100 microseconds of work or so: let threads run that wait for this processor.
 * A thread that wakes up after a sync would otherwise wait until the time slice of the keeper is
 * over, 3 ms, even if other processors are idle.
 */
void annal__keeper_yield(annal_store *store);

/* Add a task; *task is copied. ANNAL_ERR_LIMIT: the keeper already has 16 tasks. Any thread. */
ANNAL_MUST_CHECK annal_status annal__keeper_task_add(annal_store *store,
                                                     const annal__keeper_task *task,
                                                     annal_error *err);

/* Run the task with this arg a last time, unless another task does its work, and remove it. Waits
 * while it is running. */
void annal__keeper_task_remove(annal_store *store, void *arg);
