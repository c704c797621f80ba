/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL functions of importers; annal/import.h describes them. */
#include "index/import/import.h"

#include "index/import/import_json.h"
#include "journal/base/alloc.h"
#include "journal/base/base64.h"
#include "journal/base/hash.h"
#include "journal/base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <zstd.h>

static void sql_time_us(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    int64_t time_us = 0;
    if (sqlite3_value_type(argv[0]) != SQLITE_TEXT)
        return;
    const char *text = (const char *)sqlite3_value_text(argv[0]);
    annal_slice slice = {text, (size_t)sqlite3_value_bytes(argv[0])};
    if (text != NULL && annal_time_parse(slice, &time_us, NULL) == ANNAL_OK)
        sqlite3_result_int64(context, time_us);
}

annal_slice annal__import_session_id(annal_slice given, char id[ANNAL_SESSION_ID_BYTES_MAX + 1])
{
    size_t len = 0;
    if (annal_session_id_check(given, NULL) == ANNAL_OK)
        return given;
    while (len < given.len && len < ANNAL_SESSION_ID_BYTES_MAX - 17) {
        char c = given.ptr[len];
        bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    (len > 0 && (c == '.' || c == '-'));
        id[len++] = fits ? c : '_';
    }
    int tail = snprintf(id + len, ANNAL_SESSION_ID_BYTES_MAX + 1 - len, "%s%016" PRIx64,
                        len > 0 ? "-" : "", annal__hash(given.ptr, given.len, 0));
    return (annal_slice){id, len + (size_t)tail};
}

static void sql_session_id(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    char own[ANNAL_SESSION_ID_BYTES_MAX + 1];
    const char *text = (const char *)sqlite3_value_text(argv[0]);
    if (text == NULL)
        return;
    annal_slice given = {text, (size_t)sqlite3_value_bytes(argv[0])};
    annal_slice id = annal__import_session_id(given, own);
    if (id.ptr == text)
        sqlite3_result_value(context, argv[0]);
    else
        sqlite3_result_text(context, id.ptr, (int)id.len, SQLITE_TRANSIENT);
}

/* Set a JSON result, passing the memory of the buffer to SQLite instead of a copy, because it can
 * be tens of megabytes. */
static void result_json(sqlite3_context *context, struct buf *json, annal_status status)
{
    if (status == ANNAL_ERR_LIMIT)
        sqlite3_result_error_toobig(context);
    else if (status < 0)
        sqlite3_result_error_nomem(context);
    else {
        sqlite3_result_text64(context, json->ptr, json->len, annal__free, SQLITE_UTF8);
        sqlite3_result_subtype(context, 'J');
        *json = (struct buf){.limit = json->limit};
    }
    annal__buf_done(json);
}

static void sql_json_text(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct buf json = {.limit = ANNAL_APPEND_BYTES_MAX};
    const char *text = (const char *)sqlite3_value_text(argv[0]);
    if (text == NULL)
        return;
    annal_slice slice = {text, (size_t)sqlite3_value_bytes(argv[0])};
    result_json(context, &json, annal__json_quote(&json, slice));
}

static void sql_json_fields(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    struct buf json = {.limit = ANNAL_APPEND_BYTES_MAX};
    annal_status status = annal__buf_append(&json, "{", 1);
    for (int i = 0; i + 1 < argc && status >= 0; i += 2) {
        const char *name = (const char *)sqlite3_value_text(argv[i]);
        const char *value = sqlite3_value_type(argv[i + 1]) == SQLITE_TEXT
                                ? sqlite3_value_blob(argv[i + 1])
                                : (const char *)sqlite3_value_text(argv[i + 1]);
        if (name == NULL || value == NULL)
            continue;
        if (json.len > 1)
            status = annal__buf_append(&json, ",", 1);
        annal__json_put(&json, "?:", annal_slice_of(name));
        status = annal__buf_append(&json, value, (size_t)sqlite3_value_bytes(argv[i + 1]));
    }
    status = annal__buf_append(&json, "}", 1);
    result_json(context, &json, status);
}

static void sql_msgpack_json(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct buf json = {.limit = ANNAL_APPEND_BYTES_MAX};
    if (sqlite3_value_type(argv[0]) != SQLITE_BLOB)
        return;
    annal_slice blob = {sqlite3_value_blob(argv[0]), (size_t)sqlite3_value_bytes(argv[0])};
    annal_status status = annal__import_msgpack(&json, blob);
    if (status == ANNAL_ERR_INVALID)
        annal__buf_done(&json);
    else
        result_json(context, &json, status);
}

static void sql_otlp_json(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct buf json = {.limit = ANNAL_APPEND_BYTES_MAX};
    const char *text = (const char *)sqlite3_value_text(argv[0]);
    if (text == NULL)
        return;
    annal_slice value = {text, (size_t)sqlite3_value_bytes(argv[0])};
    result_json(context, &json, annal__import_otlp(&json, value));
}

static void sql_base64(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    SCOPED_BUF text = {.limit = ANNAL_APPEND_BYTES_MAX};
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    annal_slice bytes = {sqlite3_value_blob(argv[0]), (size_t)sqlite3_value_bytes(argv[0])};
    annal_status status = annal__base64_put(&text, bytes);
    if (status < 0)
        sqlite3_result_error_toobig(context);
    else
        sqlite3_result_text64(context, text.len > 0 ? text.ptr : "", text.len, SQLITE_TRANSIENT,
                              SQLITE_UTF8);
}

/* Decompress one zstd frame. The result is NULL if the blob is not one complete frame, if the
 * content is not UTF-8, or if it is larger than an event. */
static void sql_unzstd(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    enum { PIECE_BYTES = 65536 };
    (void)argc;
    SCOPED_BUF text = {.limit = ANNAL_APPEND_BYTES_MAX};
    ZSTD_inBuffer in = {.src = sqlite3_value_blob(argv[0]),
                        .size = (size_t)sqlite3_value_bytes(argv[0])};
    ZSTD_DStream *stream = ZSTD_createDStream();
    size_t left = stream != NULL && in.size > 0 ? 1 : 0, before = SIZE_MAX;
    while (left > 0 && !ZSTD_isError(left) && (in.pos < in.size || text.len != before) &&
           annal__buf_reserve(&text, PIECE_BYTES) >= 0) {
        ZSTD_outBuffer out = {.dst = text.ptr + text.len, .size = PIECE_BYTES};
        before = text.len;
        left = ZSTD_decompressStream(stream, &out, &in);
        text.len += out.pos;
    }
    if (left == 0 && in.pos == in.size && text.len > 0 &&
        annal__json_is_utf8(annal__buf_slice(&text)))
        sqlite3_result_text64(context, text.ptr, text.len, SQLITE_TRANSIENT, SQLITE_UTF8);
    ZSTD_freeDStream(stream);
}

/* The SQL function text_hash(text): 16 hex digits. */
static void sql_text_hash(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    char hash[17];
    const char *text = (const char *)sqlite3_value_text(argv[0]);
    if (text == NULL)
        return;
    snprintf(hash, sizeof hash, "%016" PRIx64,
             annal__hash(text, (size_t)sqlite3_value_bytes(argv[0]), 0));
    sqlite3_result_text(context, hash, -1, SQLITE_TRANSIENT);
}

static const struct {
    const char *name;
    int args;
    void (*call)(sqlite3_context *, int, sqlite3_value **);
} functions[] = {{"time_us", 1, sql_time_us},           {"session_id", 1, sql_session_id},
                 {"json_text", 1, sql_json_text},       {"json_fields", -1, sql_json_fields},
                 {"msgpack_json", 1, sql_msgpack_json}, {"base64", 1, sql_base64},
                 {"otlp_json", 1, sql_otlp_json},       {"unzstd", 1, sql_unzstd},
                 {"text_hash", 1, sql_text_hash}};

int annal__import_functions(sqlite3 *db)
{
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS | SQLITE_RESULT_SUBTYPE;
    int code = SQLITE_OK;
    for (size_t i = 0; code == SQLITE_OK && i < sizeof functions / sizeof *functions; i++)
        code = sqlite3_create_function(db, functions[i].name, functions[i].args, flags, NULL,
                                       functions[i].call, NULL, NULL);
    return code;
}

bool annal__import_function_exists(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (sqlite3_stricmp(name, functions[i].name) == 0)
            return true;
    return false;
}
