/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cmd/verify_index.h"

#include "index/sys/pack.h"
#include "index/sys/state.h"
#include "index/sys/view.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/slice.h"
#include "tools/cli/must.h"

#include <string.h>

enum { FOUND_MAX = 1000, TRIES = 5, PAGE_ROWS = 256, TEXT_BYTES = 80 };

#define VIEW_US INT64_C(200000) /* how long a view is used, in us */

struct index_row {
    uint64_t seq;
    uint64_t offset;
    uint64_t length;
    /* number of bytes of the value; a value above TEXT_BYTES is cut, because no valid value is as
     * long */
    size_t type_bytes, time_bytes;
    char type[TEXT_BYTES];
    char time[TEXT_BYTES];
};

struct index_found {
    uint64_t seq;
    uint64_t offset;
    const char *what;
};

static void report(struct index_check *check, uint64_t seq, uint64_t offset, const char *what)
{
    if (check->found_count < FOUND_MAX)
        check->found[check->found_count++] = (struct index_found){seq, offset, what};
}

/* ---- event_index ---- */

static const char index_rows[] = "SELECT seq, offset, length, type, timestamp FROM event_index"
                                 " WHERE session_id = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq"
                                 " LIMIT 256";

_Static_assert(PAGE_ROWS == 256, "as the query says");

static size_t take_text(char to[TEXT_BYTES], annal_slice text)
{
    memcpy(to, text.ptr, text.len < TEXT_BYTES ? text.len : TEXT_BYTES);
    return text.len;
}

static int take_row(void *arg, const annal_row *from)
{
    struct index_check *check = arg;
    struct index_row *row = &check->rows[check->row_count++];
    row->seq = (uint64_t)from->values[0].integer;
    row->offset = (uint64_t)from->values[1].integer;
    row->length = (uint64_t)from->values[2].integer;
    row->type_bytes = take_text(row->type, from->values[3].bytes);
    row->time_bytes = take_text(row->time, from->values[4].bytes);
    return check->row_count == PAGE_ROWS ? ANNAL_END : 0;
}

/* Return the next row, or NULL at the end or after a failure (check->status). */
static const struct index_row *peek_row(struct index_check *check)
{
    if (check->row_next == check->row_count && !check->rows_end && check->status == ANNAL_OK) {
        int64_t last = check->row_count > 0 ? (int64_t)check->rows[check->row_count - 1].seq : -1;
        const annal_value params[] = {
            {.kind = ANNAL_VALUE_TEXT, .bytes = check->session},
            {.kind = ANNAL_VALUE_INTEGER, .integer = last},
            {.kind = ANNAL_VALUE_INTEGER, .integer = (int64_t)check->indexed_seq}};
        check->row_count = check->row_next = 0;
        check->status =
            annal__view_ask(check->view, index_rows, params, 3, take_row, check, &check->error);
        check->rows_end = check->row_count < PAGE_ROWS;
        if (check->status > 0)
            check->status = ANNAL_OK;
    }
    return check->row_next < check->row_count ? &check->rows[check->row_next] : NULL;
}

static bool is_text(const char *text, size_t bytes, annal_slice expected)
{
    return bytes == expected.len && bytes <= TEXT_BYTES &&
           (bytes == 0 || memcmp(text, expected.ptr, bytes) == 0);
}

static bool is_row_of(const struct index_row *row, const annal_event *event)
{
    char time[ANNAL_TIME_BYTES];
    annal_time_format(event->ts_us, time);
    return row->offset == event->offset && row->length == event->length &&
           is_text(row->type, row->type_bytes, event->type) &&
           is_text(row->time, row->time_bytes, annal_slice_of(time));
}

/* Report the rows before seq, because the journal has no events for them. After damage they are not
 * reported: the damage is the reason. */
static void pass_rows(struct index_check *check, uint64_t seq, bool after_damage)
{
    const struct index_row *row;
    while ((row = peek_row(check)) != NULL && row->seq < seq) {
        if (!after_damage)
            report(check, row->seq, row->offset,
                   "the index has a row for an event that the journal does not have");
        check->row_next++;
    }
}

void verify_index_event(struct index_check *check, const annal_event *event, bool after_damage)
{
    check->damaged = check->damaged || after_damage;
    if (check->index == NULL || check->status < 0 || event->seq > check->indexed_seq)
        return;
    pass_rows(check, event->seq, after_damage);
    const struct index_row *row = peek_row(check);
    if (check->status < 0)
        return;
    if (row == NULL || row->seq != event->seq) {
        check->contradicted = true;
        report(check, event->seq, event->offset, "the index has no row for this event");
    } else {
        if (!is_row_of(row, event)) {
            check->contradicted = true;
            report(check, event->seq, event->offset,
                   "the row of the index differs from the journal");
        }
        check->row_next++;
    }
    if (!check->damaged)
        check->status = annal_state_apply(check->state, event, &check->error);
}

/* ---- sessions and turns ---- */

static int add_row(void *arg, const annal_row *row)
{
    struct buf *text = arg;
    for (size_t i = 0; i < row->count; i++) {
        const annal_value *value = &row->values[i];
        must_append(text, row->names[i], strlen(row->names[i]) + 1);
        must_append(text, &value->kind, sizeof value->kind);
        must_append(text, &value->integer, sizeof value->integer);
        must_append(text, &value->real, sizeof value->real);
        must_append(text, &value->bytes.len, sizeof value->bytes.len);
        must_append_slice(text, value->bytes);
    }
    return ANNAL_OK;
}

static annal_status compare_table(struct index_check *check, const char *query, const char *what,
                                  annal_error *err)
{
    SCOPED_BUF indexed = {0}, folded = {0};
    annal_value session = {.kind = ANNAL_VALUE_TEXT, .bytes = check->session};
    annal_status status = annal__view_ask(check->view, query, &session, 1, add_row, &indexed, err);
    if (status == ANNAL_OK)
        status = annal__state_ask(check->state, query, &session, 1, add_row, &folded, err);
    if (status == ANNAL_OK &&
        !annal__slice_same(annal__buf_slice(&indexed), annal__buf_slice(&folded)))
        report(check, check->indexed_seq, 0, what);
    return status;
}

/* Begin the state of a fork from the header of its journal, which exists before the first event. */
static annal_status begin_fork(struct index_check *check, annal_error *err)
{
    annal_session_info info;
    annal_status status = annal_session_info_get(check->store, check->session, &info, err);
    if (status < 0 || info.fork_session[0] == '\0')
        return status;
    check->fork_seq = info.fork_seq;
    memcpy(check->fork_session, info.fork_session, sizeof check->fork_session);
    return annal__state_begin(check->state, info.created_us, err);
}

static int take_fork(void *arg, const annal_row *row)
{
    struct index_check *check = arg;
    annal_slice parent = row->values[0].bytes;
    check->fork_told = annal__slice_is(parent, check->fork_session) &&
                       (uint64_t)row->values[1].integer == check->fork_seq;
    return 0;
}

static annal_status compare_fork(struct index_check *check, annal_error *err)
{
    annal_value session = {.kind = ANNAL_VALUE_TEXT, .bytes = check->session};
    check->fork_told = check->fork_session[0] == '\0';
    annal_status status = annal__view_ask(
        check->view, "SELECT parent_session_id, forked_at_seq FROM forks WHERE session_id = ?1",
        &session, 1, take_fork, check, err);
    if (status == ANNAL_OK && !check->fork_told)
        report(check, check->indexed_seq, 0,
               "the row in forks differs from the header of the journal");
    return status;
}

static annal_status compare_tables(struct index_check *check, annal_error *err)
{
    annal_status status =
        compare_table(check, "SELECT * FROM sessions WHERE id = ?1",
                      "the row in sessions differs from a fold of the events", err);
    if (status == ANNAL_OK)
        status = compare_table(check, "SELECT * FROM turns WHERE session_id = ?1 ORDER BY id",
                               "the rows in turns differ from a fold of the events", err);
    return status == ANNAL_OK && check->known ? compare_fork(check, err) : status;
}

/* ---- A session ---- */

static annal_status view_anew(struct index_check *check, annal_error *err)
{
    const annal_pack *core = annal__index_core(check->index);
    annal__view_close(check->view);
    check->view = NULL;
    check->viewed_us = annal__clock_monotonic_us();
    annal_status status = annal__view_open(check->index, &check->view, err);
    if (status == ANNAL_OK && check->state == NULL)
        status = annal__state_new(ANNAL_SLICE("none"), &core, 1, &check->state, err);
    return status;
}

/* Find the last indexed event of the session, and whether its position still exists in the
 * journal. */
static annal_status find_place(struct index_check *check, annal_error *err)
{
    annal_position at;
    annal_cursor *cursor = NULL;
    annal_status status = annal__view_position(check->view, check->session, &at, err);
    if (status < 0)
        return status;
    check->indexed_seq = at.seq - 1;
    check->known = at.offset > 0;
    status = annal_cursor_open_at(check->store, check->session, at.seq, at.offset, at.h_before,
                                  &cursor, err);
    annal_cursor_close(cursor);
    check->stale = status == ANNAL_ERR_CONFLICT;
    return check->stale ? ANNAL_OK : status;
}

static annal_status begin(struct index_check *check, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (check->rows == NULL)
        check->rows = must_zalloc(PAGE_ROWS * sizeof *check->rows);
    if (check->found == NULL)
        check->found = must_zalloc(FOUND_MAX * sizeof *check->found);
    if (check->view == NULL || annal__clock_monotonic_us() - check->viewed_us > VIEW_US)
        status = view_anew(check, err);
    if (status == ANNAL_OK)
        status = find_place(check, err);
    if (status == ANNAL_OK)
        status = annal__state_reset(check->state, check->session, err);
    return status == ANNAL_OK && check->known ? begin_fork(check, err) : status;
}

void verify_index_begin(struct index_check *check, annal_slice session)
{
    bool again = check->session.ptr == session.ptr && check->tries > 0;
    check->session = session;
    check->tries = again ? check->tries : 0;
    check->indexed_seq = 0;
    check->known = false;
    check->fork_session[0] = '\0';
    check->fork_seq = 0;
    check->row_count = check->row_next = check->found_count = 0;
    check->rows_end = check->damaged = check->stale = check->contradicted = false;
    check->status = check->index == NULL ? ANNAL_OK : begin(check, &check->error);
}

static void tell(const struct index_check *check, annal_finding_fn fn, void *arg)
{
    for (size_t i = 0; i < check->found_count; i++) {
        const struct index_found *found = &check->found[i];
        fn(arg, &(annal_finding){.session = check->session,
                                 .seq = found->seq,
                                 .offset = found->offset,
                                 .what = found->what});
    }
}

/* Decide whether the findings count: a view that is opened now must have the same position as the
 * compared view. Return ANNAL_END to verify again, at most TRIES times. */
static annal_status settle(struct index_check *check, annal_status status, annal_error *err)
{
    annal_position now;
    if (status < 0 && status != ANNAL_ERR_CORRUPT)
        return status;
    status = view_anew(check, err);
    if (status == ANNAL_OK)
        status = annal__view_position(check->view, check->session, &now, err);
    if (status < 0)
        return status;
    bool stands = now.seq - 1 == check->indexed_seq && check->status == ANNAL_OK;
    return stands || ++check->tries >= TRIES ? ANNAL_OK : ANNAL_END;
}

annal_status verify_index_end(struct index_check *check, uint64_t last_seq, bool at_damage,
                              annal_finding_fn fn, void *arg, annal_error *err)
{
    if (check->index == NULL)
        return ANNAL_OK;
    check->damaged = check->damaged || at_damage;
    annal_status status = check->status;
    annal_error failure = check->error;
    if (status == ANNAL_OK) {
        pass_rows(check, UINT64_MAX, at_damage);
        status = check->status;
        failure = check->error;
    }
    if (status == ANNAL_OK && !check->damaged)
        status = compare_tables(check, &failure);
    if (status < 0 && err != NULL)
        *err = failure;
    if (status < 0)
        check->status = status;
    if (status < 0 || check->found_count > 0)
        status = settle(check, status, err);
    if (status != ANNAL_OK)
        return status;
    bool other = check->stale && (check->contradicted || check->found_count == 0);
    if (check->status == ANNAL_OK && !other)
        tell(check, fn, arg);
    check->lagging += other || check->indexed_seq < last_seq;
    check->tries = 0;
    return ANNAL_OK;
}

static int take_any(void *arg, const annal_row *row)
{
    (void)row;
    *(bool *)arg = true;
    return 0;
}

annal_status verify_index_has_snapshots(struct index_check *check, bool *out_has, annal_error *err)
{
    annal_value value = {.kind = ANNAL_VALUE_TEXT, .bytes = check->session};
    *out_has = false;
    return annal__view_ask(check->view, "SELECT 1 FROM snapshots WHERE session_id = ?1 LIMIT 1",
                           &value, 1, take_any, out_has, err);
}

void verify_index_done(struct index_check *check)
{
    annal__view_close(check->view);
    annal_state_free(check->state);
    annal__free(check->rows);
    annal__free(check->found);
    *check = (struct index_check){0};
}
