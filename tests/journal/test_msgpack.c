/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/msgpack.h"

#include "tests/support/runner.h"

#include <annal/event.h>
#include <string.h>

#define BYTES(text)                                                                                \
    {                                                                                              \
        text, sizeof text - 1                                                                      \
    }

/* One of each head that the format has; numbers in every width. */
static const struct {
    annal_slice bytes;
    enum unpacked_kind kind;
    int64_t number; /* of a number: itself; else the length or count */
} values[] = {
    {BYTES("\xc0"), UNPACKED_NIL, 0},
    {BYTES("\xc2"), UNPACKED_BOOL, 0},
    {BYTES("\xc3"), UNPACKED_BOOL, 1},
    {BYTES("\x7f"), UNPACKED_UINT, 127},
    {BYTES("\xe0"), UNPACKED_INT, -32},
    {BYTES("\xcc\xff"), UNPACKED_UINT, 255},
    {BYTES("\xcd\x01\x00"), UNPACKED_UINT, 256},
    {BYTES("\xce\x00\x01\x00\x00"), UNPACKED_UINT, 65536},
    {BYTES("\xcf\x00\x00\x00\x01\x00\x00\x00\x00"), UNPACKED_UINT, INT64_C(1) << 32},
    {BYTES("\xd0\x05"), UNPACKED_UINT, 5},
    {BYTES("\xd0\x80"), UNPACKED_INT, -128},
    {BYTES("\xd1\xff\xfe"), UNPACKED_INT, -2},
    {BYTES("\xd2\xff\xff\xff\xfd"), UNPACKED_INT, -3},
    {BYTES("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"), UNPACKED_INT, INT64_MIN},
    {BYTES("\xca\x40\x00\x00\x00"), UNPACKED_DOUBLE, 2},
    {BYTES("\xcb\xc0\x08\x00\x00\x00\x00\x00\x00"), UNPACKED_DOUBLE, -3},
    {BYTES("\xa3"
           "abc"),
     UNPACKED_STR, 3},
    {BYTES("\xd9\x01"
           "a"),
     UNPACKED_STR, 1},
    {BYTES("\xda\x00\x01"
           "a"),
     UNPACKED_STR, 1},
    {BYTES("\xdb\x00\x00\x00\x01"
           "a"),
     UNPACKED_STR, 1},
    {BYTES("\xc4\x01\x00"), UNPACKED_BIN, 1},
    {BYTES("\xc5\x00\x01\x00"), UNPACKED_BIN, 1},
    {BYTES("\xc6\x00\x00\x00\x01\x00"), UNPACKED_BIN, 1},
    {BYTES("\xd4\x07\x00"), UNPACKED_EXT, 1},
    {BYTES("\xd5\x07\x00\x00"), UNPACKED_EXT, 2},
    {BYTES("\xd6\x07\x00\x00\x00\x00"), UNPACKED_EXT, 4},
    {BYTES("\xc7\x01\x07\x00"), UNPACKED_EXT, 1},
    {BYTES("\xc8\x00\x01\x07\x00"), UNPACKED_EXT, 1},
    {BYTES("\xc9\x00\x00\x00\x01\x07\x00"), UNPACKED_EXT, 1},
    {BYTES("\x92"), UNPACKED_ARRAY, 2},
    {BYTES("\xdc\x00\x02"), UNPACKED_ARRAY, 2},
    {BYTES("\xdd\x00\x00\x00\x02"), UNPACKED_ARRAY, 2},
    {BYTES("\x82"), UNPACKED_MAP, 2},
    {BYTES("\xde\x00\x02"), UNPACKED_MAP, 2},
    {BYTES("\xdf\x00\x00\x00\x02"), UNPACKED_MAP, 2},
};

#define VALUES (sizeof values / sizeof *values)

static int64_t number_of(const struct msgpack_value *value)
{
    switch (value->kind) {
    case UNPACKED_NIL:
        return 0;
    case UNPACKED_BOOL:
        return value->boolean;
    case UNPACKED_UINT:
        return (int64_t)value->uint;
    case UNPACKED_INT:
        return value->sint;
    case UNPACKED_DOUBLE:
        return (int64_t)value->real;
    case UNPACKED_STR:
    case UNPACKED_BIN:
    case UNPACKED_EXT:
        return (int64_t)value->bytes.len;
    case UNPACKED_ARRAY:
    case UNPACKED_MAP:
        break;
    }
    return value->count;
}

START_TEST(every_kind_of_value_is_read)
{
    for (size_t i = 0; i < VALUES; i++) {
        struct msgpack_value value;
        annal_slice rest = values[i].bytes;
        ck_assert_msg(annal__msgpack_next(&rest, &value), "value %zu", i);
        ck_assert_msg(value.kind == values[i].kind, "value %zu", i);
        ck_assert_int_eq(number_of(&value), values[i].number);
        ck_assert_msg(rest.len == 0, "value %zu", i);
        ck_assert(value.kind != UNPACKED_EXT || value.ext_type == 7);
    }
}
END_TEST

START_TEST(a_truncated_value_is_refused)
{
    for (size_t i = 0; i < VALUES; i++) {
        for (size_t len = 0; len < values[i].bytes.len; len++) {
            struct msgpack_value value;
            annal_slice rest = {values[i].bytes.ptr, len};
            ck_assert_msg(!annal__msgpack_next(&rest, &value), "value %zu at byte %zu", i, len);
        }
    }
}
END_TEST

Suite *suite_msgpack(void)
{
    Suite *suite = suite_create("msgpack");
    TCase *tests = suite_case(suite, "msgpack", NULL, NULL);
    tcase_add_test(tests, every_kind_of_value_is_read);
    tcase_add_test(tests, a_truncated_value_is_refused);
    return suite;
}
