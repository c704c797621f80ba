/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments from JavaScript, and tables of values for it. */
#include "native.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 256

int64_t args_number(struct args *args)
{
    int64_t number = 0;
    if ((size_t)(args->end - args->at) < sizeof number) {
        args->at = args->end;
        return 0;
    }
    memcpy(&number, args->at, sizeof number);
    args->at += sizeof number;
    return number;
}

annal_slice args_slice(struct args *args)
{
    size_t len = (size_t)args_number(args);
    if ((size_t)(args->end - args->at) < len) {
        args->at = args->end;
        return (annal_slice){0};
    }
    annal_slice slice = {.ptr = args->at, .len = len};
    args->at += len;
    return slice;
}

annal_status args_slices(struct args *args, annal_slice **out, size_t *out_count)
{
    size_t count = (size_t)args_number(args);
    *out = NULL;
    *out_count = 0;
    if (count == 0)
        return ANNAL_OK;
    if (count > (size_t)(args->end - args->at))
        return ANNAL_ERR_INVALID;
    *out = calloc(count, sizeof **out);
    if (*out == NULL)
        return ANNAL_ERR_NOMEM;
    *out_count = count;
    for (size_t i = 0; i < count; i++)
        (*out)[i] = args_slice(args);
    return ANNAL_OK;
}

/* Add the three cells of a value. */
static void put(struct table *table, uint32_t kind, uint64_t bits)
{
    if (table->cell_room - table->cell_count < 3) {
        size_t room = 2 * table->cell_room + ROOM_FIRST;
        uint32_t *grown = realloc(table->cells, room * sizeof *grown);
        if (grown == NULL) {
            table->failed = true;
            return;
        }
        table->cells = grown;
        table->cell_room = room;
    }
    uint32_t *cells = table->cells + table->cell_count;
    cells[0] = kind;
    cells[1] = (uint32_t)bits;
    cells[2] = (uint32_t)(bits >> 32);
    table->cell_count += 3;
}

static void put_bytes(struct table *table, uint32_t kind, annal_slice bytes)
{
    if (table->room - table->len < bytes.len) {
        size_t room = 2 * table->room + bytes.len + ROOM_FIRST;
        char *grown = realloc(table->bytes, room);
        if (grown == NULL) {
            table->failed = true;
            return;
        }
        table->bytes = grown;
        table->room = room;
    }
    if (bytes.len > 0)
        memcpy(table->bytes + table->len, bytes.ptr, bytes.len);
    table->len += bytes.len;
    put(table, kind, bytes.len);
}

void table_kind(struct table *table, uint32_t kind)
{
    put(table, kind, 0);
}

void table_number(struct table *table, int64_t number)
{
    put(table, ANNAL_VALUE_INTEGER, (uint64_t)number);
}

void table_text(struct table *table, annal_slice text)
{
    put_bytes(table, ANNAL_VALUE_TEXT, text);
}

void table_string(struct table *table, const char *text)
{
    if (text == NULL)
        put(table, ANNAL_VALUE_NULL, 0);
    else
        table_text(table, annal_slice_of(text));
}

void table_value(struct table *table, const annal_value *value)
{
    uint64_t bits = 0;
    switch (value->kind) {
    case ANNAL_VALUE_TEXT:
    case ANNAL_VALUE_BLOB:
        put_bytes(table, value->kind, value->bytes);
        return;
    case ANNAL_VALUE_INTEGER:
        bits = (uint64_t)value->integer;
        break;
    case ANNAL_VALUE_REAL:
        memcpy(&bits, &value->real, sizeof bits);
        break;
    case ANNAL_VALUE_NULL:
        break;
    }
    put(table, value->kind, bits);
}

void table_free(struct table *table)
{
    free(table->cells);
    free(table->bytes);
    *table = (struct table){0};
}
