/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include "tests/support/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Path of the shared object of sqlite-vec, for comparison. */
#define VEC_ENV "ANNAL_TEST_VEC"

static void ck_error(const char *sql, const char *message)
{
    struct text text = {0};
    annal_error err = {0};
    annal_status status =
        annal_index_sql(f.index, annal_slice_of(sql), NULL, text_row, &text, &err);
    free(text.ptr);
    ck_assert_msg(status == ANNAL_ERR_SQL && strstr(err.message, message) != NULL, "%s: %s", sql,
                  err.message);
}

START_TEST(distances_between_vectors_are_correct)
{
    ck_sql(&f, "SELECT vec_distance_l2('[1, 2]', '[4,6]')", "5\n");
    ck_sql(&f, "SELECT vec_distance_l2(x'0000803f00000040', '[1,2]')", "0\n");
    ck_sql(&f, "SELECT vec_distance_cosine('[1,0]', '[0,1]')", "1\n");
    ck_sql(&f, "SELECT vec_distance_cosine('[1,2]', '[2,4]') < 1e-7", "1\n");
    ck_sql(&f, "SELECT vec_distance_cosine('[1,2]', '[-1,-2]') > 1.9999999", "1\n");
    ck_sql(&f, "SELECT vec_distance_cosine('[0,0]', '[1,1]') IS NULL", "1\n");
    ck_sql(&f, "SELECT vec_distance_l2('[1e2, -2.5E-1]', '[100,-0.25]')", "0\n");
}
END_TEST

START_TEST(an_invalid_vector_and_different_dimensions_are_errors)
{
    static const char *const wrong[] = {"'[1,a]'", "'[1,,2]'", "'[1,2'",  "'1,2'",    "'[1,2]x'",
                                        "'[01]'",  "'[1.]'",   "'[.5]'",  "'[1e99]'", "'[null]'",
                                        "'[+1]'",  "'[0x1]'",  "'[inf]'", "'[\"1\"]'"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char sql[100];
        snprintf(sql, sizeof sql, "SELECT vec_distance_l2('[1]', %s)", wrong[i]);
        ck_error(sql, "Error reading 2nd vector: JSON parsing error");
    }
    ck_error("SELECT vec_distance_l2('[1,2]', '[1,2,3]')",
             "First vector has 2 dimensions, while the second has 3");
    ck_error("SELECT vec_distance_cosine('[1,2]', x'0000803f')", "2 dimensions");
    ck_error("SELECT vec_distance_l2('[]', '[1]')", "1st vector: zero-length");
    ck_error("SELECT vec_distance_l2('[1]', '')", "2nd vector: zero-length");
    ck_error("SELECT vec_distance_l2(x'', '[1]')", "zero-length");
    ck_error("SELECT vec_distance_l2(x'000000', '[1]')", "Must be divisible by 4");
    ck_error("SELECT vec_distance_l2(NULL, '[1]')", "Input must have type BLOB");
    ck_error("SELECT vec_distance_l2(1, '[1]')", "Input must have type BLOB");
}
END_TEST

START_TEST(an_array_of_numbers_becomes_float32_and_such_bytes_stay)
{
    ck_sql(&f, "SELECT hex(annal_f32('[1, -2.5]'))", "0000803F000020C0\n");
    ck_sql(&f, "SELECT hex(annal_f32(x'0000c07f01000000'))", "0000C07F01000000\n");
    ck_sql(&f, "SELECT annal_f32(x'00') IS NULL, annal_f32(NULL) IS NULL, annal_f32('x') IS NULL",
           "1|1|1\n");
}
END_TEST

static int keep_real(void *arg, const annal_row *row)
{
    double *out = arg;
    for (size_t i = 0; i < row->count; i++)
        out[i] = row->values[i].real;
    return 0;
}

START_TEST(distances_equal_those_that_sqlite_vec_computes)
{
    const char *path = getenv(VEC_ENV);
    struct random random = random_init(7);
    if (path == NULL) {
        fprintf(stderr, "skipped: " VEC_ENV " does not name a sqlite-vec\n");
        return;
    }
    for (int i = 0; i < 200; i++) {
        char hex[2][64 * 8 + 1], sql[1400];
        double ours[2], theirs[2];
        size_t count = 1 + (size_t)random_below(&random, 64);
        for (size_t v = 0; v < 2 * count; v++) {
            float value = (float)((double)random_below(&random, 2000001) / 1e6 - 1);
            unsigned char bytes[4];
            memcpy(bytes, &value, 4);
            snprintf(&hex[v % 2][v / 2 * 8], 9, "%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2],
                     bytes[3]);
        }
        snprintf(sql, sizeof sql,
                 "SELECT vec_distance_l2(a, b), vec_distance_cosine(a, b) FROM (SELECT x'%s' AS a, "
                 "x'%s' AS b)",
                 hex[0], hex[1]);
        ck_ok(annal_index_sql(f.index, annal_slice_of(sql), NULL, keep_real, ours, err));
        ck_ok(annal_index_sql(f.index, annal_slice_of(sql), &(annal_sql_options){.extension = path},
                              keep_real, theirs, err));
        ck_assert_double_le(fabs(ours[0] - theirs[0]), 1e-5 * (1 + ours[0]));
        ck_assert_double_le(fabs(ours[1] - theirs[1]), 1e-5);
    }
}
END_TEST

START_TEST(a_failure_to_load_an_extension_is_reported)
{
    annal_error err = {0};
    ck_assert_int_eq(annal_index_sql(f.index, ANNAL_SLICE("SELECT 1"),
                                     &(annal_sql_options){.extension = "/nowhere/none.so"},
                                     text_row, NULL, &err),
                     ANNAL_ERR_SQL);
    ck_assert_ptr_nonnull(strstr(err.message, "extension '/nowhere/none.so'"));
}
END_TEST

Suite *suite_vectors(void)
{
    Suite *suite = suite_create("vectors");
    TCase *tcase = suite_case(suite, "vectors", fixture_setup, fixture_teardown);
    tcase_add_test(tcase, distances_between_vectors_are_correct);
    tcase_add_test(tcase, an_invalid_vector_and_different_dimensions_are_errors);
    tcase_add_test(tcase, an_array_of_numbers_becomes_float32_and_such_bytes_stay);
    tcase_add_test(tcase, distances_equal_those_that_sqlite_vec_computes);
    tcase_add_test(tcase, a_failure_to_load_an_extension_is_reported);
    return suite;
}
