/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The indexer: it updates a follower (sessions.db, or one pack) from the journals.
 *
 * (1) A session's cursor (in _cursor: the next seq, its offset, and the hash of the event before
 *     it) is read in the transaction that moves it and writes the rows of its events. So two
 *     indexers cannot apply an event twice.
 * (2) An event whose hash is right always gets its row, whatever its payload. An event that a pack
 *     cannot accept becomes a finding, and damage becomes a finding in sessions.db; then the next
 *     event is read.
 * (3) A journal that does not agree with the cursor is another journal: the rows of this session
 *     are deleted, and the journal is read from its first event.
 * (4) A transaction ends after ROWS_MAX rows, BYTES_MAX of journal or SLICE_MS, whichever is first:
 *     large enough to be fast, short enough that other processes get the lock. If other processes
 *     wait for the lock, this process leaves it free for a moment (index_lock.h, rule 6). A
 *     transaction in a task of the keeper ends earlier if the keeper must commit a batch of appends
 *     or checkpoint.
 * (5) A journal that cannot be read (permission, a format of a newer version) does not stop the
 *     others: the rows of its session stay unchanged, all other sessions are indexed, and then the
 *     failure is reported.
 * (6) Only events in a session's own journal are indexed: for a fork, the events after its fork
 *     point. So no event has two rows, and sums over sessions are right; the table forks shows
 *     which events of its ancestors belong to the history of a fork.
 * (7) Work is planned without the lock; see plan.h.
 * (8) Several long sessions are indexed in turns of ROWS_PER_TURN events, because events of
 *     sessions that ran at the same time are neighbours in the SQL index by type and time. Indexing
 *     one session after the other would read and write all of its pages again for each session.
 * (9) The sections `-- settle` of a pack run in the transaction that reaches the end which a
 *     session's journal had when the plan was made. So they run once for a long session, and not in
 *     each transaction: otherwise the time of a rebuild would grow faster than the journal. Until
 *     then _cursor also contains the position up to which the session was settled before (seq 0:
 *     never), so that verify can build the same tables.
 */
#include "index/follow/plan.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/sys/cursor.h"
#include "journal/sys/keeper_task.h"
#include "journal/sys/seam.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ROWS_MAX     50000
#define BYTES_MAX    (64u << 20)
#define SLICE_MS     500
#define ATTEMPTS_MAX 5
/* number of rows between two checks whether the time of the transaction is up */
#define ROWS_PER_CLOCK 256
#define ROWS_PER_TURN  512
#define ROWS_PER_YIELD 4

/* ---- One transaction ---- */

/* The progress of one transaction of the indexer. */
struct batch {
    struct follower *follower;
    int64_t deadline_us;
    bool in_task;
    uint64_t rows;
    uint64_t bytes;
    uint64_t turn_rows; /* number of rows at which the turn of the current session ends (rule 8) */
    annal_error unreadable;
};

static annal_status add_damage(struct batch *batch, annal_slice session, const annal_cursor *cursor,
                               annal_error *err)
{
    if (batch->follower->pack != NULL)
        return ANNAL_OK; /* a pack records no damage: the follower of sessions.db does */
    annal_damage damage = annal_cursor_damage(cursor);
    const annal_index_finding finding = {.session = session,
                                         .seq = damage.seq,
                                         .offset = damage.offset,
                                         .length = damage.length,
                                         .kind = ANNAL_SLICE("damage"),
                                         .what = annal_slice_of(damage.what)};
    return annal__follower_finding(batch->follower, &finding, err);
}

/*
 * Return whether the transaction must end: after its deadline, or in a task when the keeper is
 * needed, but only after the first rows, so that each call makes progress.
 */
static bool must_end(const struct batch *batch)
{
    return annal__deadline_passed(batch->deadline_us) ||
           (batch->in_task && batch->rows > 0 &&
            annal__keeper_is_needed(batch->follower->derived->store));
}

static bool batch_full(struct batch *batch)
{
    if (batch->in_task && batch->rows % ROWS_PER_YIELD == 0)
        annal__keeper_yield(batch->follower->derived->store);
    return batch->rows >= ROWS_MAX || batch->bytes >= BYTES_MAX ||
           batch->rows >= batch->turn_rows ||
           (batch->rows % ROWS_PER_CLOCK == 0 && must_end(batch));
}

/*
 * Record the failure of a journal, and return true if the journal may be skipped (rule 5);
 * otherwise copy the failure to err and return false.
 */
static bool pass_over(struct batch *batch, const annal_error *why, annal_error *err)
{
    if (why->status == ANNAL_ERR_NOMEM) {
        if (err != NULL)
            *err = *why;
        return false;
    }
    if (batch->unreadable.status == 0)
        batch->unreadable = *why;
    return true;
}

/*
 * Open a cursor in a session's journal. A file with its name that is the journal of another session
 * counts as missing: see journal/stray.h.
 */
static annal_status open_at(annal_store *store, annal_slice session, const annal_position *from,
                            annal_cursor **out_cursor, annal_error *err)
{
    annal_status status = annal_cursor_open_at(store, session, from->seq, from->offset,
                                               from->h_before, out_cursor, err);
    return status == ANNAL_ERR_CORRUPT && annal__stray_is(store, session) ? ANNAL_ERR_NOTFOUND
                                                                          : status;
}

/*
 * Open a journal at the follower's cursor, or at its first event, after deleting all rows of the
 * session, if the journal was replaced (rules 1 and 3). *out_cursor is NULL if the journal does not
 * exist any more or cannot be read. *out_fresh: whether the session has no rows.
 */
static annal_status open_journal(struct batch *batch, annal_slice session,
                                 annal_cursor **out_cursor, bool *out_fresh, annal_error *err)
{
    struct follower *follower = batch->follower;
    annal_store *store = follower->derived->store;
    annal_position from;
    bool known = false;
    annal_status status = annal__plan_cursor(follower->get_cursor, session, &from, &known, err);
    if (status < 0)
        return status;

    annal_error why = {0};
    status = ANNAL_ERR_CONFLICT;
    if (known)
        status = open_at(store, session, &from, out_cursor, &why);
    if (follower->tried != NULL && known && status < 0)
        /* the journal cannot be continued at the cursor, so the rows of the event that was tried do
         * not belong to it: guard.c then rolls them back */
        return ANNAL_ERR_CONFLICT;
    *out_fresh = status == ANNAL_ERR_CONFLICT || status == ANNAL_ERR_NOTFOUND;
    if (*out_fresh) {
        annal_status forgotten = known ? follower->ops->forget(follower, session, err) : ANNAL_OK;
        if (forgotten < 0)
            return forgotten;
        status = open_at(store, session, &(annal_position){.seq = 1}, out_cursor, &why);
        annal_status begun = status == ANNAL_OK && follower->ops->begin != NULL
                                 ? follower->ops->begin(follower, session, err)
                                 : ANNAL_OK;
        if (begun < 0) {
            annal_cursor_close(*out_cursor);
            return begun;
        }
    }
    if (status < 0)
        *out_cursor = NULL;
    if (status == ANNAL_ERR_NOTFOUND || (status < 0 && pass_over(batch, &why, err)))
        return ANNAL_OK;
    return status;
}

/* Read the next event or damage of a journal, and write its rows. *out_done: whether the journal
 * has no further line now. */
static annal_status index_next(struct batch *batch, annal_slice session, annal_cursor *cursor,
                               bool *out_damaged, bool *out_done, annal_error *err)
{
    annal_event event;
    annal_error why = {0};
    annal_status status = annal__cursor_next_json(cursor, &event, &why);
    *out_damaged = status == ANNAL_DAMAGE;
    *out_done = status == ANNAL_END || (status < 0 && pass_over(batch, &why, err));
    if (*out_done)
        return ANNAL_OK;
    if (status == ANNAL_DAMAGE)
        return add_damage(batch, session, cursor, err);
    if (status < 0)
        return status;
    batch->rows++;
    return batch->follower->ops->event(batch->follower, session, &event, err);
}

/*
 * Index events up to the offset target, or until the batch is full. Never stops directly after
 * damage, because a cursor can continue only after a line whose hash is right.
 */
static annal_status index_events(struct batch *batch, annal_slice session, annal_cursor *cursor,
                                 uint64_t target, bool *out_done, annal_error *err)
{
    annal_status status = ANNAL_OK;
    uint64_t begun = annal_cursor_position(cursor).offset;
    uint64_t bytes_before = batch->bytes;
    bool damaged = false;
    *out_done = begun >= target;
    while (status >= 0 && !*out_done &&
           (damaged || batch->bytes == bytes_before || !batch_full(batch))) {
        status = index_next(batch, session, cursor, &damaged, out_done, err);
        uint64_t offset = annal_cursor_position(cursor).offset;
        batch->bytes = bytes_before + offset - begun;
        *out_done = *out_done || (offset >= target && !damaged);
    }
    return status;
}

/* Index a part of a session. *out_done: whether target was reached. settle: whether to run the
 * sections `-- settle` then (rule 9). */
static annal_status index_session(struct batch *batch, annal_slice session, uint64_t target,
                                  bool settle, bool *out_done, annal_error *err)
{
    struct follower *follower = batch->follower;
    annal_cursor *cursor = NULL;
    bool fresh = false;
    annal_status status = open_journal(batch, session, &cursor, &fresh, err);
    *out_done = true;
    if (status < 0 || cursor == NULL)
        return status;
    annal_position begun = annal_cursor_position(cursor);
    if (fresh)
        begun.seq = 0;
    status = index_events(batch, session, cursor, target, out_done, err);
    annal_position position = annal_cursor_position(cursor);
    if (status >= 0)
        status = follower->ops->flush(follower, session, err);
    if (status >= 0)
        status = *out_done && settle ? annal__follower_settle(follower, session, position.seq, err)
                                     : annal__follower_put_off(follower, session, begun, err);
    if (status >= 0)
        status = annal__follower_put(follower->put_cursor, session, position, err);
    annal_cursor_close(cursor);
    return status;
}

annal_status annal__indexer_catch_up(struct follower *follower, annal_slice session,
                                     annal_error *err)
{
    struct batch batch = {.follower = follower, .deadline_us = INT64_MAX, .turn_rows = UINT64_MAX};
    bool done = false;
    annal_status status = ANNAL_OK;
    while (status >= 0 && !done) {
        batch.rows = batch.bytes = 0;
        status = index_session(&batch, session, UINT64_MAX, true, &done, err);
    }
    if (status >= 0 && batch.unreadable.status < 0) {
        if (err != NULL)
            *err = batch.unreadable;
        status = batch.unreadable.status;
    }
    return status;
}

/* ---- Working through a plan ---- */

/* Index some events of the session whose turn it is (rule 8). *next is the number of plan entries,
 * from the first, that need no more work. */
static annal_status take_turn(struct batch *batch, struct plan *plan, size_t *next,
                              annal_error *err)
{
    if (plan->turn < *next || plan->turn >= plan->count)
        plan->turn = *next;
    struct plan_entry entry = plan->entries[plan->turn];
    batch->turn_rows = batch->rows + ROWS_PER_TURN;
    bool done = true;
    annal_status status = index_session(batch, annal__plan_session(plan, &entry), entry.target,
                                        !plan->unsettled, &done, err);
    if (done) {
        plan->entries[plan->turn] = plan->entries[*next];
        plan->entries[(*next)++] = entry;
    }
    plan->turn++;
    return status;
}

annal_status annal__indexer_batch(struct follower *follower, struct plan *plan,
                                  int64_t lock_until_us, int64_t work_until_us, bool must_match,
                                  annal_index_progress *progress, annal_error *err)
{
    struct derived *derived = follower->derived;
    annal_status status = annal__derived_begin(derived, lock_until_us, err);
    if (status < 0)
        return status;
    /* the pack cannot run on this database; pack_database.c reported the reason when it opened the
     * database */
    if (follower->get_cursor == NULL) {
        (void)annal__derived_end(derived, false, NULL);
        return annal__fail(
            err, ANNAL_ERR_UNSUPPORTED,
            "index events for pack '%s': the pack cannot be run; 'annal pack list' shows why",
            follower->pack);
    }
    if (must_match && derived->stamp.id != plan->stamp.id) {
        (void)annal__derived_end(derived, false, NULL);
        /* the plan was made for another database, so its cursors do not count here: the caller
         * makes another plan */
        return ANNAL_ERR_CONFLICT;
    }
    int64_t begun_us = annal__clock_monotonic_us(), slice_us = annal__deadline_after(SLICE_MS);
    struct batch batch = {.follower = follower,
                          .in_task = plan->in_task,
                          .deadline_us = slice_us < work_until_us ? slice_us : work_until_us};
    size_t next = plan->next;
    bool full = false;
    while (status >= 0 && next < plan->count && !full) {
        status = take_turn(&batch, plan, &next, err);
        full = batch.bytes >= BYTES_MAX || batch.rows >= ROWS_MAX || must_end(&batch);
    }
    struct stamp stamp = {derived->stamp.id, derived->stamp.commits + 1};
    plan->wanted = annal__index_lock_is_wanted(&derived->lock, begun_us);
    annal_status ended = annal__derived_end(derived, status >= 0, status >= 0 ? err : NULL);
    if (status >= 0)
        status = ended;
    if (status < 0)
        return status;
    plan->next = next;
    plan->stamp = stamp;
    if (plan->unreadable.status == 0)
        plan->unreadable = batch.unreadable;
    progress->events += batch.rows;
    progress->bytes_done += batch.bytes;
    return ANNAL_OK;
}

static annal_status run_plan(struct follower *follower, struct plan *plan, int64_t deadline_us,
                             const annal_catch_up_options *options, annal_error *err)
{
    annal_index_progress progress = {0};
    annal__plan_look_ahead(follower, plan, &progress.bytes_total);
    while (plan->next < plan->count) {
        annal_status status =
            annal__indexer_batch(follower, plan, deadline_us, deadline_us, true, &progress, err);
        if (status < 0)
            return status;
        /* the journals have grown since they were measured */
        if (progress.bytes_total < progress.bytes_done)
            progress.bytes_total = progress.bytes_done;
        if (options->progress != NULL && options->progress(options->arg, &progress) != 0)
            return ANNAL_END;
        if (plan->wanted && plan->next < plan->count)
            annal__index_lock_leave_free();
        if (plan->next < plan->count && annal__deadline_passed(deadline_us))
            return annal__fail(err, ANNAL_ERR_BUSY,
                               "the time limit for indexing was reached: %llu of %llu bytes of new "
                               "journal are indexed",
                               (unsigned long long)progress.bytes_done,
                               (unsigned long long)progress.bytes_total);
    }
    if (plan->unreadable.status < 0 && err != NULL)
        *err = plan->unreadable;
    return plan->unreadable.status;
}

/* Return whether a failure means that the database was deleted, rebuilt or corrupt, or cannot be
 * used, so that another attempt may succeed. A corrupt database is deleted. */
static bool is_about_database(struct derived *derived, annal_status status, const struct plan *plan)
{
    if (status == ANNAL_ERR_CONFLICT)
        return true;
    if (derived->frozen || plan->unreadable.status < 0)
        return false;
    return annal__error_is_io(status) ||
           (status == ANNAL_ERR_CORRUPT && annal__derived_heal(derived));
}

annal_status annal__indexer_run(struct follower *follower, const annal_slice *sessions,
                                size_t count, struct plan *journals,
                                const annal_catch_up_options *options, struct stamp *out_stamp,
                                bool *out_stuck, annal_error *err)
{
    struct derived *derived = follower->derived;
    static const annal_catch_up_options defaults;
    if (options == NULL)
        options = &defaults;
    uint32_t timeout_ms = options->timeout_ms == 0 ? derived->wait_ms : options->timeout_ms;
    uint32_t plan_ms = timeout_ms < derived->wait_ms ? timeout_ms : derived->wait_ms;
    int64_t deadline_us = annal__deadline_after(timeout_ms);
    annal_status status = ANNAL_OK;
    annal_error why = {0};
    bool again = true;
    *out_stuck = false;
    for (unsigned attempt = 1; again; attempt++) {
        struct plan plan = {0};
        /* forget that the tables were emptied before: the plan is made after that */
        follower->was_emptied = false;
        status = annal__plan_make(follower, sessions, count, journals, plan_ms, &plan, &why);
        if (status >= 0)
            status = run_plan(follower, &plan, deadline_us, options, &why);
        *out_stamp = plan.stamp;
        if (status == ANNAL_OK && follower->was_emptied) {
            annal__plan_done(&plan);
            attempt--;
            continue;
        }
        if (status == ANNAL_OK && count == 0)
            annal__plan_note_whole(follower, &plan);
        again = is_about_database(derived, status, &plan);
        annal__plan_done(&plan);
        if (again && (attempt >= ATTEMPTS_MAX || annal__derived_is_hopeless(&why))) {
            again = false;
            *out_stuck = !derived->private;
        } else if (again && annal__deadline_passed(deadline_us)) {
            again = false;
            status = ANNAL_ERR_BUSY;
        } else if (again) {
            annal__deadline_pause(attempt);
        }
    }
    if (status == ANNAL_ERR_CONFLICT || (status == ANNAL_ERR_BUSY && why.status != ANNAL_ERR_BUSY))
        status = annal__fail(&why, ANNAL_ERR_BUSY,
                             "the index was deleted repeatedly while it was being built");
    return annal__error_pass(err, status, &why);
}
