#include "tools/verify_index.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"

#include <string.h>

enum { FOUND_MAX = 1000, TRIES = 5, VIEW_SESSIONS = 64 };

struct comparison {
    annal_slice session;
    annal_error *err;
    struct found {
        uint64_t seq;
        uint64_t offset;
        const char *what;
    } * found; /* told only when the index stood still meanwhile */
    size_t found_count;
    uint64_t indexed_seq; /* compare up to here */
    annal_cursor *cursor;
    annal_state *state; /* of the events passed so far */
    annal_event event;  /* that comes next in the journal */
    bool at_end;
    bool gap;     /* damage lies before event: rows that it explains are no findings */
    bool damaged; /* somewhere: the tables cannot be folded anew */
};

static void report(struct comparison *comparison, uint64_t seq, uint64_t offset, const char *what)
{
    if (comparison->found_count < FOUND_MAX)
        comparison->found[comparison->found_count++] = (struct found){seq, offset, what};
}

static annal_status next_event(struct comparison *comparison)
{
    annal_status status;
    comparison->gap = false;
    while ((status = annal_cursor_next(comparison->cursor, &comparison->event, comparison->err)) ==
           ANNAL_DAMAGE)
        comparison->gap = comparison->damaged = true;
    if (status < 0)
        return status;
    comparison->at_end = status == ANNAL_END || comparison->event.seq > comparison->indexed_seq;
    return comparison->at_end
               ? ANNAL_OK
               : annal_state_apply(comparison->state, &comparison->event, comparison->err);
}

/* ---- event_index ---- */

static const char index_rows[] = "SELECT seq, offset, length, type, timestamp FROM event_index"
                                 " WHERE session_id = ?1 ORDER BY seq";

static bool is_text(const annal_value *value, annal_slice text)
{
    return value->bytes.len == text.len &&
           (text.len == 0 || memcmp(value->bytes.ptr, text.ptr, text.len) == 0);
}

static bool is_row_of(const annal_row *row, const annal_event *event)
{
    char ts[ANNAL_TIME_BYTES];
    annal_time_format(event->ts_us, ts);
    return (uint64_t)row->values[1].integer == event->offset &&
           (uint64_t)row->values[2].integer == event->length &&
           is_text(&row->values[3], event->type) && is_text(&row->values[4], annal_slice_of(ts));
}

/* The events before seq have no row. */
static annal_status skip_events(struct comparison *comparison, uint64_t seq)
{
    annal_status status = ANNAL_OK;
    while (status == ANNAL_OK && !comparison->at_end && comparison->event.seq < seq) {
        report(comparison, comparison->event.seq, comparison->event.offset,
               "the index has no row for this event");
        status = next_event(comparison);
    }
    return status;
}

static int compare_row(void *arg, const annal_row *row)
{
    struct comparison *comparison = arg;
    uint64_t seq = (uint64_t)row->values[0].integer;
    if (seq > comparison->indexed_seq)
        return ANNAL_OK; /* indexed since */
    annal_status status = skip_events(comparison, seq);
    if (status < 0)
        return status;
    if (comparison->at_end || comparison->event.seq != seq) {
        if (!comparison->gap)
            report(comparison, seq, (uint64_t)row->values[1].integer,
                   "the index has a row for an event that the journal does not have");
        return ANNAL_OK;
    }
    if (!is_row_of(row, &comparison->event))
        report(comparison, seq, comparison->event.offset,
               "the row of the index is not what the journal says");
    return next_event(comparison);
}

/* ---- sessions and turns ---- */

static int add_row(void *arg, const annal_row *row)
{
    struct buf *text = arg;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status == ANNAL_OK && i < row->count; i++) {
        const annal_value *value = &row->values[i];
        status = annal__buf_printf(text, "%s %d %lld %.17g %zu ", row->names[i], (int)value->kind,
                                   (long long)value->integer, value->real, value->bytes.len);
        if (status == ANNAL_OK)
            status = annal__buf_append_slice(text, value->bytes);
    }
    return status;
}

static annal_status compare_table(struct comparison *comparison, annal_view *view,
                                  const char *query, const char *what)
{
    struct buf indexed = {0}, folded = {0};
    annal_value session = {.kind = ANNAL_VALUE_TEXT, .bytes = comparison->session};
    annal_sql_options options = {.params = &session, .param_count = 1};
    annal_slice sql = annal_slice_of(query);
    annal_status status = annal_view_sql(view, sql, &options, add_row, &indexed, comparison->err);
    if (status == ANNAL_OK)
        status =
            annal_state_sql(comparison->state, sql, &options, add_row, &folded, comparison->err);
    if (status == ANNAL_OK &&
        (indexed.len != folded.len ||
         (indexed.len > 0 && memcmp(indexed.ptr, folded.ptr, indexed.len) != 0)))
        report(comparison, comparison->indexed_seq, 0, what);
    annal__buf_done(&indexed);
    annal__buf_done(&folded);
    return status;
}

static annal_status compare_tables(struct comparison *comparison, annal_view *view)
{
    annal_status status = compare_table(comparison, view, "SELECT * FROM sessions WHERE id = ?1",
                                        "the row in sessions is not what the events give");
    if (status == ANNAL_OK)
        status =
            compare_table(comparison, view, "SELECT * FROM turns WHERE session_id = ?1 ORDER BY id",
                          "the rows in turns are not what the events give");
    return status;
}

/* ---- A session ---- */

static annal_status compare(struct comparison *comparison, struct index_check *check)
{
    annal_value session = {.kind = ANNAL_VALUE_TEXT, .bytes = comparison->session};
    annal_sql_options options = {.params = &session, .param_count = 1};
    annal_error *err = comparison->err;
    annal_status status = annal_state_reset(check->state, comparison->session, err);
    comparison->state = check->state;
    if (status == ANNAL_OK)
        status = annal_cursor_open(check->store, comparison->session, 1, &comparison->cursor, err);
    if (status == ANNAL_OK)
        status = next_event(comparison);
    if (status == ANNAL_OK)
        status = annal_view_sql(check->view, annal_slice_of(index_rows), &options, compare_row,
                                comparison, err);
    if (status == ANNAL_OK)
        status = skip_events(comparison, UINT64_MAX);
    if (status == ANNAL_OK && !comparison->damaged)
        status = compare_tables(comparison, check->view);
    annal_cursor_close(comparison->cursor);
    return status;
}

static void tell(const struct comparison *comparison, annal_finding_fn fn, void *arg)
{
    for (size_t i = 0; i < comparison->found_count; i++) {
        const struct found *found = &comparison->found[i];
        fn(arg, &(annal_finding){.session = comparison->session,
                                 .seq = found->seq,
                                 .offset = found->offset,
                                 .what = found->what});
    }
}

static annal_status view_anew(struct index_check *check, annal_error *err)
{
    const annal_pack *core = annal_index_core(check->index);
    annal_view_close(check->view);
    check->view = NULL;
    check->viewed = 0;
    annal_status status = annal_view_open(check->index, &check->view, err);
    if (status == ANNAL_OK && check->state == NULL)
        status = annal_state_new(ANNAL_SLICE("none"), &core, 1, &check->state, err);
    return status;
}

annal_status verify_index_session(struct index_check *check, annal_slice session, uint64_t last_seq,
                                  annal_finding_fn fn, void *arg, annal_error *err)
{
    uint64_t after = 0;
    annal_status status = ANNAL_OK;
    struct found *found = annal__zalloc(FOUND_MAX * sizeof *found);
    if (found == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "verify the index: out of memory");
    if (check->view == NULL || ++check->viewed > VIEW_SESSIONS)
        status = view_anew(check, err);
    if (status == ANNAL_OK)
        status = annal_view_indexed_seq(check->view, session, &after, err);
    for (int i = 0; status == ANNAL_OK && i < TRIES; i++) {
        struct comparison comparison = {
            .session = session, .err = err, .found = found, .indexed_seq = after};
        status = compare(&comparison, check);
        if (status == ANNAL_OK && comparison.found_count == 0)
            break;
        /* Not so when the journal was replaced, or the index made anew, since the view was opened. */
        if (status == ANNAL_OK || status == ANNAL_ERR_CORRUPT)
            status = view_anew(check, err);
        if (status == ANNAL_OK)
            status = annal_view_indexed_seq(check->view, session, &after, err);
        if (status == ANNAL_OK && after == comparison.indexed_seq) {
            tell(&comparison, fn, arg);
            break;
        }
    }
    check->lagging += after < last_seq;
    annal__free(found);
    return status;
}

static int take_any(void *arg, const annal_row *row)
{
    (void)row;
    *(bool *)arg = true;
    return 0;
}

annal_status verify_index_has_snapshots(struct index_check *check, annal_slice session,
                                        bool *out_has, annal_error *err)
{
    annal_value value = {.kind = ANNAL_VALUE_TEXT, .bytes = session};
    const annal_sql_options options = {.params = &value, .param_count = 1};
    *out_has = false;
    return annal_view_sql(check->view,
                          ANNAL_SLICE("SELECT 1 FROM snapshots WHERE session_id = ?1 LIMIT 1"),
                          &options, take_any, out_has, err);
}

void verify_index_done(struct index_check *check)
{
    annal_view_close(check->view);
    annal_state_free(check->state);
    *check = (struct index_check){0};
}
