/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite waits for other programs as long as the store may; each moment counts once. */
#include "index/db/patience.h"
#include "index/sys/import.h"

#include "journal/sys/seam.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/stopped.h"
#include "tests/support/tmpdir.h"

#include <annal/import.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_MS 120

static struct stopped stopped;
static struct patience patience;
static annal_store *store;
static uint32_t wait_ms;
static const char *path;

static void set_up(void)
{
    tmpdir_setup();
    store = store_open(tmpdir_path(&dir, "store"));
    path = tmpdir_path(&dir, "some.db");
    wait_ms = 10000;
    ck_ok(annal__patience_init(&patience, store, &wait_ms, err));
}

static void tear_down(void)
{
    annal__patience_done(&patience);
    stopped_end(&stopped);
    store_close(store);
    tmpdir_teardown();
}

static sqlite3 *open_db(const char *vfs)
{
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    ck_assert_int_eq(sqlite3_open_v2(path, &db, flags, vfs), SQLITE_OK);
    return db;
}

static void make(const char *sql)
{
    sqlite3 *db = open_db(NULL);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static void lock_all_and_stop(void *arg)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(arg, &db) == SQLITE_OK &&
        sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL) == SQLITE_OK)
        raise(SIGSTOP);
}

START_TEST(several_statements_beside_a_stopped_program_share_the_wait_of_the_store)
{
    make("CREATE TABLE t (a)");
    stopped_start(&stopped, lock_all_and_stop, (void *)path);
    sqlite3 *db = open_db(annal__patience_vfs(&patience));
    annal__patience_on(&patience, db);
    annal__store_limit_waits(store, LIMIT_MS);
    int64_t begun_us = stopped_now_us();
    ck_assert_int_eq(sqlite3_exec(db, "SELECT * FROM t", NULL, NULL, NULL), SQLITE_BUSY);
    int64_t waited_us = annal__store_waited_us(store);
    ck_assert_int_ge(stopped_now_us() - begun_us, LIMIT_MS * 1000);
    ck_assert_int_ge(waited_us, LIMIT_MS * 1000);
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(sqlite3_exec(db, "SELECT * FROM t", NULL, NULL, NULL), SQLITE_BUSY);
    ck_assert_int_eq(annal__store_waited_us(store), waited_us);
    ck_in_time(begun_us, LIMIT_MS * 1000);
    sqlite3_close(db);
}
END_TEST

START_TEST(without_a_shared_limit_each_wait_has_its_own_limit)
{
    make("CREATE TABLE t (a)");
    stopped_start(&stopped, lock_all_and_stop, (void *)path);
    sqlite3 *db = open_db(annal__patience_vfs(&patience));
    annal__patience_on(&patience, db);
    wait_ms = LIMIT_MS;
    int64_t begun_us = stopped_now_us();
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(sqlite3_exec(db, "SELECT * FROM t", NULL, NULL, NULL), SQLITE_BUSY);
    ck_assert_int_ge(stopped_now_us() - begun_us, 2 * LIMIT_MS * 1000);
    ck_in_time(begun_us, 2 * LIMIT_MS * 1000);
    sqlite3_close(db);
}
END_TEST

START_TEST(a_thread_with_a_smaller_limit_waits_no_longer_than_its_limit)
{
    struct patience_limit all, part;
    make("CREATE TABLE t (a)");
    stopped_start(&stopped, lock_all_and_stop, (void *)path);
    sqlite3 *db = open_db(annal__patience_vfs(&patience));
    annal__patience_on(&patience, db);
    int64_t begun_us = stopped_now_us();
    annal__patience_limit(&patience, &all, begun_us + LIMIT_MS * 1000);
    annal__patience_limit(&patience, &part, 0);
    ck_assert_int_eq(sqlite3_exec(db, "SELECT * FROM t", NULL, NULL, NULL), SQLITE_BUSY);
    ck_assert_int_eq(annal__store_waited_us(store), 0);
    annal__patience_unlimit(&patience, &part);
    ck_assert_int_eq(sqlite3_exec(db, "SELECT * FROM t", NULL, NULL, NULL), SQLITE_BUSY);
    ck_assert_int_ge(stopped_now_us() - begun_us, LIMIT_MS * 1000);
    ck_in_time(begun_us, LIMIT_MS * 1000);
    annal__patience_unlimit(&patience, &all);
    wait_ms = 2 * LIMIT_MS;
    begun_us = stopped_now_us();
    ck_assert_int_eq(sqlite3_exec(db, "SELECT * FROM t", NULL, NULL, NULL), SQLITE_BUSY);
    ck_assert_int_ge(stopped_now_us() - begun_us, 2 * LIMIT_MS * 1000);
    sqlite3_close(db);
}
END_TEST

START_TEST(the_limit_applies_to_a_program_stopped_while_it_creates_a_wal_index)
{
    make("PRAGMA journal_mode = WAL; CREATE TABLE t (a)");
    stopped_start_making_wal_index(&stopped, tmpdir_path(&dir, "some.db-shm"));
    sqlite3 *db = open_db(annal__patience_vfs(&patience));
    annal__patience_on(&patience, db);
    annal__store_limit_waits(store, LIMIT_MS);
    int64_t begun_us = stopped_now_us();
    ck_assert_int_eq(sqlite3_exec(db, "SELECT * FROM t", NULL, NULL, NULL), SQLITE_PROTOCOL);
    int64_t waited_us = annal__store_waited_us(store);
    ck_assert_int_ge(waited_us, LIMIT_MS * 1000);
    ck_assert_int_eq(sqlite3_exec(db, "SELECT * FROM t", NULL, NULL, NULL), SQLITE_PROTOCOL);
    ck_assert_int_eq(annal__store_waited_us(store), waited_us);
    ck_in_time(begun_us, LIMIT_MS * 1000);
    sqlite3_close(db);
}
END_TEST

/* Like a VFS that encrypts or traces: its own data follows its sqlite3_vfs. */
static struct wrapper {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    int opened, others;
} wrapper;

static int open_wrapped(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    if (vfs != &wrapper.vfs) {
        wrapper.others++;
        return SQLITE_CANTOPEN;
    }
    wrapper.opened++;
    return wrapper.real->xOpen(wrapper.real, name, file, flags, out);
}

START_TEST(a_default_vfs_of_the_program_is_used_unchanged)
{
    annal__patience_done(&patience);
    wrapper = (struct wrapper){.real = sqlite3_vfs_find("unix")};
    wrapper.vfs = *wrapper.real;
    wrapper.vfs.pNext = NULL;
    wrapper.vfs.zName = "wrapper";
    wrapper.vfs.xOpen = open_wrapped;
    sqlite3_vfs_register(&wrapper.vfs, 1);
    ck_ok(annal__patience_init(&patience, store, &wait_ms, err));
    sqlite3 *db = open_db(annal__patience_vfs(&patience));
    annal__patience_on(&patience, db);
    ck_assert_int_eq(sqlite3_exec(db, "CREATE TABLE t (a)", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_gt(wrapper.opened, 0);
    ck_assert_int_eq(wrapper.others, 0);
    sqlite3_close(db);
    sqlite3_vfs_register(wrapper.real, 1);
    sqlite3_vfs_unregister(&wrapper.vfs);
}
END_TEST

static annal_status count_row(void *arg, annal_slice json, annal_error *err)
{
    (void)json;
    (void)err;
    ++*(int *)arg;
    return ANNAL_OK;
}

START_TEST(an_import_waits_for_a_locked_log_up_to_its_limit)
{
    int rows = 0;
    const annal_slice importer = ANNAL_SLICE("-- rows\nSELECT a FROM t;\n");
    const annal_limits limits = {.wait_ms = LIMIT_MS};
    make("CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    stopped_start(&stopped, lock_all_and_stop, (void *)path);
    int64_t begun_us = stopped_now_us();
    ck_status(ANNAL_ERR_BUSY, annal__import_rows(importer, path, &limits, count_row, &rows, err));
    ck_assert_int_ge(stopped_now_us() - begun_us, LIMIT_MS * 1000);
    ck_in_time(begun_us, LIMIT_MS * 1000);
    stopped_end(&stopped);
    ck_ok(annal__import_rows(importer, path, &limits, count_row, &rows, err));
    ck_assert_int_eq(rows, 1);
}
END_TEST

Suite *suite_patience(void)
{
    Suite *suite = suite_create("patience");
    TCase *cases = suite_case(suite, "patience", set_up, tear_down);
    tcase_add_test(cases, several_statements_beside_a_stopped_program_share_the_wait_of_the_store);
    tcase_add_test(cases, a_thread_with_a_smaller_limit_waits_no_longer_than_its_limit);
    tcase_add_test(cases, without_a_shared_limit_each_wait_has_its_own_limit);
    tcase_add_test(cases, the_limit_applies_to_a_program_stopped_while_it_creates_a_wal_index);
    tcase_add_test(cases, a_default_vfs_of_the_program_is_used_unchanged);
    tcase_add_test(cases, an_import_waits_for_a_locked_log_up_to_its_limit);
    return suite;
}
