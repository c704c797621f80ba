/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/rows.h"

#include "journal/base/alloc.h"
#include "journal/base/hex.h"
#include "journal/base/json.h"
#include "tools/cli/must.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { DATE_BYTES = 10, TIME_LEAST = 20 };

/* Add a blob as hexadecimal digits, the only form that every reader of JSON and CSV accepts. */
static void blob_cell(struct table *table, annal_slice bytes)
{
    SCOPED_BUF hex = {0};
    (void)!annal__hex_append(&hex, bytes); /* if memory ran out, the cell is empty */
    table_text(table, annal__buf_slice(&hex));
    table_shown(table, "(%zu bytes)", bytes.len);
}

void rows_cell(struct table *table, const annal_value *value)
{
    switch (value->kind) {
    case ANNAL_VALUE_INTEGER:
        table_signed(table, value->integer);
        break;
    case ANNAL_VALUE_REAL:
        table_real(table, value->real);
        break;
    case ANNAL_VALUE_TEXT:
        table_text(table, value->bytes);
        break;
    case ANNAL_VALUE_BLOB:
        blob_cell(table, value->bytes);
        break;
    case ANNAL_VALUE_NULL:
        table_null(table);
        break;
    }
}

/* If the value is a time and stdout is a terminal, write it in the user's time zone. Otherwise
 * return false. */
static bool is_time(const annal_value *value, char text[HUMAN_TIME_BYTES])
{
    annal_slice time = value->bytes;
    int64_t time_us;
    if (value->kind != ANNAL_VALUE_TEXT || time.len < TIME_LEAST || time.ptr[DATE_BYTES] != 'T' ||
        time.ptr[time.len - 1] != 'Z' || !isatty(STDOUT_FILENO) ||
        annal_time_parse(time, &time_us, NULL) != ANNAL_OK)
        return false;
    human_time(text, time_us);
    return true;
}

void rows_count_cell(struct table *table, const annal_value *value)
{
    char time[HUMAN_TIME_BYTES];
    if (is_time(value, time)) {
        rows_cell(table, value);
        table_shown(table, "%s", time);
    } else if (value->kind == ANNAL_VALUE_INTEGER && value->integer >= 0) {
        table_count(table, (uint64_t)value->integer);
    } else {
        rows_cell(table, value);
    }
}

int rows_columns(void *arg, const annal_row *row)
{
    struct rows *rows = arg;
    rows->columns = must_zalloc(row->count * sizeof *rows->columns);
    rows->names = must_zalloc(row->count * sizeof *rows->names);
    rows->typed = must_zalloc(row->count * sizeof *rows->typed);
    rows->count = (int)row->count;
    for (size_t i = 0; i < row->count; i++) {
        rows->names[i] = must_strndup(row->names[i], strlen(row->names[i]));
        rows->columns[i] =
            (struct column){.name = rows->names[i], .title = rows->names[i], .flexible = true};
    }
    rows->table = table_new(rows->format, rows->columns, rows->count);
    if (rows->unfold)
        table_unfold(rows->table);
    return 0;
}

int rows_row(void *arg, const annal_row *row)
{
    struct rows *rows = arg;
    for (size_t i = 0; i < row->count; i++) {
        annal_value_kind kind = row->values[i].kind;
        /* the first value of a column that is not NULL decides how the column is aligned */
        if (!rows->typed[i])
            rows->columns[i].right = kind == ANNAL_VALUE_INTEGER || kind == ANNAL_VALUE_REAL;
        rows->typed[i] = rows->typed[i] || kind != ANNAL_VALUE_NULL;
        rows_cell(rows->table, &row->values[i]);
    }
    rows->begun = true;
    table_row(rows->table);
    return out_wanted() ? 0 : ANNAL_END;
}

void rows_done(struct rows *rows)
{
    table_free(rows->table);
    for (int i = 0; rows->names != NULL && i < rows->count; i++)
        annal__free(rows->names[i]);
    annal__free(rows->names);
    annal__free(rows->typed);
    annal__free(rows->columns);
    *rows = (struct rows){0};
}

annal_status rows_value_json(struct buf *out, const annal_value *value)
{
    char number[REAL_BYTES];
    switch (value->kind) {
    case ANNAL_VALUE_INTEGER:
        return annal__buf_printf(out, "%" PRId64, value->integer);
    case ANNAL_VALUE_REAL:
        return annal__buf_append_slice(out, annal_slice_of(table_real_text(number, value->real)));
    case ANNAL_VALUE_TEXT:
        return annal__json_quote(out, value->bytes);
    case ANNAL_VALUE_BLOB:
        return annal__hex_quote(out, value->bytes);
    case ANNAL_VALUE_NULL:
        break;
    }
    return annal__buf_append(out, "null", 4);
}

annal_status rows_members_json(struct buf *out, const annal_row *row)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < row->count; i++) {
        if (i > 0)
            status = annal__buf_append(out, ",", 1);
        if (status >= 0)
            status = annal__json_put(out, "?:", annal_slice_of(row->names[i]));
        if (status >= 0)
            status = rows_value_json(out, &row->values[i]);
    }
    return status;
}

void rows_print_value(const annal_value *value)
{
    SCOPED_BUF text = {0};
    if (rows_value_json(&text, value) >= 0)
        out_slice(annal__buf_slice(&text));
}

void rows_print_members(const annal_row *row)
{
    SCOPED_BUF text = {0};
    if (rows_members_json(&text, row) >= 0)
        out_slice(annal__buf_slice(&text));
}

int rows_print_lines(void *arg, const annal_row *row)
{
    char text[HUMAN_BYTES], time[HUMAN_TIME_BYTES];
    (void)arg;
    for (size_t i = 0; i < row->count; i++) {
        const annal_value *value = &row->values[i];
        if (value->kind == ANNAL_VALUE_NULL ||
            (value->kind == ANNAL_VALUE_TEXT && value->bytes.len == 0))
            continue;
        printf("%-20s ", row->names[i]);
        if (is_time(value, time))
            fputs(time, stdout);
        else if (value->kind == ANNAL_VALUE_TEXT)
            out_plain(value->bytes);
        else if (value->kind == ANNAL_VALUE_INTEGER && value->integer >= 0)
            fputs(human_count(text, (uint64_t)value->integer), stdout);
        else
            rows_print_value(value);
        fputc('\n', stdout);
    }
    return 0;
}
