/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/ids.h"

#include "tests/support/runner.h"

#include <stdio.h>

static annal_slice id_text(char out[24], unsigned number)
{
    int length = snprintf(out, 24, "id-%u", number);
    return (annal_slice){out, (size_t)length};
}

START_TEST(an_added_id_is_found_with_its_offset_and_another_id_is_not)
{
    struct ids ids = {0};
    char text[24];
    uint64_t offset = 0;
    ck_assert(!annal__ids_find(&ids, id_text(text, 1), &offset));
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_int_eq(annal__ids_add(&ids, id_text(text, i), 10 * i), ANNAL_OK);
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert(annal__ids_find(&ids, id_text(text, i), &offset));
        ck_assert_uint_eq(offset, 10 * i);
    }
    ck_assert(!annal__ids_find(&ids, id_text(text, 1000), &offset));
    annal__ids_done(&ids);
    ck_assert(!annal__ids_find(&ids, id_text(text, 1), &offset));
}
END_TEST

START_TEST(a_repeated_id_has_its_last_offset)
{
    struct ids ids = {0};
    char text[24];
    uint64_t offset = 0;
    ck_assert_int_eq(annal__ids_add(&ids, id_text(text, 1), 5), ANNAL_OK);
    ck_assert_int_eq(annal__ids_add(&ids, id_text(text, 1), 9), ANNAL_OK);
    ck_assert(annal__ids_find(&ids, id_text(text, 1), &offset));
    ck_assert_uint_eq(offset, 9);
    ck_assert_uint_eq(ids.young.used, 1);
    annal__ids_done(&ids);
}
END_TEST

START_TEST(the_last_ids_are_known_and_memory_stays_bounded)
{
    struct ids ids = {0};
    char text[24];
    uint64_t offset = 0;
    unsigned last = 2 * IDS_REMEMBERED + 17;
    for (unsigned i = 0; i <= last; i++)
        ck_assert_int_eq(annal__ids_add(&ids, id_text(text, i), i), ANNAL_OK);
    for (unsigned i = last - IDS_REMEMBERED + 1; i <= last; i++) {
        ck_assert(annal__ids_find(&ids, id_text(text, i), &offset));
        ck_assert_uint_eq(offset, i);
    }
    ck_assert(!annal__ids_find(&ids, id_text(text, 0), &offset));
    ck_assert_uint_le(ids.young.slots, 2 * IDS_REMEMBERED);
    ck_assert_uint_le(ids.old.slots, 2 * IDS_REMEMBERED);
    annal__ids_done(&ids);
}
END_TEST

Suite *suite_ids(void)
{
    Suite *suite = suite_create("ids");
    TCase *tests = suite_case(suite, "ids", NULL, NULL);
    tcase_add_test(tests, an_added_id_is_found_with_its_offset_and_another_id_is_not);
    tcase_add_test(tests, a_repeated_id_has_its_last_offset);
    tcase_add_test(tests, the_last_ids_are_known_and_memory_stays_bounded);
    return suite;
}
