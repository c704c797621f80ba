/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msgpack: appending values to a buffer, and walking over values that follow each other.
 *
 * Packing uses msgpack-c. Walking does not: msgpack-c builds a tree, and gives up at 32 levels
 * (docs/decisions/0009).
 */
#ifndef JOURNAL_BASE_MSGPACK_H
#define JOURNAL_BASE_MSGPACK_H

#include "journal/base/buf.h"

/* Append a value to out. After ANNAL_ERR_NOMEM or ANNAL_ERR_LIMIT a piece of it may be in out. */
annal_status annal__msgpack_nil(struct buf *out);
annal_status annal__msgpack_bool(struct buf *out, bool value);
annal_status annal__msgpack_uint(struct buf *out, uint64_t value); /* as short as possible */
annal_status annal__msgpack_int(struct buf *out, int64_t value);
annal_status annal__msgpack_double(struct buf *out, double value);
annal_status annal__msgpack_str(struct buf *out, annal_slice bytes);
annal_status annal__msgpack_bin(struct buf *out, annal_slice bytes);
annal_status annal__msgpack_ext(struct buf *out, int8_t type, annal_slice bytes);
annal_status annal__msgpack_array(struct buf *out, size_t count); /* count values follow */
annal_status annal__msgpack_map(struct buf *out, size_t count);   /* count pairs follow */

/* Of fixed width: 5, 9 and 9 bytes whatever the value. */
annal_status annal__msgpack_put_uint32(struct buf *out, uint32_t value);
annal_status annal__msgpack_put_uint64(struct buf *out, uint64_t value);
annal_status annal__msgpack_put_int64(struct buf *out, int64_t value);

enum unpacked_kind {
    UNPACKED_NIL,
    UNPACKED_BOOL,
    UNPACKED_UINT, /* 0 and above, whatever its encoding */
    UNPACKED_INT,  /* below 0 */
    UNPACKED_DOUBLE,
    UNPACKED_STR,
    UNPACKED_BIN,
    UNPACKED_EXT,
    UNPACKED_ARRAY, /* its values follow */
    UNPACKED_MAP    /* its keys and values follow */
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

/*
 * Remove one value, or the head of an array or map, from the front of rest. false: rest is empty or
 * not valid.
 */
bool annal__msgpack_next(annal_slice *rest, struct msgpack_value *out);

/* The big-endian number in these bytes. */
uint32_t annal__msgpack_get_uint32(const char *at);
uint64_t annal__msgpack_get_uint64(const char *at);

#endif
