/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON check: one pass, without recursion; its only memory is a bit for each open bracket.
 *
 * Nearly all bytes of real events are inside strings, so only runs of plain string bytes are
 * handled many at a time; everything else goes byte by byte.
 */
#include "journal/base/json.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define JSON_PIECE_BYTES ((size_t)64 << 10)
#define UTF8_BYTES_MAX   4

struct check {
    const unsigned char *at;
    const unsigned char *end;
    struct pieces *pieces; /* pieces of the text; NULL: the text is in memory completely */
    unsigned depth;
    unsigned max_depth;
    bool has_breaks; /* whether white space before `at` contains a line break */
    uint64_t is_object[JSON_DEPTH_MAX / 64]; /* a bit for each open bracket: 1 for '{', 0 for '[' */
};

/* A text that is read in pieces, and its bytes in memory. */
struct pieces {
    uint64_t length, next; /* length of the text, and number of bytes that were read */
    json_read_fn read;
    void *arg;
    bool failed;
    unsigned char bytes[JSON_PIECE_BYTES];
};

/* Read the next piece of the text into memory; the bytes from check->at on stay in memory before
 * it. Return false at the end of the text or after a failed read. */
static bool read_on(struct check *check)
{
    struct pieces *pieces = check->pieces;
    if (pieces == NULL || pieces->next == pieces->length || pieces->failed)
        return false;
    size_t kept = (size_t)(check->end - check->at);
    memmove(pieces->bytes, check->at, kept);
    uint64_t left = pieces->length - pieces->next;
    size_t want = left < sizeof pieces->bytes - kept ? (size_t)left : sizeof pieces->bytes - kept;
    pieces->failed = !pieces->read(pieces->arg, pieces->next, pieces->bytes + kept, want);
    pieces->next += want;
    check->at = pieces->bytes;
    check->end = pieces->bytes + kept + (pieces->failed ? 0 : want);
    return !pieces->failed;
}

static bool at_end(struct check *check)
{
    return check->at == check->end && !read_on(check);
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Return the first byte from `at` on that is not plain ASCII text of a string, or end. */
static const unsigned char *skip_plain(const unsigned char *at, const unsigned char *end)
{
#ifdef __SSE2__
    while (end - at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        /* With this bit inverted a quote is 0x20, and every other byte from 0x20 on is above it.
         * The comparison is of signed bytes, so it also stops at bytes from 0x80 on. */
        __m128i moved = _mm_xor_si128(bytes, _mm_set1_epi8('"' ^ 0x20));
        __m128i stop = _mm_or_si128(_mm_cmplt_epi8(moved, _mm_set1_epi8(0x21)),
                                    _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
        unsigned mask = (unsigned)_mm_movemask_epi8(stop);
        if (mask != 0)
            return at + __builtin_ctz(mask);
        at += 16;
    }
#endif
    while (at < end && is_plain(*at))
        at++;
    return at;
}

static bool is_tail(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

size_t annal__json_utf8_length(const unsigned char *at, const unsigned char *end)
{
    size_t left = (size_t)(end - at);
    if (at[0] >= 0xC2 && at[0] <= 0xDF)
        return left >= 2 && is_tail(at[1]) ? 2 : 0;
    if (at[0] >= 0xE0 && at[0] <= 0xEF) {
        if (left < 3 || !is_tail(at[1]) || !is_tail(at[2]))
            return 0;
        bool overlong = at[0] == 0xE0 && at[1] < 0xA0;
        bool surrogate = at[0] == 0xED && at[1] >= 0xA0;
        return overlong || surrogate ? 0 : 3;
    }
    if (at[0] >= 0xF0 && at[0] <= 0xF4) {
        if (left < 4 || !is_tail(at[1]) || !is_tail(at[2]) || !is_tail(at[3]))
            return 0;
        bool overlong = at[0] == 0xF0 && at[1] < 0x90;
        bool beyond = at[0] == 0xF4 && at[1] >= 0x90; /* U+10FFFF is the last */
        return overlong || beyond ? 0 : 4;
    }
    return 0;
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static void skip_space(struct check *check)
{
    for (; !at_end(check) && annal__json_is_space((char)*check->at); check->at++)
        check->has_breaks = check->has_breaks || *check->at == '\n' || *check->at == '\r';
}

/* Check an escape; check->at is at its backslash. Half a surrogate pair is accepted, because RFC
 * 8259 allows it and real logs contain it. */
static json_fault check_escape(struct check *check)
{
    check->at++;
    if (at_end(check))
        return JSON_SYNTAX;
    switch (*check->at++) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return JSON_VALID;
    case 'u':
        for (int i = 0; i < 4; i++, check->at++) {
            if (at_end(check) || !isxdigit(*check->at))
                return JSON_SYNTAX;
        }
        return JSON_VALID;
    }
    check->at--;
    return JSON_SYNTAX;
}

static json_fault check_string(struct check *check)
{
    check->at++; /* the opening quote */
    for (;;) {
        check->at = skip_plain(check->at, check->end);
        if (check->at == check->end && !read_on(check))
            return JSON_SYNTAX;
        if (*check->at == '"') {
            check->at++;
            return JSON_VALID;
        }
        if (*check->at == '\\') {
            json_fault fault = check_escape(check);
            if (fault != JSON_VALID)
                return fault;
        } else if (*check->at >= 0x80) {
            do { /* such a character is usually followed by others, which are checked here, too */
                if (check->end - check->at < UTF8_BYTES_MAX)
                    (void)read_on(check);
                size_t length = annal__json_utf8_length(check->at, check->end);
                if (length == 0)
                    return JSON_UTF8;
                check->at += length;
            } while (check->at < check->end && *check->at >= 0x80);
        } else if (!is_plain(*check->at)) {
            return JSON_SYNTAX; /* a raw control character */
        }
    }
}

static json_fault check_digits(struct check *check)
{
    if (at_end(check) || !is_digit(*check->at))
        return JSON_SYNTAX;
    while (!at_end(check) && is_digit(*check->at))
        check->at++;
    return JSON_VALID;
}

static bool take(struct check *check, unsigned char c)
{
    if (at_end(check) || *check->at != c)
        return false;
    check->at++;
    return true;
}

static json_fault check_number(struct check *check)
{
    json_fault fault = JSON_VALID;
    take(check, '-');
    if (!take(check, '0'))
        fault = check_digits(check);
    if (fault == JSON_VALID && take(check, '.'))
        fault = check_digits(check);
    if (fault == JSON_VALID && (take(check, 'e') || take(check, 'E'))) {
        if (!take(check, '+'))
            take(check, '-');
        fault = check_digits(check);
    }
    return fault;
}

static json_fault check_word(struct check *check, const char *word)
{
    for (; *word != '\0'; word++) {
        if (!take(check, (unsigned char)*word))
            return JSON_SYNTAX;
    }
    return JSON_VALID;
}

static json_fault check_scalar(struct check *check)
{
    switch (*check->at) {
    case '"':
        return check_string(check);
    case 't':
        return check_word(check, "true");
    case 'f':
        return check_word(check, "false");
    case 'n':
        return check_word(check, "null");
    }
    return check_number(check);
}

/* Check a name and the colon after it; check->at is at the value afterwards. */
static json_fault check_key(struct check *check)
{
    skip_space(check);
    if (at_end(check) || *check->at != '"')
        return JSON_SYNTAX;
    json_fault fault = check_string(check);
    if (fault != JSON_VALID)
        return fault;
    skip_space(check);
    return take(check, ':') ? JSON_VALID : JSON_SYNTAX;
}

static void push(struct check *check, bool is_object)
{
    uint64_t bit = (uint64_t)1 << check->depth % 64;
    uint64_t *word = &check->is_object[check->depth / 64];
    *word = is_object ? *word | bit : *word & ~bit;
    check->depth++;
}

static bool in_object(const struct check *check)
{
    unsigned top = check->depth - 1;
    return (check->is_object[top / 64] >> top % 64 & 1) != 0;
}

/*
 * Check the start of a value at check->at. A value without brackets is checked completely; a
 * bracket opens a level. *out_opened is set if the level has a first member or item, which is
 * next.
 */
static json_fault check_value_start(struct check *check, bool *out_opened)
{
    *out_opened = false;
    skip_space(check);
    if (at_end(check))
        return JSON_SYNTAX;
    bool is_object = *check->at == '{';
    if (!is_object && *check->at != '[')
        return check_scalar(check);
    if (check->depth >= check->max_depth)
        return JSON_DEPTH;
    check->at++;
    skip_space(check);
    if (take(check, is_object ? '}' : ']'))
        return JSON_VALID;
    push(check, is_object);
    *out_opened = true;
    return JSON_VALID;
}

/* Close the levels that end after a value, up to a comma or the end of the text. */
static json_fault check_value_end(struct check *check)
{
    while (check->depth > 0) {
        skip_space(check);
        if (take(check, ','))
            return JSON_VALID;
        if (!take(check, in_object(check) ? '}' : ']'))
            return JSON_SYNTAX;
        check->depth--;
    }
    return JSON_VALID;
}

static json_fault check_text(struct check *check)
{
    skip_space(check);
    if (at_end(check))
        return JSON_EMPTY;
    do {
        bool opened;
        json_fault fault = check_value_start(check, &opened);
        if (fault == JSON_VALID && !opened)
            fault = check_value_end(check);
        if (fault == JSON_VALID && check->depth > 0 && in_object(check))
            fault = check_key(check);
        if (fault != JSON_VALID)
            return fault;
    } while (check->depth > 0);
    skip_space(check);
    return !at_end(check) ? JSON_TRAILING : check->has_breaks ? JSON_BREAK : JSON_VALID;
}

json_fault annal__json_check_line(annal_slice text, unsigned max_depth, size_t *out_offset)
{
    if (text.len == 0)
        text.ptr = "";
    const unsigned char *start = (const unsigned char *)text.ptr;
    struct check check = {.at = start, .end = start + text.len};
    check.max_depth = max_depth < JSON_DEPTH_MAX ? max_depth : JSON_DEPTH_MAX;
    json_fault fault = check_text(&check);
    if (fault != JSON_VALID && fault != JSON_BREAK && out_offset != NULL)
        *out_offset = (size_t)(check.at - start);
    return fault;
}

json_fault annal__json_check(annal_slice text, unsigned max_depth, size_t *out_offset)
{
    json_fault fault = annal__json_check_line(text, max_depth, out_offset);
    return fault == JSON_BREAK ? JSON_VALID : fault;
}

bool annal__json_check_pieces(uint64_t length, json_read_fn read, void *arg, unsigned max_depth,
                              json_fault *out_fault)
{
    struct pieces *pieces = annal__zalloc(sizeof *pieces);
    if (pieces == NULL)
        return false;
    pieces->length = length;
    pieces->read = read;
    pieces->arg = arg;
    struct check check = {.at = pieces->bytes, .end = pieces->bytes, .pieces = pieces};
    check.max_depth = max_depth < JSON_DEPTH_MAX ? max_depth : JSON_DEPTH_MAX;
    *out_fault = check_text(&check);
    bool whole = !pieces->failed;
    annal__free(pieces);
    return whole;
}

annal_slice annal__json_trim(annal_slice text)
{
    while (text.len > 0 && annal__json_is_space(text.ptr[0]))
        text = (annal_slice){text.ptr + 1, text.len - 1};
    while (text.len > 0 && annal__json_is_space(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

const char *annal__json_fault_text(json_fault fault)
{
    switch (fault) {
    case JSON_VALID:
        return "valid JSON";
    case JSON_SYNTAX:
        return "not valid JSON";
    case JSON_UTF8:
        return "not valid UTF-8";
    case JSON_DEPTH:
        return "JSON nested too deep";
    case JSON_TRAILING:
        return "several JSON values";
    case JSON_EMPTY:
        return "no JSON value";
    case JSON_BREAK:
        return "JSON with a line break";
    }
    return "no such fault";
}

static annal_status quote_special(struct buf *out, unsigned char c)
{
    /* pairs of a byte and the letter of its escape */
    static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (const char *pair = letters; *pair != '\0'; pair += 2) {
        if ((unsigned char)pair[0] == c)
            return annal__buf_append(out, (char[]){'\\', pair[1]}, 2);
    }
    return annal__buf_printf(out, "\\u%04x", c);
}

bool annal__json_is_utf8(annal_slice text)
{
    const unsigned char *at = (const unsigned char *)text.ptr;
    const unsigned char *end = text.len == 0 ? at : at + text.len;
    while (at < end) {
        size_t length = *at < 0x80 ? 1 : annal__json_utf8_length(at, end);
        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

/* Return how many invalid bytes one U+FFFD replaces: one, or the three bytes of half a surrogate
 * pair. */
static size_t invalid_length(const unsigned char *at, const unsigned char *end)
{
    bool half = end - at >= 3 && at[0] == 0xED && at[1] >= 0xA0 && is_tail(at[1]) && is_tail(at[2]);
    return half ? 3 : 1;
}

annal_status annal__json_quote(struct buf *out, annal_slice text)
{
    const unsigned char *at = (const unsigned char *)text.ptr;
    const unsigned char *end = text.len == 0 ? at : at + text.len;
    size_t before = out->len;
    annal_status status = annal__buf_append(out, "\"", 1);
    while (status == ANNAL_OK && at < end) {
        const unsigned char *stop = skip_plain(at, end);
        status = annal__buf_append(out, at, (size_t)(stop - at));
        at = stop;
        if (status < 0 || at == end)
            break;
        if (*at < 0x80) {
            status = quote_special(out, *at++);
            continue;
        }
        size_t length = annal__json_utf8_length(at, end);
        status = length == 0 ? annal__buf_append(out, "\xEF\xBF\xBD", 3)
                             : annal__buf_append(out, at, length);
        at += length > 0 ? length : invalid_length(at, end);
    }
    status = annal__buf_append(out, "\"", 1);
    if (status < 0)
        out->len = before;
    return status;
}

annal_slice annal__json_i64(char text[21], int64_t number)
{
    return (annal_slice){text, (size_t)snprintf(text, 21, "%" PRId64, number)};
}

annal_slice annal__json_u64(char text[21], uint64_t number)
{
    return (annal_slice){text, (size_t)snprintf(text, 21, "%" PRIu64, number)};
}

annal_status annal__json_fill(struct buf *out, const char *format, const annal_slice *values,
                              size_t count)
{
    annal_status status = ANNAL_OK;
    size_t used = 0;
    while (status >= 0 && *format != '\0') {
        size_t len = strcspn(format, "?!#");
        status = annal__buf_append(out, format, len);
        format += len;
        if (status < 0 || *format == '\0')
            break;
        ANNAL_ASSERT(used < count);
        annal_slice value = values[used++];
        char mark = *format++;
        status = mark == '#'                        ? annal__buf_append_slice(out, value)
                 : mark == '!' && value.ptr == NULL ? annal__buf_append(out, "null", 4)
                                                    : annal__json_quote(out, value);
    }
    ANNAL_ASSERT(status < 0 || used == count);
    return status;
}
