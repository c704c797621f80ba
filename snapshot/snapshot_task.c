/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Take snapshots, in a task of the keeper, of the sessions to which this store object appends.
 *
 * For each such session the task remembers the position of the newest snapshot, and since when
 * events have waited for the next snapshot. A session whose journal did not grow costs nothing. The
 * task works for BUDGET_US at a time, only tries to lock the index, and continues in a later round,
 * so that appends, checkpoints and the index run in between. If no thread appends and much is to be
 * folded, the task works for HURRY_US at a time, and skips positions at which a snapshot is due
 * (policy.h), so that soon after a burst of appends the newest state is close to a snapshot. Each
 * round works up to the current end of the journal, so nothing is queued.
 *
 * The index has priority. While the index lags behind what this process appended, no snapshot is
 * taken, for at most a tenth of the policy's every_ms (30 seconds by default). After that the task
 * runs beside the index, until the index has caught up once.
 *
 * From time to time the task looks for due snapshots that other processes did not take (missing.h),
 * and takes those, too.
 *
 * At close the task takes the snapshots that are due, in rounds, with the keeper's other work in
 * between. A process that lived only for a moment continues for CLOSING_US or until it has taken
 * one snapshot, so that a series of such processes makes progress. A process that lived longer may
 * have appended more, and continues for up to CLOSING_SHARE times as long as it lived, at most
 * CLOSING_MAX_US. The next process takes the snapshots that remain.
 */
#include "index/sys/open.h"
#include "journal/sys/keeper_task.h"
#include "journal/sys/say.h"
#include "snapshot/due.h"
#include "snapshot/missing.h"
#include "snapshot/snapshot_write.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/sys/seam.h"

#include <annal/metrics.h>

#include <string.h>
#include <time.h>

#define PERIOD_MS 1000
#define BUDGET_US 50000
/* time in us that a round of the task may take if much is to be folded and no thread appends */
#define HURRY_US       200000
#define CLOSING_US     BUDGET_US
#define CLOSING_SHARE  4
#define CLOSING_MAX_US 5000000
#define BUSY_PAUSE_US  2000 /* pause at close, while another process writes the index */
#define PUT_OFF_SHARE  10   /* the task waits for a lagging index for every_ms divided by this */

struct entry {
    char *session;
    struct snapshot_mark last; /* newest snapshot, or position of the last failed attempt */
    uint64_t stride;           /* factor of the policy's distances, see policy.h */
    uint64_t patience;         /* another factor of the policy's distances, see snapshot_write.h */
    struct snapshot_mark end;  /* end of the journal when the task last examined the session */
    /* whether `last` was looked up; if false, no snapshot of the session can be due yet */
    bool known;
    bool changed;
    /* whether another process left a snapshot of the session: look the session up in any case */
    bool is_left_over;
    /* monotonic time since when the journal has had events after `last`, or 0 */
    int64_t waiting_us;
};

struct annal_snapshots {
    annal_index *index;
    annal_store *store;
    annal_snapshot_policy policy;
    /* value that annal__session_list_changed() last returned, from which its next call continues */
    uint64_t since;
    int64_t opened_us;
    int64_t behind_since_us; /* monotonic time since when the index has lagged, or 0 */
    _Atomic bool closing;
    /* whether a round of the task has begun since the index is closing; false if no task of this
     * store object takes snapshots */
    bool is_ending;
    bool is_patient; /* whether this process lived long enough to do much work at close */
    /* monotonic time up to which the task works at close; after that it works only until it has
     * taken one snapshot */
    int64_t patient_until_us;
    /* number of snapshots that the task has taken, without those of the running writer */
    uint64_t taken;
    bool is_due;           /* whether the last round ended with a snapshot due */
    bool is_busy;          /* whether the round ended because another process writes the index */
    struct entry *entries; /* sorted by session */
    size_t count;
    size_t next; /* index of the next entry to serve, so that every session gets a turn */
    struct snapshot_writer
        *writer; /* writer that is working on a session, also between two rounds; or NULL */
    /* state of the previous writer, emptied for reuse by the next, because compiling the core pack
     * takes long */
    annal_state *spare;
};

/* ---- The sessions ---- */

static size_t find(const annal_snapshots *snapshots, const char *session)
{
    size_t low = 0, high = snapshots->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(snapshots->entries[middle].session, session) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct entry *add(annal_snapshots *snapshots, size_t at, const char *session)
{
    char *copy = annal__strndup(session, strlen(session));
    if (copy == NULL || annal__array_add(&snapshots->entries, &snapshots->count,
                                         sizeof *snapshots->entries) == NULL) {
        annal__free(copy);
        return NULL;
    }
    struct entry *entry = &snapshots->entries[at];
    memmove(entry + 1, entry, (snapshots->count - 1 - at) * sizeof *entry);
    *entry = (struct entry){.session = copy};
    return entry;
}

static annal_status note(annal_snapshots *snapshots, annal_slice session, bool is_left_over)
{
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1] = "";
    memcpy(id, session.ptr, session.len);
    size_t at = find(snapshots, id);
    struct entry *entry = at < snapshots->count ? &snapshots->entries[at] : NULL;
    if (entry == NULL || strcmp(entry->session, id) != 0)
        entry = add(snapshots, at, id);
    if (entry == NULL)
        return ANNAL_ERR_NOMEM;
    entry->changed = true;
    entry->is_left_over = entry->is_left_over || is_left_over;
    return ANNAL_OK;
}

/* Add a session whose journal changed to the task's entries. This function and the next are
 * callbacks of the type annal_session_fn. */
static int note_changed(void *arg, annal_slice session, uint64_t bytes)
{
    (void)bytes;
    return note(arg, session, false);
}

static int note_left(void *arg, annal_slice session, uint64_t bytes)
{
    (void)bytes;
    return note(arg, session, true);
}

/* ---- Due snapshots ---- */

/* Look up a session for the first time. A process that ends after a moment may leave the look-up to
 * other processes (missing.h), unless it appended the events itself. */
static annal_status look_up(annal_snapshots *snapshots, struct entry *entry, annal_error *err)
{
    struct due due;
    annal_metrics metrics;
    annal_store_metrics_get(snapshots->store, ANNAL_METRICS_OF_OBJECT, &metrics);
    const struct snapshot_mark grown = {metrics.events, metrics.journal_bytes};
    bool briefly = annal__clock_monotonic_us() - snapshots->opened_us < PERIOD_MS * 1000;
    annal_status status =
        annal__due_look(snapshots->index, annal_slice_of(entry->session), &snapshots->policy,
                        briefly && !entry->is_left_over ? &grown : NULL, &due, err);
    if (status < 0)
        return status;
    if (!due.known && briefly)
        due.since_us = 0;
    const struct clock *clock = annal__store_clock(snapshots->store);
    int64_t waited_us = due.since_us == 0 ? 0 : clock->wall_us(clock->arg) - due.since_us;
    entry->known = due.known;
    entry->last = due.last;
    entry->stride = due.stride;
    entry->patience = due.patience;
    entry->end = due.end;
    entry->waiting_us =
        due.since_us == 0 ? 0 : annal__clock_monotonic_us() - (waited_us > 0 ? waited_us : 0);
    return ANNAL_OK;
}

static annal_status look_again(annal_snapshots *snapshots, struct entry *entry, annal_error *err)
{
    annal_session_info info;
    annal_status status =
        annal_session_info_get(snapshots->store, annal_slice_of(entry->session), &info, err);
    if (status < 0)
        return status;
    entry->end = (struct snapshot_mark){info.last_seq, info.end_offset};
    if (entry->end.offset < entry->last.offset || entry->end.seq < entry->last.seq)
        /* the session has another journal by now */
        entry->last = (struct snapshot_mark){info.fork_seq, 0};
    if (entry->end.seq > entry->last.seq && entry->waiting_us == 0)
        entry->waiting_us = annal__clock_monotonic_us();
    return ANNAL_OK;
}

static annal_status look_at(annal_snapshots *snapshots, struct entry *entry, annal_error *err)
{
    annal_status status =
        entry->known ? look_again(snapshots, entry, err) : look_up(snapshots, entry, err);
    if (status == ANNAL_ERR_NOTFOUND) { /* the session was deleted */
        const struct storage shelf = {.index = snapshots->index,
                                      .store = snapshots->store,
                                      .session = annal_slice_of(entry->session)};
        annal__storage_sweep(&shelf);
        *entry = (struct entry){.session = entry->session};
        return ANNAL_OK;
    }
    if (status >= 0)
        entry->changed = false;
    return status;
}

/* ---- Working ---- */

static annal_status begin(annal_snapshots *snapshots, const struct entry *entry, bool by_time,
                          annal_error *err)
{
    struct snapshot_writer *writer = annal__zalloc(sizeof *writer);
    if (writer == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "take snapshots of session '%s': out of memory",
                           entry->session);
    snapshots->writer = writer;
    annal_status status =
        annal__snapshot_write_init(writer, snapshots->index, annal_slice_of(entry->session),
                                   &snapshots->policy, by_time, 0, &snapshots->spare, err);
    if (status >= 0) {
        /* A process that closes after a short life skips no position at which a snapshot is due: it
         * has no time to fold half of the way to the end before its first snapshot. */
        writer->is_hurried = !snapshots->closing || snapshots->is_patient;
        writer->patience = entry->patience;
        /* do not try again at a position where a snapshot did not fit before */
        if (entry->patience > 1 && entry->last.seq > writer->due.seq)
            writer->due = entry->last;
    }
    return status;
}

static void drop_writer(annal_snapshots *snapshots)
{
    if (snapshots->writer != NULL)
        annal__snapshot_write_done(snapshots->writer);
    annal__free(snapshots->writer);
    snapshots->writer = NULL;
}

/* Handle the end of the writer. If the writer failed, or did not store its snapshot because it
 * takes too many bytes, the session waits for the full distance again before the next attempt. */
static void finish(annal_snapshots *snapshots, annal_status status)
{
    const struct snapshot_writer *writer = snapshots->writer;
    snapshots->taken += writer->taken;
    size_t at = find(snapshots, writer->id);
    struct entry *entry = at < snapshots->count ? &snapshots->entries[at] : NULL;
    if (entry != NULL && strcmp(entry->session, writer->id) == 0) {
        entry->last = status < 0 ? entry->end : writer->due;
        entry->stride = writer->stride == 0 ? 1 : writer->stride;
        entry->patience = writer->patience == 0 ? 1 : writer->patience;
        entry->waiting_us = entry->end.seq > entry->last.seq ? annal__clock_monotonic_us() : 0;
    }
    if (writer->refused_seq != 0 && writer->patience > 1)
        annal__due_refused(snapshots->index, annal_slice_of(writer->id), writer->due,
                           writer->patience);
    drop_writer(snapshots);
}

/* Return whether the task may work on while the snapshots are being closed. */
static bool may_continue(const annal_snapshots *snapshots)
{
    bool some = snapshots->taken > 0 || (snapshots->writer != NULL && snapshots->writer->taken > 0);
    return annal__clock_monotonic_us() < snapshots->patient_until_us ||
           !(some || snapshots->is_busy);
}

/* Return whether this round must end. While closing, the keeper is not needed for other tasks. */
static bool is_over(const annal_snapshots *snapshots, int64_t stop_us)
{
    return annal__clock_monotonic_us() >= stop_us ||
           (!snapshots->closing && annal__keeper_is_needed(snapshots->store));
}

/* Let the snapshot writer continue with its session. Return ANNAL_END if its time for this round is
 * over, or if another process writes the index. */
static annal_status work(annal_snapshots *snapshots, annal_status status, int64_t stop_us,
                         annal_error *err)
{
    while (status == ANNAL_OK && !is_over(snapshots, stop_us) &&
           (!snapshots->closing || may_continue(snapshots)))
        status = annal__snapshot_write_step(snapshots->writer, err);
    snapshots->is_busy = status == ANNAL_ERR_BUSY;
    if (status == ANNAL_OK)
        return ANNAL_END;
    if (status == ANNAL_ERR_BUSY) {
        /* the writer has not read an event yet, so nothing is lost by freeing it */
        if (snapshots->writer->cursor == NULL)
            drop_writer(snapshots);
        return ANNAL_END;
    }
    if (snapshots->writer != NULL)
        finish(snapshots, status);
    return status < 0 ? status : ANNAL_OK;
}

static bool is_due(const annal_snapshots *snapshots, const struct entry *entry, bool *out_by_time)
{
    if (entry->waiting_us == 0)
        return false;
    uint64_t waited_ms = (uint64_t)(annal__clock_monotonic_us() - entry->waiting_us) / 1000;
    const annal_snapshot_policy policy =
        annal__policy_stretch(&snapshots->policy, entry->stride * entry->patience);
    *out_by_time = annal__policy_is_due_by_time(&policy, entry->last, entry->end, waited_ms);
    return *out_by_time || annal__policy_is_due(&policy, entry->last, entry->end);
}

static annal_status serve(annal_snapshots *snapshots, struct entry *entry, int64_t stop_us,
                          annal_error *err)
{
    bool by_time = false;
    annal_status status = ANNAL_OK;
    if (entry->changed)
        status = look_at(snapshots, entry, err);
    if (status >= 0 && !entry->known && is_due(snapshots, entry, &by_time))
        status = look_at(snapshots, entry, err);
    snapshots->is_busy = status == ANNAL_ERR_BUSY;
    if (snapshots->is_busy)
        return ANNAL_END;
    if (status < 0 || !is_due(snapshots, entry, &by_time))
        return status;
    status = begin(snapshots, entry, by_time, err);
    return work(snapshots, status, stop_us, err);
}

static bool is_work_left(const annal_snapshots *snapshots)
{
    bool left = snapshots->writer != NULL;
    for (size_t i = 0; !left && i < snapshots->count; i++)
        left = snapshots->entries[i].changed || snapshots->entries[i].waiting_us != 0;
    return left;
}

static bool is_far_behind(const annal_snapshots *snapshots)
{
    const struct snapshot_writer *writer = snapshots->writer;
    return writer != NULL &&
           annal__policy_is_far_from_end(&snapshots->policy, writer->here, writer->end);
}

static annal_status run_round(annal_snapshots *snapshots, int64_t budget_us, annal_error *err)
{
    int64_t stop_us = annal__clock_monotonic_us() + budget_us;
    annal_status status = ANNAL_OK;
    size_t served = 0;
    if (snapshots->writer != NULL)
        status = work(snapshots, ANNAL_OK, stop_us, err);
    for (; status == ANNAL_OK && served < snapshots->count && !is_over(snapshots, stop_us);
         served++) {
        if (snapshots->next >= snapshots->count)
            snapshots->next = 0;
        status = serve(snapshots, &snapshots->entries[snapshots->next++], stop_us, err);
    }
    snapshots->is_due =
        snapshots->writer != NULL || served < snapshots->count || status == ANNAL_END;
    return status < 0 ? status : is_work_left(snapshots) ? ANNAL_END : ANNAL_OK;
}

static bool is_put_off(annal_snapshots *snapshots)
{
    int64_t now_us = annal__clock_monotonic_us();
    if (snapshots->closing || !annal__index_lags(snapshots->index)) {
        snapshots->behind_since_us = 0;
        return false;
    }
    if (snapshots->behind_since_us == 0)
        snapshots->behind_since_us = now_us;
    uint64_t behind_ms = (uint64_t)(now_us - snapshots->behind_since_us) / 1000;
    return behind_ms < snapshots->policy.every_ms / PUT_OFF_SHARE;
}

static annal_status run_task(void *arg, annal_error *err)
{
    annal_snapshots *snapshots = arg;
    int64_t budget_us = BUDGET_US;
    uint64_t since = snapshots->since;
    if (is_put_off(snapshots))
        return ANNAL_END;
    snapshots->is_ending = snapshots->closing;
    snapshots->since =
        annal__session_list_changed(snapshots->store, since, note_changed, snapshots);
    /* A process that is closing and appended nothing leaves the snapshots to other processes. */
    if (snapshots->closing && snapshots->since == 0)
        return ANNAL_OK;
    if (snapshots->closing) { /* first the sessions to which this process appended */
        annal_status status = run_round(snapshots, budget_us, err);
        if (status < 0 || snapshots->is_due)
            return status;
    }
    annal__missing_look(snapshots->index, &snapshots->policy, BUDGET_US, note_left, snapshots);
    if (!snapshots->closing && snapshots->since == since && is_far_behind(snapshots))
        budget_us = HURRY_US;
    return run_round(snapshots, budget_us, err);
}

/* ---- Open and close ---- */

static annal_status open_task(annal_index *index, const annal_snapshot_policy *policy,
                              bool by_default, annal_snapshots **out_snapshots, annal_error *err)
{
    annal_store *store = annal__index_store(index);
    annal_snapshots *snapshots = annal__zalloc(sizeof *snapshots);
    if (snapshots == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "take snapshots in store %s: out of memory",
                           annal_store_path(store));
    *snapshots = (annal_snapshots){.index = index,
                                   .store = store,
                                   .policy = annal__policy_fill(policy),
                                   .opened_us = annal__clock_monotonic_us()};
    const annal__keeper_task task = {.name = "take snapshots",
                                     .period_ms = PERIOD_MS,
                                     .run = run_task,
                                     .arg = snapshots,
                                     .single = by_default,
                                     .early = true};
    annal_status status = annal__keeper_task_add(store, &task, err);
    if (status < 0)
        annal__free(snapshots);
    else
        *out_snapshots = snapshots;
    return status;
}

static void free_snapshots(annal_snapshots *snapshots)
{
    drop_writer(snapshots);
    annal_state_free(snapshots->spare);
    for (size_t i = 0; i < snapshots->count; i++)
        annal__free(snapshots->entries[i].session);
    annal__free(snapshots->entries);
    annal__free(snapshots);
}

static void close_default(void *arg)
{
    annal_snapshots_close(arg);
}

annal_status annal_index_open(annal_store *store, const annal_index_options *options,
                              annal_index **out_index, annal_error *err)
{
    annal_index *index = NULL;
    annal_snapshots *snapshots = NULL;
    annal_status status = annal__index_open_plain(store, options, &index, err);
    if (status < 0)
        return status;
    /* If the keeper has no room for another task, the store works without this task. */
    if (!annal__session_list_is_read_only(store) && (options == NULL || !options->no_snapshots) &&
        open_task(index, NULL, true, &snapshots, NULL) == ANNAL_OK)
        (void)annal__index_on_close(index, close_default, snapshots);
    *out_index = index;
    return ANNAL_OK;
}

annal_status annal_snapshots_open(annal_index *index, const annal_snapshot_policy *policy,
                                  annal_snapshots **out_snapshots, annal_error *err)
{
    annal_store *store = annal__index_store(index);
    if (annal__session_list_is_read_only(store))
        return annal__fail(err, ANNAL_ERR_READONLY,
                           "take snapshots in store %s: the store is open for reading only",
                           annal_store_path(store));
    annal_status status = open_task(index, policy, false, out_snapshots, err);
    annal_snapshots *usual = status < 0 ? NULL : annal__index_on_close(index, NULL, NULL);
    if (usual != NULL) {
        /* the default task was suspended by the new task, and does not run again */
        annal__keeper_task_remove(store, usual);
        free_snapshots(usual);
    }
    return status;
}

/* Continue with the snapshots that the last round left, as long as this process may work. */
static void continue_work(annal_snapshots *snapshots)
{
    const struct timespec pause = {.tv_nsec = BUSY_PAUSE_US * 1000};
    int64_t last_us = annal__clock_monotonic_us() + CLOSING_MAX_US;
    while (snapshots->is_ending && snapshots->is_due && annal__clock_monotonic_us() < last_us &&
           may_continue(snapshots)) {
        annal_error err = {0};
        if (snapshots->is_busy)
            nanosleep(&pause, NULL);
        (void)!annal_store_keep(snapshots->store, NULL);
        if (run_round(snapshots, BUDGET_US, &err) < 0) {
            annal__say(snapshots->store, ANNAL_LOG_WARNING, "%s", err.message);
            break;
        }
    }
}

void annal_snapshots_close(annal_snapshots *snapshots)
{
    if (snapshots == NULL)
        return;
    int64_t lived_us = annal__clock_monotonic_us() - snapshots->opened_us;
    int64_t share_us =
        lived_us > CLOSING_MAX_US / CLOSING_SHARE ? CLOSING_MAX_US : lived_us * CLOSING_SHARE;
    snapshots->patient_until_us =
        annal__clock_monotonic_us() + (share_us < CLOSING_US ? CLOSING_US : share_us);
    snapshots->is_patient = share_us >= HURRY_US;
    snapshots->closing = true;
    annal__keeper_task_remove(snapshots->store, snapshots);
    continue_work(snapshots);
    free_snapshots(snapshots);
}
