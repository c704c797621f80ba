/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON check against two others, and against itself.
 *
 * (1) Text that we accept is UTF-8, and yajl and SQLite accept it too.
 * (2) We accept text that yajl accepts, except where yajl is looser than RFC 8259: it accepts
 *     surrogates, overlong forms and characters beyond U+10FFFF, a raw control character in a
 *     string, a byte order mark in front, an unfinished token after the value, and any depth.
 * (3) We accept text that SQLite accepts, unless it is not UTF-8 (SQLite does not check), holds a
 *     NUL (SQLite stops there), is deeper than our limit, or yajl refuses it too (SQLite 3.40
 *     accepts {["a"]:1}).
 * (4) A valid text is valid as a member of an array and with space around it, and not valid when
 *     another value follows.
 * (5) Any bytes, quoted, are valid JSON.
 */
#include "journal/base/buf.h"
#include "journal/base/json.h"

#include <iconv.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#define DEPTH 512

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s\non %zu bytes: %.*s\n", #condition, text.len, ANNAL_FMT(text));    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static json_fault check(annal_slice text)
{
    size_t offset = 0;
    json_fault fault = annal__json_check(text, DEPTH, &offset);
    MUST(offset <= text.len);
    return fault;
}

/* In a valid text each line break is between tokens. */
static void check_line(annal_slice text, json_fault fault)
{
    bool breaks = text.len > 0 && (memchr(text.ptr, '\n', text.len) != NULL ||
                                   memchr(text.ptr, '\r', text.len) != NULL);
    if (fault == JSON_VALID && breaks)
        fault = JSON_BREAK;
    MUST(annal__json_check_line(text, DEPTH, NULL) == fault);
}

static bool yajl_accepts(annal_slice text)
{
    yajl_handle parser = yajl_alloc(NULL, NULL, NULL);
    bool accepts =
        yajl_parse(parser, (const unsigned char *)text.ptr, text.len) == yajl_status_ok &&
        yajl_complete_parse(parser) == yajl_status_ok;
    yajl_free(parser);
    return accepts;
}

static bool sqlite_accepts(annal_slice text)
{
    static sqlite3 *db;
    static sqlite3_stmt *query;
    if (db == NULL &&
        (sqlite3_open(":memory:", &db) != SQLITE_OK ||
         sqlite3_prepare_v2(db, "SELECT json_valid(?)", -1, &query, NULL) != SQLITE_OK))
        abort();
    sqlite3_bind_text(query, 1, text.ptr, (int)text.len, SQLITE_STATIC);
    bool accepts = sqlite3_step(query) == SQLITE_ROW && sqlite3_column_int(query, 0) == 1;
    sqlite3_reset(query);
    return accepts;
}

/* Ask the C library, so that the expected answer is independent of our code. */
static bool is_utf8(annal_slice text)
{
    iconv_t converter = iconv_open("UTF-32LE", "UTF-8");
    if (converter == (iconv_t)-1)
        abort();
    char *in = (char *)(uintptr_t)text.ptr;
    size_t in_left = text.len;
    bool valid = true;
    while (valid && in_left > 0) {
        char space[1024];
        char *out = space;
        size_t out_left = sizeof space;
        size_t before = in_left;
        valid = iconv(converter, &in, &in_left, &out, &out_left) != (size_t)-1 || in_left < before;
    }
    iconv_close(converter);
    return valid;
}

static bool holds_control(annal_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < 0x20 && strchr("\t\n\r", text.ptr[i]) == NULL)
            return true;
        /* One that is space between tokens may also stand in a string; that is for us to tell. */
        if ((unsigned char)text.ptr[i] < 0x20 && memchr(text.ptr, '"', i) != NULL)
            return true;
    }
    return false;
}

static bool starts_with_bom(annal_slice text)
{
    return text.len >= 3 && memcmp(text.ptr, "\xEF\xBB\xBF", 3) == 0;
}

static void compare(annal_slice text, json_fault fault)
{
    bool utf8 = is_utf8(text);
    if (fault == JSON_VALID) {
        MUST(utf8);
        MUST(yajl_accepts(text));
        MUST(sqlite_accepts(text));
    } else if (utf8 && fault != JSON_DEPTH) {
        MUST(fault != JSON_UTF8);
        MUST(fault == JSON_TRAILING || holds_control(text) || starts_with_bom(text) ||
             !yajl_accepts(text));
        MUST(!sqlite_accepts(text) || memchr(text.ptr, '\0', text.len) != NULL ||
             !yajl_accepts(text));
    }
}

static json_fault check_within(annal_slice text, const char *before, const char *after)
{
    struct buf whole = {0};
    if (annal__buf_printf(&whole, "%s", before) < 0 || annal__buf_append_slice(&whole, text) < 0 ||
        annal__buf_printf(&whole, "%s", after) < 0)
        abort();
    json_fault fault = check(annal__buf_slice(&whole));
    annal__buf_done(&whole);
    return fault;
}

static void quote(annal_slice text)
{
    struct buf quoted = {0};
    MUST(annal__json_quote(&quoted, text) == ANNAL_OK);
    MUST(check(annal__buf_slice(&quoted)) == JSON_VALID);
    annal__buf_done(&quoted);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    annal_slice text = {(const char *)bytes, len};
    if (len > 1 << 20)
        return 0;
    json_fault fault = check(text);
    compare(text, fault);
    check_line(text, fault);
    if (fault == JSON_VALID) {
        json_fault member = check_within(text, "[{\"a\":", "}, 1]");
        MUST(member == JSON_VALID || member == JSON_DEPTH);
        MUST(check_within(text, " \n", "\t\r") == JSON_VALID);
        MUST(check_within(text, "", " {}") == JSON_TRAILING);
    }
    quote(text);
    return 0;
}
