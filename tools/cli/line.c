/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/line.h"

#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"

enum { KEY_TYPE, KEY_DATA, KEY_ID, KEY_TS, KEY_CAUSE, KEY_COUNT };

static const char *const key_names[KEY_COUNT] = {"type", "data", "id", "ts", "cause"};

/* ---- Members ---- */

static annal_status check_json(annal_slice line, annal_error *err)
{
    size_t offset = 0;
    /* Allow one level more than data may have, because data is inside the braces of the line. The
     * writer checks data itself. */
    json_fault fault = annal__json_check(line, ANNAL_DATA_DEPTH_MAX + 1, &offset);
    if (fault == JSON_VALID)
        return ANNAL_OK;
    if (fault == JSON_EMPTY)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "the line is empty, and one JSON value was expected");
    return annal__fail(err, ANNAL_ERR_INVALID, "%s (at byte %zu of the line)",
                       annal__json_fault_text(fault), offset + 1);
}

static annal_status find_key(annal_slice raw, struct buf *scratch, int *out_key, annal_error *err)
{
    annal_slice name;
    annal_status status = annal__json_text(raw, scratch, &name);
    for (int key = 0; status == ANNAL_OK && key < KEY_COUNT; key++) {
        if (annal__slice_is(name, key_names[key])) {
            *out_key = key;
            return ANNAL_OK;
        }
    }
    return annal__fail(err, ANNAL_ERR_INVALID,
                       "the key %.*s is unknown: known keys are type, data, id, ts and cause",
                       (int)(raw.len < 60 ? raw.len : 60), raw.ptr);
}

/* Find the members of the line, as raw JSON; the value of a missing member stays empty. */
static annal_status find_members(annal_slice line, struct buf *scratch,
                                 annal_slice values[KEY_COUNT], annal_error *err)
{
    struct json_walk walk;
    annal_slice name, value;
    if (!annal__json_walk_object(&walk, line))
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "the line is not a JSON object with \"type\" and \"data\" (with --type "
                           "T a line is the data itself)");
    while (annal__json_walk_next(&walk, &name, &value)) {
        int key = 0;
        annal_status status = find_key(name, scratch, &key, err);
        if (status < 0)
            return status;
        if (values[key].ptr != NULL)
            return annal__fail(err, ANNAL_ERR_INVALID, "the key \"%s\" is given twice",
                               key_names[key]);
        values[key] = value;
    }
    return ANNAL_OK;
}

/* Read a member that is a string; null means the same as a missing member. */
static annal_status text_member(annal_slice values[KEY_COUNT], int key, struct buf *scratch,
                                annal_slice *out, annal_error *err)
{
    annal_slice raw = values[key];
    if (raw.ptr == NULL || *raw.ptr == 'n')
        return ANNAL_OK;
    if (*raw.ptr != '"')
        return annal__fail(err, ANNAL_ERR_INVALID, "the value of the key \"%s\" is not a string",
                           key_names[key]);
    annal_status status = annal__json_text(raw, scratch, out);
    if (status == ANNAL_ERR_INVALID)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "the value of the key \"%s\" contains half of a UTF-16 surrogate pair, "
                           "which is not a character",
                           key_names[key]);
    if (status == ANNAL_OK && out->len == 0)
        return annal__fail(err, ANNAL_ERR_INVALID, "the value of the key \"%s\" is empty",
                           key_names[key]);
    return status;
}

static annal_status fill_draft(annal_slice values[KEY_COUNT], struct buf *scratch,
                               annal_draft *draft, annal_error *err)
{
    annal_slice ts = {0};
    annal_status status = text_member(values, KEY_TYPE, scratch, &draft->type, err);
    if (status == ANNAL_OK)
        status = text_member(values, KEY_ID, scratch, &draft->id, err);
    if (status == ANNAL_OK)
        status = text_member(values, KEY_CAUSE, scratch, &draft->cause, err);
    if (status == ANNAL_OK)
        status = text_member(values, KEY_TS, scratch, &ts, err);
    if (status < 0)
        return status;
    if (draft->type.ptr == NULL)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "the key \"type\" is missing: add the key, or use --type T");
    if (values[KEY_DATA].ptr == NULL)
        return annal__fail(err, ANNAL_ERR_INVALID, "the key \"data\" is missing");
    draft->data = values[KEY_DATA];
    if (ts.ptr == NULL)
        return ANNAL_OK;
    status = annal_time_parse(ts, &draft->ts_us, err);
    draft->ts_us = ANNAL_TS(draft->ts_us);
    return status;
}

annal_status line_to_draft(annal_slice line, annal_slice type, struct buf *scratch,
                           annal_draft *out_draft, annal_error *err)
{
    annal_slice values[KEY_COUNT] = {{0}};
    annal_draft draft = {0};
    annal__buf_clear(scratch);
    /* A text is never longer than its escaped form, so scratch need not grow, and slices of it
     * remain valid. */
    if (annal__buf_reserve(scratch, line.len) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read a line of events: out of memory");
    annal_status status = check_json(line, err);
    if (status < 0)
        return status;
    if (type.ptr != NULL) {
        draft.type = type;
        draft.data = annal__json_trim(line);
    } else {
        status = find_members(line, scratch, values, err);
        if (status == ANNAL_OK)
            status = fill_draft(values, scratch, &draft, err);
        if (status < 0)
            return status;
    }
    *out_draft = draft;
    return ANNAL_OK;
}
