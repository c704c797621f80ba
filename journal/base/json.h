/*
 * Is this JSON? The check on the path of every append: RFC 8259 grammar, valid UTF-8, bounded
 * depth. It builds nothing and copies nothing. It accepts what real logs hold and some parsers
 * refuse: lone surrogate escapes, integers of any size, 1e400; it refuses what some accept: invalid
 * UTF-8, raw control characters, a byte order mark.
 */
#ifndef JOURNAL_BASE_JSON_H
#define JOURNAL_BASE_JSON_H

#include <annal/base.h>

typedef enum json_fault {
    JSON_VALID = 0,
    JSON_SYNTAX,   /* not the grammar */
    JSON_UTF8,     /* bytes that are not UTF-8 */
    JSON_DEPTH,    /* nested deeper than max_depth */
    JSON_TRAILING, /* one value, and then something else */
    JSON_EMPTY     /* no value at all */
} json_fault;

/* The deepest nesting that can be checked; a larger max_depth means this one. */
#define JSON_DEPTH_MAX 1024

/*
 * Check that text is exactly one JSON value, with whitespace around it allowed. On a fault
 * *out_offset (if not NULL) is the byte at which it was noticed.
 */
json_fault annal__json_check(annal_slice text, unsigned max_depth, size_t *out_offset);

/* One phrase for a fault, "not valid JSON". Static. */
const char *annal__json_fault_text(json_fault fault);

/* Whether text is UTF-8 throughout: as a JSON string it then comes out as it went in. */
bool annal__is_utf8(annal_slice text);

/*
 * Append text as a JSON string, quotes included. A byte that is not UTF-8 becomes U+FFFD. On
 * failure (as annal__buf_append()) out stays as it was.
 */
struct buf;
annal_status annal__json_quote(struct buf *out, annal_slice text);

#endif
