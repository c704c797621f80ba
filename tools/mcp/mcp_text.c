/* SPDX-License-Identifier: Apache-2.0 */
/* Text of answers, and members of messages. */
#include "tools/mcp/mcp.h"

#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"

void mcp_text_put_line(struct buf *out, annal_slice text, size_t most)
{
    size_t begin = out->len;
    while (most < text.len && most > 0 && ((unsigned char)text.ptr[most] & 0xc0) == 0x80)
        most--;
    annal__buf_append_slice(out, (annal_slice){text.ptr, text.len < most ? text.len : most});
    for (size_t i = begin; out->status >= 0 && i < out->len; i++)
        out->ptr[i] = (unsigned char)out->ptr[i] < ' ' ? ' ' : out->ptr[i];
    annal__buf_printf(out, "\n");
}

int mcp_text_row(void *arg, const annal_row *row)
{
    struct buf *out = arg;
    mcp_text_put_line(out, row->values[0].bytes, 2000);
    if (row->values[1].kind == ANNAL_VALUE_TEXT) {
        annal__buf_printf(out, "| ");
        mcp_text_put_line(out, row->values[1].bytes, 1600);
    }
    return out->status < 0;
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
