/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include "tests/support/random.h"

#include "index/index.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *db_path(void)
{
    return tmpdir_path(&f.dir, "store/sessions.db");
}

static void remove_index(void)
{
    unlink(db_path());
    unlink(tmpdir_path(&f.dir, "store/sessions.db-wal"));
    unlink(tmpdir_path(&f.dir, "store/sessions.db-shm"));
}

/* Another program's connection. */
static sqlite3 *stranger(const char *path)
{
    sqlite3 *db = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    return db;
}

static void run(sqlite3 *db, const char *sql)
{
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
}

START_TEST(the_tables_have_the_columns_of_the_specification)
{
    ck_sql(&f, "SELECT name FROM pragma_table_info('sessions') WHERE cid < 14",
           "id\nflow_id\nagent_id\nprovider\nmodel\nstatus\ncreated_at\nupdated_at\n"
           "last_activity_at\ntotal_turns\ntotal_tokens\ntotal_cost_usd\nworking_directory\n"
           "git_branch\n");
    ck_sql(&f, "SELECT name FROM pragma_table_info('turns') WHERE cid < 9",
           "id\nsession_id\nsequence\nstatus\ncreated_at\ncompleted_at\ninput_tokens\n"
           "output_tokens\ncost_usd\n");
    ck_sql(&f, "SELECT name FROM pragma_table_info('event_index') WHERE cid < 4",
           "session_id\nseq\ntype\ntimestamp\n");
    ck_sql(&f, "SELECT name FROM pragma_table_info('snapshots')",
           "session_id\nseq\nstate\ncreated_at\n");
    ck_sql(&f,
           "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name IN ('sessions', "
           "'turns') AND name GLOB 'idx_*' ORDER BY name",
           "idx_sessions_activity\nidx_sessions_flow\nidx_sessions_parent\nidx_sessions_status\n"
           "idx_sessions_time_from\nidx_turns_open\nidx_turns_session\n");
}
END_TEST

START_TEST(rows_with_only_the_specified_columns_can_be_inserted)
{
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    sqlite3 *db = stranger(db_path());
    run(db, "INSERT INTO event_index VALUES ('s', 1, 'x', 'y', 0, 0)");
    run(db, "INSERT INTO event_index (session_id, seq, type, timestamp) VALUES ('s', 2, 'x', 'y')");
    run(db, "INSERT INTO sessions (id, agent_id, provider, model, created_at, updated_at, "
            "last_activity_at) VALUES ('s', '', '', '', '', '', '')");
    run(db, "INSERT INTO turns (id, session_id, sequence, status, created_at) "
            "VALUES ('t', 's', 1, '', '')");
    sqlite3_close(db);
}
END_TEST

START_TEST(a_deleted_index_is_rebuilt_unchanged)
{
    fixture_append_session(&f, "s1");
    fixture_append_many(&f, "s2", 100, 1767684240000000);
    char *before = fixture_dump(&f);
    for (int i = 0; i < 3; i++) {
        if (i < 2)
            remove_index(); /* while the index is open */
        else
            unlink(db_path()); /* and without its WAL */
        char *after = fixture_dump(&f);
        ck_assert_str_eq(after, before);
        free(after);
    }
    remove_index();
    fixture_reopen(&f, NULL);
    ck_text(fixture_dump(&f), before);
    free(before);
}
END_TEST

START_TEST(an_index_deleted_after_the_catch_up_does_not_look_empty)
{
    struct text text = {0};
    const annal_sql_options as_indexed = {.as_indexed = true};
    fixture_append_session(&f, "s1");
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    ck_assert_int_eq(unlink(db_path()), 0);
    ck_ok(annal_index_sql(f.index, ANNAL_SLICE("SELECT COUNT(*) FROM event_index"), &as_indexed,
                          text_row, &text, err));
    ck_assert_str_eq(text.ptr, "8\n");
    free(text.ptr);
}
END_TEST

START_TEST(an_open_query_survives_the_deletion_of_the_index)
{
    annal_query *query = NULL;
    annal_slice session;
    annal_event event;
    unsigned count = 1;
    fixture_append_many(&f, "s", 1000, 1767684240000000);
    ck_ok(annal_query_open(f.index, NULL, &query, err));
    ck_ok(annal_query_next(query, &session, &event, err));
    remove_index();
    fixture_append_many(&f, "s", 10, 1767784240000000);
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "1010\n");
    while (annal_query_next(query, &session, &event, NULL) == ANNAL_OK)
        count++;
    ck_assert_uint_eq(count, 1000);
    annal_query_close(query);
}
END_TEST

struct deleter {
    const char *paths[3];
    _Atomic bool stop;
    _Atomic unsigned answers;
    unsigned deleted;
};

/* Act as a slow `rm sessions.db*` at a random moment of each answer. */
static void *delete_for_ever(void *arg)
{
    struct deleter *deleter = arg;
    struct random random = random_init(7);
    unsigned seen = 0;
    while (!deleter->stop) {
        if (deleter->answers == seen) {
            usleep(100);
            continue;
        }
        seen = deleter->answers;
        usleep((useconds_t)random_below(&random, 3000));
        for (int i = 0; i < 3; i++) {
            usleep((useconds_t)random_below(&random, 800));
            deleter->deleted += unlink(deleter->paths[i]) == 0;
        }
    }
    return NULL;
}

START_TEST(every_answer_is_whole_whenever_the_index_is_deleted)
{
    struct deleter deleter = {0};
    pthread_t thread;
    deleter.paths[0] = db_path();
    deleter.paths[1] = tmpdir_path(&f.dir, "store/sessions.db-shm");
    deleter.paths[2] = tmpdir_path(&f.dir, "store/sessions.db-wal");
    fixture_append_many(&f, "s1", 50, 1767684240000000);
    ck_assert_int_eq(pthread_create(&thread, NULL, delete_for_ever, &deleter), 0);
    for (int i = 1; i <= 100; i++) {
        uint64_t count = 0;
        annal_lag lag = {0};
        fixture_append(&f, "s2", "x.y", "{}");
        ck_ok(annal_query_count(f.index, NULL, &count, &lag, err));
        ck_assert_str_eq(lag.message, "");
        ck_assert_int_eq((int)count, 50 + i);
        deleter.answers++;
    }
    deleter.stop = true;
    pthread_join(thread, NULL);
    ck_assert_uint_gt(deleter.deleted, 3);
}
END_TEST

/* ---- An unusable sessions.db ---- */

static void note_warning(void *arg, annal_log_level level, const char *message)
{
    if (level == ANNAL_LOG_WARNING)
        text_add(arg, message, strlen(message));
}

/* Open the store again, with a log. */
static void reopen_with_log(struct text *log)
{
    const annal_store_options options = {.no_keeper = true, .log = note_warning, .log_arg = log};
    text_add(log, "", 0);
    annal_index_close(f.index);
    ck_ok(annal_store_close(f.store, err));
    ck_ok(annal_store_open(f.path, &options, &f.store, err));
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
}

/* Limit the size of files of this process, as a full disk does. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(on_a_full_disk_questions_are_answered_from_memory_without_an_empty_index)
{
    struct text log = {0};
    struct stat file;
    fixture_append_session(&f, "s1");
    char *before = fixture_dump(&f);
    reopen_with_log(&log);
    remove_index();
    limit_files(0);
    char *after = fixture_dump(&f);
    limit_files(RLIM_INFINITY);
    ck_assert_str_eq(after, before);
    ck_assert_ptr_nonnull(strstr(log.ptr, "cannot keep the index on disk"));
    ck_assert_ptr_null(strstr(strstr(log.ptr, "cannot keep the index on disk") + 1,
                              "cannot keep the index on disk"));
    ck_assert_int_ne(stat(db_path(), &file), 0);
    free(before);
    free(after);
    free(log.ptr);
}
END_TEST

START_TEST(questions_over_an_index_that_cannot_grow_are_answered_from_memory)
{
    fixture_append_session(&f, "s1");
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    fixture_append_many(&f, "s2", 2000, 1767684240000000);
    fixture_reopen(&f, NULL); /* empties its WAL */
    limit_files(8192);
    char *counted = fixture_sql(&f, "SELECT COUNT(*) FROM event_index");
    annal_error err = {0};
    annal_status rebuilt = annal_index_rebuild(f.index, NULL, &err);
    limit_files(RLIM_INFINITY);
    ck_assert_str_eq(counted, "2008\n");
    ck_assert_int_eq(rebuilt, ANNAL_ERR_FULL); /* only the writer fails */
    free(counted);
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "2008\n");
}
END_TEST

START_TEST(a_directory_in_place_of_the_index_is_reported_and_kept)
{
    struct text log = {0};
    fixture_append_session(&f, "s1");
    ck_assert_int_eq(mkdir(db_path(), 0700), 0);
    reopen_with_log(&log);
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "8\n");
    ck_assert_ptr_nonnull(strstr(log.ptr, "' is a directory"));
    ck_assert_int_eq(rmdir(db_path()), 0);
    free(log.ptr);
}
END_TEST

static void *delete_at_once(void *arg)
{
    struct deleter *deleter = arg;
    while (!deleter->stop) {
        for (int i = 0; i < 3; i++)
            deleter->deleted += unlink(deleter->paths[i]) == 0;
        usleep(500);
    }
    return NULL;
}

START_TEST(repeated_deletion_of_the_index_costs_no_answer)
{
    struct deleter deleter = {0};
    pthread_t thread;
    const annal_sql_options as_indexed = {.as_indexed = true};
    deleter.paths[0] = db_path();
    deleter.paths[1] = tmpdir_path(&f.dir, "store/sessions.db-shm");
    deleter.paths[2] = tmpdir_path(&f.dir, "store/sessions.db-wal");
    fixture_append_many(&f, "s1", 1500, 1767684240000000);
    ck_assert_int_eq(pthread_create(&thread, NULL, delete_at_once, &deleter), 0);
    for (int i = 0; i < 3; i++) {
        struct text text = {0};
        fixture_reopen(&f, NULL);
        ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
        ck_ok(annal_index_sql(f.index, ANNAL_SLICE("SELECT COUNT(*) FROM event_index"), &as_indexed,
                              text_row, &text, err));
        ck_assert_str_eq(text.ptr, "1500\n");
        free(text.ptr);
    }
    deleter.stop = true;
    pthread_join(thread, NULL);
}
END_TEST

START_TEST(a_wal_deleted_after_the_catch_up_is_noticed)
{
    struct text text = {0};
    const annal_sql_options as_indexed = {.as_indexed = true};
    fixture_append_session(&f, "s1");
    fixture_reopen(&f, NULL);
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    fixture_reopen(&f, NULL); /* moves all of it into sessions.db */
    fixture_append_session(&f, "s2");
    annal_index_close(f.index);
    f.index = NULL;
    pid_t child = fork();
    if (child == 0) { /* another process indexes it and leaves the rows in the WAL */
        annal_store *store = NULL;
        annal_index *index = NULL;
        const annal_store_options options = {.no_keeper = true};
        bool failed = annal_store_open(f.path, &options, &store, NULL) < 0 ||
                      annal_index_open(store, NULL, &index, NULL) < 0 ||
                      annal_index_catch_up(index, (annal_slice){0}, NULL, NULL) < 0;
        _exit(failed);
    }
    int result = -1;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_int_eq(result, 0);
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    unlink(tmpdir_path(&f.dir, "store/sessions.db-wal"));
    unlink(tmpdir_path(&f.dir, "store/sessions.db-shm"));
    ck_ok(annal_index_sql(f.index, ANNAL_SLICE("SELECT COUNT(*) FROM event_index"), &as_indexed,
                          text_row, &text, err));
    ck_assert_str_eq(text.ptr, "16\n");
    free(text.ptr);
}
END_TEST

#define THREADS 4

struct worker {
    struct fixture *f;
    int number;
    unsigned failed;
};

/* Append to a session of its own and query it, over an index object that all threads share. */
static void *append_and_ask(void *arg)
{
    struct worker *worker = arg;
    char session[8];
    snprintf(session, sizeof session, "w%d", worker->number);
    const annal_slice id = annal_slice_of(session);
    const annal_draft draft = {.type = ANNAL_SLICE("x.y"), .data = ANNAL_SLICE("{}")};
    const annal_filter filter = {.sessions = &id, .session_count = 1};
    annal_writer *writer = NULL;
    worker->failed += annal_writer_open(worker->f->store, id, NULL, &writer, NULL) < 0;
    for (uint64_t i = 1; i <= 25 && worker->failed == 0; i++) {
        uint64_t seq = 0, count = 0;
        worker->failed += annal_writer_append(writer, &draft, 1, NULL, &seq, NULL) < 0;
        worker->failed += annal_query_count(worker->f->index, &filter, &count, NULL, NULL) < 0;
        worker->failed += seq != i || count != i;
    }
    annal_writer_close(writer);
    return NULL;
}

START_TEST(many_threads_share_an_index)
{
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.f = &f, .number = i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, append_and_ask, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(workers[i].failed, 0);
    }
    ck_sql(&f, "SELECT COUNT(*), COUNT(DISTINCT session_id) FROM event_index", "100|4\n");
}
END_TEST

/* In a second process: index all events, as often as possible, until it is killed. */
static void index_until_killed(const char *path)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    const annal_store_options options = {.no_keeper = true};
    if (annal_store_open(path, &options, &store, NULL) < 0 ||
        annal_index_open(store, NULL, &index, NULL) < 0)
        _exit(1);
    for (;;)
        if (annal_index_catch_up(index, (annal_slice){0}, NULL, NULL) < 0)
            _exit(2);
}

START_TEST(a_process_killed_while_it_indexes_leaves_a_sound_index)
{
    struct random random = random_init(11);
    for (int round = 1; round <= 10; round++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0)
            index_until_killed(f.path);
        char rows[40];
        for (int i = 0; i < 4; i++) {
            fixture_append_many(&f, "s", 25, 1767684240000000);
            usleep((useconds_t)random_below(&random, 4000));
        }
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(WIFSIGNALED(status), "it ended with %d", WEXITSTATUS(status));
        snprintf(rows, sizeof rows, "%d|%d\n", round * 100, round * 100);
        ck_sql(&f, "SELECT COUNT(*), MAX(events) FROM event_index, sessions", rows);
    }
}
END_TEST

START_TEST(an_index_of_another_version_is_rebuilt)
{
    fixture_append_session(&f, "s1");
    char *before = fixture_dump(&f);
    annal_index_close(f.index);
    sqlite3 *db = stranger(db_path());
    run(db, "PRAGMA user_version = 99; DELETE FROM event_index");
    sqlite3_close(db);
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
    ck_text(fixture_dump(&f), before);
    free(before);
}
END_TEST

START_TEST(a_foreign_database_is_moved_aside_and_kept)
{
    fixture_append_session(&f, "s1");
    sqlite3 *db = stranger(db_path());
    run(db, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (7)");
    sqlite3_close(db);
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "8\n");
    db = stranger(tmpdir_path(&f.dir, "store/sessions.db.foreign"));
    run(db, "SELECT x FROM theirs");
    sqlite3_close(db);
}
END_TEST

START_TEST(a_file_that_is_not_a_database_is_moved_aside)
{
    fixture_append_session(&f, "s1");
    char junk[5000];
    memset(junk, 'x', sizeof junk);
    file_write(db_path(), junk, sizeof junk);
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "8\n");
    struct stat file;
    ck_assert_int_eq(stat(tmpdir_path(&f.dir, "store/sessions.db.foreign"), &file), 0);
    ck_assert_int_eq(stat(db_path(), &file), 0);
    ck_assert_uint_eq(file.st_mode & 0777, 0600);
}
END_TEST

START_TEST(a_damaged_index_is_rebuilt)
{
    fixture_append_many(&f, "s", 600, 1767684240000000);
    char *before = fixture_dump(&f);
    annal_index_close(f.index);
    FILE *file = fopen(db_path(), "r+");
    ck_assert_ptr_nonnull(file);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    for (long at = 4096; at < size; at += 4096) { /* every page except the first */
        fseek(file, at, SEEK_SET);
        fputs("damaged page, no b-tree here", file);
    }
    fclose(file);
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
    ck_text(fixture_dump(&f), before);
    free(before);
}
END_TEST

START_TEST(readers_and_writers_wait_for_another_program_and_then_report_it)
{
    fixture_append_session(&f, "s1");
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "8\n");
    sqlite3 *db = stranger(db_path());
    run(db, "BEGIN EXCLUSIVE");
    fixture_append_session(&f, "s2"); /* appends do not notice */

    const annal_catch_up_options hurry = {.timeout_ms = 60};
    annal_error err = {0};
    ck_assert_int_eq(annal_index_catch_up(f.index, (annal_slice){0}, &hurry, &err), ANNAL_ERR_BUSY);
    ck_assert_ptr_nonnull(strstr(err.message, "another program"));
    ck_assert_ptr_null(strstr(err.message, "database is locked"));

    /* A reader answers from the existing tables and reports the lag. */
    annal_lag lag = {0};
    struct text text = {0};
    const annal_sql_options options = {.timeout_ms = 60, .out_lag = &lag};
    ck_assert_int_eq(annal_index_sql(f.index, ANNAL_SLICE("SELECT COUNT(*) FROM event_index"),
                                     &options, text_row, &text, &err),
                     ANNAL_OK);
    ck_assert_str_eq(text.ptr, "8\n");
    ck_assert_uint_eq(lag.sessions, 1);
    ck_assert_uint_gt(lag.bytes, 0);
    ck_assert_ptr_nonnull(strstr(lag.message, "another program"));
    free(text.ptr);

    run(db, "COMMIT");
    sqlite3_close(db);
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "16\n");
}
END_TEST

START_TEST(the_lock_is_free_while_another_program_locks_the_database)
{
    fixture_append_session(&f, "s1");
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "8\n");
    sqlite3 *db = stranger(db_path());
    run(db, "BEGIN EXCLUSIVE");
    ck_assert_int_eq(annal__derived_begin(&f.index->derived, 0, NULL), ANNAL_ERR_BUSY);
    ck_ok(annal__index_lock_take(&f.index->derived.lock, f.path, 0, err));
    annal__index_lock_give(&f.index->derived.lock);
    run(db, "COMMIT");
    sqlite3_close(db);
}
END_TEST

START_TEST(only_one_process_writes_the_index_at_a_time)
{
    annal_index *other = NULL;
    ck_ok(annal_index_open(f.store, NULL, &other, err));
    ck_ok(annal__derived_begin(&f.index->derived, 0, err));
    ck_assert_int_eq(annal__derived_begin(&other->derived, 0, NULL), ANNAL_ERR_BUSY);
    ck_ok(annal__derived_end(&f.index->derived, true, err));
    ck_ok(annal__derived_begin(&other->derived, 0, err));
    ck_ok(annal__derived_end(&other->derived, true, err));
    annal_index_close(other);
}
END_TEST

/* Also without an open transaction: the lock alone keeps other writers out. */
START_TEST(no_process_writes_the_index_while_another_owns_its_lock)
{
    annal_error err = {0};
    const annal_catch_up_options options = {.timeout_ms = 1};
    fixture_append_session(&f, "s");
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "8\n");
    fixture_append_session(&f, "s");
    int lock = open(tmpdir_path(&f.dir, "store/locks/index"), O_RDWR);
    ck_assert_int_eq(flock(lock, LOCK_EX | LOCK_NB), 0);
    ck_assert_int_eq(annal_index_catch_up(f.index, ANNAL_SLICE("s"), &options, &err),
                     ANNAL_ERR_BUSY);
    ck_assert_ptr_nonnull(strstr(err.message, "is writing the index"));
    close(lock);
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "16\n");
}
END_TEST

START_TEST(a_forked_child_leaves_the_index_of_its_parent_alone)
{
    annal_index *other = NULL;
    int result = -1;
    ck_ok(annal_index_open(f.store, NULL, &other, err));
    ck_ok(annal__derived_begin(&f.index->derived, 0, err));
    pid_t child = fork();
    if (child == 0) {
        annal_status status = annal__derived_begin(&f.index->derived, 0, NULL);
        annal_index_close(f.index);
        _exit(status == ANNAL_ERR_CLOSED ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_int_eq(result, 0);
    ck_assert_int_eq(annal__derived_begin(&other->derived, 0, NULL), ANNAL_ERR_BUSY);
    ck_ok(annal__derived_end(&f.index->derived, true, err));
    annal_index_close(other);
}
END_TEST

/* Assert the answers of a store that is open for reading only. */
static void look_read_only(const char *count)
{
    const annal_store_options options = {.read_only = true, .no_keeper = true};
    annal_index_close(f.index);
    ck_ok(annal_store_close(f.store, err));
    ck_ok(annal_store_open(f.path, &options, &f.store, err));
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", count);
}

START_TEST(a_read_only_store_is_answered_from_its_index_and_from_later_events)
{
    annal_lag lag = {0};
    uint64_t count = 0;
    fixture_append_session(&f, "s1");
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "8\n");
    fixture_append_session(&f, "s2");
    look_read_only("8\n"); /* the tables lag */
    ck_ok(annal_query_count(f.index, NULL, &count, &lag, err));
    ck_assert_uint_eq(count, 16); /* event queries do not */
    ck_assert_uint_eq(lag.sessions, 0);
}
END_TEST

START_TEST(a_read_only_store_without_an_index_is_answered_from_its_journals)
{
    fixture_append_session(&f, "s1");
    look_read_only("8\n");
    struct stat file;
    ck_assert_int_eq(stat(db_path(), &file), -1);
    ck_sql(&f, "SELECT data ->> '$.tool' FROM events WHERE type = 'tool.called'", "shell\n");
    ck_ok(annal_index_rebuild(f.index, NULL, err)); /* rebuilds the index in memory */
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "8\n");
}
END_TEST

Suite *suite_index_open(void)
{
    Suite *suite = suite_create("index_open");
    TCase *all = suite_case(suite, "all", fixture_setup, fixture_teardown);
    tcase_add_test(all, the_tables_have_the_columns_of_the_specification);
    tcase_add_test(all, rows_with_only_the_specified_columns_can_be_inserted);
    tcase_add_test(all, a_deleted_index_is_rebuilt_unchanged);
    tcase_add_test(all, an_index_deleted_after_the_catch_up_does_not_look_empty);
    tcase_add_test(all, an_open_query_survives_the_deletion_of_the_index);
    tcase_add_test(all, every_answer_is_whole_whenever_the_index_is_deleted);
    tcase_add_test(all, many_threads_share_an_index);
    tcase_add_test(all, a_process_killed_while_it_indexes_leaves_a_sound_index);
    tcase_add_test(all, an_index_of_another_version_is_rebuilt);
    tcase_add_test(all, a_foreign_database_is_moved_aside_and_kept);
    tcase_add_test(all, a_file_that_is_not_a_database_is_moved_aside);
    tcase_add_test(all, a_damaged_index_is_rebuilt);
    tcase_add_test(all, readers_and_writers_wait_for_another_program_and_then_report_it);
    tcase_add_test(all, the_lock_is_free_while_another_program_locks_the_database);
    tcase_add_test(all, only_one_process_writes_the_index_at_a_time);
    tcase_add_test(all, no_process_writes_the_index_while_another_owns_its_lock);
    tcase_add_test(all, a_forked_child_leaves_the_index_of_its_parent_alone);
    tcase_add_test(all, a_read_only_store_is_answered_from_its_index_and_from_later_events);
    tcase_add_test(all, a_read_only_store_without_an_index_is_answered_from_its_journals);
    tcase_add_test(all, on_a_full_disk_questions_are_answered_from_memory_without_an_empty_index);
    tcase_add_test(all, questions_over_an_index_that_cannot_grow_are_answered_from_memory);
    tcase_add_test(all, a_directory_in_place_of_the_index_is_reported_and_kept);
    tcase_add_test(all, repeated_deletion_of_the_index_costs_no_answer);
    tcase_add_test(all, a_wal_deleted_after_the_catch_up_is_noticed);
    return suite;
}
