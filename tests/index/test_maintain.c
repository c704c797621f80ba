/* SPDX-License-Identifier: Apache-2.0 */
#include "index/db/db.h"
#include "index/index.h"
#include "index/sys/databases.h"
#include "journal/sys/delete.h"
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct seen {
    unsigned count;
    annal_maintenance last;
    char name[40];
};

static int keep_last(void *arg, const annal_maintenance *what)
{
    struct seen *seen = arg;
    ck_assert(what->done);
    seen->count++;
    seen->last = *what;
    strncpy(seen->name, what->name, sizeof seen->name - 1);
    return 0;
}

static struct seen checkpoint(annal_wal_mode mode)
{
    struct seen seen = {0};
    ck_ok(annal_index_wal_checkpoint(f.index, mode, keep_last, &seen, err));
    return seen;
}

START_TEST(a_checkpoint_empties_the_wal_and_reports_a_blocking_reader)
{
    sqlite3 *reader = NULL;
    fixture_append_many(&f, "s1", 50, 1767684240000000);
    ck_sql(&f, "SELECT count(*) FROM event_index", "50\n");
    ck_assert_int_eq(sqlite3_open(tmpdir_path(&f.dir, "store/sessions.db"), &reader), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM event_index", NULL, NULL, NULL),
        SQLITE_OK);
    fixture_append_many(&f, "s1", 50, 1767684340000000);
    ck_sql(&f, "SELECT count(*) FROM event_index", "100\n");
    struct seen seen = checkpoint(ANNAL_WAL_TRUNCATE);
    ck_assert(seen.last.busy);
    ck_assert_int_gt(seen.last.log_pages, 0);
    sqlite3_close(reader);
    seen = checkpoint(ANNAL_WAL_PASSIVE);
    ck_assert(!seen.last.busy);
    ck_assert_int_eq(seen.last.checkpointed, seen.last.log_pages);
    seen = checkpoint(ANNAL_WAL_TRUNCATE);
    ck_assert(!seen.last.busy);
    ck_assert_int_eq(seen.last.log_pages, 0);
    ck_assert_str_eq(seen.name, "sessions.db");
    ck_sql(&f, "SELECT count(*) FROM event_index", "100\n");
}
END_TEST

START_TEST(maintenance_of_a_missing_database_does_not_create_it)
{
    fixture_append_many(&f, "s1", 5, 1767684240000000);
    ck_assert_uint_eq(checkpoint(ANNAL_WAL_TRUNCATE).count, 0);
    struct seen seen = {0};
    ck_ok(annal_index_vacuum(f.index, keep_last, &seen, err));
    ck_assert_uint_eq(seen.count, 0);
    ck_assert_int_ne(access(tmpdir_path(&f.dir, "store/sessions.db"), F_OK), 0);
    ck_assert_int_eq(annal_index_wal_checkpoint(f.index, (annal_wal_mode)9, keep_last, &seen, NULL),
                     ANNAL_ERR_INVALID);
}
END_TEST

/* 2: the data for undoing a statement stays in memory. */
static void ck_temp_store(void)
{
    int64_t where = 0;
    ck_assert_ptr_nonnull(f.index->derived.db);
    ck_ok(annal__db_integer(f.index->derived.db, "PRAGMA temp_store", &where, err));
    ck_assert_int_eq(where, 2);
}

START_TEST(vacuum_frees_the_space_of_deleted_rows)
{
    struct seen seen = {0};
    fixture_append_many(&f, "s1", 3000, 1767684240000000);
    fixture_append_many(&f, "s2", 3, 1767684240000000);
    ck_sql(&f, "SELECT count(*) FROM event_index", "3003\n");
    ck_temp_store();
    ck_ok(annal__replace_delete(f.store, ANNAL_SLICE("s1"), NULL, err));
    ck_sql(&f, "SELECT count(*) FROM event_index", "3\n");
    ck_ok(annal_index_vacuum(f.index, keep_last, &seen, err));
    ck_temp_store();
    ck_assert_uint_eq(seen.count, 1);
    ck_assert_uint_lt(seen.last.bytes_after * 2, seen.last.bytes_before);
    ck_sql(&f, "SELECT count(*) FROM event_index", "3\n");
    fixture_append_many(&f, "s2", 3, 1767684340000000);
    ck_sql(&f, "SELECT count(*) FROM event_index", "6\n");
}
END_TEST

static int stop(void *arg, const char *database, annal_slice name, uint64_t rows)
{
    (void)database;
    (void)name;
    (void)rows;
    ++*(int *)arg;
    return 7;
}

START_TEST(a_callback_can_stop_the_counting)
{
    int calls = 0;
    fixture_append_session(&f, "s1");
    ck_sql(&f, "SELECT count(*) FROM sessions", "1\n");
    ck_assert_int_eq((int)annal__maintain_tables(f.index, stop, &calls, NULL), 7);
    ck_assert_int_eq((int)annal__maintain_statuses(f.index, stop, &calls, NULL), 7);
    ck_assert_int_eq(calls, 2);
}
END_TEST

Suite *suite_maintain(void)
{
    Suite *suite = suite_create("maintain");
    TCase *tcase = suite_case(suite, "maintain", fixture_setup, fixture_teardown);
    tcase_add_test(tcase, a_checkpoint_empties_the_wal_and_reports_a_blocking_reader);
    tcase_add_test(tcase, maintenance_of_a_missing_database_does_not_create_it);
    tcase_add_test(tcase, vacuum_frees_the_space_of_deleted_rows);
    tcase_add_test(tcase, a_callback_can_stop_the_counting);
    return suite;
}
