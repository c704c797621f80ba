/* SPDX-License-Identifier: Apache-2.0 */
/* Read JSON in place: values are slices of the text, which was checked before (json.h). In a text
 * that is not valid JSON, the values have no meaning, but no byte outside of the text is read. */
#pragma once

#include "journal/base/buf.h"

#include <annal/base.h>

#include <string.h>

struct json_walk {
    const char *at;
    const char *end;
};

/* Begin to walk through an object. Returns false if the text does not begin with '{' after white
 * space; then it has no members. */
bool annal__json_walk_object(struct json_walk *walk, annal_slice object);

/* Read the next member: its name, as a string with quotes, and its value. Returns false after the
 * last member. */
bool annal__json_walk_next(struct json_walk *walk, annal_slice *out_name, annal_slice *out_value);

/* annal__json_walk_array() begins to walk through an array, and returns false if the text is not an
 * array. annal__json_walk_item() reads the next item, and returns false after the last. */
bool annal__json_walk_array(struct json_walk *walk, annal_slice array);
bool annal__json_walk_item(struct json_walk *walk, annal_slice *out_value);

/* Return the value of a member, such as "id" or "run.id", as it is in the text; empty if the member
 * is missing. Names with escapes are not found. */
annal_slice annal__json_member(annal_slice object, const char *path);

/* Read the next bracket, string, number or word; white space, commas and colons are skipped.
 * Returns false at the end of the text. */
bool annal__json_token(struct json_walk *walk, annal_slice *out_token);

/* Return the byte after the string whose opening quote is at `at`; end if the string is not
 * closed. */
const char *annal__json_string_end(const char *at, const char *end);

/* ---- Strings ---- */

/* Return a string without its quotes. */
static inline annal_slice annal__json_inside(annal_slice raw)
{
    return raw.len < 2 ? (annal_slice){raw.ptr, 0} : (annal_slice){raw.ptr + 1, raw.len - 2};
}

/*
 * Return the text of a string with quotes. Without escapes it is a slice of the string; otherwise
 * it is appended to scratch, in which room should be reserved if several texts are kept.
 * ANNAL_ERR_INVALID if it contains half a surrogate pair, which is not a character.
 */
annal_status annal__json_text(annal_slice raw, struct buf *scratch, annal_slice *out);

/* Append the text of a string with quotes to out. Half a surrogate pair becomes three bytes that
 * are not UTF-8; then *out_half is set. */
annal_status annal__json_decode(annal_slice raw, struct buf *out, bool *out_half);

/* Read the escape at *at, or both escapes of a surrogate pair, and move *at after it. For half a
 * pair, returns its own code (annal__is_half()). */
unsigned annal__json_unescape(const char **at, const char *end);

static inline bool annal__is_half(unsigned code)
{
    return (code & 0xfffff800U) == 0xd800;
}

static inline bool annal__json_is_escaped(annal_slice raw)
{
    return memchr(raw.ptr, '\\', raw.len) != NULL;
}

/* Write a character as UTF-8, and return its number of bytes. */
size_t annal__json_utf8_put(unsigned code, char bytes[4]);
