/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When two errors are the same error.
 *
 *     annal_message(text)   the line of an output that says what failed, at most MESSAGE_BYTES: the
 *                           first line with a word, after headings such as "Exit code 1" and after
 *                           the frames of a traceback, without tags and colours
 *     annal_pattern(text)   the text in lower case and with single spaces, where # stands for what
 *                           differs between two occurrences of the same error: a number, a hash, a
 *                           path, a text in quotes
 *
 * Two errors are the same if the patterns of their messages are equal.
 */
#include "index/db/functions.h"

#include "journal/base/buf.h"

#include <string.h>
#include <strings.h>

enum { MESSAGE_BYTES = 300, TEXT_BYTES = 1 << 20, HASH_BYTES = 7 };

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* ---- annal_message() ---- */

/* Return the number of bytes of a tag such as <tool_use_error>, or of a control sequence of a
 * terminal; 0 if the text begins with neither. */
static size_t mark_bytes(annal_slice text)
{
    size_t at = 1;
    bool is_tag = text.ptr[0] == '<';
    if (text.len < 2 || (!is_tag && (text.ptr[0] != '\x1b' || text.ptr[1] != '[')))
        return 0;
    at += !is_tag || text.ptr[1] == '/';
    size_t begin = at;
    while (at < text.len && (is_tag ? is_letter(text.ptr[at]) || is_digit(text.ptr[at]) ||
                                          strchr("_-", text.ptr[at]) != NULL
                                    : is_digit(text.ptr[at]) || strchr(";?", text.ptr[at]) != NULL))
        at++;
    bool ends =
        at < text.len && (is_tag ? text.ptr[at] == '>' && at > begin : is_letter(text.ptr[at]));
    return ends ? at + 1 : 0;
}

/* Copy a line without marks, with single spaces, and without spaces at its ends. */
static annal_status put_line(struct buf *out, annal_slice line)
{
    annal_status status = ANNAL_OK;
    annal__buf_clear(out);
    for (size_t at = 0; status >= 0 && at < line.len;) {
        size_t mark = mark_bytes((annal_slice){line.ptr + at, line.len - at});
        bool is_blank = mark > 0 ? line.ptr[at] == '<' : is_space(line.ptr[at]);
        if (!is_blank && mark == 0)
            status = annal__buf_append(out, line.ptr + at, 1);
        else if (is_blank && out->len > 0 && out->ptr[out->len - 1] != ' ')
            status = annal__buf_append(out, " ", 1);
        at += mark > 0 ? mark : 1;
    }
    while (out->len > 0 && out->ptr[out->len - 1] == ' ')
        out->len--;
    return status;
}

/* Return whether a line is a heading before the message: a name without a text of its own, or a
 * line without a word. */
static bool is_heading(annal_slice line)
{
    static const char *const names[] = {"exit code",     "process exited with code",
                                        "wall time",     "chunk id",
                                        "output",        "original token count",
                                        "error",         "traceback",
                                        "stderr",        "stdout",
                                        "command failed"};
    bool has_word = false;
    for (size_t i = 0; i + 1 < line.len; i++)
        has_word = has_word || (is_letter(line.ptr[i]) && is_letter(line.ptr[i + 1]));
    for (size_t i = 0; has_word && i < sizeof names / sizeof *names; i++) {
        size_t len = strlen(names[i]), at = len;
        if (line.len < len || strncasecmp(line.ptr, names[i], len) != 0)
            continue;
        if (strcmp(names[i], "traceback") == 0 && line.ptr[line.len - 1] == ':')
            return true;
        while (at < line.len && strchr(":. 0123456789", line.ptr[at]) != NULL)
            at++;
        bool is_time = strcmp(names[i], "wall time") == 0 || strcmp(names[i], "chunk id") == 0;
        has_word = !is_time && at < line.len;
    }
    return !has_word;
}

/* Find the line that says what failed. */
static annal_status find_message(annal_slice text, struct buf *line)
{
    SCOPED_BUF first = {0};
    bool in_frames = false, found = false;
    annal_status status = ANNAL_OK;
    for (size_t at = 0, len; status >= 0 && !found && at < text.len; at += len + 1) {
        const char *begin = text.ptr + at, *end = memchr(begin, '\n', text.len - at);
        len = end == NULL ? text.len - at : (size_t)(end - begin);
        bool is_frame = in_frames && (len == 0 || is_space(begin[0]));
        status = put_line(line, (annal_slice){begin, len});
        in_frames = is_frame || (line->len >= 9 && strncasecmp(line->ptr, "traceback", 9) == 0);
        found = !is_frame && !is_heading(annal__buf_slice(line));
        if (status >= 0 && first.len == 0)
            status = annal__buf_append_slice(&first, annal__buf_slice(line));
    }
    if (status >= 0 && !found) {
        annal__buf_clear(line);
        status = annal__buf_append_slice(line, annal__buf_slice(&first));
    }
    return status;
}

static annal_slice text_of(sqlite3_value *value)
{
    const char *text = (const char *)sqlite3_value_text(value);
    size_t len = text == NULL ? 0 : (size_t)sqlite3_value_bytes(value);
    return (annal_slice){text, len < TEXT_BYTES ? len : TEXT_BYTES};
}

static void give(sqlite3_context *context, struct buf *text, annal_status status)
{
    if (status < 0)
        sqlite3_result_error_nomem(context);
    else
        sqlite3_result_text64(context, text->len == 0 ? "" : text->ptr, text->len, SQLITE_TRANSIENT,
                              SQLITE_UTF8);
    annal__buf_done(text);
}

void annal__message_group(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct buf line = {0};
    (void)count;
    if (sqlite3_value_type(values[0]) == SQLITE_NULL)
        return;
    annal_status status = find_message(text_of(values[0]), &line);
    size_t len = line.len < MESSAGE_BYTES ? line.len : MESSAGE_BYTES;
    while (len > 0 && len < line.len && ((unsigned char)line.ptr[len] & 0xc0) == 0x80)
        len--;
    line.len = len;
    give(context, &line, status);
}

/* ---- annal_pattern() ---- */

static size_t span(annal_slice text, size_t at, const char *digits)
{
    size_t len = 0;
    while (at + len < text.len && text.ptr[at + len] != '\0' &&
           strchr(digits, text.ptr[at + len]) != NULL)
        len++;
    return len;
}

/* Return the number of bytes at a place that # stands for. */
static size_t varying_bytes(annal_slice text, size_t at)
{
    static const char in_path[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
    char c = text.ptr[at];
    size_t len = span(text, at, "0123456789abcdefABCDEF");
    if (len >= HASH_BYTES)
        return len;
    if (is_digit(c))
        return span(text, at, "0123456789");
    if (c == '/' && (len = span(text, at, in_path)) > 1)
        return len;
    /* a mark within a word is an apostrophe */
    if ((c != '\'' && c != '"' && c != '`') ||
        (at > 0 && (is_letter(text.ptr[at - 1]) || is_digit(text.ptr[at - 1]))))
        return 0;
    for (len = 1; at + len < text.len && text.ptr[at + len] != '\n'; len++)
        if (text.ptr[at + len] == c)
            return len + 1;
    return 0;
}

void annal__message_pattern(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct buf out = {0};
    annal_slice text = text_of(values[0]);
    annal_status status = ANNAL_OK;
    (void)count;
    if (sqlite3_value_type(values[0]) == SQLITE_NULL)
        return;
    for (size_t at = 0, len; status >= 0 && at < text.len; at += len) {
        char c = text.ptr[at];
        len = varying_bytes(text, at);
        if (len > 0)
            c = '#';
        else if (is_space(c))
            c = ' ';
        else if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        len = len > 0 ? len : 1;
        if (c != ' ' || (out.len > 0 && out.ptr[out.len - 1] != ' '))
            status = annal__buf_append(&out, &c, 1);
    }
    give(context, &out, status);
}
