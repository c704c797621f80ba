/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check whether a text is JSON, as every append does: RFC 8259 grammar, valid UTF-8, bounded depth.
 * It builds nothing and copies nothing. It accepts some texts that other parsers refuse, because
 * real logs contain them: lone surrogate escapes, integers of any size, 1e400. It refuses some
 * texts that other parsers accept: invalid UTF-8, raw control characters, a byte order mark.
 */
#pragma once

#include <annal/base.h>

typedef enum json_fault {
    JSON_VALID = 0,
    JSON_SYNTAX,   /* the text violates the grammar of JSON */
    JSON_UTF8,     /* a string contains bytes that are not UTF-8 */
    JSON_DEPTH,    /* the value is nested deeper than max_depth */
    JSON_TRAILING, /* other text follows the value */
    JSON_EMPTY,    /* the text contains no value */
    JSON_BREAK     /* the text is one JSON value, but has a line break between tokens */
} json_fault;

/* Greatest nesting that can be checked; a larger max_depth is reduced to it. */
#define JSON_DEPTH_MAX 1024

/* Check that text is exactly one JSON value, with optional white space around it. After a fault,
 * *out_offset (out_offset may be NULL) is the byte at which it was noticed. Line breaks are white
 * space; with annal__json_check_line() a text that contains one is JSON_BREAK if it has no other
 * fault. */
json_fault annal__json_check(annal_slice text, unsigned max_depth, size_t *out_offset);
json_fault annal__json_check_line(annal_slice text, unsigned max_depth, size_t *out_offset);

/* Read len bytes of a text from this offset on; return false if they cannot be read. */
typedef bool (*json_read_fn)(void *arg, uint64_t offset, void *bytes, size_t len);

/* As annal__json_check_line(), for a text that is read in pieces. Returns false if it cannot be
 * read, or if memory is exhausted; *out_fault has no meaning then. */
bool annal__json_check_pieces(uint64_t length, json_read_fn read, void *arg, unsigned max_depth,
                              json_fault *out_fault);

/* Return a phrase for a fault, such as "not valid JSON". Static. */
const char *annal__json_fault_text(json_fault fault);

/* Return whether c is white space of JSON. */
static inline bool annal__json_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Return text without the white space at both ends. */
annal_slice annal__json_trim(annal_slice text);

/* Return the length of the UTF-8 character of two or more bytes at `at`; 0 if it is invalid. */
size_t annal__json_utf8_length(const unsigned char *at, const unsigned char *end);

/* Return whether text is UTF-8, so that annal__json_quote() does not change it. */
bool annal__json_is_utf8(annal_slice text);

/* Append text as a JSON string, with quotes. A byte that is not UTF-8, or half a surrogate pair,
 * becomes U+FFFD. Fails as annal__buf_append() does; out is unchanged then. */
struct buf;
annal_status annal__json_quote(struct buf *out, annal_slice text);

/*
 * Append JSON. Each ? of the format stands for the next value as a string, each ! for the next
 * value as a string or, if its pointer is NULL, null, each # for the next value unchanged:
 * annal__json_put(out, "{\"name\":?,\"list\":[#]}", name, list). After a failure, out ends in the
 * middle.
 */
#define annal__json_put(out, format, ...)                                                          \
    annal__json_fill(out, format, (const annal_slice[]){__VA_ARGS__},                              \
                     sizeof((const annal_slice[]){__VA_ARGS__}) / sizeof(annal_slice))
annal_status annal__json_fill(struct buf *out, const char *format, const annal_slice *values,
                              size_t count);

/* A number as a value for annal__json_put(), valid until the end of the block. */
#define JSON_I64(number) annal__json_i64((char[21]){0}, number)
#define JSON_U64(number) annal__json_u64((char[21]){0}, number)
annal_slice annal__json_i64(char text[21], int64_t number);
annal_slice annal__json_u64(char text[21], uint64_t number);
