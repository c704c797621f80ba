/* SPDX-License-Identifier: Apache-2.0 */
#include "index/packs/post.h"

#include "index/sys/open.h"
#include "journal/base/json.h"

annal_status annal__post(annal_index *index, const struct post *post, annal_slice data,
                         annal_appended *out, annal_error *err)
{
    annal_writer *writer = NULL;
    const annal_append_options options = {.level = ANNAL_LEVEL_SYNC};
    const annal_draft draft = {
        .type = post->type, .data = data, .id = post->id, .cause = post->cause};
    annal_status status =
        annal_writer_open(annal__index_store(index), post->session,
                          &(annal_writer_options){.wait_ms = post->wait_ms}, &writer, err);
    if (status == ANNAL_OK)
        status = annal_pack_append(index, writer, &draft, 1, &options, out, err);
    annal_writer_close(writer);
    return status;
}

annal_status annal__post_add_text(struct buf *data, const char *name, annal_slice text)
{
    annal_status status = annal__buf_printf(data, "%c\"%s\":", data->len == 0 ? '{' : ',', name);
    if (status < 0)
        return status;
    return text.ptr == NULL ? annal__buf_append(data, "null", 4) : annal__json_quote(data, text);
}

annal_status annal__post_close_data(struct buf *data)
{
    return annal__buf_printf(data, "%s}", data->len == 0 ? "{" : "");
}
