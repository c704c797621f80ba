/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Embeddings are events of type embedding.added in the session of the event that they stand for, so
 * that they live exactly as long as its text (docs/decisions/0052). search.c copies them to
 * search.db, search_rank.c compares them.
 */
#include "journal/base/alloc.h"
#include "journal/base/base64.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"

#include <annal/journal.h>
#include <annal/search.h>

#include <inttypes.h>
#include <math.h>

/* An event that is looked for, and the part of the history that contains it. */
struct owner {
    uint64_t seq;
    annal_error *err;
};

/* Fail if this is the part of a fork's history that contains the event. */
static int refuse_shared(void *arg, const annal_lineage_part *part)
{
    const struct owner *owner = arg;
    return owner->seq < part->from_seq
               ? 0
               : (int)annal__fail(owner->err, ANNAL_ERR_NOTFOUND,
                                  "store an embedding: event %" PRIu64
                                  " is in the journal of session '%.*s', of which this session is "
                                  "a fork: store the embedding in that session",
                                  owner->seq, ANNAL_FMT(part->session));
}

static annal_status check(annal_store *store, const annal_embedding *embedding,
                          const annal_session_info *info, annal_error *err)
{
    struct owner owner = {embedding->seq, err};
    if (embedding->seq == 0 || embedding->seq > info->last_seq)
        return annal__fail(err, ANNAL_ERR_NOTFOUND,
                           "store an embedding: session '%s' has no event %" PRIu64, info->session,
                           embedding->seq);
    if (embedding->seq < info->first_seq)
        return annal_lineage_each(store, annal_slice_of(info->session), refuse_shared, &owner, err);
    bool good = embedding->model.len > 0 && annal__json_is_utf8(embedding->model) &&
                embedding->count > 0 && embedding->count <= ANNAL_EMBEDDING_MAX;
    for (size_t i = 0; good && i < embedding->count; i++)
        good = isfinite(embedding->values[i]);
    return good ? ANNAL_OK
                : annal__fail(err, ANNAL_ERR_INVALID,
                              "store an embedding of event %" PRIu64
                              ": it needs the name of its model, and 1 to %d finite numbers",
                              embedding->seq, ANNAL_EMBEDDING_MAX);
}

static annal_status put_data(struct buf *out, const annal_embedding *embedding)
{
    const annal_slice bytes = {(const char *)embedding->values,
                               embedding->count * sizeof *embedding->values};
    annal__json_put(out, "{\"of\":#,\"model\":?,\"vector\":\"", JSON_U64(embedding->seq),
                    embedding->model);
    annal__base64_put(out, bytes);
    return annal__buf_append(out, "\"}", 2);
}

annal_status annal_embedding_put(annal_store *store, annal_slice session,
                                 const annal_embedding *embeddings, size_t count, annal_error *err)
{
    SCOPED_BUF data = {0};
    annal_draft *drafts = NULL;
    annal_writer *writer = NULL;
    annal_session_info info;
    uint64_t seq;
    if (count == 0)
        return ANNAL_OK;
    annal_status status = annal_session_info_get(store, session, &info, err);
    for (size_t i = 0; status >= 0 && i < count; i++)
        status = check(store, &embeddings[i], &info, err);
    if (status < 0)
        return status;
    drafts = annal__realloc_array(NULL, count, sizeof *drafts);
    status = drafts == NULL ? ANNAL_ERR_NOMEM : ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < count; i++) {
        size_t begin = data.len;
        status = put_data(&data, &embeddings[i]);
        drafts[i] = (annal_draft){.type = ANNAL_SLICE("embedding.added"),
                                  .data.len = data.len - begin,
                                  .ts_us = ANNAL_TS(info.last_ts_us)};
    }
    if (status < 0)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "store embeddings: out of memory");
    else
        status = annal_writer_open(store, session, NULL, &writer, err);
    for (size_t i = 0, at = 0; status >= 0 && i < count; at += drafts[i++].data.len)
        drafts[i].data.ptr = data.ptr + at;
    if (status >= 0)
        status = annal_writer_append(writer, drafts, count, NULL, &seq, err);
    annal_writer_close(writer);
    annal__free(drafts);
    return status;
}
