/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows as columns, in memory to which Python's buffers and Arrow's arrays point.
 *
 * A call of Python for each row, or for each field of an event, costs more than reading it. So a
 * whole block of rows is read here, in one call without the GIL.
 */
#include "native.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define STOP       1 /* result with which a callback ends the call: no memory, or Ctrl-C */
#define PAUSE_ROWS 65536
#define ROOM_FIRST 64

/* A function of Python: libannal/_table.py. */
int libannal_on_pause(void);

libannal_table *libannal_table_new(void)
{
    return calloc(1, sizeof(libannal_table));
}

void libannal_table_free(libannal_table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->column_count; i++) {
        free(table->columns[i].name);
        free(table->columns[i].kinds);
        free(table->columns[i].numbers);
        free(table->columns[i].bytes);
    }
    free(table->columns);
    free(table);
}

static bool set_columns(libannal_table *table, const char *const *names, size_t count)
{
    table->columns = calloc(count > 0 ? count : 1, sizeof *table->columns);
    if (table->columns == NULL)
        return false;
    table->column_count = count;
    for (size_t i = 0; i < count; i++) {
        libannal_column *column = &table->columns[i];
        column->name = strdup(names[i]);
        column->numbers = calloc(1, sizeof *column->numbers);
        if (column->name == NULL || column->numbers == NULL)
            return false;
    }
    return true;
}

/* Make room for one more row. */
static bool grow(libannal_table *table)
{
    if (table->rows < table->room)
        return true;
    size_t room = table->room > 0 ? 2 * table->room : ROOM_FIRST;
    for (size_t i = 0; i < table->column_count; i++) {
        libannal_column *column = &table->columns[i];
        uint8_t *kinds = realloc(column->kinds, room);
        if (kinds == NULL)
            return false;
        column->kinds = kinds;
        int64_t *numbers = realloc(column->numbers, (room + 1) * sizeof *numbers);
        if (numbers == NULL)
            return false;
        column->numbers = numbers;
    }
    table->room = room;
    return true;
}

static void put(libannal_column *column, size_t row, annal_value_kind kind, int64_t number)
{
    column->kinds[row] = (uint8_t)kind;
    column->seen |= 1U << kind;
    column->numbers[row + 1] = number;
}

static bool put_bytes(libannal_column *column, size_t row, annal_value_kind kind, annal_slice bytes)
{
    if (column->bytes_room - column->bytes_len < bytes.len) {
        size_t room = 2 * column->bytes_room + bytes.len + ROOM_FIRST;
        char *grown = realloc(column->bytes, room);
        if (grown == NULL)
            return false;
        column->bytes = grown;
        column->bytes_room = room;
    }
    if (bytes.len > 0)
        memcpy(column->bytes + column->bytes_len, bytes.ptr, bytes.len);
    column->bytes_len += bytes.len;
    put(column, row, kind, (int64_t)column->bytes_len);
    return true;
}

static bool put_value(libannal_column *column, size_t row, const annal_value *value)
{
    int64_t bits;
    switch (value->kind) {
    case ANNAL_VALUE_TEXT:
    case ANNAL_VALUE_BLOB:
        return put_bytes(column, row, value->kind, value->bytes);
    case ANNAL_VALUE_INTEGER:
        put(column, row, value->kind, value->integer);
        return true;
    case ANNAL_VALUE_REAL:
        memcpy(&bits, &value->real, sizeof bits);
        put(column, row, value->kind, bits);
        return true;
    default:
        put(column, row, ANNAL_VALUE_NULL, (int64_t)column->bytes_len);
        return true;
    }
}

int libannal_table_columns(void *table, const annal_row *row)
{
    return set_columns(table, row->names, row->count) ? 0 : STOP;
}

int libannal_table_row(void *arg, const annal_row *row)
{
    libannal_table *table = arg;
    if (!grow(table) || (table->rows % PAUSE_ROWS == PAUSE_ROWS - 1 && libannal_on_pause() != 0))
        return STOP;
    for (size_t i = 0; i < table->column_count; i++)
        if (!put_value(&table->columns[i], table->rows, &row->values[i]))
            return STOP;
    table->rows++;
    return 0;
}

static const char *const EVENT[] = {"session", "seq", "timestamp", "type", "id", "cause", "data"};

#define EVENT_COLUMNS (sizeof EVENT / sizeof *EVENT)

static bool put_event(libannal_table *table, annal_slice session, const annal_event *event)
{
    if (!grow(table))
        return false;
    libannal_column *columns = table->columns;
    size_t row = table->rows;
    put(&columns[1], row, ANNAL_VALUE_INTEGER, (int64_t)event->seq);
    put(&columns[2], row, ANNAL_VALUE_INTEGER, event->ts_us);
    if (!put_bytes(&columns[0], row, ANNAL_VALUE_TEXT, session) ||
        !put_bytes(&columns[3], row, ANNAL_VALUE_TEXT, event->type) ||
        !put_bytes(&columns[4], row, ANNAL_VALUE_TEXT, event->id) ||
        !put_bytes(&columns[5], row, ANNAL_VALUE_TEXT, event->cause) ||
        !put_bytes(&columns[6], row, ANNAL_VALUE_TEXT, event->data))
        return false;
    table->rows++;
    return true;
}

annal_status libannal_table_read_cursor(libannal_table *table, annal_cursor *cursor,
                                        annal_slice session, uint64_t to_seq, size_t rows,
                                        size_t bytes, annal_error *err)
{
    if (table->columns == NULL && !set_columns(table, EVENT, EVENT_COLUMNS))
        return ANNAL_ERR_NOMEM;
    annal_status status = ANNAL_OK;
    while (table->rows < rows && table->columns[6].bytes_len < bytes) {
        annal_event event;
        status = annal_cursor_next(cursor, &event, err);
        if (status != ANNAL_OK)
            break;
        if (event.seq > to_seq)
            return ANNAL_END;
        if (!put_event(table, session, &event))
            return ANNAL_ERR_NOMEM;
        if (event.seq == to_seq)
            return ANNAL_END;
    }
    return status;
}

annal_status libannal_table_read_query(libannal_table *table, annal_query *query, size_t rows,
                                       size_t bytes, annal_error *err)
{
    if (table->columns == NULL && !set_columns(table, EVENT, EVENT_COLUMNS))
        return ANNAL_ERR_NOMEM;
    annal_status status = ANNAL_OK;
    while (table->rows < rows && table->columns[6].bytes_len < bytes) {
        annal_slice session;
        annal_event event;
        status = annal_query_next(query, &session, &event, err);
        if (status == ANNAL_DAMAGE && !put_event(table, session, &event))
            return ANNAL_ERR_NOMEM;
        if (status != ANNAL_OK)
            break;
        if (!put_event(table, session, &event))
            return ANNAL_ERR_NOMEM;
    }
    return status;
}

void libannal_column_valid(const libannal_column *column, size_t rows, uint8_t *bitmap)
{
    memset(bitmap, 0, (rows + 7) / 8);
    for (size_t row = 0; row < rows; row++)
        if (column->kinds[row] != ANNAL_VALUE_NULL)
            bitmap[row / 8] |= (uint8_t)(1U << row % 8);
}

void libannal_column_reals(const libannal_column *column, size_t rows, double *reals)
{
    for (size_t row = 0; row < rows; row++) {
        if (column->kinds[row] == ANNAL_VALUE_INTEGER)
            reals[row] = (double)column->numbers[row + 1];
        else
            memcpy(&reals[row], &column->numbers[row + 1], sizeof *reals);
    }
}
