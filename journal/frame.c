#include "journal/frame.h"

#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/json.h"

#include <string.h>

static const char hex_digits[] = "0123456789abcdef";

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* ---- Encoding ---- */

static annal_status append_trailer(struct buf *out, size_t line_start, uint64_t h_before,
                                   uint64_t *out_h)
{
    uint64_t h = annal__hash(out->ptr + line_start, out->len - line_start, h_before);
    char trailer[] = ",\"h\":\"0000000000000000\"}\n";
    for (int i = 0; i < 16; i++)
        trailer[6 + i] = hex_digits[h >> (60 - 4 * i) & 15];
    annal_status status = annal__buf_append(out, trailer, FRAME_TRAILER_BYTES);
    if (status == ANNAL_OK)
        *out_h = h;
    return status;
}

annal_status annal__frame_encode_header(struct buf *out, const struct frame_header *header,
                                        uint64_t *out_h)
{
    char file[33];
    char created[ANNAL_TIME_BYTES];
    annal__frame_file_id_text(header->file, file);
    annal_time_format(header->created_us, created);
    size_t start = out->len;
    annal_status status = annal__buf_printf(
        out, "{\"annal\":1,\"session\":\"%.*s\",\"file\":\"%s\",\"created\":\"%s\",\"fork\":null",
        ANNAL_FMT(header->session), file, created);
    if (status == ANNAL_OK && header->is_replacement) {
        annal__frame_file_id_text(header->replaces, file);
        status = annal__buf_printf(out, ",\"replaces\":\"%s\"", file);
    }
    if (status < 0)
        return status;
    return append_trailer(out, start, 0, out_h);
}

static char *put(char *at, annal_slice bytes)
{
    memcpy(at, bytes.ptr, bytes.len);
    return at + bytes.len;
}

static char *put_number(char *at, uint64_t value)
{
    char digits[20];
    int count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    while (count > 0)
        *at++ = digits[--count];
    return at;
}

annal_status annal__frame_encode_event(struct buf *out, const annal_draft *draft, uint64_t seq,
                                       int64_t ts_us, uint64_t h_before, uint64_t *out_h)
{
    annal_status status = annal__buf_reserve(out, draft->data.len + FRAME_ENVELOPE_BYTES);
    if (status < 0)
        return status;

    size_t start = out->len;
    char ts[ANNAL_TIME_BYTES];
    annal_time_format(ts_us, ts);
    char *at = put(out->ptr + start, ANNAL_SLICE("{\"seq\":"));
    at = put_number(at, seq);
    at = put(at, ANNAL_SLICE(",\"ts\":\""));
    at = put(at, (annal_slice){ts, ANNAL_TIME_BYTES - 1});
    at = put(at, ANNAL_SLICE("\",\"type\":\""));
    at = put(at, draft->type);
    if (draft->id.len > 0) {
        at = put(at, ANNAL_SLICE("\",\"id\":\""));
        at = put(at, draft->id);
    }
    if (draft->cause.len > 0) {
        at = put(at, ANNAL_SLICE("\",\"cause\":\""));
        at = put(at, draft->cause);
    }
    at = put(at, ANNAL_SLICE("\",\"data\":"));
    at = put(at, draft->data);
    out->len = (size_t)(at - out->ptr);
    return append_trailer(out, start, h_before, out_h);
}

/* ---- Checking drafts ---- */

annal_status annal_session_id_check(annal_slice session, annal_error *err)
{
    if (session.len == 0 || session.len > ANNAL_SESSION_ID_BYTES_MAX)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "a session id has 1 to %d bytes, this one has %zu",
                           ANNAL_SESSION_ID_BYTES_MAX, session.len);
    if (session.ptr[0] == '.' || session.ptr[0] == '-')
        return annal__fail(err, ANNAL_ERR_INVALID, "session id '%.*s' must not start with '%c'",
                           ANNAL_FMT(session), session.ptr[0]);
    for (size_t i = 0; i < session.len; i++) {
        char c = session.ptr[i];
        bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '.' || c == '_' || c == '-';
        if (!fits)
            return annal__fail(err, ANNAL_ERR_INVALID,
                               "byte %zu of the session id is not one of [A-Za-z0-9._-]", i + 1);
    }
    return ANNAL_OK;
}

static annal_status check_type(annal_slice type, annal_error *err)
{
    if (type.len == 0 || type.len > ANNAL_TYPE_BYTES_MAX)
        return annal__fail(err, ANNAL_ERR_INVALID, "a type has 1 to %d bytes, this one has %zu",
                           ANNAL_TYPE_BYTES_MAX, type.len);
    for (size_t i = 0; i < type.len; i++) {
        char c = type.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-'))
            return annal__fail(err, ANNAL_ERR_INVALID,
                               "byte %zu of the type is not one of [a-z0-9_.-]", i + 1);
    }
    return ANNAL_OK;
}

/* An id stands in its line as it is, so it must be a JSON string without escapes. */
static annal_status check_id(annal_slice id, annal_error *err)
{
    if (id.len > ANNAL_ID_BYTES_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT, "an id has at most %d bytes, this one has %zu",
                           ANNAL_ID_BYTES_MAX, id.len);
    char quoted[ANNAL_ID_BYTES_MAX + 2];
    memset(quoted, '"', sizeof quoted);
    if (id.len > 0)
        memcpy(quoted + 1, id.ptr, id.len);
    if ((id.len > 0 &&
         (memchr(id.ptr, '\\', id.len) != NULL || memchr(id.ptr, 127, id.len) != NULL)) ||
        annal__json_check((annal_slice){quoted, id.len + 2}, 1, NULL) != JSON_VALID)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "an id is UTF-8 without control characters, '\"' and '\\'");
    return ANNAL_OK;
}

static annal_status check_cause(annal_slice cause, annal_error *err)
{
    size_t colon = cause.len;
    while (colon > 0 && cause.ptr[colon - 1] != ':')
        colon--;
    bool fits = cause.len <= ANNAL_CAUSE_BYTES_MAX && colon > 0 && colon < cause.len &&
                cause.len - colon <= 20 &&
                annal_session_id_check((annal_slice){cause.ptr, colon - 1}, NULL) == ANNAL_OK;
    for (size_t i = colon; fits && i < cause.len; i++)
        fits = cause.ptr[i] >= '0' && cause.ptr[i] <= '9';
    if (!fits)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "a cause names an event as 'session:seq', for instance 'sess_1:16'");
    return ANNAL_OK;
}

static annal_status check_data(annal_slice data, annal_error *err)
{
    if (data.len > ANNAL_DATA_BYTES_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT, "data has at most %u bytes, this one has %zu",
                           ANNAL_DATA_BYTES_MAX, data.len);
    size_t offset = 0;
    json_fault fault = annal__json_check(data, ANNAL_DATA_DEPTH_MAX, &offset);
    if (fault == JSON_DEPTH)
        return annal__fail(err, ANNAL_ERR_LIMIT, "data is nested deeper than %d levels at byte %zu",
                           ANNAL_DATA_DEPTH_MAX, offset);
    if (fault != JSON_VALID)
        return annal__fail(err, ANNAL_ERR_INVALID, "data is not one JSON value: %s at byte %zu",
                           annal__json_fault_text(fault), offset);
    /* JSON allows line breaks between tokens; a journal of one event a line does not. */
    const char *lf = memchr(data.ptr, '\n', data.len);
    const char *cr = memchr(data.ptr, '\r', data.len);
    if (lf != NULL || cr != NULL)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "data holds a line break at byte %zu; write the JSON on one line",
                           (size_t)((lf != NULL ? lf : cr) - data.ptr));
    return ANNAL_OK;
}

annal_status annal_draft_check(const annal_draft *draft, annal_error *err)
{
    annal_status status = check_type(draft->type, err);
    if (status == ANNAL_OK)
        status = check_id(draft->id, err);
    if (status == ANNAL_OK && draft->cause.len > 0)
        status = check_cause(draft->cause, err);
    if (status == ANNAL_OK)
        status = check_data(draft->data, err);
    return status;
}

/* ---- Reading ---- */

bool annal__frame_trailer(annal_slice line, uint64_t *out_h)
{
    if (line.len < FRAME_TRAILER_BYTES)
        return false;
    const char *at = line.ptr + line.len - FRAME_TRAILER_BYTES;
    if (memcmp(at, ",\"h\":\"", 6) != 0 || memcmp(at + 22, "\"}", 2) != 0)
        return false;
    uint64_t h = 0;
    for (int i = 0; i < 16; i++) {
        int digit = hex_value(at[6 + i]);
        if (digit < 0)
            return false;
        h = h << 4 | (uint64_t)digit;
    }
    *out_h = h;
    return true;
}

uint64_t annal__frame_hash(annal_slice line, uint64_t h_before)
{
    return annal__hash(line.ptr, line.len - FRAME_TRAILER_BYTES, h_before);
}

/* Walks over the fixed parts of a line; everything fails once one part does not fit. */
struct walk {
    const char *at;
    const char *end;
    bool fits;
};

static bool skip(struct walk *walk, annal_slice expected)
{
    if ((size_t)(walk->end - walk->at) < expected.len ||
        memcmp(walk->at, expected.ptr, expected.len) != 0)
        return false;
    walk->at += expected.len;
    return true;
}

static void need(struct walk *walk, annal_slice expected)
{
    walk->fits = walk->fits && skip(walk, expected);
}

static uint64_t take_number(struct walk *walk)
{
    uint64_t value = 0;
    const char *start = walk->at;
    while (walk->at < walk->end && *walk->at >= '0' && *walk->at <= '9' && walk->at - start < 20)
        value = value * 10 + (uint64_t)(*walk->at++ - '0');
    walk->fits = walk->fits && walk->at > start;
    return value;
}

/* Up to the next quote, which is passed over. */
static annal_slice take_string(struct walk *walk)
{
    const char *start = walk->at;
    const char *quote = walk->fits ? memchr(start, '"', (size_t)(walk->end - start)) : NULL;
    if (quote == NULL) {
        walk->fits = false;
        return (annal_slice){NULL, 0};
    }
    walk->at = quote + 1;
    return (annal_slice){start, (size_t)(quote - start)};
}

static int64_t take_time(struct walk *walk)
{
    int64_t time_us = 0;
    annal_slice text = take_string(walk);
    if (walk->fits)
        walk->fits =
            text.len == ANNAL_TIME_BYTES - 1 && annal_time_parse(text, &time_us, NULL) == ANNAL_OK;
    return time_us;
}

bool annal__frame_parse_event(annal_slice line, annal_event *out_event)
{
    if (line.len < FRAME_TRAILER_BYTES)
        return false;
    struct walk walk = {line.ptr, line.ptr + line.len - FRAME_TRAILER_BYTES, true};
    annal_event event = {0};
    need(&walk, ANNAL_SLICE("{\"seq\":"));
    event.seq = take_number(&walk);
    need(&walk, ANNAL_SLICE(",\"ts\":\""));
    event.ts_us = take_time(&walk);
    need(&walk, ANNAL_SLICE(",\"type\":\""));
    event.type = take_string(&walk);
    if (walk.fits && skip(&walk, ANNAL_SLICE(",\"id\":\"")))
        event.id = take_string(&walk);
    if (walk.fits && skip(&walk, ANNAL_SLICE(",\"cause\":\"")))
        event.cause = take_string(&walk);
    need(&walk, ANNAL_SLICE(",\"data\":"));
    event.data = (annal_slice){walk.at, (size_t)(walk.end - walk.at)};
    if (!walk.fits || event.seq == 0 || event.data.len == 0)
        return false;
    *out_event = event;
    return true;
}

static void take_file_id(struct walk *walk, uint8_t out[FRAME_FILE_ID_BYTES])
{
    annal_slice text = take_string(walk);
    walk->fits = walk->fits && text.len == 2 * FRAME_FILE_ID_BYTES;
    for (size_t i = 0; walk->fits && i < FRAME_FILE_ID_BYTES; i++) {
        int high = hex_value(text.ptr[2 * i]);
        int low = hex_value(text.ptr[2 * i + 1]);
        walk->fits = high >= 0 && low >= 0;
        out[i] = (uint8_t)((unsigned)high << 4 | (unsigned)low);
    }
}

bool annal__frame_parse_header(annal_slice line, struct frame_header *out_header)
{
    if (line.len < FRAME_TRAILER_BYTES)
        return false;
    struct walk walk = {line.ptr, line.ptr + line.len - FRAME_TRAILER_BYTES, true};
    struct frame_header header = {0};
    need(&walk, ANNAL_SLICE("{\"annal\":1,\"session\":\""));
    header.session = take_string(&walk);
    need(&walk, ANNAL_SLICE(",\"file\":\""));
    take_file_id(&walk, header.file);
    need(&walk, ANNAL_SLICE(",\"created\":\""));
    header.created_us = take_time(&walk);
    need(&walk, ANNAL_SLICE(",\"fork\":"));
    if (walk.fits && skip(&walk, ANNAL_SLICE("{\"session\":\""))) {
        header.fork = take_string(&walk);
        while (walk.fits && !skip(&walk, ANNAL_SLICE("}")))
            walk.fits = walk.at++ < walk.end;
    } else {
        need(&walk, ANNAL_SLICE("null"));
    }
    if (walk.fits && skip(&walk, ANNAL_SLICE(",\"replaces\":\""))) {
        header.is_replacement = true;
        take_file_id(&walk, header.replaces);
    }
    bool fits = walk.fits && walk.at == walk.end;
    if (fits)
        *out_header = header;
    return fits;
}

void annal__frame_file_id_text(const uint8_t file[FRAME_FILE_ID_BYTES], char out[33])
{
    for (int i = 0; i < FRAME_FILE_ID_BYTES; i++) {
        out[2 * i] = hex_digits[file[i] >> 4];
        out[2 * i + 1] = hex_digits[file[i] & 15];
    }
    out[32] = '\0';
}
