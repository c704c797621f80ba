/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a text is JSON. This is the check that every append makes: RFC 8259 grammar, valid UTF-8,
 * bounded depth. It builds nothing and copies nothing. It accepts what real logs contain and some
 * parsers refuse: lone surrogate escapes, integers of any size, 1e400; it refuses what some accept:
 * invalid UTF-8, raw control characters, a byte order mark.
 */
#ifndef JOURNAL_BASE_JSON_H
#define JOURNAL_BASE_JSON_H

#include <annal/base.h>

typedef enum json_fault {
    JSON_VALID = 0,
    JSON_SYNTAX,   /* violates the grammar */
    JSON_UTF8,     /* bytes that are not UTF-8 */
    JSON_DEPTH,    /* nested deeper than max_depth */
    JSON_TRAILING, /* text follows the value */
    JSON_EMPTY     /* no value at all */
} json_fault;

/* The deepest nesting that can be checked; a larger max_depth is cut to it. */
#define JSON_DEPTH_MAX 1024

/*
 * Check that text is exactly one JSON value; whitespace around it is allowed. On a fault
 * *out_offset (if not NULL) is the byte at which it was noticed.
 */
json_fault annal__json_check(annal_slice text, unsigned max_depth, size_t *out_offset);

/* Read len bytes of a text from offset on; false: they cannot be read. */
typedef bool (*json_read_fn)(void *arg, uint64_t offset, void *bytes, size_t len);

/* As above, for a text that is read in pieces. False: it cannot be read, or memory is short. */
bool annal__json_check_pieces(uint64_t length, json_read_fn read, void *arg, unsigned max_depth,
                              json_fault *out_fault);

/* A phrase for a fault, like "not valid JSON". Static. */
const char *annal__json_fault_text(json_fault fault);

/* Whether c is white space of JSON. */
static inline bool annal__json_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* text without the white space at both ends. */
annal_slice annal__json_trim(annal_slice text);

/* The length of the UTF-8 character of two or more bytes at `at`; 0 if it is invalid. */
size_t annal__json_utf8_length(const unsigned char *at, const unsigned char *end);

/* Whether all of text is UTF-8: only then is it the same after it was a JSON string. */
bool annal__json_is_utf8(annal_slice text);

/*
 * Append text as a JSON string, with quotes. A byte that is not UTF-8, or half a
 * surrogate pair, becomes U+FFFD. If it fails
 * (as annal__buf_append() does) out is unchanged.
 */
struct buf;
annal_status annal__json_quote(struct buf *out, annal_slice text);

#endif
