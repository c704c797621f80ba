/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQL functions for the SELECT of a format; docs/guide.md describes them to its users. x is a value
 * as JSON: data -> '$.content'.
 *
 *     md_line(x, chars)          on one line, escaped, and cut after this many characters; NULL for
 *                                NULL
 *     md_code(x, chars)          the same as a code span
 *     md_content(x)              the blocks of a message: quotes, and a note for each picture
 *     md_members(x)              the members of an object as a fenced block
 *     md_output(x, lines, hint)  the result of a tool in fenced blocks of at most so many lines,
 *                                0: all; a note says how many were cut, and ends with the hint
 *     content_text(x)            the texts of a message or a result, a line each; thoughts and
 *                                pictures are left out; a value that has no blocks as JSON
 *     content_empty(x)           '1' if no block of a message has a text, else NULL
 */
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/export/export.h"
#include "tools/export/page.h"
#include "tools/show/event_facts.h"

static annal_slice raw_of(const annal_value *value, struct buf *hold)
{
    bool is_null = value->kind != ANNAL_VALUE_TEXT || annal__slice_is(value->bytes, "null");
    return is_null ? (annal_slice){0} : page_without_base64(value->bytes, hold);
}

static int number_of(const annal_value *value)
{
    return value->kind == ANNAL_VALUE_INTEGER && value->integer > 0 && value->integer < INT32_MAX
               ? (int)value->integer
               : 0;
}

static annal_status md_line(const annal_value *values, struct buf *out)
{
    SCOPED_BUF hold = {.limit = SIZE_MAX};
    if (values[0].kind == ANNAL_VALUE_NULL)
        return ANNAL_END;
    page_inline(out, raw_of(&values[0], &hold), (size_t)number_of(&values[1]));
    return ANNAL_OK;
}

static annal_status md_code(const annal_value *values, struct buf *out)
{
    SCOPED_BUF hold = {.limit = SIZE_MAX};
    page_code(out, raw_of(&values[0], &hold), (size_t)number_of(&values[1]));
    return ANNAL_OK;
}

static annal_status md_content(const annal_value *values, struct buf *out)
{
    SCOPED_BUF hold = {.limit = SIZE_MAX};
    page_content(out, raw_of(&values[0], &hold));
    return ANNAL_OK;
}

static annal_status md_members(const annal_value *values, struct buf *out)
{
    SCOPED_BUF hold = {.limit = SIZE_MAX};
    page_members(out, raw_of(&values[0], &hold));
    return ANNAL_OK;
}

static annal_status md_output(const annal_value *values, struct buf *out)
{
    SCOPED_BUF hold = {.limit = SIZE_MAX};
    page_output(out, raw_of(&values[0], &hold), number_of(&values[1]), values[2].bytes);
    return ANNAL_OK;
}

static annal_status append_text(struct buf *out, annal_slice raw)
{
    bool half = false;
    return raw.ptr[0] == '"' ? annal__json_decode(raw, out, &half)
                             : annal__buf_append_slice(out, raw);
}

static annal_status content_text(const annal_value *values, struct buf *out)
{
    struct json_walk walk;
    annal_slice part, raw = values[0].bytes;
    annal_status status = ANNAL_OK;
    bool any = false;
    if (values[0].kind != ANNAL_VALUE_TEXT || raw.len == 0 || annal__slice_is(raw, "null"))
        return ANNAL_END;
    if (raw.ptr[0] != '[' || !annal__json_walk_array(&walk, raw))
        return append_text(out, raw);
    while (status >= 0 && annal__json_walk_item(&walk, &part)) {
        annal_slice text = event_block_text(part);
        if (text.len == 0 || event_block_is_thought(part))
            continue;
        status = any ? annal__buf_append(out, "\n", 1) : ANNAL_OK;
        any = true;
        if (status >= 0)
            status = append_text(out, text);
    }
    return status;
}

static annal_status content_empty(const annal_value *values, struct buf *out)
{
    SCOPED_BUF hold = {.limit = SIZE_MAX};
    bool empty = event_content_is_empty(raw_of(&values[0], &hold));
    return empty ? annal__buf_append(out, "1", 1) : ANNAL_END;
}

const annal__sql_function select_functions[] = {{"md_line", 2, md_line},
                                                {"md_code", 2, md_code},
                                                {"md_content", 1, md_content},
                                                {"md_members", 1, md_members},
                                                {"md_output", 3, md_output},
                                                {"content_text", 1, content_text},
                                                {"content_empty", 1, content_empty},
                                                {NULL, 0, NULL}};
