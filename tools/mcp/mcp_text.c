/* SPDX-License-Identifier: Apache-2.0 */
/* Text of answers, and members of messages. */
#include "tools/mcp/mcp.h"

#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"

#include <stdarg.h>
#include <stdio.h>

void mcp_text_put(struct mcp_text *out, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ANNAL_ASSERT(len >= 0 && (size_t)len < sizeof text);
    mcp_text_put_slice(out, (annal_slice){text, (size_t)len});
}

void mcp_text_put_slice(struct mcp_text *out, annal_slice text)
{
    out->failed = out->failed || annal__buf_append_slice(&out->buf, text) < 0;
}

void mcp_text_put_json(struct mcp_text *out, annal_slice text)
{
    out->failed = out->failed || annal__json_quote(&out->buf, text) < 0;
}

void mcp_text_put_line(struct mcp_text *out, annal_slice text, size_t most)
{
    size_t begin = out->buf.len;
    while (most < text.len && most > 0 && ((unsigned char)text.ptr[most] & 0xc0) == 0x80)
        most--;
    mcp_text_put_slice(out, (annal_slice){text.ptr, text.len < most ? text.len : most});
    for (size_t i = begin; !out->failed && i < out->buf.len; i++)
        out->buf.ptr[i] = (unsigned char)out->buf.ptr[i] < ' ' ? ' ' : out->buf.ptr[i];
    mcp_text_put(out, "\n");
}

int mcp_text_row(void *arg, const annal_row *row)
{
    struct mcp_text *out = arg;
    mcp_text_put_line(out, row->values[0].bytes, 2000);
    if (row->values[1].kind == ANNAL_VALUE_TEXT) {
        mcp_text_put(out, "| ");
        mcp_text_put_line(out, row->values[1].bytes, 1600);
    }
    return out->failed;
}

annal_slice mcp_text_member(annal_slice object, const char *name)
{
    struct json_walk walk;
    annal_slice found, value;
    if (!annal__json_walk_object(&walk, object))
        return (annal_slice){0};
    while (annal__json_walk_next(&walk, &found, &value)) {
        if (annal__slice_is(annal__json_inside(found), name))
            return annal__json_trim(value);
    }
    return (annal_slice){0};
}
