#include "snapshot/container.h"
#include "tests/support/damage.h"
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

/* Text that compresses as a state does: words that come again, and numbers that do not. */
static annal_slice rows_of_a_state(struct buf *out, uint64_t seed, unsigned rows)
{
    struct random random = random_init(seed);
    for (unsigned i = 0; i < rows; i++)
        ck_assert_int_eq(annal__buf_printf(out, "turn %u of session s, tokens %llu;", i,
                                           (unsigned long long)random_below(&random, 1000)),
                         ANNAL_OK);
    return annal__buf_slice(out);
}

static bool is_same_header(const struct snapshot_header *a, const struct snapshot_header *b)
{
    char left[SNAPSHOT_HEADER_BYTES], right[SNAPSHOT_HEADER_BYTES];
    annal__snapshot_header_write(a, left);
    annal__snapshot_header_write(b, right);
    return memcmp(left, right, sizeof left) == 0;
}

/* _i 0: stored whole, 1: against a base. The frame alone is what a file of a large one holds. */
START_TEST(a_row_damaged_anywhere_gives_its_state_or_none)
{
    struct snapshot_header header = example(), found;
    struct buf rows = {0}, base_rows = {0}, row = {0}, frame = {0}, out = {0};
    struct damage damage;
    size_t harmless = 0;
    annal_slice raw = rows_of_a_state(&rows, 7, 300);
    annal_slice base = _i == 0 ? (annal_slice){0} : rows_of_a_state(&base_rows, 8, 280);
    ck_assert_int_eq(annal__snapshot_pack(&header, raw, base, &frame, NULL), 0);
    ck_assert_int_eq(annal__buf_append_zeros(&row, SNAPSHOT_HEADER_BYTES), 0);
    annal__snapshot_header_write(&header, row.ptr);
    ck_assert_int_eq(annal__buf_append_slice(&row, annal__buf_slice(&frame)), 0);

    damage_init(&damage, row.ptr, row.len);
    while (damage_next(&damage)) {
        annal_slice damaged = {damage.bytes, damage.len};
        annal_slice rest = {damage.bytes + SNAPSHOT_HEADER_BYTES, 0};
        if (annal__snapshot_header_read(damaged, &found) != NULL)
            continue;
        ck_assert_msg(is_same_header(&header, &found), "%s: another header", damage.what);
        rest.len = damaged.len - SNAPSHOT_HEADER_BYTES;
        annal__buf_clear(&out);
        annal_status status = annal__snapshot_unpack(&found, rest, base, &out, NULL);
        ck_assert_msg(status == ANNAL_OK || status == ANNAL_ERR_CORRUPT, "%s", damage.what);
        ck_assert_msg(status != ANNAL_OK ||
                          (out.len == raw.len && memcmp(out.ptr, raw.ptr, raw.len) == 0),
                      "%s: another state", damage.what);
        harmless += status == ANNAL_OK;
    }
    ck_assert_uint_lt(harmless, 64); /* bits of the frame that nothing depends on */
    damage_done(&damage, _i == 0 ? "snapshot" : "snapshot against a base");
    annal__buf_done(&rows);
    annal__buf_done(&base_rows);
    annal__buf_done(&row);
    annal__buf_done(&frame);
    annal__buf_done(&out);
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
    tcase_add_loop_test(tc, a_row_damaged_anywhere_gives_its_state_or_none, 0, 2);
    tcase_add_test(tc, against_a_base_a_state_costs_about_what_changed);
    tcase_add_test(tc, the_base_of_a_number_is_it_without_its_lowest_bit);
    suite_add_tcase(suite, tc);
    return suite;
}
