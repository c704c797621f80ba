/* SPDX-License-Identifier: Apache-2.0 */
/* Check drafts of events, and turn drafts into events. */
#include "journal/sys/draft.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/envelope.h"
#include "journal/json_msgpack.h"

#include <annal/event.h>

#include <inttypes.h>
#include <string.h>

static annal_status check_type(annal_slice type, annal_error *err)
{
    if (type.len == 0 || type.len > ANNAL_TYPE_BYTES_MAX)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "a type must have 1 to %d bytes, this value has %zu",
                           ANNAL_TYPE_BYTES_MAX, type.len);
    for (size_t i = 0; i < type.len; i++) {
        char c = type.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-'))
            return annal__fail(err, ANNAL_ERR_INVALID,
                               "byte %zu of the type is not one of [a-z0-9_.-]", i + 1);
    }
    return ANNAL_OK;
}

static annal_status check_id(annal_slice id, annal_error *err)
{
    if (id.len > ANNAL_ID_BYTES_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT,
                           "an id can have at most %d bytes, this value has %zu",
                           ANNAL_ID_BYTES_MAX, id.len);
    if (!annal__envelope_id_fits(id))
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "an id must be UTF-8 without control characters, '\"' and '\\'");
    return ANNAL_OK;
}

static annal_status check_cause(annal_slice cause, annal_error *err)
{
    if (!annal__envelope_cause_fits(cause))
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "a cause must name an event as 'session:seq', for instance 'sess_1:16'");
    return ANNAL_OK;
}

static annal_status check_json(annal_slice data, annal_error *err)
{
    size_t offset = 0;
    json_fault fault = annal__json_check_line(data, ANNAL_DATA_DEPTH_MAX, &offset);
    if (fault == JSON_DEPTH)
        return annal__fail(err, ANNAL_ERR_LIMIT, "data is nested deeper than %d levels at byte %zu",
                           ANNAL_DATA_DEPTH_MAX, offset);
    if (fault == JSON_VALID)
        return ANNAL_OK;
    if (fault != JSON_BREAK)
        return annal__fail(err, ANNAL_ERR_INVALID, "data is not one JSON value: %s at byte %zu",
                           annal__json_fault_text(fault), offset);
    /* JSON allows line breaks between tokens, but a journal of one line per event does not. */
    const char *lf = memchr(data.ptr, '\n', data.len);
    const char *cr = memchr(data.ptr, '\r', data.len);
    return annal__fail(err, ANNAL_ERR_INVALID,
                       "data contains a line break at byte %zu; write the JSON on one line",
                       (size_t)((lf != NULL ? lf : cr) - data.ptr));
}

static annal_status check_data(annal_format format, annal_slice data, annal_error *err)
{
    SCOPED_BUF json = {0};
    if (data.len > ANNAL_DATA_BYTES_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT,
                           "data can have at most %u bytes, this value has %zu",
                           ANNAL_DATA_BYTES_MAX, data.len);
    if (format != ANNAL_FORMAT_MSGPACK)
        return check_json(data, err);
    return annal__json_msgpack_to_json(data, &json, err);
}

annal_status annal_draft_check(const annal_draft *draft, annal_error *err)
{
    annal_status status = check_type(draft->type, err);
    if (status == ANNAL_OK)
        status = check_id(draft->id, err);
    if (status == ANNAL_OK && draft->cause.len > 0)
        status = check_cause(draft->cause, err);
    return status != ANNAL_OK ? status : check_data(draft->data_format, draft->data, err);
}

annal_status annal__draft_check_expect(annal_slice session, const annal_append_options *options,
                                       annal_error *err)
{
    if (options->expect == ANNAL_EXPECT_SEQ || options->expected_seq == 0)
        return ANNAL_OK;
    return annal__fail(err, ANNAL_ERR_INVALID,
                       "append to session '%.*s': expected_seq %" PRIu64
                       " is used only with .expect = ANNAL_EXPECT_SEQ",
                       ANNAL_FMT(session), options->expected_seq);
}

int64_t annal__draft_time(const annal_draft *draft, int64_t now_us)
{
    if (draft->ts_us == ANNAL_TS_ZERO)
        return 0;
    return annal__time_clamp(draft->ts_us != 0 ? draft->ts_us : now_us);
}

annal_status annal__draft_json(const annal_draft *draft, annal_slice *out_json, annal_error *err)
{
    SCOPED_BUF json = {.limit = 2 * (size_t)ANNAL_DATA_BYTES_MAX};
    annal_status status = annal_draft_check(draft, err);
    if (status == ANNAL_OK && draft->data_format == ANNAL_FORMAT_MSGPACK)
        status = annal__json_msgpack_to_json(draft->data, &json, err);
    else if (status == ANNAL_OK && annal__buf_append_slice(&json, draft->data) < 0)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "read the data of an event: out of memory");
    if (status == ANNAL_OK) {
        *out_json = annal__buf_slice(&json);
        json = (struct buf){0}; /* the memory belongs to the caller now */
    }
    return status;
}

static annal_status encode_after(const annal_draft *draft, const annal_session_info *end,
                                 annal_event *out, annal_error *err)
{
    SCOPED_BUF frame = {.limit = FRAME_BYTES_MAX};
    const struct frame_place place = {.seq = end->last_seq + 1,
                                      .ts_us = annal__draft_time(draft, end->last_ts_us),
                                      .offset = end->end_offset,
                                      .h_before = end->last_h};
    uint64_t h = 0;
    annal_status status = annal__codec_of(end->format)->encode_event(&frame, draft, &place, &h);
    if (status < 0)
        annal__fail(err, status, "cannot encode event %" PRIu64 " of session '%s'", place.seq,
                    end->session);
    *out = (annal_event){.seq = place.seq,
                         .ts_us = place.ts_us,
                         .type = draft->type,
                         .id = draft->id,
                         .cause = draft->cause,
                         .format = end->format,
                         .h = h,
                         .offset = place.offset,
                         .length = frame.len};
    return status;
}

annal_status annal__draft_event(const annal_draft *draft, annal_session_info *end, struct buf *data,
                                annal_event *out, annal_error *err)
{
    struct buf msgpack = {.limit = 2 * (size_t)ANNAL_DATA_BYTES_MAX};
    annal_slice json = {0};
    annal_draft as = *draft;
    annal_status status = annal__draft_json(draft, &json, err);
    annal__buf_clear(data);
    if (status == ANNAL_OK && end->format == ANNAL_FORMAT_MSGPACK) {
        status = annal__json_msgpack_from_json(json, &msgpack, err);
        as.data = annal__buf_slice(&msgpack);
        if (status == ANNAL_OK)
            status = annal__json_msgpack_to_json(as.data, data, err);
    } else if (status == ANNAL_OK) {
        as.data = json;
        if (annal__buf_append_slice(data, json) < 0)
            status = annal__fail(err, ANNAL_ERR_NOMEM, "read the data of an event: out of memory");
    }
    as.data_format = end->format;
    if (status == ANNAL_OK)
        status = encode_after(&as, end, out, err);
    if (status == ANNAL_OK) {
        out->data = annal__buf_slice(data);
        end->last_seq = out->seq;
        end->last_ts_us = out->ts_us;
        end->last_h = out->h;
        end->end_offset += out->length;
    }
    annal__buf_done(&msgpack);
    annal_free(json.ptr);
    return status;
}
