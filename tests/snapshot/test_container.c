#include "snapshot/container.h"
#include "tests/support/random.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct snapshot_header example(void)
{
    struct snapshot_header header = {.seq = 1000,
                                     .offset = 0x123456789a,
                                     .h = 0xfedcba9876543210,
                                     .pack_version = 42,
                                     .number = 3,
                                     .base_seq = 900,
                                     .base_hash = 77,
                                     .created_us = -5};
    memcpy(header.file, "00112233445566778899aabbccddeeff", sizeof header.file);
    return header;
}

/* Bytes that do not compress. */
static char *noise(size_t len, uint64_t seed)
{
    struct random random = random_init(seed);
    char *bytes = malloc(len);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)random_next(&random);
    return bytes;
}

START_TEST(a_header_reads_back_as_it_was_written)
{
    struct snapshot_header header = example(), read;
    char row[SNAPSHOT_HEADER_BYTES + 10] = "";
    header.raw_bytes = 5000;
    header.frame_bytes = 10;
    header.raw_hash = 99;
    annal__snapshot_header_write(&header, row);
    ck_assert_ptr_null(annal__snapshot_header_read((annal_slice){row, sizeof row}, &read));
    char again[SNAPSHOT_HEADER_BYTES];
    annal__snapshot_header_write(&read, again);
    ck_assert_mem_eq(row, again, sizeof again);
    ck_assert_str_eq(read.file, header.file);
    ck_assert_int_eq(read.created_us, -5);
    ck_assert_uint_eq(read.h, header.h);
}
END_TEST

START_TEST(a_header_with_any_flipped_bit_is_none)
{
    struct snapshot_header header = example(), read;
    char row[SNAPSHOT_HEADER_BYTES];
    annal__snapshot_header_write(&header, row);
    ck_assert_ptr_null(annal__snapshot_header_read((annal_slice){row, sizeof row}, &read));
    for (size_t bit = 0; bit < 8 * sizeof row; bit++) {
        row[bit / 8] ^= (char)(1 << bit % 8);
        ck_assert_ptr_nonnull(annal__snapshot_header_read((annal_slice){row, sizeof row}, &read));
        row[bit / 8] ^= (char)(1 << bit % 8);
    }
}
END_TEST

START_TEST(a_row_of_another_length_is_no_snapshot)
{
    struct snapshot_header header = example(), read;
    char row[SNAPSHOT_HEADER_BYTES + 2] = "";
    header.frame_bytes = 1;
    annal__snapshot_header_write(&header, row);
    for (size_t len = 0; len <= sizeof row; len++)
        ck_assert_int_eq(annal__snapshot_header_read((annal_slice){row, len}, &read) == NULL,
                         len == SNAPSHOT_HEADER_BYTES + 1);
}
END_TEST

START_TEST(a_state_unpacks_to_the_same_bytes)
{
    struct snapshot_header header = example();
    size_t len = (size_t)_i * 100003;
    char *raw = noise(len, 1);
    struct buf frame = {0}, out = {0};
    ck_assert_int_eq(
        annal__snapshot_pack(&header, (annal_slice){raw, len}, (annal_slice){0}, &frame, NULL), 0);
    ck_assert_int_eq(header.in_file, len > SNAPSHOT_ROW_BYTES_MAX);
    ck_assert_int_eq(
        annal__snapshot_unpack(&header, annal__buf_slice(&frame), (annal_slice){0}, &out, NULL), 0);
    ck_assert_uint_eq(out.len, len);
    if (len > 0)
        ck_assert_mem_eq(out.ptr, raw, len);
    annal__buf_done(&frame);
    annal__buf_done(&out);
    free(raw);
}
END_TEST

START_TEST(against_a_base_a_state_costs_about_what_changed)
{
    struct snapshot_header header = example();
    enum { LEN = 3 << 20 };
    char *base = noise(LEN, 1), *raw = noise(LEN, 1), *change = noise(4096, 2);
    memcpy(raw + LEN / 2, change, 4096);
    struct buf frame = {0}, out = {0};
    annal_slice base_slice = {base, LEN}, raw_slice = {raw, LEN};
    ck_assert_int_eq(annal__snapshot_pack(&header, raw_slice, base_slice, &frame, NULL), 0);
    ck_assert_uint_lt(frame.len, 3 * 4096);
    ck_assert_int_eq(
        annal__snapshot_unpack(&header, annal__buf_slice(&frame), base_slice, &out, NULL), 0);
    ck_assert_mem_eq(out.ptr, raw, LEN);

    out.len = 0; /* the wrong base, and none */
    base[LEN / 3] ^= 1;
    ck_assert_int_eq(
        annal__snapshot_unpack(&header, annal__buf_slice(&frame), base_slice, &out, NULL),
        ANNAL_ERR_CORRUPT);
    ck_assert_int_eq(
        annal__snapshot_unpack(&header, annal__buf_slice(&frame), (annal_slice){0}, &out, NULL),
        ANNAL_ERR_CORRUPT);
    annal__buf_done(&frame);
    annal__buf_done(&out);
    free(base);
    free(raw);
    free(change);
}
END_TEST

START_TEST(the_base_of_a_number_is_it_without_its_lowest_bit)
{
    static const uint64_t bases[] = {0, 0, 0, 2, 0, 4, 4, 6, 0, 8, 8, 10, 8};
    for (uint64_t number = 0; number < sizeof bases / sizeof *bases; number++)
        ck_assert_uint_eq(annal__snapshot_base_number(number), bases[number]);
}
END_TEST

Suite *suite_container(void)
{
    Suite *suite = suite_create("container");
    TCase *tc = tcase_create("container");
    tcase_add_test(tc, a_header_reads_back_as_it_was_written);
    tcase_add_test(tc, a_header_with_any_flipped_bit_is_none);
    tcase_add_test(tc, a_row_of_another_length_is_no_snapshot);
    tcase_add_loop_test(tc, a_state_unpacks_to_the_same_bytes, 0, 13);
    tcase_add_test(tc, against_a_base_a_state_costs_about_what_changed);
    tcase_add_test(tc, the_base_of_a_number_is_it_without_its_lowest_bit);
    suite_add_tcase(suite, tc);
    return suite;
}
