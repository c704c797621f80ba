/* SPDX-License-Identifier: Apache-2.0 */
/* Builds arrays in PostgreSQL's syntax; the text of an item must not need escaping. If memory runs
 * out, the array accepts no more items and cannot be completed. */
#include "tools/ship/postgres.h"

#include "journal/base/number.h"

#include <string.h>

static void add_item(struct buf *array, const char *before, const char *item, size_t len,
                     const char *after)
{
    if (annal__buf_append(array, array->len == 0 ? "{" : ",", 1) < 0 ||
        annal__buf_append(array, before, strlen(before)) < 0 ||
        annal__buf_append(array, item, len) < 0 ||
        annal__buf_append(array, after, strlen(after)) < 0)
        array->limit = 1;
}

void postgres_add_text(struct buf *array, const char *text)
{
    add_item(array, "\"", text, strlen(text), "\"");
}

void postgres_add_null(struct buf *array)
{
    add_item(array, "", "NULL", 4, "");
}

void postgres_add_number(struct buf *array, uint64_t value)
{
    char text[21];
    bool is_negative = (int64_t)value < 0;
    const char *end = annal__number_put(text, is_negative ? 0 - value : value);
    add_item(array, is_negative ? "-" : "", text, (size_t)(end - text), "");
}
