/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store a large member of an event's data as an artifact, and put a reference in its place.
 *
 * (1) Only a member of the outermost object is stored; of several with the same name the first,
 *     which SQLite's ->> finds.
 * (2) A string is stored as its text, so that the artifact is what the user wrote. A string that is
 *     not text, because it has half a surrogate pair, and any other value, is stored as its JSON,
 *     byte for byte. media_type is text/plain for text, and application/json for JSON.
 * (3) The rest of data is unchanged, byte for byte.
 * (4) Data that is not one JSON object is left alone: the append reports what is wrong with it.
 */
#include "journal/artifact/artifact_names.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/sys/artifact.h"

#include <annal/artifact.h>

#include <inttypes.h>
#include <string.h>

#define REFERENCE "_ref"

static bool is_key(annal_slice key, const char *field, const char *suffix)
{
    size_t len = strlen(field), more = strlen(suffix);
    return key.len == len + more + 2 && memcmp(key.ptr + 1, field, len) == 0 &&
           memcmp(key.ptr + 1 + len, suffix, more) == 0;
}

/* Find the first member with this name: *out_member is from its key to the end of its value. Return
 * false if no such member exists, or the data already has a reference in its place (rule 1). */
static bool find_member(annal_slice data, const char *field, annal_slice *out_member,
                        annal_slice *out_value)
{
    struct json_walk walk;
    annal_slice key, value;
    bool found = false;
    if (!annal__json_walk_object(&walk, data))
        return false;
    while (annal__json_walk_next(&walk, &key, &value)) {
        if (is_key(key, field, REFERENCE))
            return false;
        if (!found && is_key(key, field, "")) {
            found = true;
            *out_value = value;
            *out_member = (annal_slice){key.ptr, (size_t)(value.ptr + value.len - key.ptr)};
        }
    }
    return found;
}

/* ---- Composing the new data ---- */

/* Append the data to out, with the reference in place of the member; everything else is unchanged
 * (rule 3). */
static annal_status put_reference(struct buf *out, annal_slice data, annal_slice member,
                                  const char *field, const char *media_type,
                                  const annal_artifact_info *info)
{
    const char *behind = member.ptr + member.len;
    annal__buf_append(out, data.ptr, (size_t)(member.ptr - data.ptr));
    annal__buf_printf(out,
                      "\"%s" REFERENCE "\":{\"sha256\":\"%s\",\"bytes\":%" PRIu64
                      ",\"media_type\":\"%s\",\"path\":\"artifacts/%s/%s" ARTIFACT_SUFFIX "\"}",
                      field, info->sha256, info->bytes, media_type, info->session, info->sha256);
    return annal__buf_append(out, behind, (size_t)(data.ptr + data.len - behind));
}

annal_status annal__artifact_externalize(annal_store *store, annal_slice session, const char *field,
                                         uint64_t over_bytes, annal_slice data,
                                         annal_slice *out_data, annal_error *err)
{
    SCOPED_BUF text = {0};
    SCOPED_BUF out = {0};
    annal_slice member = {0}, value = {0}, content;
    annal_artifact_info info;
    const char *media_type = "application/json";
    annal_status status = ANNAL_OK;
    bool half;
    bool wanted = data.len > over_bytes &&
                  annal__json_check(data, ANNAL_DATA_DEPTH_MAX, NULL) == JSON_VALID &&
                  find_member(data, field, &member, &value) && value.len > over_bytes;
    *out_data = (annal_slice){NULL, 0};
    if (!wanted)
        return ANNAL_OK;
    content = value;
    if (*value.ptr == '"') {
        status = annal__json_decode(value, &text, &half);
        /* store the text; a string with half a surrogate pair is stored as JSON (rule 2) */
        if (!half) {
            content = annal__buf_slice(&text);
            media_type = "text/plain";
        }
    }
    if (status < 0)
        return annal__fail(
            err, status, "cannot store the field '%s' of an event of session '%.*s' as an artifact",
            field, ANNAL_FMT(session));
    if (content.len <= over_bytes)
        return ANNAL_OK;
    status = annal_artifact_put(store, session, content, &info, err);
    if (status < 0)
        return status;
    status = put_reference(&out, data, member, field, media_type, &info);
    if (status < 0)
        return annal__fail(
            err, status,
            "cannot replace a field of an event of session '%.*s' by a reference to its artifact",
            ANNAL_FMT(session));
    *out_data = annal__buf_slice(&out);
    out = (struct buf){0}; /* the memory belongs to the caller now */
    return ANNAL_OK;
}
