/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/rows_json.h"

#include "journal/base/json.h"
#include "tools/cli/rows.h"

int rows_json_columns(void *arg, const annal_row *row)
{
    struct rows_json *rows = arg;
    annal_status status = annal__buf_append(rows->out, "{\"columns\":[", 12);
    for (size_t i = 0; status >= 0 && i < row->count; i++)
        status = annal__json_put(rows->out, i > 0 ? ",?" : "?", annal_slice_of(row->names[i]));
    rows->begun = true;
    return annal__buf_append(rows->out, "],\"rows\":[", 10);
}

int rows_json_row(void *arg, const annal_row *row)
{
    struct rows_json *rows = arg;
    size_t before = rows->out->len;
    if (rows->limit > 0 && rows->count == rows->limit) {
        rows->truncated = true;
        return ANNAL_END;
    }
    annal_status status =
        annal__buf_append(rows->out, rows->count > 0 ? ",\n[" : "\n[", rows->count > 0 ? 3 : 2);
    for (size_t i = 0; status >= 0 && i < row->count; i++) {
        status = annal__buf_append(rows->out, ",", i > 0);
        if (status >= 0)
            status = rows_value_json(rows->out, &row->values[i]);
    }
    if (status >= 0)
        status = annal__buf_append(rows->out, "]", 1);
    rows->count++;
    if (status < 0 || rows->out->len <= ROWS_BYTES_MAX)
        return status;
    rows->out->len = before;
    rows->truncated = true;
    return ANNAL_END;
}

annal_status rows_json_end(struct rows_json *rows)
{
    return rows->begun ? annal__buf_append(rows->out, "]", 1)
                       : annal__buf_append(rows->out, "{\"columns\":[],\"rows\":[]", 23);
}

annal_status rows_json_ask(annal_index *index, const char *sql, const annal_value *params,
                           size_t param_count, struct buf *out, annal_error *err)
{
    struct rows_json rows = {.out = out};
    const annal_sql_options options = {
        .params = params, .param_count = param_count, .columns = rows_json_columns};
    annal_status status =
        annal_index_sql(index, annal_slice_of(sql), &options, rows_json_row, &rows, err);
    if (status >= 0)
        status = rows_json_end(&rows);
    return status < 0 ? status : annal__buf_append(out, "}", 1);
}
