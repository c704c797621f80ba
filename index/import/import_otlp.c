/* SPDX-License-Identifier: Apache-2.0 */
/* Converting values of OpenTelemetry, each of which is wrapped in an object that names its type, to
 * plain JSON. */
#include "index/import/import.h"

#include "journal/base/json.h"
#include "journal/base/json_walk.h"

#include <string.h>

#define DEPTH_MAX 64

static annal_status put_value(struct buf *out, annal_slice value, int depth);

static annal_status put_items(struct buf *out, annal_slice values, int depth)
{
    struct json_walk items;
    annal_slice item;
    size_t count = 0;
    annal_status status = annal__buf_append(out, "[", 1);
    bool is_array = annal__json_walk_array(&items, values);
    while (status >= 0 && is_array && annal__json_walk_item(&items, &item)) {
        annal__buf_append(out, ",", count++ > 0 ? 1 : 0);
        status = put_value(out, item, depth);
    }
    return annal__buf_append(out, "]", 1);
}

static annal_status put_members(struct buf *out, annal_slice values, int depth)
{
    struct json_walk items;
    annal_slice item;
    size_t count = 0;
    annal_status status = annal__buf_append(out, "{", 1);
    bool is_array = annal__json_walk_array(&items, values);
    while (status >= 0 && is_array && annal__json_walk_item(&items, &item)) {
        annal_slice key = annal__json_member(item, "key");
        if (key.len == 0 || key.ptr[0] != '"')
            continue;
        annal__buf_append(out, ",", count++ > 0 ? 1 : 0);
        annal__buf_append_slice(out, key);
        annal__buf_append(out, ":", 1);
        status = put_value(out, annal__json_member(item, "value"), depth);
    }
    return annal__buf_append(out, "}", 1);
}

/* Append an integer. In OpenTelemetry it may be a string, because not every reader has integers of
 * 64 bits. */
static annal_status put_integer(struct buf *out, annal_slice raw)
{
    annal_slice digits = raw.len > 0 && raw.ptr[0] == '"' ? annal__json_inside(raw) : raw;
    if (annal__json_check(digits, 1, NULL) != JSON_VALID || digits.ptr[0] == '"')
        digits = ANNAL_SLICE("0");
    return annal__buf_append_slice(out, digits);
}

/* Return the values in a list of this type, arrayValue or kvlistValue. *out_is: whether value is of
 * this type. */
static annal_slice list_of(annal_slice value, const char *type, bool *out_is)
{
    annal_slice list = annal__json_member(value, type);
    *out_is = list.len > 0;
    return *out_is ? annal__json_member(list, "values") : list;
}

static annal_status put_value(struct buf *out, annal_slice value, int depth)
{
    static const char *const plain[] = {"stringValue", "doubleValue", "boolValue", "bytesValue"};
    annal_slice raw = annal__json_member(value, "intValue");
    bool is_list, is_object;
    annal_slice items = list_of(value, "arrayValue", &is_list);
    annal_slice members = list_of(value, "kvlistValue", &is_object);
    if (raw.len > 0)
        return put_integer(out, raw);
    if (depth < DEPTH_MAX && is_list)
        return put_items(out, items, depth + 1);
    if (depth < DEPTH_MAX && is_object)
        return put_members(out, members, depth + 1);
    for (size_t i = 0; i < sizeof plain / sizeof *plain && raw.len == 0; i++)
        raw = annal__json_member(value, plain[i]);
    if (raw.len == 0)
        raw = depth == 0 && value.len > 2 ? value : ANNAL_SLICE("null");
    return annal__buf_append_slice(out, raw);
}

annal_status annal__import_otlp(struct buf *out, annal_slice value)
{
    return put_value(out, annal__json_trim(value), 0);
}
