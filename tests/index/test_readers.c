/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that are kept for the next query. Numbers: the rules of index/db/readers.h. */
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include "index/db/db.h"
#include "index/index.h"
#include "index/sys/record_owner.h"
#include "journal/base/slice.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define START 1767684240000000

static uint64_t count(void)
{
    uint64_t events = 0;
    ck_ok(annal_query_count(f.index, NULL, &events, NULL, err));
    return events;
}

/* Count the events by reading them; as_indexed uses the connection alone. */
static uint64_t count_by_reading(bool as_indexed)
{
    annal_query *query = NULL;
    annal_slice session;
    annal_event event;
    uint64_t events = 0;
    ck_ok(annal_query_open(f.index, &(annal_filter){.as_indexed = as_indexed}, &query, err));
    while (annal_query_next(query, &session, &event, NULL) == ANNAL_OK)
        events++;
    annal_query_close(query);
    return events;
}

/* The only kept connection, or NULL. */
static const sqlite3 *kept(void)
{
    const sqlite3 *found = NULL;
    for (size_t i = 0; i < READERS_MAX; i++) {
        const struct reader *reader = &f.index->derived.readers.list[i];
        ck_assert(!reader->lent);
        ck_assert(reader->db == NULL || found == NULL);
        found = reader->db != NULL ? reader->db : found;
    }
    return found;
}

static void begin(void)
{
    fixture_append_many(&f, "s", 10, START);
    ck_assert_uint_eq(count_by_reading(false), 10);
    ck_assert_uint_eq(count(), 10);
}

START_TEST(one_connection_answers_successive_queries)
{
    begin();
    const sqlite3 *first = kept();
    ck_assert_ptr_nonnull(first);
    for (unsigned i = 1; i <= 5; i++) {
        fixture_append_many(&f, "s", 1, START);
        ck_assert_uint_eq(count_by_reading(false), 10 + i);
        ck_assert_uint_eq(count(), 10 + i);
        ck_assert_ptr_eq(kept(), first);
    }
}
END_TEST

static void assert_owner(const char *origin, const char *session, const char *owner)
{
    annal__records *records = NULL;
    annal_slice found;
    ck_ok(annal__record_owner_open(f.index, &records, err));
    ck_ok(annal__record_owner_find(records, annal_slice_of(origin), annal_slice_of(session), &found,
                                   err));
    ck_assert_int_eq(annal__slice_is(found, owner), 1);
    annal__record_owner_close(records);
}

/* Every imported log asks for it. */
START_TEST(the_owner_of_a_record_is_looked_up_on_the_kept_connection)
{
    static const char record[] = "{\"id\":\"m\",\"source\":{\"origin\":\"r\"}}";
    begin();
    const sqlite3 *first = kept();
    assert_owner("r", "b", "");
    fixture_append(&f, "a", "message.added", record);
    fixture_append(&f, "b", "message.added", record);
    assert_owner("r", "b", "");
    ck_assert_uint_eq(count(), 12);
    assert_owner("r", "b", "b");
    assert_owner("r", "c", "a");
    assert_owner("s", "c", "");
    ck_assert_ptr_eq(kept(), first);
}
END_TEST

/* Simultaneous queries have a connection each, also if they are more than are kept. */
START_TEST(each_open_query_has_its_own_connection)
{
    annal_query *queries[READERS_MAX + 3];
    annal_slice session;
    annal_event event;
    const size_t many = sizeof queries / sizeof *queries;
    begin();
    for (size_t i = 0; i < many; i++)
        ck_ok(annal_query_open(f.index, &(annal_filter){.limit = i + 1}, &queries[i], err));
    for (size_t i = 0; i < many; i++) {
        for (uint64_t seq = 1; seq <= i + 1 && seq <= 10; seq++) {
            ck_ok(annal_query_next(queries[i], &session, &event, err));
            ck_assert_uint_eq(event.seq, seq);
        }
        ck_assert_int_eq(annal_query_next(queries[i], &session, &event, NULL), ANNAL_END);
    }
    for (size_t i = 0; i < many; i++)
        annal_query_close(queries[i]);
    ck_assert_uint_eq(count(), 10);
}
END_TEST

static int pass(void *arg, const annal_maintenance *what)
{
    (void)arg;
    ck_assert(what->done);
    return 0;
}

static void copy_over(const char *from, const char *to)
{
    char bytes[65536];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_TRUNC);
    ssize_t got;
    ck_assert_int_ge(in, 0);
    ck_assert_int_ge(out, 0);
    while ((got = read(in, bytes, sizeof bytes)) > 0)
        ck_assert_int_eq(write(out, bytes, (size_t)got), got);
    close(in);
    close(out);
}

/* Rule 1: the present file counts. */
START_TEST(replaced_files_are_opened_again)
{
    static const char *const gone[] = {"store/sessions.db", "store/sessions.db-wal",
                                       "store/sessions.db-shm"};
    begin();
    const sqlite3 *first = kept();
    ck_assert_ptr_nonnull(first);
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        ck_assert_int_eq(unlink(tmpdir_path(&f.dir, gone[i])), 0);
        fixture_append_many(&f, "s", 1, START);
        ck_assert_uint_eq(count_by_reading(false), 11 + i);
        ck_assert_uint_eq(count(), 11 + i);
    }
}
END_TEST

/* Rule 1: the bytes of another file in the same file. */
START_TEST(an_overwritten_file_is_noticed_and_read_again)
{
    struct fixture other;
    uint64_t events = 0;
    fixture_init(&other);
    begin();
    fixture_append_many(&other, "o", 3, START);
    ck_ok(annal_query_count(other.index, NULL, &events, NULL, err));
    ck_assert_uint_eq(events, 3);
    ck_ok(annal_index_wal_checkpoint(f.index, ANNAL_WAL_TRUNCATE, pass, NULL, err));
    ck_ok(annal_index_wal_checkpoint(other.index, ANNAL_WAL_TRUNCATE, pass, NULL, err));
    ck_assert_uint_eq(count_by_reading(true), 10);
    ck_assert_ptr_nonnull(kept());
    copy_over(tmpdir_path(&other.dir, "store/sessions.db"),
              tmpdir_path(&f.dir, "store/sessions.db"));
    ck_assert_uint_eq(count_by_reading(false), 10);
    ck_assert_uint_eq(count(), 10);
    fixture_done(&other);
}
END_TEST

/* Rule 2: the temporary tables of forks and expressions are dropped. */
START_TEST(temporary_tables_of_a_query_are_dropped)
{
    const annal_slice fork = ANNAL_SLICE("fork");
    begin();
    ck_ok(annal_session_fork(f.store, ANNAL_SLICE("s"), 5, fork, NULL, NULL, err));
    for (int i = 0; i < 3; i++) {
        annal_query *query = NULL;
        annal_slice session;
        annal_event event;
        uint64_t events = 0;
        const annal_filter of_fork = {.sessions = &fork, .session_count = 1};
        const annal_filter some = {.where = ANNAL_SLICE("seq % 2 = 0")};
        ck_ok(annal_query_count(f.index, &of_fork, &events, NULL, err));
        ck_assert_uint_eq(events, 5);
        ck_ok(annal_query_count(f.index, &some, &events, NULL, err));
        ck_assert_uint_eq(events, 5);
        ck_ok(annal_query_open(f.index, &of_fork, &query, err));
        ck_ok(annal_query_next(query, &session, &event, err)); /* closed half way */
        annal_query_close(query);
        ck_assert_uint_eq(count(), 10);
    }
}
END_TEST

/* A closed query does not block a checkpoint. */
START_TEST(a_kept_connection_blocks_no_checkpoint)
{
    annal_query *query = NULL;
    annal_slice session;
    annal_event event;
    sqlite3 *stranger = NULL;
    begin();
    ck_ok(annal_query_open(f.index, NULL, &query, err));
    ck_ok(annal_query_next(query, &session, &event, err));
    annal_query_close(query);
    ck_assert_ptr_nonnull(kept());
    ck_assert_int_eq(sqlite3_open(tmpdir_path(&f.dir, "store/sessions.db"), &stranger), SQLITE_OK);
    int left = -1, done = -1;
    ck_assert_int_eq(
        sqlite3_wal_checkpoint_v2(stranger, "main", SQLITE_CHECKPOINT_TRUNCATE, &left, &done),
        SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(stranger, "BEGIN IMMEDIATE; ROLLBACK", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(stranger);
}
END_TEST

/* Rule 3: only the process that opened it uses a connection. */
START_TEST(a_child_process_does_not_use_kept_connections)
{
    int result = -1;
    begin();
    const sqlite3 *first = kept();
    pid_t child = fork();
    if (child == 0) {
        annal_index_close(f.index);
        annal_store *store = NULL;
        annal_index *index = NULL;
        uint64_t events = 0;
        const annal_store_options options = {.no_keeper = true};
        bool failed = annal_store_open(f.path, &options, &store, NULL) < 0 ||
                      annal_index_open(store, NULL, &index, NULL) < 0 ||
                      annal_query_count(index, NULL, &events, NULL, NULL) < 0 || events != 10;
        _exit(failed);
    }
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_int_eq(result, 0);
    ck_assert_ptr_eq(kept(), first);
    ck_assert_uint_eq(count_by_reading(false), 10);
    ck_assert_ptr_eq(kept(), first);
}
END_TEST

#define THREADS 12

static void *ask_often(void *arg)
{
    for (int i = 0; i < 20; i++) {
        uint64_t events = 0;
        if (annal_query_count(f.index, NULL, &events, NULL, NULL) < 0 || events != 10 ||
            count_by_reading(false) != 10)
            return arg;
    }
    return NULL;
}

START_TEST(threads_do_not_share_a_connection)
{
    pthread_t threads[THREADS];
    begin();
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_often, &f), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *failed = &f;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
}
END_TEST

/* Change sessions.db as another program would that keeps SQLite's cookie of the schema. */
static void change_schema(const char *change, int64_t *cookie)
{
    char sql[200], path[300];
    sqlite3 *db = NULL;
    snprintf(path, sizeof path, "%s/sessions.db", f.path);
    ck_ok(annal__db_open(path, SQLITE_OPEN_READWRITE, &db, err));
    ck_assert_int_eq(sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL), SQLITE_OK);
    ck_ok(annal__db_exec(db, change, err));
    if (*cookie != 0) {
        snprintf(sql, sizeof sql, "PRAGMA schema_version = %lld", (long long)*cookie);
        ck_ok(annal__db_exec(db, sql, err));
    }
    ck_ok(annal__db_integer(db, "PRAGMA schema_version", cookie, err));
    annal__db_close(db);
}

static const struct derived_ops *real_ops;
static int64_t planted_cookie; /* 0: the view was dropped */

static annal_status drop_and_check(void *arg, sqlite3 *db, const char *schema, annal_error *err)
{
    if (planted_cookie != 0)
        change_schema("DROP VIEW evil", &planted_cookie);
    planted_cookie = 0;
    return real_ops->check(arg, db, schema, err);
}

START_TEST(the_schema_that_sqlite_parsed_is_the_one_that_is_compared)
{
    struct derived *derived = &f.index->derived;
    struct derived_ops ops = *derived->ops;
    struct stamp stamp;
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    begin();
    annal__readers_rest(&derived->readers);
    real_ops = derived->ops;
    ops.check = drop_and_check;
    planted_cookie = 0;
    change_schema("CREATE VIEW evil AS SELECT 1", &planted_cookie);
    derived->ops = &ops;
    ck_ok(annal__derived_reader(derived, 1000, &db, &stamp, err));
    derived->ops = real_ops;
    ck_assert_int_eq(planted_cookie, 0);
    ck_assert_int_lt(annal__db_prepare(db, "SELECT * FROM evil", &stmt, NULL), 0);
    annal__db_close(db);
}
END_TEST

Suite *suite_readers(void)
{
    Suite *suite = suite_create("readers");
    TCase *readers = suite_case(suite, "readers", fixture_setup, fixture_teardown);
    tcase_add_test(readers, one_connection_answers_successive_queries);
    tcase_add_test(readers, the_owner_of_a_record_is_looked_up_on_the_kept_connection);
    tcase_add_test(readers, each_open_query_has_its_own_connection);
    tcase_add_test(readers, replaced_files_are_opened_again);
    tcase_add_test(readers, an_overwritten_file_is_noticed_and_read_again);
    tcase_add_test(readers, temporary_tables_of_a_query_are_dropped);
    tcase_add_test(readers, a_kept_connection_blocks_no_checkpoint);
    tcase_add_test(readers, a_child_process_does_not_use_kept_connections);
    tcase_add_test(readers, threads_do_not_share_a_connection);
    tcase_add_test(readers, the_schema_that_sqlite_parsed_is_the_one_that_is_compared);
    return suite;
}
