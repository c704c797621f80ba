/* SPDX-License-Identifier: Apache-2.0 */
/* The events of an import: rules 2, 4 and 5 of import.c. */
#include "index/sys/import.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/slice.h"
#include "tools/import/file_time.h"
#include "tools/import/import_job.h"

#include <inttypes.h>
#include <string.h>

#define APPEND_BYTES ((size_t)4 << 20)
#define SYNC_BYTES   ((uint64_t)16 << 20)

/* Another importer may append the same events between our look at the journal and our append. */
#define APPEND_TRIES 3

/* ---- Sessions ---- */

static annal_status read_known(struct import_job *job, annal_slice session, int64_t *out_last_us,
                               annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_event event = {0};
    annal_status status = annal_cursor_open(job->store, session, 1, &cursor, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    while (status >= 0) {
        status = annal_cursor_next(cursor, &event, err);
        if (status == ANNAL_END)
            break;
        if (status == ANNAL_OK && event.id.len > 0)
            status = annal__import_remember(job->import, session, event.id, err);
        *out_last_us = status == ANNAL_OK ? event.ts_us : *out_last_us;
    }
    annal_cursor_close(cursor);
    job->report.store_failed |= status < 0;
    return status < 0 ? status : ANNAL_OK;
}

static annal_status find_session(struct import_job *job, annal_slice id, size_t *out_index,
                                 annal_error *err)
{
    struct import_report *report = &job->report;
    uint64_t hash = annal__hash(id.ptr, id.len, 0);
    size_t at = 0, index;
    while ((index = places_next(&job->places, hash, &at)) != SIZE_MAX)
        if (annal__slice_is(id, report->sessions[index].id)) {
            *out_index = index;
            return ANNAL_OK;
        }
    annal_status status = annal_session_id_check(id, err);
    if (status < 0)
        return status;
    struct import_session *session =
        annal__array_add(&report->sessions, &report->session_count, sizeof *session);
    if (session == NULL || !places_add(&job->places, hash, report->session_count - 1))
        return annal__fail(err, ANNAL_ERR_NOMEM, "import: out of memory");
    memcpy(session->id, id.ptr, id.len);
    *out_index = report->session_count - 1;
    return ANNAL_OK;
}

/* ---- Appending ---- */

static annal_slice piece_of(const struct pending *pending, size_t at, size_t len)
{
    return (annal_slice){len > 0 ? pending->bytes.ptr + at : NULL, len};
}

/* Drop the events that the store has by now. */
static annal_status drop_known(struct import_job *job, annal_slice session, annal_error *err)
{
    struct pending *pending = &job->pending;
    size_t kept = 0;
    int64_t last_us = 0;
    annal_status status = read_known(job, session, &last_us, err);
    for (size_t i = 0; i < pending->count && status >= 0; i++) {
        struct waiting event = pending->events[i];
        bool known = false;
        if (event.id_len > 0)
            status = annal__import_knows(job->import, session,
                                         piece_of(pending, event.id, event.id_len), &known, err);
        if (!known)
            pending->events[kept++] = event;
    }
    pending->count = kept;
    return status;
}

/* Rule 5: those that wait without a time have this one. */
static void give_time(struct pending *pending, int64_t ts_us, const char *from)
{
    for (size_t i = 0; i < pending->count && ts_us > 1; i++) {
        struct waiting *event = &pending->events[i];
        if (event->ts_us != 1)
            continue;
        event->ts_us = ts_us;
        event->time_from = from;
    }
}

static annal_status give_times(struct import_job *job, annal_error *err)
{
    struct pending *pending = &job->pending;
    const char *from = NULL;
    int64_t ts_us = 0;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < pending->count && status >= 0; i++) {
        if (pending->events[i].ts_us == 1 && from == NULL) {
            ts_us = file_time_us(job->path, &from);
            give_time(pending, ts_us, from);
        }
        struct waiting *event = &pending->events[i];
        if (event->time_from != NULL)
            status = say_time(&pending->bytes, event->time_from, &event->data, &event->data_len);
        event->time_from = NULL; /* it is said */
    }
    return status < 0 ? annal__fail(err, status, "import: out of memory") : status;
}

static annal_status append_pending(struct import_job *job, annal_writer *writer, annal_error *err)
{
    struct pending *pending = &job->pending;
    annal_draft drafts[APPEND_EVENTS];
    uint64_t seq = 0;
    for (size_t i = 0; i < pending->count; i++) {
        const struct waiting *event = &pending->events[i];
        drafts[i] = (annal_draft){
            .type = piece_of(pending, event->type, event->type_len),
            .id = piece_of(pending, event->id, event->id_len),
            .cause = piece_of(pending, event->cause, event->cause_len),
            .data = piece_of(pending, event->data, event->data_len),
            .ts_us = event->ts_us,
        };
    }
    annal_append_options options = {.level = job->level};
    return annal_writer_append(writer, drafts, pending->count, &options, &seq, err);
}

annal_status import_flush(struct import_job *job, annal_error *err)
{
    struct pending *pending = &job->pending;
    annal_writer *writer = NULL;
    if (pending->count == 0)
        return ANNAL_OK;
    annal_slice session = annal_slice_of(job->report.sessions[pending->session].id);
    annal_status status = give_times(job, err);
    if (status >= 0)
        status = annal_writer_open(job->store, session, NULL, &writer, err);
    for (int tries = 1; status >= 0; tries++) {
        status = append_pending(job, writer, err);
        if (status != ANNAL_ERR_CONFLICT || tries == APPEND_TRIES)
            break;
        status = drop_known(job, session, err);
        if (status >= 0 && pending->count == 0)
            break;
    }
    annal_writer_close(writer);
    if (status >= 0)
        job->report.events += pending->count;
    pending->unsynced += pending->bytes.len;
    if (status >= 0 && pending->unsynced >= SYNC_BYTES) {
        status = annal_sync(job->store, err);
        pending->unsynced = 0;
    }
    pending->count = 0;
    annal__buf_clear(&pending->bytes);
    job->report.store_failed |= status < 0;
    return status;
}

static annal_status keep(struct buf *bytes, annal_slice slice, size_t *out_at, size_t *out_len)
{
    *out_at = bytes->len;
    *out_len = slice.len;
    return annal__buf_append_slice(bytes, slice);
}

/* An id that a log has twice is appended once, even within one append. */
static bool is_pending(const struct import_job *job, size_t session, annal_slice id)
{
    const struct pending *pending = &job->pending;
    if (id.len == 0 || pending->session != session)
        return false;
    for (size_t i = 0; i < pending->count; i++)
        if (pending->events[i].id_len == id.len &&
            memcmp(pending->bytes.ptr + pending->events[i].id, id.ptr, id.len) == 0)
            return true;
    return false;
}

/* A line of several pieces counts once. */
static void count_unreadable(struct import_report *report, const annal_import_event *event)
{
    if (!annal__slice_is(event->draft.type, "import.unreadable") ||
        (report->unreadable > 0 && event->line == report->last_unreadable))
        return;
    if (report->unreadable++ == 0)
        report->first_unreadable = event->line;
    report->last_unreadable = event->line;
}

/* The importer returned an event. */
annal_status import_take_event(void *arg, const annal_import_event *event, annal_error *err)
{
    struct import_job *job = arg;
    struct pending *pending = &job->pending;
    bool known = false;
    size_t index = 0;
    annal_status status = find_session(job, event->session, &index, err);
    if (status < 0)
        goto done;
    count_unreadable(&job->report, event);
    if (event->draft.ts_us > 1 && job->last_us == 0)
        give_time(pending, event->draft.ts_us, "of the first line that has one");
    if (event->draft.ts_us > 1)
        job->last_us = event->draft.ts_us;
    if (!job->report.sessions[index].known_read) {
        status = read_known(job, event->session, &job->report.sessions[index].last_us, err);
        job->report.sessions[index].known_read = status >= 0;
        if (job->is_text) /* beside a log: as old as what the session has by now */
            job->last_us = job->report.sessions[index].last_us;
    }
    if (status >= 0 && event->draft.id.len > 0)
        status = annal__import_knows(job->import, event->session, event->draft.id, &known, err);
    if (status < 0 || known || is_pending(job, index, event->draft.id))
        goto done;

    if (pending->count == APPEND_EVENTS || pending->session != index ||
        pending->bytes.len + event->draft.data.len > APPEND_BYTES)
        status = import_flush(job, err);
    if (status < 0)
        goto done;
    pending->session = index;
    struct waiting *waiting = &pending->events[pending->count];
    waiting->ts_us = event->draft.ts_us;
    waiting->time_from = NULL;
    if (event->draft.ts_us == 1 && job->last_us > 1) {
        waiting->ts_us = job->last_us;
        waiting->time_from = "of the line before";
    }
    status = keep(&pending->bytes, event->draft.type, &waiting->type, &waiting->type_len);
    if (status >= 0)
        status = keep(&pending->bytes, event->draft.id, &waiting->id, &waiting->id_len);
    if (status >= 0)
        status = keep(&pending->bytes, event->draft.cause, &waiting->cause, &waiting->cause_len);
    if (status >= 0)
        status = keep(&pending->bytes, event->draft.data, &waiting->data, &waiting->data_len);
    if (status < 0)
        status = annal__fail(err, status, "import: out of memory");
    else
        pending->count++;

done:
    if (status < 0)
        annal__error_context(err, "line %" PRIu64, event->line);
    return status;
}
