/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of one session in the index, for a timeline, a slider and a chart. A fork includes the
 * rows that it shares with its ancestors.
 */
#include "tools/show/timeline_rows.h"

#include "journal/base/json.h"
#include "tools/show/rows_json.h"

#include <inttypes.h>
#include <string.h>

/* SQL of the journals that contain the history of session ?1, and the range of seq in each. ?2 is
 * the first seq that is wanted. */
#define HISTORY                                                                                    \
    "WITH RECURSIVE part (id, from_seq, to_seq) AS ("                                              \
    " SELECT ?1, coalesce((SELECT forked_at_seq FROM forks WHERE session_id = ?1), 0) + 1,"        \
    " 9223372036854775807 UNION SELECT f.parent_session_id, coalesce((SELECT a.forked_at_seq"      \
    " FROM forks a WHERE a.session_id = f.parent_session_id), 0) + 1,"                             \
    " min(f.forked_at_seq, part.to_seq) FROM part JOIN forks f ON f.session_id = part.id) "
#define PART(rows, seq)                                                                            \
    " FROM part CROSS JOIN " rows " WHERE r.session_id = part.id AND " seq                         \
    " BETWEEN max(part.from_seq, ?2) AND part.to_seq "

/* SQL of the calls that were made, or that returned, from ?2 on. */
static const char tools[] =
    HISTORY "SELECT r.seq, r.result_seq, r.call_id, r.tool, r.status, r.called_at, r.returned_at,"
            " coalesce(r.duration_ms, max(0, CAST(round((julianday(r.returned_at) -"
            " julianday(r.called_at)) * 86400000) AS INTEGER))) AS duration_ms, r.exit_code,"
            " r.output_bytes FROM part CROSS JOIN tool_calls r WHERE r.session_id = part.id"
            " AND r.seq BETWEEN part.from_seq AND part.to_seq"
            " AND coalesce(r.result_seq, r.seq) >= ?2 ORDER BY r.seq";

/* SQL of the turns; the column prompt is the first message of the user in the turn, or in the event
 * before the turn began */
static const char turns[] = HISTORY
    ", t AS MATERIALIZED (SELECT r.*, lead(r.seq, 1, 9223372036854775807) OVER"
    " (ORDER BY r.seq) AS next_seq" PART(
        "turns r",
        "r.seq") ")"
                 " SELECT t.seq, t.turn_id, t.sequence, t.status, t.created_at, t.completed_at,"
                 " t.input_tokens, t.output_tokens, t.cached_input_tokens, t.cache_write_tokens,"
                 " coalesce(t.cost_usd, t.cost_microusd / 1e6) AS cost_usd, t.timing, t.error,"
                 " (SELECT substr(annal_said(e.data), 1, 160) FROM events e WHERE e.session_id = "
                 "t.session_id"
                 " AND e.type = 'message.added' AND e.seq BETWEEN t.seq - 1 AND t.next_seq - 2"
                 " AND annal_said(e.data) IS NOT NULL ORDER BY e.seq LIMIT 1) AS prompt,"
                 " (SELECT e.data ->> '$.said' IS '' FROM events e WHERE e.session_id = "
                 "t.session_id"
                 " AND e.type = 'message.added' AND e.seq BETWEEN t.seq - 1 AND t.next_seq - 2"
                 " AND e.data ->> '$.role' = 'user' ORDER BY e.seq LIMIT 1) AS by_program"
                 " FROM t ORDER BY t.seq";

/* SQL of the events with usage, without the totals that the event at the end of a turn repeats. */
static const char usage[] = HISTORY
    " SELECT u.seq, u.timestamp AS time, u.model, u.input_tokens, u.output_tokens,"
    " u.cached_input_tokens, u.cache_write_tokens,"
    " CAST(round(u.cost_microusd) AS INTEGER) AS cost_microusd,"
    " u.computed_microusd IS NOT NULL AS computed"
    " FROM part CROSS JOIN usage_event_costs u WHERE u.session_id = part.id AND u.seq BETWEEN"
    " max(part.from_seq, ?2) AND part.to_seq ORDER BY u.seq";

static annal_status ask(annal_index *index, const char *sql, annal_slice session, uint64_t from,
                        struct buf *out, annal_error *err)
{
    const annal_value params[] = {{.kind = ANNAL_VALUE_TEXT, .bytes = session},
                                  {.kind = ANNAL_VALUE_INTEGER, .integer = (int64_t)from}};
    return rows_json_ask(index, sql, params, 2, out, err);
}

annal_status timeline_tools(annal_index *index, annal_slice session, uint64_t from, struct buf *out,
                            annal_error *err)
{
    return ask(index, tools, session, from, out, err);
}

annal_status timeline_turns(annal_index *index, annal_slice session, uint64_t from, struct buf *out,
                            annal_error *err)
{
    return ask(index, turns, session, from, out, err);
}

annal_status timeline_usage(annal_index *index, annal_slice session, uint64_t from, struct buf *out,
                            annal_error *err)
{
    return ask(index, usage, session, from, out, err);
}

/* ---- The outline: seq, type, time and length of all events, in columns ---- */

struct outline {
    /* one JSON array of the answer each, without its brackets */
    struct buf types, seq, type, time, bytes;
    struct buf names; /* names of the types, each with a NUL */
    uint64_t count;
};

/* Return in *out the position of a type in the list of types, and add a new type. The list is
 * short, so it is searched from the beginning. */
static annal_status place_of(struct outline *outline, annal_slice type, size_t *out)
{
    size_t place = 0;
    for (size_t at = 0; at < outline->names.len; place++) {
        const char *name = outline->names.ptr + at;
        size_t len = strlen(name);
        if (len == type.len && memcmp(name, type.ptr, len) == 0) {
            *out = place;
            return ANNAL_OK;
        }
        at += len + 1;
    }
    *out = place;
    annal_status status = annal__buf_append_slice(&outline->names, type);
    if (status >= 0)
        status = annal__buf_append(&outline->names, "", 1);
    if (status >= 0 && place > 0)
        status = annal__buf_append(&outline->types, ",", 1);
    return status < 0 ? status : annal__json_quote(&outline->types, type);
}

static int add_event(void *arg, const annal_row *row)
{
    struct outline *outline = arg;
    const char *comma = outline->count++ > 0 ? "," : "";
    int64_t time_us = 0;
    size_t place = 0;
    if (annal_time_parse(row->values[2].bytes, &time_us, NULL) < 0)
        time_us = 0;
    annal_status status = place_of(outline, row->values[1].bytes, &place);
    if (status >= 0)
        status = annal__buf_printf(&outline->seq, "%s%" PRId64, comma, row->values[0].integer);
    if (status >= 0)
        status = annal__buf_printf(&outline->type, "%s%zu", comma, place);
    if (status >= 0)
        status = annal__buf_printf(&outline->time, "%s%" PRId64, comma, time_us / 1000);
    if (status >= 0)
        status = annal__buf_printf(&outline->bytes, "%s%" PRId64, comma, row->values[3].integer);
    return status;
}

static annal_status join(struct buf *out, const char *before, struct buf *part)
{
    annal_status status = annal__buf_append_slice(out, annal_slice_of(before));
    return status < 0 ? status : annal__buf_append_slice(out, annal__buf_slice(part));
}

annal_status timeline_outline(annal_index *index, annal_slice session, uint64_t from,
                              struct buf *out, annal_error *err)
{
    /* what telemetry said before the log of its session followed has the type of a record, and so
     * has a line that could not be read if a later import read it */
    static const char sql[] = HISTORY
        "SELECT r.seq, CASE WHEN r.type NOT GLOB 'session.*' AND r.seq < (SELECT max(x.seq)"
        " FROM event_index x WHERE x.session_id = ?1 AND x.type = 'telemetry.superseded')"
        " OR r.type = 'import.unreadable' AND (r.session_id, r.seq) NOT IN"
        " (SELECT x.session_id, x.seq FROM failures x WHERE x.what = 'line')"
        " THEN 'import.record' ELSE r.type END, r.timestamp, r.length" PART("event_index r",
                                                                            "r.seq") "ORDER BY "
                                                                                     "r.seq";
    const annal_value params[] = {{.kind = ANNAL_VALUE_TEXT, .bytes = session},
                                  {.kind = ANNAL_VALUE_INTEGER, .integer = (int64_t)from}};
    struct outline outline = {0};
    const annal_sql_options options = {.params = params, .param_count = 2};
    annal_status status = annal_sql(index, ANNAL_SLICE(sql), &options, add_event, &outline, err);
    if (status >= 0)
        status = join(out, "{\"types\":[", &outline.types);
    if (status >= 0)
        status = join(out, "],\"seq\":[", &outline.seq);
    if (status >= 0)
        status = join(out, "],\"type\":[", &outline.type);
    if (status >= 0)
        status = join(out, "],\"time\":[", &outline.time);
    if (status >= 0)
        status = join(out, "],\"bytes\":[", &outline.bytes);
    if (status >= 0)
        status = annal__buf_append(out, "]}", 2);
    annal__buf_done(&outline.types);
    annal__buf_done(&outline.seq);
    annal__buf_done(&outline.type);
    annal__buf_done(&outline.time);
    annal__buf_done(&outline.bytes);
    annal__buf_done(&outline.names);
    return status;
}
