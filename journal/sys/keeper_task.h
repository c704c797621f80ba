/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: work of a higher layer that the keeper does in the background. */
#ifndef JOURNAL_SYS_KEEPER_TASK_H
#define JOURNAL_SYS_KEEPER_TASK_H

#include <annal/store.h>

/*
 * A task: work of a higher layer that the keeper does in the background.
 *
 * run is called by the keeper, or by annal_keep(), on one thread at a time: soon after appends of
 * this store object became readable in their journals, but period_ms after its last run, and once
 * more from annal__keeper_task_remove(). It must not wait for other processes, and must not append
 * to this store. A result below 0 is logged; ANNAL_END says that work is left: it is called again
 * after period_ms, or at once if it made way for the keeper.
 */
typedef struct annal__keeper_task {
    const char *name; /* static */
    uint32_t period_ms;
    /* With quiet_ms: it waits until nothing was appended for this time, but not longer than
     * latest_ms after the first append. Work that is left does not wait for that. */
    uint32_t quiet_ms;
    uint32_t latest_ms;
    annal_status (*run)(void *arg, annal_error *err);
    void *arg;
    bool single; /* not run while another task with this name, or another single task, is running */
    bool early;  /* the first run is period_ms after it was added, even if nothing was appended */
} annal__keeper_task;

/*
 * For run: whether the keeper has other work that is due, a batch or a checkpoint. A task that
 * works for more than some milliseconds asks between its steps, and makes way by returning
 * ANNAL_END; if it is being removed, it is never asked to.
 */
bool annal__keeper_is_needed(annal_store *store);

/*
 * For run, after some 100 microseconds of work: let threads run that wait for this processor. One
 * that wakes up after a sync would wait until the keeper's time is over, 3 ms, although others may
 * be idle.
 */
void annal__keeper_yield(annal_store *store);

/* ANNAL_ERR_LIMIT: the keeper has sixteen already. Any thread. */
ANNAL_MUST_CHECK annal_status annal__keeper_task_add(annal_store *store,
                                                     const annal__keeper_task *task,
                                                     annal_error *err);

/*
 * Run it a last time, unless another task does its work, and remove it. Waits while it is running.
 * arg distinguishes tasks.
 */
void annal__keeper_task_remove(annal_store *store, void *arg);

#endif
