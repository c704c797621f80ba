/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/keeper.h"

#include "journal/base/error.h"
#include "journal/base/thread.h"
#include "journal/checkpoint.h"
#include "journal/keeper_wake.h"
#include "journal/replace_sweep.h"
#include "journal/session_own.h"
#include "journal/store.h"
#include "journal/sys/keeper_task.h"
#include "journal/sys/say.h"

#include <sched.h>
#include <string.h>

/* time in us without appends after which the keeper syncs all journals (a checkpoint) */
#define QUIET_US 5000000
/* maximum time in us between two checkpoints of the keeper while appends continue */
#define ROTATE_US     30000000
#define RETRY_US      500000 /* pause before the keeper retries after a failure of the disk */
#define LONG_SLEEP_US 60000000
/*
 * A task yields the processor to appending threads (sched_yield). If a yield takes longer than
 * YIELD_LONG_US, other programs are computing; then no yield follows for YIELD_REST times as long,
 * so that these programs get at most a tenth of the time of tasks.
 */
#define YIELD_LONG_US 2000
#define YIELD_REST    10

/* Log a failure of a round; the next round tries again, unless the store has stopped. */
static void complain(const annal_store *store, const char *what, annal_status status,
                     const annal_error *err)
{
    if (status < 0)
        annal__say(store, ANNAL_LOG_WARNING, "%s: %s", what, err->message);
}

static annal_status release_if_wanted(void *arg, struct session *session, annal_error *err)
{
    annal_store *store = arg;
    pthread_mutex_lock(&session->lock);
    if (annal__session_is_wanted(store, session))
        complain(store, "give a session to another process",
                 annal__session_release(store, session, err), err);
    pthread_mutex_unlock(&session->lock);
    return ANNAL_OK;
}

static void release_wanted(annal_store *store)
{
    annal_error err = {0};
    const struct held *held = &store->own_log.held;
    bool some = false;
    for (uint32_t i = 0; i < annal__held_entries(held) && !some; i++) {
        struct held_entry *entry = annal__held_entry(held, i);
        some = atomic_load(&entry->hash) != 0 && atomic_load(&entry->word) == HELD_WANTED;
    }
    /* release what others want; but a store that a failure has stopped keeps its sessions until it
     * is closed */
    if (some && annal__commit_check(&store->commit, NULL) == ANNAL_OK)
        (void)annal__session_each(&store->sessions, release_if_wanted, store, &err);
}

/* Return whether a group with events of level batch has waited for batch_ms. The commit's lock is
 * held. */
static bool is_batch_due(const annal_store *store, int64_t now_us)
{
    int64_t first_us = store->commit.failed ? 0 : store->commit.current->first_us;
    return first_us > 0 && now_us - first_us >= (int64_t)store->batch_ms * 1000;
}

/* Return the last epoch of the log whose journals must be synced, so that its region can be reused;
 * 0 if none. The caller holds commit->lock. */
static uint64_t find_full(const annal_store *store)
{
    const struct commit *commit = &store->commit;
    return commit->failed || commit->full <= commit->released ? 0 : commit->full;
}

bool annal__keeper_is_needed(annal_store *store)
{
    struct keeper *keeper = &store->keeper;
    int64_t now_us = annal__context_now_us(&store->context);
    pthread_mutex_lock(&store->commit.lock);
    bool needed =
        is_batch_due(store, now_us) || (find_full(store) > 0 && now_us >= keeper->retry_us);
    pthread_mutex_unlock(&store->commit.lock);
    keeper->has_task_yielded = needed && !keeper->is_last_run;
    return keeper->has_task_yielded;
}

void annal__keeper_yield(annal_store *store)
{
    struct keeper *keeper = &store->keeper;
    int64_t begun_us = annal__context_now_us(&store->context);
    if (begun_us < keeper->no_yield_us)
        return;
    sched_yield();
    int64_t took_us = annal__context_now_us(&store->context) - begun_us;
    if (took_us > YIELD_LONG_US)
        keeper->no_yield_us = begun_us + YIELD_REST * took_us;
}

static void commit_batches(annal_store *store, int64_t now_us)
{
    annal_error err = {0};
    pthread_mutex_lock(&store->commit.lock);
    bool due = is_batch_due(store, now_us);
    pthread_mutex_unlock(&store->commit.lock);
    if (due)
        complain(store, "commit a batch of events", annal__commit_flush(&store->commit, &err),
                 &err);
}

/* Checkpoint if an epoch needs it, or if the log was not checkpointed for QUIET_US without appends
 * or for ROTATE_US. The caller retries later after a failure. */
static annal_status checkpoint_when_due(annal_store *store, int64_t now_us, annal_error *err)
{
    struct keeper *keeper = &store->keeper;
    pthread_mutex_lock(&store->commit.lock);
    uint64_t full = find_full(store);
    bool written = !store->commit.failed && store->commit.durable > keeper->rotated_group;
    uint64_t group = store->commit.durable;
    pthread_mutex_unlock(&store->commit.lock);
    annal_status status = full > 0 ? annal__checkpoint_epoch(&store->commit, full, err) : ANNAL_OK;
    if (!written)
        keeper->rotated_us = now_us;
    if (status == ANNAL_OK && written &&
        (now_us - atomic_load(&store->sessions.appended_us) >= QUIET_US ||
         now_us - keeper->rotated_us >= ROTATE_US)) {
        status = annal__commit_rotate(&store->commit, err);
        keeper->rotated_us = now_us;
        if (status == ANNAL_OK)
            keeper->rotated_group = group;
        if (status == ANNAL_OK && atomic_load(&store->tombstones))
            annal__replace_sweep(store);
    }
    return status;
}

/* Retry writes that the disk refused. Late sessions, whose journals must be written again, come
 * first (failure.h), because no checkpoint succeeds while a session is late. */
static void tend_log(annal_store *store, int64_t now_us)
{
    annal_error err = {0};
    struct keeper *keeper = &store->keeper;
    if (now_us < keeper->retry_us || annal__commit_check(&store->commit, NULL) < 0)
        return;
    annal_status status = ANNAL_OK;
    bool late = atomic_load(&store->sessions.late) > 0;
    if (late)
        status = annal__commit_catch_up(&store->commit, &err);
    if (status == ANNAL_OK && !late)
        complain(store, "create a larger commit log", annal__commit_grow(&store->commit, &err),
                 &err);
    if (status == ANNAL_OK)
        status = checkpoint_when_due(store, now_us, &err);
    keeper->retry_us = status < 0 ? now_us + RETRY_US : 0;
    if (!late) /* the failure of a late session was logged already */
        complain(store, "checkpoint the store", status, &err);
}

/* Overwrite the log if another process has deleted a session and asks for it (rule 7 of
 * held_list.h). */
static void wipe_when_asked(annal_store *store, int64_t now_us)
{
    annal_error err = {0};
    struct keeper *keeper = &store->keeper;
    uint32_t wanted;
    if (now_us < keeper->retry_us || !annal__held_is_to_wipe(&store->own_log.held, &wanted) ||
        annal__commit_check(&store->commit, NULL) < 0)
        return;
    annal_status status = annal__commit_wipe(&store->commit, &err);
    if (status == ANNAL_OK)
        annal__held_wiped(&store->own_log.held, wanted);
    else
        keeper->retry_us = now_us + RETRY_US;
    complain(store, "overwrite the commit log", status, &err);
}

static void run_task(annal_store *store, struct task_state *state, int64_t now_us)
{
    annal_error err = {0};
    state->ran_at_change = atomic_load(&store->sessions.changes);
    state->due_us = now_us + (int64_t)state->task.period_ms * 1000;
    state->latest_us = 0;
    store->keeper.has_task_yielded = false;
    annal_status status = state->task.run(state->task.arg, &err);
    if (status > 0) {
        /* no longer the current number of changes, so that the task is due again */
        state->ran_at_change--;
        if (store->keeper.has_task_yielded)
            state->due_us = now_us;
        state->latest_us = state->due_us;
    }
    complain(store, state->task.name, status, &err);
}

/* Return whether another task with the same name does the work of this task: see
 * annal__keeper_task.single. */
static bool gives_way(const struct keeper *keeper, const struct task_state *state)
{
    bool is_earlier = true;
    for (size_t i = 0; state->task.single && i < keeper->task_count; i++) {
        const struct task_state *other = &keeper->tasks[i];
        if (other == state)
            is_earlier = false;
        else if (strcmp(other->task.name, state->task.name) == 0 &&
                 (is_earlier || !other->task.single))
            return true;
    }
    return false;
}

/* Return when the task is due, given that the store changed since it last ran. */
static int64_t task_due(const annal_store *store, struct task_state *state, int64_t now_us)
{
    const annal__keeper_task *task = &state->task;
    if (state->latest_us == 0)
        state->latest_us = now_us + (int64_t)task->latest_ms * 1000;
    int64_t quiet_us = atomic_load(&store->sessions.appended_us) + (int64_t)task->quiet_ms * 1000;
    int64_t due_us = quiet_us < state->latest_us ? quiet_us : state->latest_us;
    return task->quiet_ms == 0 || due_us < state->due_us ? state->due_us : due_us;
}

static void run_tasks(annal_store *store)
{
    struct keeper *keeper = &store->keeper;
    for (size_t i = 0; i < keeper->task_count; i++) {
        int64_t now_us = annal__context_now_us(&store->context);
        struct task_state *state = &keeper->tasks[i];
        if (atomic_load(&store->sessions.changes) != state->ran_at_change &&
            !gives_way(keeper, state) && now_us >= task_due(store, state, now_us))
            run_task(store, state, now_us);
    }
}

static void earlier(int64_t *wake_us, int64_t due_us)
{
    if (due_us < *wake_us)
        *wake_us = due_us;
}

/* Return when the next work is due if the keeper is not woken. *out_idle is set if the next append
 * needs the keeper, so that it must wake the keeper. */
static int64_t next_due(annal_store *store, bool *out_idle)
{
    struct keeper *keeper = &store->keeper;
    int64_t wake_us = annal__context_now_us(&store->context) + LONG_SLEEP_US;
    pthread_mutex_lock(&store->commit.lock);
    const struct commit *commit = &store->commit;
    bool idle = commit->durable == keeper->rotated_group;
    if (!commit->failed && commit->current->first_us > 0)
        earlier(&wake_us, commit->current->first_us + (int64_t)store->batch_ms * 1000);
    int64_t log_us = wake_us;
    if (!commit->failed && !idle) {
        earlier(&log_us, atomic_load(&store->sessions.appended_us) + QUIET_US);
        earlier(&log_us, keeper->rotated_us + ROTATE_US);
    }
    bool to_wipe = atomic_load(&keeper->alarm.wakeup_word) != &keeper->alarm.local_word &&
                   annal__held_is_to_wipe(&store->own_log.held, NULL);
    if (!commit->failed && (to_wipe || atomic_load(&store->sessions.late) > 0))
        log_us = keeper->retry_us;
    earlier(&wake_us, log_us < keeper->retry_us ? keeper->retry_us : log_us);
    pthread_mutex_unlock(&store->commit.lock);
    for (size_t i = 0; i < keeper->task_count; i++) {
        if (gives_way(keeper, &keeper->tasks[i]))
            continue;
        if (atomic_load(&store->sessions.changes) != keeper->tasks[i].ran_at_change)
            earlier(&wake_us,
                    task_due(store, &keeper->tasks[i], annal__context_now_us(&store->context)));
        else
            idle = true;
    }
    *out_idle = idle;
    return wake_us;
}

void annal__keeper_round(annal_store *store)
{
    struct keeper *keeper = &store->keeper;
    pthread_mutex_lock(&keeper->round);
    int64_t now_us = annal__context_now_us(&store->context);
    commit_batches(store, now_us);
    if (atomic_load(&keeper->alarm.wakeup_word) != &keeper->alarm.local_word) {
        release_wanted(store);
        tend_log(store, now_us);
        wipe_when_asked(store, now_us);
    }
    run_tasks(store);
    pthread_mutex_unlock(&keeper->round);
}

/*
 * Return how long to sleep, in microseconds. Waking the keeper at every append would cost each
 * append a system call, so an append wakes it only if the keeper has set `idle`. The keeper looks
 * for work once more after it set `idle`, so either the append sees `idle`, or the keeper sees the
 * append.
 */
static int64_t choose_sleep(annal_store *store)
{
    struct keeper *keeper = &store->keeper;
    bool idle;
    pthread_mutex_lock(&keeper->round);
    int64_t wake_us = next_due(store, &idle);
    if (idle) {
        atomic_store(&keeper->alarm.idle, true);
        wake_us = next_due(store, &idle);
    }
    pthread_mutex_unlock(&keeper->round);
    return wake_us - annal__context_now_us(&store->context);
}

static void *keeper_main(void *arg)
{
    annal_store *store = arg;
    struct keeper *keeper = &store->keeper;
    while (!atomic_load(&keeper->is_stopping)) {
        _Atomic uint32_t *word = atomic_load(&keeper->alarm.wakeup_word);
        uint32_t value = atomic_load(word);
        annal__keeper_round(store);
        int64_t sleep_us = choose_sleep(store);
        if (sleep_us > 0 && !atomic_load(&keeper->is_stopping) &&
            word == atomic_load(&keeper->alarm.wakeup_word))
            annal__futex_wait(word, value, sleep_us);
        atomic_store(&keeper->alarm.idle, false);
    }
    return NULL;
}

annal_status annal__keeper_start(annal_store *store, annal_error *err)
{
    int failed = annal__thread_start(&store->keeper.thread, keeper_main, store);
    if (failed != 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "start the background thread of store %s: %s",
                           store->context.path, strerror(failed));
    store->keeper.alarm.running = true;
    return ANNAL_OK;
}

void annal__keeper_stop(annal_store *store)
{
    if (!store->keeper.alarm.running)
        return;
    atomic_store(&store->keeper.is_stopping, true);
    annal__keeper_wake(&store->keeper.alarm);
    pthread_join(store->keeper.thread, NULL);
    store->keeper.alarm.running = false;
}

annal_status annal_store_keep(annal_store *store, annal_error *err)
{
    annal_status status = annal__context_check(&store->context, err);
    if (status < 0)
        return status;
    pthread_mutex_lock(&store->keeper.round);
    store->keeper.retry_us = 0;
    pthread_mutex_unlock(&store->keeper.round);
    annal__keeper_round(store);
    return status;
}

annal_status annal__keeper_task_add(annal_store *store, const annal__keeper_task *task,
                                    annal_error *err)
{
    annal_status status = annal__context_check(&store->context, err);
    if (status < 0)
        return status;
    struct keeper *keeper = &store->keeper;
    struct task_state state = {.task = *task,
                               .ran_at_change = atomic_load(&store->sessions.changes)};
    if (task->early) {
        state.ran_at_change--;
        state.due_us = annal__context_now_us(&store->context) + (int64_t)task->period_ms * 1000;
    }
    pthread_mutex_lock(&keeper->round);
    if (keeper->task_count == TASKS_MAX)
        status = annal__fail(err, ANNAL_ERR_LIMIT,
                             "add task '%s': the keeper already has the maximum of %d tasks",
                             task->name, TASKS_MAX);
    else
        keeper->tasks[keeper->task_count++] = state;
    pthread_mutex_unlock(&keeper->round);
    /* Wake the keeper, which may sleep until after the task's first run is due. */
    if (status == ANNAL_OK && task->early && atomic_load(&keeper->alarm.idle))
        annal__keeper_wake(&store->keeper.alarm);
    return status;
}

void annal__keeper_task_remove(annal_store *store, void *arg)
{
    struct keeper *keeper = &store->keeper;
    if (annal__context_check(&store->context, NULL) < 0)
        return;
    pthread_mutex_lock(&keeper->round);
    for (size_t i = 0; i < keeper->task_count; i++) {
        if (keeper->tasks[i].task.arg != arg)
            continue;
        keeper->is_last_run = true;
        if (!gives_way(keeper, &keeper->tasks[i]))
            run_task(store, &keeper->tasks[i], annal__context_now_us(&store->context));
        keeper->is_last_run = false;
        keeper->task_count--;
        memmove(&keeper->tasks[i], &keeper->tasks[i + 1],
                (keeper->task_count - i) * sizeof *keeper->tasks);
        break;
    }
    pthread_mutex_unlock(&keeper->round);
    /* another task of the same name may be due now: wake the keeper */
    if (atomic_load(&keeper->alarm.idle))
        annal__keeper_wake(&store->keeper.alarm);
}
