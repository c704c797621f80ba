/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While the tables of a pack are filled, guards refuse and report the progress, queries of core
 * tables do not wait, queries of the pack return all rows or none, and other processes take the
 * lock between slices.
 */
#include "tests/packs/fixture.h"
#include "tests/support/runner.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char tasks[] = "-- pack tasks   version 1   database tasks.db\n"
                            "CREATE TABLE tasks (id TEXT PRIMARY KEY, state TEXT);\n"
                            "CREATE TABLE notes (session_id TEXT, seq INTEGER, text TEXT);\n"
                            "-- on task.added   guarded \"it is there already\"\n"
                            "INSERT INTO tasks VALUES ($id, 'open');\n"
                            "-- on note.added\n"
                            "INSERT INTO notes VALUES (:session, :seq, $text);\n";

enum { NOTES = 2000, NOTE_BYTES = 1000 };

/* A journal of two megabytes, whose last event decides a guard; and a short time limit. */
static void init(uint32_t wait_ms)
{
    static char data[NOTE_BYTES + 40];
    annal_writer *writer = NULL;
    uint64_t seq;
    ck_ok(annal_writer_open(p.store, ANNAL_SLICE("sess_0"),
                            &(annal_writer_options){.level = ANNAL_LEVEL_OS}, &writer, err));
    snprintf(data, sizeof data, "{\"text\":\"%0*d\"}", NOTE_BYTES, 1);
    for (unsigned i = 0; i < NOTES; i++) {
        const annal_draft draft = {.type = ANNAL_SLICE("note.added"), .data = annal_slice_of(data)};
        ck_ok(annal_writer_append(writer, &draft, 1, NULL, &seq, err));
    }
    annal_writer_close(writer);
    packs_append_past(&p, "sess_0", "task.added", "{\"id\":\"a\"}");
    ck_packs(&p, "SELECT count(*) FROM event_index", "2001\n");
    packs_add(&p, "tasks", tasks);
    annal_index_close(p.index);
    ck_ok(annal_index_open(p.store, &(annal_index_options){.wait_ms = wait_ms}, &p.index, err));
}

START_TEST(a_guarded_append_is_refused_with_the_progress_of_filling_and_later_succeeds)
{
    unsigned refused = 0;
    annal_status status = ANNAL_ERR_BUSY;
    annal_error error = {0};
    double before = -1;
    init(20); /* a guard may use two milliseconds of it */
    for (; status == ANNAL_ERR_BUSY && refused < NOTES; refused++) {
        double done = 0, all = 0;
        error = (annal_error){0};
        status = packs_append(&p, "sess_1", "task.added", "{\"id\":\"a\"}", &error);
        if (status != ANNAL_ERR_BUSY)
            break;
        const char *hold = strstr(error.message, "the tables of pack 'tasks' hold ");
        ck_assert_msg(hold != NULL, "%s", error.message);
        ck_assert_int_eq(
            sscanf(strstr(hold, "hold "), "hold %lf of %lf MB of the journals so far", &done, &all),
            2);
        ck_assert(done >= before && done < all && all > 2);
        before = done;
    }
    ck_assert_uint_ge(refused, 1);
    ck_assert_int_eq(status, ANNAL_ERR_REFUSED); /* half-filled tables would have permitted it */
    ck_assert_ptr_eq(strstr(error.message, "it is there already"), error.message);
    ck_append(&p, "sess_1", "task.added", "{\"id\":\"b\"}");
}
END_TEST

/* Another connection holds the lock, like a process that fills the tables. */
START_TEST(a_query_of_core_tables_does_not_wait_for_the_tables_of_a_pack)
{
    sqlite3 *other = NULL;
    annal_error error = {0};
    init(60000);
    ck_packs(&p, "SELECT count(*) FROM notes", "2000\n");
    packs_append_past(&p, "sess_0", "note.added", "{\"text\":\"x\"}");
    ck_assert_int_eq(sqlite3_open(tmpdir_path(&p.dir, "store/tasks.db"), &other), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    /* A query that waits would exceed the time limit of the test. */
    ck_packs(&p, "SELECT count(*) FROM event_index", "2002\n");
    ck_packs(&p, "SELECT count(*) FROM sessions", "1\n");
    struct text text = {0};
    text_add(&text, "", 0);
    ck_assert_int_eq(annal_index_sql(p.index, ANNAL_SLICE("SELECT count(*) FROM notes"),
                                     &(annal_sql_options){.timeout_ms = 100}, text_row, &text,
                                     &error),
                     ANNAL_ERR_BUSY);
    ck_assert_str_eq(text.ptr, "");
    ck_assert_msg(strstr(error.message, "the tables of pack 'tasks' hold ") != NULL, "%s",
                  error.message);
    annal_lag lag = {0}; /* a caller that accepts a lag gets the existing rows */
    ck_ok(annal_index_sql(p.index, ANNAL_SLICE("SELECT count(*) FROM notes"),
                          &(annal_sql_options){.timeout_ms = 100, .out_lag = &lag}, text_row, &text,
                          err));
    ck_assert_str_eq(text.ptr, "2000\n");
    ck_assert_uint_gt(lag.bytes, 0);
    free(text.ptr);
    sqlite3_close(other);
    ck_packs(&p, "SELECT count(*) FROM notes", "2001\n");
}
END_TEST

Suite *suite_filling(void)
{
    Suite *suite = suite_create("filling");
    TCase *tcase = suite_case(suite, "filling", packs_setup, packs_teardown);
    tcase_add_test(tcase,
                   a_guarded_append_is_refused_with_the_progress_of_filling_and_later_succeeds);
    tcase_add_test(tcase, a_query_of_core_tables_does_not_wait_for_the_tables_of_a_pack);
    return suite;
}
