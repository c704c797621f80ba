/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/msgpack.h"

#include <msgpack/pack.h>
#include <string.h>

/* ---- Packing ---- */

/* The destination of msgpack-c's packer, which reports only -1 after a failure, and the status of
 * that failure. */
struct sink {
    struct buf *out;
    annal_status status;
};

static int write_to_sink(void *arg, const char *bytes, size_t len)
{
    struct sink *sink = arg;
    sink->status = annal__buf_append(sink->out, bytes, len);
    return sink->status < 0 ? -1 : 0;
}

#define PACK(out, call)                                                                            \
    struct sink sink = {(out), ANNAL_OK};                                                          \
    msgpack_packer packer;                                                                         \
    msgpack_packer_init(&packer, &sink, write_to_sink);                                            \
    (void)(call);                                                                                  \
    return sink.status

annal_status annal__msgpack_nil(struct buf *out)
{
    PACK(out, msgpack_pack_nil(&packer));
}

annal_status annal__msgpack_bool(struct buf *out, bool value)
{
    PACK(out, value ? msgpack_pack_true(&packer) : msgpack_pack_false(&packer));
}

annal_status annal__msgpack_uint(struct buf *out, uint64_t value)
{
    PACK(out, msgpack_pack_uint64(&packer, value));
}

annal_status annal__msgpack_int(struct buf *out, int64_t value)
{
    PACK(out, msgpack_pack_int64(&packer, value));
}

annal_status annal__msgpack_double(struct buf *out, double value)
{
    PACK(out, msgpack_pack_double(&packer, value));
}

/* Return the ptr of a slice, or "" if it is empty: its ptr may be NULL, which memcpy() does not
 * accept. */
static const char *pointer_of(annal_slice bytes)
{
    return bytes.len == 0 ? "" : bytes.ptr;
}

annal_status annal__msgpack_str(struct buf *out, annal_slice bytes)
{
    PACK(out, msgpack_pack_str_with_body(&packer, pointer_of(bytes), bytes.len));
}

annal_status annal__msgpack_bin(struct buf *out, annal_slice bytes)
{
    PACK(out, msgpack_pack_bin_with_body(&packer, pointer_of(bytes), bytes.len));
}

annal_status annal__msgpack_ext(struct buf *out, int8_t type, annal_slice bytes)
{
    PACK(out, msgpack_pack_ext_with_body(&packer, pointer_of(bytes), bytes.len, type));
}

annal_status annal__msgpack_array(struct buf *out, size_t count)
{
    PACK(out, msgpack_pack_array(&packer, count));
}

annal_status annal__msgpack_map(struct buf *out, size_t count)
{
    PACK(out, msgpack_pack_map(&packer, count));
}

annal_status annal__msgpack_put_uint32(struct buf *out, uint32_t value)
{
    PACK(out, msgpack_pack_fix_uint32(&packer, value));
}

annal_status annal__msgpack_put_uint64(struct buf *out, uint64_t value)
{
    PACK(out, msgpack_pack_fix_uint64(&packer, value));
}

annal_status annal__msgpack_put_int64(struct buf *out, int64_t value)
{
    PACK(out, msgpack_pack_fix_int64(&packer, value));
}

/* ---- Walking ---- */

static uint64_t get_big_endian(const char *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | (unsigned char)at[i];
    return value;
}

uint32_t annal__msgpack_get_uint32(const char *at)
{
    return (uint32_t)get_big_endian(at, 4);
}

uint64_t annal__msgpack_get_uint64(const char *at)
{
    return get_big_endian(at, 8);
}

static bool take_number(annal_slice *rest, size_t bytes, uint64_t *out)
{
    if (rest->len < bytes)
        return false;
    *out = get_big_endian(rest->ptr, bytes);
    rest->ptr += bytes;
    rest->len -= bytes;
    return true;
}

static bool take_bytes(annal_slice *rest, uint64_t bytes, enum unpacked_kind kind,
                       struct msgpack_value *out)
{
    if (rest->len < bytes)
        return false;
    out->kind = kind;
    out->bytes = (annal_slice){rest->ptr, (size_t)bytes};
    rest->ptr += bytes;
    rest->len -= (size_t)bytes;
    return true;
}

static bool take_uint(annal_slice *rest, size_t bytes, struct msgpack_value *out)
{
    out->kind = UNPACKED_UINT;
    return take_number(rest, bytes, &out->uint);
}

static bool take_int(annal_slice *rest, size_t bytes, struct msgpack_value *out)
{
    uint64_t raw;
    if (!take_number(rest, bytes, &raw))
        return false;
    unsigned unused = (unsigned)(64 - 8 * bytes);
    int64_t value = (int64_t)(raw << unused) >> unused;
    out->kind = value < 0 ? UNPACKED_INT : UNPACKED_UINT;
    out->sint = value;
    out->uint = (uint64_t)value;
    return true;
}

static bool take_real(annal_slice *rest, size_t bytes, struct msgpack_value *out)
{
    uint64_t raw;
    if (!take_number(rest, bytes, &raw))
        return false;
    out->kind = UNPACKED_DOUBLE;
    if (bytes == 4) {
        uint32_t bits = (uint32_t)raw;
        float real;
        memcpy(&real, &bits, sizeof real);
        out->real = (double)real;
    } else {
        memcpy(&out->real, &raw, sizeof out->real);
    }
    return true;
}

/* Read a length of this many bytes, and then as many bytes as the length says. */
static bool take_sized(annal_slice *rest, size_t bytes, enum unpacked_kind kind,
                       struct msgpack_value *out)
{
    uint64_t length;
    return take_number(rest, bytes, &length) && take_bytes(rest, length, kind, out);
}

static bool take_ext(annal_slice *rest, uint64_t length, struct msgpack_value *out)
{
    uint64_t type;
    if (!take_number(rest, 1, &type))
        return false;
    out->ext_type = (int8_t)(uint8_t)type;
    return take_bytes(rest, length, UNPACKED_EXT, out);
}

static bool take_sized_ext(annal_slice *rest, size_t bytes, struct msgpack_value *out)
{
    uint64_t length;
    return take_number(rest, bytes, &length) && take_ext(rest, length, out);
}

static bool take_count(annal_slice *rest, size_t bytes, enum unpacked_kind kind,
                       struct msgpack_value *out)
{
    uint64_t count;
    out->kind = kind;
    if (!take_number(rest, bytes, &count))
        return false;
    out->count = (uint32_t)count;
    return true;
}

/* Read a value whose first byte contains a small number, a count or a length. */
static bool take_short(annal_slice *rest, unsigned char head, struct msgpack_value *out)
{
    if (head >= 0xa0 && head <= 0xbf)
        return take_bytes(rest, head & 31, UNPACKED_STR, out);
    if (head < 0x80) {
        out->kind = UNPACKED_UINT;
        out->uint = head;
    } else if (head >= 0xe0) {
        out->kind = UNPACKED_INT;
        out->sint = (int8_t)head;
    } else {
        out->kind = head < 0x90 ? UNPACKED_MAP : UNPACKED_ARRAY;
        out->count = head & 15;
    }
    return true;
}

bool annal__msgpack_next(annal_slice *rest, struct msgpack_value *out)
{
    uint64_t first;
    *out = (struct msgpack_value){0};
    if (!take_number(rest, 1, &first))
        return false;
    unsigned char head = (unsigned char)first;
    if (head < 0xc0 || head >= 0xe0)
        return take_short(rest, head, out);
    switch (head) {
    case 0xc0: /* nil */
        return true;
    case 0xc1: /* 0xc1 is unused in msgpack */
        return false;
    case 0xc2:
    case 0xc3:
        out->kind = UNPACKED_BOOL;
        out->boolean = head == 0xc3;
        return true;
    case 0xc4:
    case 0xc5:
    case 0xc6:
        return take_sized(rest, (size_t)1 << (head - 0xc4), UNPACKED_BIN, out);
    case 0xc7:
    case 0xc8:
    case 0xc9:
        return take_sized_ext(rest, (size_t)1 << (head - 0xc7), out);
    case 0xca:
    case 0xcb:
        return take_real(rest, head == 0xca ? 4 : 8, out);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        return take_uint(rest, (size_t)1 << (head - 0xcc), out);
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        return take_int(rest, (size_t)1 << (head - 0xd0), out);
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
        return take_ext(rest, (uint64_t)1 << (head - 0xd4), out);
    case 0xd9:
    case 0xda:
    case 0xdb:
        return take_sized(rest, (size_t)1 << (head - 0xd9), UNPACKED_STR, out);
    case 0xdc:
    case 0xdd:
        return take_count(rest, head == 0xdc ? 2 : 4, UNPACKED_ARRAY, out);
    default: /* 0xde, 0xdf */
        return take_count(rest, head == 0xde ? 2 : 4, UNPACKED_MAP, out);
    }
}
