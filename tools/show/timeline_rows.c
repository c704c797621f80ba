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

extern const char annal__sql_timeline_tools[], annal__sql_timeline_turns[],
    annal__sql_timeline_usage[], annal__sql_timeline_outline[]; /* show/timeline/ */

/* ---- The outline: seq, type, time and length of all events, in columns ---- */

enum { SEQ, TYPE, TIME, BYTES, COLUMNS };

struct outline {
    /* one JSON array of the answer each, without its brackets */
    struct buf types, columns[COLUMNS];
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
    annal__buf_append_slice(&outline->names, type);
    annal_status status = annal__buf_append(&outline->names, "", 1);
    return status < 0 ? status : annal__json_put(&outline->types, place > 0 ? ",?" : "?", type);
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
    const int64_t numbers[COLUMNS] = {[SEQ] = row->values[0].integer,
                                      [TYPE] = (int64_t)place,
                                      [TIME] = time_us / 1000,
                                      [BYTES] = row->values[3].integer};
    for (int i = 0; status >= 0 && i < COLUMNS; i++)
        status = annal__buf_printf(&outline->columns[i], "%s%" PRId64, comma, numbers[i]);
    return status;
}

static annal_status put_outline(annal_index *index, const annal_value *params, struct buf *out,
                                annal_error *err)
{
    struct outline outline = {0};
    const annal_sql_options options = {.params = params, .param_count = 2};
    annal_status status = annal_index_sql(index, annal_slice_of(annal__sql_timeline_outline),
                                          &options, add_event, &outline, err);
    static const char *const begins[COLUMNS] = {"],\"seq\":[", "],\"type\":[", "],\"time\":[",
                                                "],\"bytes\":["};
    if (status >= 0)
        status =
            annal__buf_printf(out, "{\"types\":[%.*s", ANNAL_FMT(annal__buf_slice(&outline.types)));
    for (int i = 0; i < COLUMNS; i++) {
        if (status >= 0)
            status = annal__buf_append_slice(out, annal_slice_of(begins[i]));
        if (status >= 0)
            status = annal__buf_append_slice(out, annal__buf_slice(&outline.columns[i]));
        annal__buf_done(&outline.columns[i]);
    }
    annal__buf_done(&outline.types);
    annal__buf_done(&outline.names);
    return status < 0 ? status : annal__buf_append(out, "]}", 2);
}

annal_status timeline_part(annal_index *index, const char *part, annal_slice session, uint64_t from,
                           struct buf *out, annal_error *err)
{
    const annal_value params[] = {{.kind = ANNAL_VALUE_TEXT, .bytes = session},
                                  {.kind = ANNAL_VALUE_INTEGER, .integer = (int64_t)from}};
    const char *sql = strcmp(part, "tools") == 0   ? annal__sql_timeline_tools
                      : strcmp(part, "turns") == 0 ? annal__sql_timeline_turns
                                                   : annal__sql_timeline_usage;
    return strcmp(part, "outline") == 0 ? put_outline(index, params, out, err)
                                        : rows_json_ask(index, sql, params, 2, out, err);
}
