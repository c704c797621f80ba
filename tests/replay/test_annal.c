/* SPDX-License-Identifier: Apache-2.0 */
#include <annal/annal.h>

#include "tests/index/fixture.h"
#include "tests/support/runner.h"

/* The program in annal/annal.h, with its main() as a function. */
START_TEST(the_example_of_the_umbrella_header_works)
{
    annal_store *store = NULL;
    annal_writer *writer = NULL;
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_error err = {0};
    uint64_t seq, events = 0;
    const annal_slice session = ANNAL_SLICE("run-1");
    const annal_draft draft = {.type = ANNAL_SLICE("message.added"),
                               .data = ANNAL_SLICE("{\"role\":\"user\"}")};

    if (annal_store_open(tmpdir_path(&dir, "store"), &(annal_store_options){.create = true}, &store,
                         &err) == 0 &&
        annal_writer_open(store, session, NULL, &writer, &err) == 0 &&
        annal_writer_append(writer, &draft, 1, NULL, &seq, &err) == 0 &&
        annal_cursor_open(store, session, 1, &cursor, &err) == 0)
        while (annal_cursor_next(cursor, &event, &err) == ANNAL_OK)
            events++;

    annal_cursor_close(cursor);
    annal_writer_close(writer);
    ck_assert_int_eq(annal_store_close(store, &err), ANNAL_OK);
    ck_assert_int_eq(err.status, ANNAL_OK);
    ck_assert_uint_eq(events, 1);
}
END_TEST

Suite *suite_annal(void)
{
    Suite *suite = suite_create("annal");
    TCase *tc = suite_case(suite, "annal", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(tc, the_example_of_the_umbrella_header_works);
    return suite;
}
