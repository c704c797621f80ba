/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msgpack: append values to a buffer, and read values one after the other.
 *
 * Appending uses msgpack-c. Reading does not, because msgpack-c builds a tree, and fails beyond 32
 * levels (docs/decisions/0009).
 */
#pragma once

#include "journal/base/buf.h"

/* Append a value to out. After ANNAL_ERR_NOMEM or ANNAL_ERR_LIMIT, out may contain a piece of
 * it. */
annal_status annal__msgpack_nil(struct buf *out);
annal_status annal__msgpack_bool(struct buf *out, bool value);
annal_status annal__msgpack_uint(struct buf *out, uint64_t value); /* in as few bytes as possible */
annal_status annal__msgpack_int(struct buf *out, int64_t value);
annal_status annal__msgpack_double(struct buf *out, double value);
annal_status annal__msgpack_str(struct buf *out, annal_slice bytes);
annal_status annal__msgpack_bin(struct buf *out, annal_slice bytes);
annal_status annal__msgpack_ext(struct buf *out, int8_t type, annal_slice bytes);
/* Append the head of an array; the caller then appends count values. */
annal_status annal__msgpack_array(struct buf *out, size_t count);
/* Append the head of a map; the caller then appends count keys, each followed by its value. */
annal_status annal__msgpack_map(struct buf *out, size_t count);

/* Append a number in the form of its type, whatever its value: 5 bytes for a uint32, 9 bytes for a
 * uint64 or int64. */
annal_status annal__msgpack_put_uint32(struct buf *out, uint32_t value);
annal_status annal__msgpack_put_uint64(struct buf *out, uint64_t value);
annal_status annal__msgpack_put_int64(struct buf *out, int64_t value);

enum unpacked_kind {
    UNPACKED_NIL,
    UNPACKED_BOOL,
    UNPACKED_UINT, /* integer from 0 on, in any encoding */
    UNPACKED_INT,  /* integer below 0 */
    UNPACKED_DOUBLE,
    UNPACKED_STR,
    UNPACKED_BIN,
    UNPACKED_EXT,
    UNPACKED_ARRAY, /* the values of the array follow */
    UNPACKED_MAP    /* the keys and values of the map follow */
};

struct msgpack_value {
    enum unpacked_kind kind;
    bool boolean;
    uint64_t uint;
    int64_t sint;
    double real;
    annal_slice bytes; /* content of str, bin and ext; a slice of the input */
    int8_t ext_type;
    uint32_t count; /* number of values of an array, or of pairs of a map */
};

/* Remove one value, or the head of an array or map, from the front of rest. Returns false if rest
 * is empty or invalid. */
bool annal__msgpack_next(annal_slice *rest, struct msgpack_value *out);

/* Return the big-endian number in the 4 or 8 bytes at `at`. */
uint32_t annal__msgpack_get_uint32(const char *at);
uint64_t annal__msgpack_get_uint64(const char *at);
