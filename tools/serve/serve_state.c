/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a session at a moment, and the changes of the state between two moments. */
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "tools/cli/args.h"
#include "tools/serve/serve.h"
#include "tools/show/change_json.h"
#include "tools/show/past.h"
#include "tools/show/rows_json.h"
#include "tools/show/values.h"

#include <inttypes.h>
#include <string.h>

#define ROWS_MAX    1000000u
#define NEAR_EVENTS 8192u

/* Read a moment from a parameter: the seq "1200", a time, or an age. If the parameter is missing,
 * *out is unchanged: the end of the session. */
static bool read_moment(struct request *request, const char *name, annal_moment *out)
{
    const char *text = http_query(request, name);
    if (text == NULL)
        return true;
    if (fields_parse_number(text, &out->seq))
        out->kind = ANNAL_AT_SEQ;
    else if (fields_parse_time(text, &out->time_us))
        out->kind = ANNAL_AT_TIME;
    else
        answer_error(request, 400, "invalid", "%s must be a seq, a time, or an age such as 2h",
                     name);
    return request->status == 0;
}

struct tables {
    annal_state *state;
    struct buf *out;
    uint64_t seq;  /* last event of the state */
    uint64_t rows; /* maximum number of rows of a table, the last ones; 0 for all */
    uint64_t count;
    int64_t total; /* number of rows of the current table */
    bool has_seq;
    annal_error *err;
};

static int note_total(void *arg, const annal_row *row)
{
    struct tables *tables = arg;
    tables->total = row->values[0].integer;
    tables->has_seq = row->values[1].integer > 0;
    return 0;
}

/*
 * Append a SELECT of the last rows of a table. Tables have no index on seq, and a sort of all rows
 * takes most of the time of a step: if the last NEAR_EVENTS events have enough rows, SQLite sorts
 * only theirs.
 */
static annal_status put_select(const struct tables *tables, annal_slice name, struct buf *sql)
{
    uint64_t near = tables->seq > NEAR_EVENTS ? tables->seq - NEAR_EVENTS : 0;
    bool cuts = tables->rows > 0 && tables->total > (int64_t)tables->rows;
    if (cuts && tables->has_seq)
        return annal__buf_printf(
            sql,
            "SELECT * FROM (SELECT * FROM \"%.*s\" WHERE ifnull(seq, 0) > (SELECT iif(count(*) < "
            "%" PRIu64 ", -1, %" PRIu64 ") FROM \"%.*s\" WHERE seq > %" PRIu64
            ") ORDER BY seq DESC LIMIT %" PRIu64 ") ORDER BY seq",
            ANNAL_FMT(name), tables->rows, near, ANNAL_FMT(name), near, tables->rows);
    return annal__buf_printf(sql, "SELECT * FROM \"%.*s\"%s LIMIT -1 OFFSET %" PRId64,
                             ANNAL_FMT(name), tables->has_seq ? " ORDER BY seq" : "",
                             cuts ? tables->total - (int64_t)tables->rows : 0);
}

/* Print the rows of a table. Its name is an identifier of a pack, without quotation marks. */
static annal_status put_rows(struct tables *tables, annal_slice name)
{
    SCOPED_BUF sql = {0};
    struct rows_json rows = {.out = tables->out};
    const annal_sql_options options = {.columns = rows_json_columns};
    annal_status status =
        annal__buf_printf(&sql,
                          "SELECT count(*), (SELECT count(*) FROM pragma_table_info('%.*s') WHERE "
                          "name = 'seq') FROM \"%.*s\"",
                          ANNAL_FMT(name), ANNAL_FMT(name));
    if (status >= 0)
        status = annal_state_sql(tables->state, annal__buf_slice(&sql), NULL, note_total, tables,
                                 tables->err);
    annal__buf_clear(&sql);
    if (status >= 0)
        status = put_select(tables, name, &sql);
    if (status >= 0)
        status = annal_state_sql(tables->state, annal__buf_slice(&sql), &options, rows_json_row,
                                 &rows, tables->err);
    if (status >= 0)
        status = rows_json_end(&rows);
    return status < 0 ? status
                      : annal__buf_printf(tables->out, ",\"total\":%" PRId64 "}", tables->total);
}

static int put_table(void *arg, const annal_row *row)
{
    struct tables *tables = arg;
    annal_slice name = row->values[0].bytes;
    annal_status status =
        annal__json_put(tables->out, "#?:", annal_slice_of(tables->count++ > 0 ? ",\n" : ""), name);
    return status < 0 ? status : put_rows(tables, name);
}

static int put_time(void *arg, const annal_row *row)
{
    struct buf *out = arg;
    return annal__buf_printf(out, "\"%.*s\"", ANNAL_FMT(row->values[0].bytes));
}

/* Print the beginning of the answer, {"seq":…,"time":…,"tables":{ */
static annal_status put_head(struct serve *serve, struct request *request, uint64_t seq,
                             annal_error *err)
{
    struct buf *out = &request->answer;
    const annal_value params[] = {text_value(request->id),
                                  {.kind = ANNAL_VALUE_INTEGER, .integer = (int64_t)seq}};
    annal_status status = annal__buf_printf(out, "{\"seq\":%" PRIu64 ",\"time\":", seq);
    size_t before = out->len;
    if (status >= 0 && seq > 0)
        status = annal_index_sql(
            serve->index,
            ANNAL_SLICE("SELECT timestamp FROM event_history WHERE session_id = ?1 AND seq = ?2"),
            &(annal_sql_options){.params = params, .param_count = 2, .as_indexed = true}, put_time,
            out, err);
    if (status >= 0 && out->len == before)
        status = annal__buf_append(out, "null", 4);
    return status < 0 ? status : annal__buf_append(out, ",\"tables\":{", 11);
}

static annal_status put_state(struct serve *serve, struct request *request, annal_moment at,
                              uint64_t rows, annal_error *err)
{
    annal_travel *travel = NULL;
    uint64_t seq = 0;
    struct tables tables = {.out = &request->answer, .rows = rows, .err = err};
    annal_status status = past_take(serve->past, request->id, at, &travel, err);
    if (status < 0)
        return status;
    tables.state = annal_travel_state(travel, &seq);
    tables.seq = seq;
    status = put_head(serve, request, seq, err);
    if (status >= 0)
        status = annal_state_sql(
            tables.state,
            ANNAL_SLICE("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB '_*'"
                        " AND name NOT GLOB 'sqlite_*' ORDER BY rowid"),
            NULL, put_table, &tables, err);
    past_give(serve->past, request->id, travel);
    return status < 0 ? status : annal__buf_append(&request->answer, "}}", 2);
}

void serve_state_state(struct serve *serve, struct request *request)
{
    annal_error err = {0};
    annal_moment at = {0};
    uint64_t rows = 0;
    if (!read_moment(request, "seq", &at) ||
        (at.kind == ANNAL_AT_END && !read_moment(request, "time", &at)) ||
        !answer_number(request, "rows", ROWS_MAX, &rows))
        return;
    annal_status status = put_state(serve, request, at, rows, &err);
    answer_json(request, status, &err);
}

/* ---- Changes ---- */

struct changes {
    struct buf *out;
    uint64_t count;
    annal_error *err;
};

static int put_change(void *arg, const annal_change *change)
{
    struct changes *changes = arg;
    if (changes->out->len > ROWS_BYTES_MAX)
        return annal__fail(changes->err, ANNAL_ERR_LIMIT,
                           "the difference between the two states is too large for one answer");
    annal_status status =
        changes->count++ > 0 ? annal__buf_append(changes->out, ",\n", 2) : ANNAL_OK;
    return status < 0 ? status : change_json(changes->out, change, changes->err);
}

void serve_state_diff(struct serve *serve, struct request *request)
{
    annal_error err = {0};
    annal_moment moments[2] = {{0}, {0}};
    annal_state *states[2] = {NULL, NULL};
    annal_replay_info infos[2] = {{0}, {0}};
    struct changes changes = {.out = &request->answer, .err = &err};
    annal_status status = ANNAL_OK;
    if (!read_moment(request, "a", &moments[0]) || !read_moment(request, "b", &moments[1]))
        return;
    for (int i = 0; status >= 0 && i < 2; i++)
        status = annal_replay_open(serve->index, request->id, moments[i], NULL, &states[i],
                                   &infos[i], &err);
    if (status >= 0)
        status = annal__buf_printf(&request->answer,
                                   "{\"a\":%" PRIu64 ",\"b\":%" PRIu64 ",\"changes\":[",
                                   infos[0].seq, infos[1].seq);
    if (status >= 0)
        status = annal_state_diff(states[0], states[1], put_change, &changes, &err);
    annal_state_free(states[0]);
    annal_state_free(states[1]);
    if (status >= 0)
        status = annal__buf_append(&request->answer, "]}", 2);
    answer_json(request, status, &err);
}
