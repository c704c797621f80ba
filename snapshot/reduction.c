/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/sys/reduction.h"
#include "index/sys/open.h"
#include "index/sys/reduction_rows.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/sys/cursor.h"

#include <string.h>
#include <zstd.h>

enum { LEVEL = 3, EVERY_EVENTS = 1000, SHARE = 10 };

#define BYTES_LEAST (1u << 20)

/* ---- Loading ---- */

/* Decompress data from one zstd frame with its size and a checksum; the caller frees it. Return
 * false if the frame is damaged or memory is exhausted. */
static bool unpack(annal_slice frame, annal_slice *out_data)
{
    unsigned long long bytes = ZSTD_getFrameContentSize(frame.ptr, frame.len);
    if (bytes == ZSTD_CONTENTSIZE_ERROR || bytes == ZSTD_CONTENTSIZE_UNKNOWN ||
        bytes > ANNAL_REDUCTION_BYTES_MAX)
        return false;
    char *data = annal__zalloc((size_t)bytes + 1);
    if (data == NULL)
        return false;
    size_t code = ZSTD_decompress(data, (size_t)bytes, frame.ptr, frame.len);
    if (ZSTD_isError(code) || code != bytes) {
        annal__free(data);
        return false;
    }
    *out_data = (annal_slice){data, (size_t)bytes};
    return true;
}

struct search {
    annal_index *index;
    annal_slice reducer;
    uint32_t version;
    uint64_t at_most;
    annal__reduction found;
    annal_error *err;
};

/* Return whether the row is valid: the journal still contains the event after which the row was
 * saved. */
static bool counts(const struct search *search, const annal__reduction_row *row)
{
    annal_cursor *cursor = NULL;
    annal_status status = annal_cursor_open_at(annal__index_store(search->index), row->session,
                                               row->seq + 1, row->offset, row->h, &cursor, NULL);
    annal_cursor_close(cursor);
    return status >= 0;
}

/* Look for a valid row in a part of a lineage, as an annal_lineage_fn. ANNAL_END if one was
 * found. */
static int look_in_part(void *arg, const annal_lineage_part *part)
{
    struct search *search = arg;
    uint64_t at_most = search->at_most < part->to_seq ? search->at_most : part->to_seq;
    while (at_most > 0 && at_most >= part->from_seq) {
        annal__reduction_row row;
        annal_status status = annal__reduction_newest(search->index, part->session, search->reducer,
                                                      search->version, at_most, &row, search->err);
        if (status < 0)
            return status == ANNAL_ERR_NOTFOUND ? 0 : status;
        bool forked_here = row.seq != part->to_seq || row.h == part->h;
        bool found = forked_here && counts(search, &row) && unpack(row.state, &search->found.data);
        annal_free(row.state.ptr);
        search->found.seq = row.seq;
        search->found.every = row.every;
        if (found)
            return ANNAL_END;
        at_most = row.seq - 1;
    }
    return 0;
}

annal_status annal__reduction_load(annal_index *index, annal_slice session, annal_slice reducer,
                                   uint32_t version, uint64_t at_most,
                                   annal__reduction *out_reduction, annal_error *err)
{
    struct search search = {
        .index = index, .reducer = reducer, .version = version, .at_most = at_most, .err = err};
    annal_status status =
        annal_lineage_each(annal__index_store(index), session, look_in_part, &search, err);
    if (status == ANNAL_OK)
        return annal__fail(err, ANNAL_ERR_NOTFOUND, "session '%.*s' has no reduction '%.*s'",
                           ANNAL_FMT(session), ANNAL_FMT(reducer));
    if (status == ANNAL_END)
        *out_reduction = search.found;
    return status == ANNAL_END ? ANNAL_OK : status;
}

/* ---- Saving ---- */

/* Compress data; the caller frees the frame. */
static annal_status pack(annal_slice data, annal_slice *out_frame, annal_error *err)
{
    size_t room = ZSTD_compressBound(data.len), code = 0;
    char *frame = annal__zalloc(room);
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    annal_status status = ANNAL_OK;
    if (frame == NULL || zstd == NULL ||
        ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1)))
        status = annal__fail(err, ANNAL_ERR_NOMEM, "save a reduction of %zu bytes: out of memory",
                             data.len);
    if (status >= 0)
        code = ZSTD_compress2(zstd, frame, room, data.ptr, data.len);
    if (status >= 0 && ZSTD_isError(code))
        status = annal__fail(err, ANNAL_ERR_NOMEM, "save a reduction of %zu bytes: %s", data.len,
                             ZSTD_getErrorName(code));
    ZSTD_freeCCtx(zstd);
    if (status < 0) {
        annal__free(frame);
        return status;
    }
    *out_frame = (annal_slice){frame, code};
    return ANNAL_OK;
}

annal_status annal__reduction_save(annal_index *index, const annal_cursor *cursor,
                                   annal_slice reducer, uint32_t version, annal_slice data,
                                   const annal_snapshot_policy *policy, uint64_t *out_every,
                                   annal_error *err)
{
    annal_position next = annal_cursor_position(cursor);
    annal_slice frame = {0};
    annal__reduction_row row = {.session = annal__cursor_journal(cursor),
                                .reducer = reducer,
                                .version = version,
                                .every = EVERY_EVENTS,
                                .seq = next.seq - 1,
                                .offset = next.offset,
                                .h = next.h_before};
    uint64_t bytes_max = next.offset / SHARE < BYTES_LEAST ? BYTES_LEAST : next.offset / SHARE;
    if (policy != NULL && policy->every_events > 0)
        row.every = policy->every_events;
    if (policy != NULL && policy->bytes_max > 0)
        bytes_max = policy->bytes_max;
    if (data.len > ANNAL_REDUCTION_BYTES_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT,
                           "save a reduction of %zu bytes: a reduction can have at most %u bytes",
                           data.len, ANNAL_REDUCTION_BYTES_MAX);
    annal_status status = pack(data, &frame, err);
    row.state = frame;
    if (status >= 0)
        status = annal__reduction_put(index, &row, bytes_max, 0, out_every, err);
    annal__free((void *)(uintptr_t)frame.ptr);
    return status;
}
