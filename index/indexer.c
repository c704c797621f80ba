/*
 * The indexer: brings sessions.db up to its journals.
 *
 * (1) A session's cursor (_cursor: next seq, offset, hash before it) is read in the transaction
 *     that moves it, together with the rows that it stands for. Two indexers cannot do an event
 *     twice.
 * (2) Total: an event that proves itself gets its row, whatever its payload. What a pack cannot
 *     take and what is damaged becomes a finding, and the next event is next.
 * (3) When the journal does not agree with the cursor it is another journal: the rows of this
 *     session go, and it begins at its first event.
 * (4) A transaction ends after ROWS_MAX rows, BYTES_MAX of journal or SLICE_MS, whichever is first:
 *     large enough to be fast, short enough that others get the lock.
 * (5) A journal that cannot be read (permission, a format of a newer version) costs nobody else:
 *     its session stays as it is, all others are done, and then it is told.
 * (6) Work is planned without the lock; see plan.h.
 */
#include "index/database.h"
#include "index/index.h"
#include "index/plan.h"
#include "journal/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ROWS_MAX       50000
#define BYTES_MAX      (64u << 20)
#define SLICE_MS       500
#define CHORE_MS       200
#define ATTEMPTS_MAX   5
#define ROWS_PER_CLOCK 256 /* how often the time is looked at */

/* ---- One transaction ---- */

struct count {
    char type[ANNAL_TYPE_BYTES_MAX + 1];
    uint64_t n;
};

#define COUNTS_MAX 64

/* What one transaction has done so far. */
struct batch {
    annal_index *index;
    int64_t deadline_us;
    uint64_t rows;
    uint64_t bytes;
    annal_error unreadable;
    struct count counts[COUNTS_MAX]; /* of the session at hand */
    size_t count_count;
};

static annal_status flush_counts(struct batch *batch, annal_slice session, annal_error *err)
{
    sqlite3_stmt *stmt = batch->index->writer.add_count;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < batch->count_count; i++) {
        annal__db_bind_text(stmt, 1, session);
        annal__db_bind_text(stmt, 2, annal_slice_of(batch->counts[i].type));
        sqlite3_bind_int64(stmt, 3, (sqlite3_int64)batch->counts[i].n);
        status = annal__db_run(stmt, err);
    }
    batch->count_count = 0;
    return status;
}

static annal_status count_type(struct batch *batch, annal_slice session, annal_slice type,
                               annal_error *err)
{
    for (size_t i = 0; i < batch->count_count; i++)
        if (strlen(batch->counts[i].type) == type.len &&
            memcmp(batch->counts[i].type, type.ptr, type.len) == 0) {
            batch->counts[i].n++;
            return ANNAL_OK;
        }
    if (batch->count_count == COUNTS_MAX) {
        annal_status status = flush_counts(batch, session, err);
        if (status < 0)
            return status;
    }
    ANNAL_ASSERT(type.len <= ANNAL_TYPE_BYTES_MAX);
    struct count *count = &batch->counts[batch->count_count++];
    memcpy(count->type, type.ptr, type.len);
    count->type[type.len] = '\0';
    count->n = 1;
    return ANNAL_OK;
}

static annal_status add_finding(struct batch *batch, const annal_index_finding *finding,
                                annal_error *err)
{
    sqlite3_stmt *stmt = batch->index->writer.insert_finding;
    annal__db_bind_text(stmt, 1, finding->session);
    sqlite3_bind_int64(stmt, 2, (sqlite3_int64)finding->seq);
    sqlite3_bind_int64(stmt, 3, (sqlite3_int64)finding->offset);
    sqlite3_bind_int64(stmt, 4, (sqlite3_int64)finding->length);
    annal__db_bind_text(stmt, 5, finding->kind);
    annal__db_bind_text(stmt, 6, finding->what);
    return annal__db_run(stmt, err);
}

static annal_status add_damage(struct batch *batch, annal_slice session, const annal_cursor *cursor,
                               annal_error *err)
{
    annal_damage damage = annal_cursor_damage(cursor);
    const annal_index_finding finding = {.session = session,
                                         .seq = damage.seq,
                                         .offset = damage.offset,
                                         .length = damage.length,
                                         .kind = ANNAL_SLICE("damage"),
                                         .what = annal_slice_of(damage.what)};
    return add_finding(batch, &finding, err);
}

static annal_status add_event(struct batch *batch, annal_slice session, const annal_event *event,
                              annal_error *err)
{
    struct writer *writer = &batch->index->writer;
    sqlite3_stmt *stmt = writer->insert_event;
    char ts[ANNAL_TIME_BYTES];
    annal_time_format(event->ts_us, ts);
    annal__db_bind_text(stmt, 1, session);
    sqlite3_bind_int64(stmt, 2, (sqlite3_int64)event->seq);
    annal__db_bind_text(stmt, 3, event->type);
    sqlite3_bind_text(stmt, 4, ts, ANNAL_TIME_BYTES - 1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 5, (sqlite3_int64)event->offset);
    sqlite3_bind_int64(stmt, 6, (sqlite3_int64)event->length);
    annal_status status = annal__db_run(stmt, err);
    if (status >= 0)
        status = count_type(batch, session, event->type, err);
    const char *refused = NULL;
    if (status >= 0)
        status = annal__applier_event(writer->applier, session, event, &refused, err);
    if (status < 0 || refused == NULL)
        return status;
    const annal_index_finding finding = {.session = session,
                                         .seq = event->seq,
                                         .offset = event->offset,
                                         .length = event->length,
                                         .kind = ANNAL_SLICE("pack"),
                                         .what = annal_slice_of(refused)};
    return add_finding(batch, &finding, err);
}

/* Rows of one session in every table; also those of the core pack. */
static annal_status forget_session(annal_index *index, annal_slice session, annal_error *err)
{
    static const char *const statements[] = {
        "DELETE FROM turns WHERE session_id = ?1",
        "DELETE FROM sessions WHERE id = ?1",
        "DELETE FROM event_index WHERE session_id = ?1",
        "DELETE FROM snapshots WHERE session_id = ?1",
        "DELETE FROM _counts WHERE session_id = ?1",
        "DELETE FROM _findings WHERE session_id = ?1",
        "DELETE FROM _cursor WHERE session_id = ?1",
    };
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < sizeof statements / sizeof *statements; i++) {
        sqlite3_stmt *stmt = NULL;
        status = annal__db_prepare(index->writer.db, statements[i], &stmt, err);
        if (status < 0)
            break;
        annal__db_bind_text(stmt, 1, session);
        status = annal__db_run(stmt, err);
        sqlite3_finalize(stmt);
    }
    return status;
}

static bool batch_full(struct batch *batch)
{
    return batch->rows >= ROWS_MAX || batch->bytes >= BYTES_MAX ||
           (batch->rows % ROWS_PER_CLOCK == 0 && annal__deadline_passed(batch->deadline_us));
}

/* Rule 5. Whether a failure of a journal may be noted and passed over; what may not is err's. */
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
 * Rules 1 and 3. *out_cursor is NULL when there is no such journal any more, or none that can be
 * read.
 */
static annal_status open_journal(struct batch *batch, annal_slice session,
                                 annal_cursor **out_cursor, annal_error *err)
{
    annal_index *index = batch->index;
    annal_position from;
    bool known = false;
    annal_status status =
        annal__index_cursor(index->writer.get_cursor, session, &from, &known, err);
    if (status < 0)
        return status;

    annal_error why = {0};
    status = ANNAL_ERR_CONFLICT;
    if (known)
        status = annal_cursor_open_at(index->store, session, from.seq, from.offset, from.h_before,
                                      out_cursor, &why);
    if (status == ANNAL_ERR_CONFLICT || status == ANNAL_ERR_NOTFOUND) {
        annal_status forgotten = known ? forget_session(index, session, err) : ANNAL_OK;
        if (forgotten < 0)
            return forgotten;
        status = annal_cursor_open(index->store, session, 1, out_cursor, &why);
    }
    if (status < 0)
        *out_cursor = NULL;
    if (status == ANNAL_ERR_NOTFOUND || (status < 0 && pass_over(batch, &why, err)))
        return ANNAL_OK;
    return status;
}

/* The next line. *out_done when there is none now. */
static annal_status index_next(struct batch *batch, annal_slice session, annal_cursor *cursor,
                               bool *out_damaged, bool *out_done, annal_error *err)
{
    annal_event event;
    annal_error why = {0};
    annal_status status = annal_cursor_next(cursor, &event, &why);
    *out_damaged = status == ANNAL_DAMAGE;
    *out_done = status == ANNAL_END || (status < 0 && pass_over(batch, &why, err));
    if (*out_done)
        return ANNAL_OK;
    if (status == ANNAL_DAMAGE)
        return add_damage(batch, session, cursor, err);
    if (status < 0)
        return status;
    batch->rows++;
    return add_event(batch, session, &event, err);
}

/* Never stops behind damage: only a line that proves itself can be found again. */
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

static annal_status put_cursor(struct batch *batch, annal_slice session, const annal_cursor *cursor,
                               annal_error *err)
{
    sqlite3_stmt *stmt = batch->index->writer.put_cursor;
    annal_position position = annal_cursor_position(cursor);
    annal__db_bind_text(stmt, 1, session);
    sqlite3_bind_int64(stmt, 2, (sqlite3_int64)position.seq);
    sqlite3_bind_int64(stmt, 3, (sqlite3_int64)position.offset);
    sqlite3_bind_int64(stmt, 4, (sqlite3_int64)position.h_before);
    return annal__db_run(stmt, err);
}

static annal_status index_session(struct batch *batch, annal_slice session, const struct task *task,
                                  bool *out_done, annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_status status = open_journal(batch, session, &cursor, err);
    *out_done = true;
    if (status < 0 || cursor == NULL)
        return status;
    status = index_events(batch, session, cursor, task->target, out_done, err);
    if (status >= 0)
        status = flush_counts(batch, session, err);
    if (status >= 0)
        status = annal__applier_flush(batch->index->writer.applier, session, err);
    if (status >= 0)
        status = put_cursor(batch, session, cursor, err);
    annal_cursor_close(cursor);
    return status;
}

/* ---- Working off a plan ---- */

/* Tasks from plan->next on, as many as one transaction takes. */
static annal_status run_batch(annal_index *index, struct plan *plan, int64_t lock_until_us,
                              int64_t work_until_us, bool must_match,
                              annal_index_progress *progress, annal_error *err)
{
    annal_status status = annal__index_begin(index, lock_until_us, err);
    if (status < 0)
        return status;
    if (must_match && index->writer.stamp.id != plan->stamp.id) {
        (void)annal__index_end(index, false, NULL);
        return ANNAL_ERR_CONFLICT; /* never leaves this file */
    }
    int64_t slice_us = annal__deadline_after(SLICE_MS);
    struct batch batch = {.index = index,
                          .deadline_us = slice_us < work_until_us ? slice_us : work_until_us};
    size_t next = plan->next;
    bool full = false;
    while (status >= 0 && next < plan->count && !full) {
        const struct task *task = &plan->tasks[next];
        bool done = true;
        status = index_session(&batch, annal__task_session(plan, task), task, &done, err);
        next += done;
        full = !done || batch.bytes >= BYTES_MAX || batch.rows >= ROWS_MAX ||
               annal__deadline_passed(batch.deadline_us);
    }
    struct stamp stamp = {index->writer.stamp.id, index->writer.stamp.commits + 1};
    annal_status ended = annal__index_end(index, status >= 0, status >= 0 ? err : NULL);
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

static annal_status run_plan(annal_index *index, struct plan *plan, int64_t deadline_us,
                             const annal_catch_up_options *options, annal_error *err)
{
    annal_index_progress progress = {0};
    annal__plan_look_ahead(index, plan, &progress.bytes_total);
    while (plan->next < plan->count) {
        annal_status status =
            run_batch(index, plan, deadline_us, deadline_us, true, &progress, err);
        if (status < 0)
            return status;
        if (options->progress != NULL && options->progress(options->arg, &progress) != 0)
            return ANNAL_END;
        if (plan->next < plan->count && annal__deadline_passed(deadline_us))
            return annal__fail(
                err, ANNAL_ERR_BUSY, "time is up: %llu of %llu bytes of new journal are indexed",
                (unsigned long long)progress.bytes_done, (unsigned long long)progress.bytes_total);
    }
    if (plan->unreadable.status < 0 && err != NULL)
        *err = plan->unreadable;
    return plan->unreadable.status;
}

bool annal__index_is_hopeless(const annal_error *why)
{
    static const int numbers[] = {ENOSPC, EDQUOT, EFBIG, EACCES, EPERM, EROFS, EISDIR, ENOTDIR};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (why->os_errno == numbers[i])
            return true;
    return false;
}

/* Whether sessions.db was deleted, made anew, found corrupt or found not to be usable at all. */
static bool is_about_database(annal_index *index, annal_status status, const struct plan *plan)
{
    if (status == ANNAL_ERR_CONFLICT)
        return true;
    if (index->frozen || plan->unreadable.status < 0)
        return false;
    return status == ANNAL_ERR_IO || (status == ANNAL_ERR_CORRUPT && annal__index_heal(index));
}

annal_status annal__index_run(annal_index *index, const annal_slice *sessions, size_t count,
                              const annal_catch_up_options *options, struct stamp *out_stamp,
                              bool *out_stuck, annal_error *err)
{
    static const annal_catch_up_options defaults;
    if (options == NULL)
        options = &defaults;
    int64_t deadline_us =
        annal__deadline_after(options->timeout_ms == 0 ? index->wait_ms : options->timeout_ms);
    annal_status status = ANNAL_OK;
    annal_error why = {0};
    bool again = true;
    *out_stuck = false;
    for (unsigned attempt = 1; again; attempt++) {
        struct plan plan = {0};
        status = annal__plan_make(index, sessions, count, &plan, &why);
        if (status >= 0)
            status = run_plan(index, &plan, deadline_us, options, &why);
        *out_stamp = plan.stamp;
        again = is_about_database(index, status, &plan);
        annal__plan_done(&plan);
        if (again && (attempt >= ATTEMPTS_MAX || annal__index_is_hopeless(&why))) {
            again = false;
            *out_stuck = !index->private;
        } else if (again && annal__deadline_passed(deadline_us)) {
            again = false;
            status = ANNAL_ERR_BUSY;
        } else if (again) {
            annal__pause(attempt);
        }
    }
    if (status == ANNAL_ERR_CONFLICT || (status == ANNAL_ERR_BUSY && why.status != ANNAL_ERR_BUSY))
        status = annal__fail(&why, ANNAL_ERR_BUSY, "somebody keeps deleting the index");
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

annal_status annal_index_rebuild(annal_index *index, const annal_catch_up_options *options,
                                 annal_error *err)
{
    annal_catch_up_options patient = {.timeout_ms = ANNAL_NO_TIMEOUT};
    if (options != NULL)
        patient = *options;
    if (patient.timeout_ms == 0)
        patient.timeout_ms = ANNAL_NO_TIMEOUT;
    annal_status status =
        annal__index_discard(index, annal__deadline_after(patient.timeout_ms), err);
    struct stamp stamp;
    bool stuck;
    if (status >= 0)
        status = annal__index_run(index, NULL, 0, &patient, &stamp, &stuck, err);
    return status;
}

/* ---- The keeper's chore ---- */

struct changed {
    struct plan plan;
    annal_status status;
};

static int note_changed(void *arg, annal_slice session, uint64_t bytes)
{
    struct changed *changed = arg;
    changed->status =
        annal__plan_add(&changed->plan, session, (annal_position){.seq = 1}, bytes, false);
    return changed->status;
}

/*
 * It only tries the lock, and stops after a while: the keeper has other work. Then it comes again
 * (ANNAL_END).
 */
annal_status annal__index_follow(void *arg, annal_error *err)
{
    annal_index *index = arg;
    struct changed changed = {0};
    struct plan *plan = &changed.plan;
    annal_index_progress progress = {0};
    int64_t stop_us = annal__deadline_after(CHORE_MS);
    uint64_t now = annal_store_changed(index->store, index->changed_since, note_changed, &changed);
    annal_status status = changed.status;
    if (status < 0)
        annal__fail(err, status, "the list of sessions to index");
    while (status >= 0 && plan->next < plan->count && !annal__deadline_passed(stop_us))
        status = run_batch(index, plan, 0, stop_us, false, &progress, err);
    if (status >= 0 && plan->next == plan->count)
        index->changed_since = now;
    else if (status >= 0 || status == ANNAL_ERR_BUSY)
        status = ANNAL_END; /* work is left */
    annal__plan_done(plan);
    return status;
}
