/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of records: which session owns a record, in a run with more records than are kept. */
#include "journal/base/slice.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/import/owners.h"

#include <stdio.h>

START_TEST(records_beyond_what_is_kept_in_memory_are_found_by_the_index)
{
    enum { RECORDS = 1 << 18 };
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_writer *writer = NULL;
    annal_slice a = ANNAL_SLICE("a"), b = ANNAL_SLICE("b"), late = ANNAL_SLICE("late");
    const annal_draft draft = {.type = ANNAL_SLICE("message.added"),
                               .data =
                                   ANNAL_SLICE("{\"id\":\"m\",\"source\":{\"origin\":\"late\"}}")};
    uint64_t seq = 0;
    char origin[20];
    ck_assert_int_eq(
        annal_store_open(cli.store, &(annal_store_options){.create = true}, &store, NULL),
        ANNAL_OK);
    ck_assert_int_eq(annal_index_open(store, NULL, &index, NULL), ANNAL_OK);
    struct owners *owners = owners_new(NULL, index);
    ck_assert_ptr_nonnull(owners);
    ck_assert(annal__slice_is(owners_find(owners, late, a), "a"));
    for (int i = 0; i < RECORDS; i++) {
        int len = snprintf(origin, sizeof origin, "r%d", i);
        (void)owners_find(owners, (annal_slice){origin, (size_t)len}, a);
    }
    ck_assert(annal__slice_is(owners_find(owners, ANNAL_SLICE("r1"), b), "a"));
    ck_assert_int_eq(annal_writer_open(store, a, NULL, &writer, NULL), ANNAL_OK);
    ck_assert_int_eq(annal_writer_append(writer, &draft, 1, NULL, &seq, NULL), ANNAL_OK);
    owners_pause(owners);
    ck_assert(annal__slice_is(owners_find(owners, late, b), "a")); /* from the journal of a */
    ck_assert(annal__slice_is(owners_find(owners, ANNAL_SLICE("r1"), b), "b")); /* forgotten */
    ck_assert_ptr_null(owners_failure(owners));
    annal_writer_close(writer);
    owners_free(owners);
    annal_index_close(index);
    annal_store_close(store, NULL);
}
END_TEST

Suite *suite_owners(void)
{
    Suite *suite = suite_create("owners");
    TCase *tcase = suite_case(suite, "owners", cli_setup, cli_teardown);
    tcase_add_test(tcase, records_beyond_what_is_kept_in_memory_are_found_by_the_index);
    return suite;
}
