/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read JSON that was checked (json.h) in place: values are slices of it. If it was not checked, the
 * values have no meaning, but no byte outside of it is read.
 */
#ifndef JOURNAL_BASE_JSON_WALK_H
#define JOURNAL_BASE_JSON_WALK_H

#include "journal/base/buf.h"

#include <annal/base.h>

#include <string.h>

struct json_walk {
    const char *at;
    const char *end;
};

/* Begin in an object: its first byte after spaces is '{'. False: it is something else, and has no
 * members. */
bool annal__json_walk_object(struct json_walk *walk, annal_slice object);

/* The next member: the raw string that is its name, and its raw value. False: no more members. */
bool annal__json_walk_next(struct json_walk *walk, annal_slice *out_name, annal_slice *out_value);

/* The two halves of annal__json_walk_next(). After the name, walk->at is where the value begins. */
bool annal__json_walk_name(struct json_walk *walk, annal_slice *out_name);
annal_slice annal__json_walk_value(struct json_walk *walk);

/* As above, for an array and its items. */
bool annal__json_walk_array(struct json_walk *walk, annal_slice array);
bool annal__json_walk_item(struct json_walk *walk, annal_slice *out_value);

/* The raw value of a member, "id" or "run.id"; empty if it is missing. Names with escapes are not
 * found. */
annal_slice annal__json_member(annal_slice object, const char *path);

/* The next bracket, string, number or word; white space, commas and colons are skipped. */
bool annal__json_token(struct json_walk *walk, annal_slice *out_token);

/* The byte after the string whose opening quote is at `at`; end if it is not closed. */
const char *annal__json_string_end(const char *at, const char *end);

/* ---- Strings ---- */

/* A raw string without its quotes. */
static inline annal_slice annal__json_inside(annal_slice raw)
{
    return raw.len < 2 ? (annal_slice){raw.ptr, 0} : (annal_slice){raw.ptr + 1, raw.len - 2};
}

/*
 * The text of a raw string. Without escapes it is a slice of the raw bytes; otherwise it is added
 * to scratch, in which room should be reserved if several are kept. ANNAL_ERR_INVALID: half a
 * surrogate pair, which is not a character.
 */
annal_status annal__json_text(annal_slice raw, struct buf *scratch, annal_slice *out);

/* Append the text of a raw string. Half a surrogate pair becomes three bytes that are not UTF-8. */
annal_status annal__json_decode(annal_slice raw, struct buf *out, bool *out_half);

/*
 * Read the escape at *at, or both escapes of a surrogate pair, and move *at after it. Half a pair
 * alone gives its own code; see annal__is_half().
 */
unsigned annal__json_unescape(const char **at, const char *end);

static inline bool annal__is_half(unsigned code)
{
    return (code & 0xfffff800U) == 0xd800;
}

static inline bool annal__json_is_escaped(annal_slice raw)
{
    return memchr(raw.ptr, '\\', raw.len) != NULL;
}

/* Write a character as UTF-8. Returns its length. */
size_t annal__json_utf8_put(unsigned code, char bytes[4]);

#endif
