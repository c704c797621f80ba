/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An append in one call: Python passes one string of bytes, whatever the number of drafts and
 * fields.
 */
#include "native.h"

#include <stdlib.h>
#include <string.h>

#define FEW 8 /* number of drafts that need no allocation */

static annal_slice take(const char **at, uint64_t len)
{
    annal_slice slice = {.ptr = *at, .len = len};
    *at += len;
    return slice;
}

static int64_t append(annal_index *index, annal_writer *writer, const annal_draft *drafts,
                      size_t count, const annal_append_options *options, annal_error *err)
{
    annal_appended appended = {0};
    annal_status status = annal_pack_append(index, writer, drafts, count, options, &appended, err);
    if (status < 0)
        return status;
    annal_free((void *)appended.data.ptr);
    return (int64_t)appended.seq;
}

int64_t libannal_append(annal_index *index, annal_writer *writer, const char *heads, size_t count,
                        const char *bytes, const annal_append_options *options, annal_error *err)
{
    annal_draft few[FEW];
    annal_draft *drafts = count > FEW ? malloc(count * sizeof *drafts) : few;
    if (drafts == NULL)
        return ANNAL_ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        libannal_draft head;
        memcpy(&head, heads + i * sizeof head, sizeof head);
        drafts[i] = (annal_draft){.ts_us = head.ts_us};
        drafts[i].type = take(&bytes, head.type_len);
        drafts[i].data = take(&bytes, head.data_len);
        drafts[i].id = take(&bytes, head.id_len);
        drafts[i].cause = take(&bytes, head.cause_len);
    }
    int64_t seq = append(index, writer, drafts, count, options, err);
    if (drafts != few)
        free(drafts);
    return seq;
}

int64_t libannal_append_one(annal_index *index, annal_writer *writer, const char *type,
                            size_t type_len, const char *data, size_t data_len, annal_level level,
                            annal_error *err)
{
    const annal_draft draft = {.type = {type, type_len}, .data = {data, data_len}};
    return append(index, writer, &draft, 1, &(annal_append_options){.level = level}, err);
}
