/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/hash.h"

#include "tests/support/random.h"
#include "tests/support/runner.h"

/* The empty input's value is from the xxHash specification; the rest pins our files. */
START_TEST(the_hash_matches_the_documented_values)
{
    ck_assert_uint_eq(annal__hash("", 0, 0), UINT64_C(0x2D06800538D394C2));
    ck_assert_uint_eq(annal__hash("annal", 5, 0), UINT64_C(0xABA0117551615488));
    ck_assert_uint_eq(annal__hash("annal", 5, 1), UINT64_C(0x488A3C740EC49814));
}
END_TEST

START_TEST(a_hash_over_pieces_is_the_hash_over_the_whole)
{
    struct random random = random_init(3);
    unsigned char bytes[3000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)random_next(&random);
    for (int i = 0; i < 200; i++) {
        size_t len = (size_t)random_below(&random, sizeof bytes);
        uint64_t seed = random_next(&random);
        struct hash_stream *stream = annal__hash_begin(seed);
        ck_assert_ptr_nonnull(stream);
        for (size_t at = 0; at < len;) {
            size_t piece = (size_t)random_below(&random, len - at) + 1;
            annal__hash_add(stream, bytes + at, piece);
            at += piece;
        }
        ck_assert_uint_eq(annal__hash_end(stream), annal__hash(bytes, len, seed));
    }
}
END_TEST

START_TEST(every_single_flipped_bit_changes_the_hash)
{
    unsigned char bytes[300] = {0};
    uint64_t before = annal__hash(bytes, sizeof bytes, 5);
    for (size_t bit = 0; bit < sizeof bytes * 8; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
        if (annal__hash(bytes, sizeof bytes, 5) == before)
            ck_abort_msg("bit %zu", bit);
        bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
}
END_TEST

Suite *suite_hash(void)
{
    Suite *suite = suite_create("hash");
    TCase *tests = suite_case(suite, "hash", NULL, NULL);
    tcase_add_test(tests, the_hash_matches_the_documented_values);
    tcase_add_test(tests, a_hash_over_pieces_is_the_hash_over_the_whole);
    tcase_add_test(tests, every_single_flipped_bit_changes_the_hash);
    return suite;
}
