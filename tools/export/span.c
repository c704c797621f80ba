/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/export/span.h"

#include "journal/base/hex.h"
#include "journal/base/json_halves.h"
#include "journal/base/sha256.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/show/excerpt.h"

#include <inttypes.h>
#include <string.h>

enum { KIND_INTERNAL = 1, KIND_CLIENT = 3 };
enum { NAME_CHARS = 80, MESSAGE_CHARS = 1000 };

/* ---- Ids ---- */

static void hash_hex(const char *domain, annal_slice session, const char *seq, size_t bytes,
                     char *text)
{
    uint8_t hash[SHA256_BYTES];
    struct sha256 *sha256 = annal__sha256_begin();
    must_true(sha256 != NULL);
    annal__sha256_add(sha256, domain, strlen(domain) + 1);
    annal__sha256_add(sha256, session.ptr, session.len);
    if (seq != NULL) {
        annal__sha256_add(sha256, "", 1);
        annal__sha256_add(sha256, seq, strlen(seq));
    }
    annal__sha256_end(sha256, hash);
    annal__hex_text(hash, bytes, text);
}

void span_trace_id(annal_slice session, char text[TRACE_ID_BYTES])
{
    hash_hex("annal trace", session, NULL, 16, text);
}

void span_id(annal_slice session, uint64_t seq, char text[SPAN_ID_BYTES])
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, seq);
    hash_hex("annal span", session, digits, 8, text);
}

/* ---- Strings ---- */

void span_put_raw_string(annal_slice raw)
{
    SCOPED_BUF text = {.limit = SIZE_MAX};
    if (annal__json_has_halves(raw)) {
        must_append_slice(&text, raw);
        (void)annal__json_mend_halves(text.ptr, text.len, true);
        raw = annal__buf_slice(&text);
    }
    out_slice(raw);
}

static void put_string(annal_slice raw)
{
    if (raw.len > 0 && raw.ptr[0] == '"')
        span_put_raw_string(raw);
    else
        out_json("?", raw);
}

/* ---- Spans ---- */

static void put_nanos(const char *name, int64_t time_us)
{
    int64_t most = INT64_MAX / 1000;
    int64_t within = time_us < 0 ? 0 : time_us > most ? most : time_us;
    printf(",\"%s\":\"%" PRId64 "\"", name, within * 1000);
}

void span_begin(const struct span *span, annal_slice session, const char *what, annal_slice which)
{
    char trace[TRACE_ID_BYTES], id[SPAN_ID_BYTES], parent[SPAN_ID_BYTES];
    SCOPED_BUF name = {0};
    span_trace_id(session, trace);
    span_id(session, span->seq, id);
    span_id(session, span->parent_seq, parent);
    printf("{\"traceId\":\"%s\",\"spanId\":\"%s\"", trace, id);
    if (span->seq > 0)
        printf(",\"parentSpanId\":\"%s\"", parent);
    must_printf(&name, "%s%s", what, which.len > 0 ? " " : "");
    excerpt_line(&name, which, NAME_CHARS);
    out_json(",\"name\":?", annal__buf_slice(&name));
    printf(",\"kind\":%d", strcmp(what, "chat") == 0 ? KIND_CLIENT : KIND_INTERNAL);
    put_nanos("startTimeUnixNano", span->start_us);
    put_nanos("endTimeUnixNano", span->end_us < span->start_us ? span->start_us : span->end_us);
    fputs(",\"attributes\":[", stdout);
}

static void put_key(struct span *span, const char *key, const char *kind)
{
    printf("%s{\"key\":\"%s\",\"value\":{\"%s\":", span->attributes++ > 0 ? "," : "", key, kind);
}

void span_text(struct span *span, const char *key, annal_slice text)
{
    if (text.len == 0)
        return;
    put_key(span, key, "stringValue");
    out_json("?}}", text);
}

void span_raw(struct span *span, const char *key, annal_slice raw)
{
    if (raw.len == 0)
        return;
    put_key(span, key, "stringValue");
    put_string(raw);
    fputs("}}", stdout);
}

void span_number(struct span *span, const char *key, int64_t number)
{
    put_key(span, key, "intValue");
    printf("\"%" PRId64 "\"}}", number);
}

void span_real(struct span *span, const char *key, double number)
{
    char text[REAL_BYTES];
    put_key(span, key, "doubleValue");
    printf("%s}}", table_real_text(text, number));
}

void span_word(struct span *span, const char *key, const char *word)
{
    put_key(span, key, "arrayValue");
    printf("{\"values\":[{\"stringValue\":\"%s\"}]}}}", word);
}

void span_true(struct span *span, const char *key)
{
    put_key(span, key, "boolValue");
    fputs("true}}", stdout);
}

void span_status(bool failed, annal_slice message)
{
    SCOPED_BUF line = {0};
    fputs("],\"status\":{", stdout);
    if (failed) {
        fputs("\"code\":2", stdout);
        excerpt_line(&line, message, MESSAGE_CHARS);
        if (line.len > 0)
            out_json(",\"message\":?", annal__buf_slice(&line));
    }
    fputc('}', stdout);
}

void span_end(bool failed, annal_slice message)
{
    span_status(failed, message);
    fputc('}', stdout);
}
