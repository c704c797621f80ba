/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/alloc.h"

#include "tests/support/runner.h"

#include <stdint.h>
#include <string.h>

START_TEST(a_new_block_is_zero)
{
    unsigned char *block = annal__zalloc(1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(block[i], 0);
    annal__free(block);
}
END_TEST

START_TEST(an_array_grows_by_items_of_zeros)
{
    uint64_t *items = NULL;
    size_t count = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t *item = annal__array_add(&items, &count, sizeof *item);
        ck_assert_ptr_eq(item, &items[i]);
        ck_assert_uint_eq(*item, 0);
        *item = i;
    }
    ck_assert_uint_eq(count, 1000);
    for (uint64_t i = 0; i < count; i++)
        ck_assert_uint_eq(items[i], i);
    annal__free(items);
}
END_TEST

START_TEST(no_bytes_at_all_are_still_a_block)
{
    void *zeroed = annal__zalloc(0);
    void *array = annal__realloc_array(NULL, 0, 8);
    void *of_nothing = annal__realloc_array(NULL, 8, 0);
    void *aligned = annal__alloc_aligned(4096, 0);
    ck_assert(zeroed != NULL && array != NULL && of_nothing != NULL && aligned != NULL);
    annal__free(zeroed);
    annal__free(array);
    annal__free(of_nothing);
    annal__free(aligned);
    annal__free(NULL);
}
END_TEST

START_TEST(an_array_keeps_its_contents_when_it_grows)
{
    int *array = annal__realloc_array(NULL, 2, sizeof *array);
    array[0] = 1, array[1] = 2;
    array = annal__realloc_array(array, 2000, sizeof *array);
    ck_assert(array[0] == 1 && array[1] == 2);
    annal__free(array);
}
END_TEST

START_TEST(an_array_whose_size_overflows_is_refused_and_the_old_one_stays)
{
    char *array = annal__realloc_array(NULL, 4, 1);
    strcpy(array, "abc");
    ck_assert_ptr_null(annal__realloc_array(array, SIZE_MAX / 2, 3));
    ck_assert_str_eq(array, "abc");
    annal__free(array);
}
END_TEST

START_TEST(an_aligned_block_is_aligned)
{
    void *block = annal__alloc_aligned(4096, 100);
    ck_assert_uint_eq((uintptr_t)block % 4096, 0);
    annal__free(block);
}
END_TEST

START_TEST(a_copied_string_ends_with_a_nul_after_its_length)
{
    char *copy = annal__strndup("abcdef", 3);
    ck_assert_str_eq(copy, "abc");
    annal__free(copy);
    copy = annal__strndup(NULL, 0);
    ck_assert_str_eq(copy, "");
    annal__free(copy);
}
END_TEST

Suite *suite_alloc(void)
{
    Suite *suite = suite_create("alloc");
    TCase *tests = suite_case(suite, "alloc", NULL, NULL);
    tcase_add_test(tests, a_new_block_is_zero);
    tcase_add_test(tests, an_array_grows_by_items_of_zeros);
    tcase_add_test(tests, no_bytes_at_all_are_still_a_block);
    tcase_add_test(tests, an_array_keeps_its_contents_when_it_grows);
    tcase_add_test(tests, an_array_whose_size_overflows_is_refused_and_the_old_one_stays);
    tcase_add_test(tests, an_aligned_block_is_aligned);
    tcase_add_test(tests, a_copied_string_ends_with_a_nul_after_its_length);
    return suite;
}
