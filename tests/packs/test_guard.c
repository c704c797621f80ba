/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/packs/fixture.h"
#include "tests/support/runner.h"

#include "journal/store.h"
#include "tests/support/picky_io.h"
#include "tests/support/random.h"

#include <annal/artifact.h>
#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Tasks that a single run at a time may claim, with the edges of their states as data. */
static const char TASKS[] =
    "-- pack tasks   version 1   database tasks.db\n"
    "CREATE TABLE tasks (id TEXT PRIMARY KEY NOT NULL, session_id TEXT NOT NULL, state TEXT NOT "
    "NULL,\n"
    "                    run TEXT, n INTEGER NOT NULL, at TEXT);\n"
    "CREATE TABLE edges (from_state TEXT, to_state TEXT, PRIMARY KEY (from_state, to_state));\n"
    "INSERT INTO edges VALUES ('ready', 'claimed'), ('claimed', 'ready'), ('claimed', 'done');\n"
    "CREATE TABLE notes (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, body TEXT);\n"
    "-- fill task.added\n"
    "SELECT COALESCE(MAX(n), 0) + 1 AS n FROM tasks WHERE session_id = :session;\n"
    "-- on task.added   guarded \"there is a task of this id already\"\n"
    "INSERT INTO tasks VALUES ($id, :session, 'ready', NULL, $n, :ts);\n"
    "-- on task.claimed   guarded \"the task is not ready, or another run has claimed it\"\n"
    "UPDATE tasks SET state = 'claimed', run = $run WHERE id = $id AND state = 'ready'\n"
    "  AND session_id = :session;\n"
    "-- on task.moved   guarded \"a task does not go that way\"\n"
    "UPDATE tasks SET state = $to WHERE id = $id AND EXISTS\n"
    "  (SELECT 1 FROM edges WHERE from_state = state AND to_state = $to);\n"
    "-- on task.moved, note.added\n"
    "INSERT INTO notes VALUES ($note::id, :session, $note::body) ON CONFLICT DO NOTHING;\n"
    "-- on name.taken   guarded \"another session has that name\"   reads *\n"
    "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM notes WHERE id = $name);\n"
    "INSERT INTO notes VALUES ($name, :session, 'name');\n"
    "-- forget\n"
    "DELETE FROM tasks WHERE session_id = :session;\n"
    "DELETE FROM notes WHERE session_id = :session;\n"
    "-- artifact note.added   text   over 1000\n";

#define ADD(id) "{\"id\":\"" id "\"}"

static void setup(void)
{
    packs_add(&p, "tasks", TASKS);
}

START_TEST(a_refusal_has_the_message_of_the_pack_and_writes_nothing)
{
    setup();
    ck_append(&p, "proj", "task.added", ADD("a"));
    ck_append(&p, "proj", "task.claimed", "{\"id\":\"a\",\"run\":\"r1\"}");
    annal_error error = {0};
    ck_assert_int_eq(
        packs_append(&p, "proj", "task.claimed", "{\"id\":\"a\",\"run\":\"r2\"}", &error),
        ANNAL_ERR_REFUSED);
    ck_assert_str_eq(error.message, "the task is not ready, or another run has claimed it");
    ck_packs(&p, "SELECT state, run FROM tasks", "claimed|r1\n");
    ck_packs(&p, "SELECT COUNT(*) FROM event_index", "2\n");
}
END_TEST

START_TEST(a_refused_first_event_creates_no_session)
{
    setup();
    ck_refused(&p, "proj", "task.claimed", ADD("a"), "not ready");
    annal_session_info info;
    ck_fails(ANNAL_ERR_NOTFOUND, "proj",
             annal_session_info_get(p.store, ANNAL_SLICE("proj"), &info, err));
}
END_TEST

START_TEST(a_retry_returns_the_first_seq_even_if_the_guard_would_now_refuse)
{
    setup();
    uint64_t seq = 0;
    ck_ok(packs_append_id(&p, "proj", "task.added", ADD("a"), "one", &seq, err));
    ck_append(&p, "proj", "task.added", ADD("b"));
    ck_ok(packs_append_id(&p, "proj", "task.claimed", ADD("a"), "two", &seq, err));
    ck_assert_uint_eq(seq, 3);
    packs_reopen(&p);
    ck_ok(packs_append_id(&p, "proj", "task.claimed", ADD("a"), "two", &seq, err));
    ck_assert_uint_eq(seq, 3);
    /* A fill would now compute another number. */
    ck_ok(packs_append_id(&p, "proj", "task.added", ADD("a"), "one", &seq, err));
    ck_assert_uint_eq(seq, 1);
    ck_fails(ANNAL_ERR_CONFLICT, "'two' is taken",
             packs_append_id(&p, "proj", "task.claimed", ADD("b"), "two", &seq, err));
    ck_fails(ANNAL_ERR_REFUSED, "not ready",
             packs_append_id(&p, "proj", "task.claimed", ADD("a"), "three", &seq, err));
    ck_packs(&p, "SELECT COUNT(*) FROM event_index", "3\n");
}
END_TEST

START_TEST(a_retry_that_its_guard_would_permit_again_changes_no_row)
{
    setup();
    uint64_t seq = 0;
    ck_append(&p, "proj", "task.added", ADD("a"));
    ck_ok(packs_append_id(&p, "proj", "task.claimed", ADD("a"), "one", &seq, err));
    ck_append(&p, "proj", "task.moved", "{\"id\":\"a\",\"to\":\"ready\"}");
    ck_ok(packs_append_id(&p, "proj", "task.claimed", ADD("a"), "one", &seq, err));
    ck_assert_uint_eq(seq, 2);
    ck_packs(&p, "SELECT state FROM tasks", "ready\n");
    ck_packs(&p, "SELECT COUNT(*) FROM event_index", "3\n");
    packs_ck_rebuild(&p, "tasks.db", 1);
}
END_TEST

/* Two drafts through one append. */
static annal_status append_two(const char *session, const annal_draft drafts[2],
                               const annal_append_options *options, uint64_t *out_seq,
                               annal_error *error)
{
    annal_writer *writer = NULL;
    annal_appended appended = {0};
    ck_ok(annal_writer_open(p.store, annal_slice_of(session), NULL, &writer, err));
    annal_status status = annal_pack_append(p.index, writer, drafts, 2, options, &appended, error);
    *out_seq = appended.seq;
    annal_free(appended.data.ptr);
    annal_writer_close(writer);
    return status;
}

START_TEST(each_draft_sees_the_rows_of_earlier_drafts_and_all_or_none_are_appended)
{
    setup();
    uint64_t seq = 0;
    const annal_draft good[2] = {
        {.type = ANNAL_SLICE("task.added"), .data = ANNAL_SLICE(ADD("a")), .id = ANNAL_SLICE("x")},
        {.type = ANNAL_SLICE("task.claimed"), .data = ANNAL_SLICE(ADD("a"))}};
    const annal_draft bad[2] = {
        {.type = ANNAL_SLICE("task.added"), .data = ANNAL_SLICE(ADD("b"))},
        {.type = ANNAL_SLICE("task.claimed"), .data = ANNAL_SLICE(ADD("a"))}};
    ck_ok(append_two("proj", good, NULL, &seq, err));
    ck_assert_uint_eq(seq, 1);
    ck_fails(ANNAL_ERR_REFUSED, "not ready", append_two("proj", bad, NULL, &seq, err));
    ck_packs(&p, "SELECT id, state, n FROM tasks", "a|claimed|1\n");
    ck_ok(append_two("proj", good, NULL, &seq, err));
    ck_assert_uint_eq(seq, 1);
    ck_packs(&p, "SELECT COUNT(*) FROM event_index", "2\n");
    packs_ck_rebuild(&p, "tasks.db", 3);
}
END_TEST

START_TEST(the_callers_expected_seq_is_honoured)
{
    setup();
    uint64_t seq = 0;
    const annal_append_options none = {.expect = ANNAL_EXPECT_NONE};
    const annal_append_options at_two = {.expect = ANNAL_EXPECT_SEQ, .expected_seq = 2};
    const annal_draft first[2] = {
        {.type = ANNAL_SLICE("task.added"), .data = ANNAL_SLICE(ADD("a"))},
        {.type = ANNAL_SLICE("task.added"), .data = ANNAL_SLICE(ADD("b"))}};
    const annal_draft second[2] = {
        {.type = ANNAL_SLICE("task.added"), .data = ANNAL_SLICE(ADD("c"))},
        {.type = ANNAL_SLICE("task.added"), .data = ANNAL_SLICE(ADD("d"))}};
    ck_fails(ANNAL_ERR_CONFLICT, "ends at seq 0", append_two("proj", first, &at_two, &seq, err));
    ck_ok(append_two("proj", first, &none, &seq, err));
    ck_fails(ANNAL_ERR_CONFLICT, "ends at seq 2", append_two("proj", second, &none, &seq, err));
    ck_ok(append_two("proj", second, &at_two, &seq, err));
    ck_assert_uint_eq(seq, 3);
}
END_TEST

START_TEST(a_guard_waits_for_pending_events_of_its_process)
{
    setup();
    ck_append(&p, "proj", "task.added", ADD("a"));
    annal_writer *writer = NULL;
    uint64_t seq;
    const annal_writer_options batch = {.level = ANNAL_LEVEL_BATCH};
    const annal_draft claim = {.type = ANNAL_SLICE("task.claimed"), .data = ANNAL_SLICE(ADD("a"))};
    ck_ok(annal_writer_open(p.store, ANNAL_SLICE("proj"), &batch, &writer, err));
    ck_ok(annal_writer_append(writer, &claim, 1, NULL, &seq, err));
    ck_refused(&p, "proj", "task.claimed", ADD("a"), "not ready");
    annal_writer_close(writer);
}
END_TEST

START_TEST(a_guard_does_not_refuse_an_event_that_a_pending_event_permits)
{
    setup();
    ck_append(&p, "proj", "task.added", ADD("a"));
    annal_writer *writer = NULL;
    uint64_t seq;
    const annal_writer_options batch = {.level = ANNAL_LEVEL_BATCH};
    const annal_draft claim = {.type = ANNAL_SLICE("task.claimed"), .data = ANNAL_SLICE(ADD("a"))};
    ck_ok(annal_writer_open(p.store, ANNAL_SLICE("proj"), &batch, &writer, err));
    ck_ok(annal_writer_append(writer, &claim, 1, NULL, &seq, err));
    ck_append(&p, "proj", "task.moved", "{\"id\":\"a\",\"to\":\"done\"}");
    ck_packs(&p, "SELECT state FROM tasks", "done\n");
    annal_writer_close(writer);
}
END_TEST

START_TEST(unguarded_types_are_appended_without_a_guard)
{
    setup();
    ck_append(&p, "s", "something.else", "{\"a\" : 1}");
    ck_packs(&p, "SELECT data FROM events", "{\"a\" : 1}\n");
    ck_fails(ANNAL_ERR_INVALID, "JSON", packs_append(&p, "s", "something.else", "{", err));
    ck_fails(ANNAL_ERR_INVALID, "JSON", packs_append(&p, "s", "task.added", "{", err));
    ck_fails(ANNAL_ERR_INVALID, "type", packs_append(&p, "s", "Task", "{}", err));
}
END_TEST

START_TEST(a_sweep_right_after_an_append_at_level_batch_keeps_its_artifact)
{
    packs_add(&p, "large",
              "-- pack large version 1 database large.db\n"
              "CREATE TABLE notes (id TEXT);\n"
              "-- artifact note.added   text   over 1000\n");
    char data[3200];
    size_t at = (size_t)snprintf(data, sizeof data, "{\"text\":\"");
    memset(data + at, 'x', 3000);
    memcpy(data + at + 3000, "\"}", 3);
    const annal_draft draft = {.type = ANNAL_SLICE("note.added"), .data = annal_slice_of(data)};
    const annal_writer_options options = {.level = ANNAL_LEVEL_BATCH};
    const annal_artifact_sweep_options all = {.older_than_us = -1};
    annal_artifact_sweep_result result = {0};
    annal_writer *writer = NULL;
    annal_store *other = NULL;
    ck_ok(annal_writer_open(p.store, ANNAL_SLICE("s"), &options, &writer, err));
    ck_ok(annal_pack_append(p.index, writer, &draft, 1, NULL, NULL, err));
    ck_ok(annal_store_open(p.path, NULL, &other, err));
    ck_ok(annal_artifact_sweep(other, &all, &result, err));
    ck_assert_uint_eq(result.artifacts, 1);
    ck_assert_uint_eq(result.removed, 0);
    annal_writer_close(writer);
    ck_ok(annal_store_close(other, err));
}
END_TEST

START_TEST(msgpack_is_guarded_like_json)
{
    setup();
    annal_writer *writer = NULL;
    annal_appended appended = {0};
    const annal_writer_options options = {.format = ANNAL_FORMAT_MSGPACK};
    const annal_draft draft = {.type = ANNAL_SLICE("task.added"),
                               .data = ANNAL_SLICE("\x81\xa2id\xa1"
                                                   "a"),
                               .id = ANNAL_SLICE("i"),
                               .data_format = ANNAL_FORMAT_MSGPACK};
    ck_ok(annal_writer_open(p.store, ANNAL_SLICE("s"), &options, &writer, err));
    for (int again = 0; again < 2; again++) {
        ck_ok(annal_pack_append(p.index, writer, &draft, 1, NULL, &appended, err));
        ck_assert_uint_eq(appended.seq, 1);
        annal_free(appended.data.ptr);
    }
    annal_writer_close(writer);
    ck_refused(&p, "s", "task.added", ADD("a"), "already");
    ck_packs(&p, "SELECT id, n FROM tasks", "a|1\n");
    packs_ck_rebuild(&p, "tasks.db", 6);
}
END_TEST

START_TEST(msgpack_unchanged_by_packs_is_kept_byte_for_byte)
{
    static const char given[] = "\x82\xa2id\xa1"
                                "a\xa1n\xcd\x00\x07"; /* a 7 in three bytes */
    setup();
    annal_writer *writer = NULL;
    annal_cursor *cursor = NULL;
    annal_event event;
    const annal_writer_options options = {.format = ANNAL_FORMAT_MSGPACK};
    const annal_draft drafts[2] = {{.type = ANNAL_SLICE("task.added"),
                                    .data = ANNAL_SLICE(given),
                                    .data_format = ANNAL_FORMAT_MSGPACK},
                                   {.type = ANNAL_SLICE("note.added"),
                                    .data = ANNAL_SLICE(given),
                                    .data_format = ANNAL_FORMAT_MSGPACK}};
    ck_ok(annal_writer_open(p.store, ANNAL_SLICE("s"), &options, &writer, err));
    for (int i = 0; i < 2; i++)
        ck_ok(annal_pack_append(p.index, writer, &drafts[i], 1, NULL, NULL, err));
    annal_writer_close(writer);
    ck_ok(annal_cursor_open(p.store, ANNAL_SLICE("s"), 1, &cursor, err));
    for (int i = 0; i < 2; i++) {
        ck_ok(annal_cursor_next(cursor, &event, err));
        ck_assert_uint_eq(event.msgpack.len, sizeof given - 1);
        ck_assert_int_eq(memcmp(event.msgpack.ptr, given, sizeof given - 1), 0);
    }
    annal_cursor_close(cursor);
}
END_TEST

/* ---- Failures ---- */

/* Open the store on a disk that fails on demand. */
static void open_on(const struct io *io)
{
    const struct seams seams = {.io = io, .clock = &annal__system_clock};
    const annal_store_options options = {.create = true, .no_keeper = true};
    packs_close(&p);
    ck_ok(annal__store_open(p.path, &options, &seams, &p.store, err));
    ck_ok(annal_index_open(p.store, NULL, &p.index, err));
}

static void abandon(void)
{
    annal_index_close(p.index);
    (void)annal_store_close(p.store, NULL); /* it reports the lost events again */
    p.index = NULL;
    p.store = NULL;
}

START_TEST(a_retry_after_an_unknown_outcome_agrees_with_the_tables)
{
    struct picky_io disk;
    uint64_t seq = 0;
    setup();
    ck_append(&p, "proj", "task.added", ADD("a"));
    picky_io_init(&disk);
    open_on(&disk.io);
    ck_ok(packs_append_id(&p, "proj", "task.added", ADD("b"), "one", &seq, err));
    picky_io_fail(&disk, PICKY_SYNC, "commit/", EIO, -1);
    annal_error error = {0};
    annal_status status =
        packs_append_id(&p, "proj", "task.claimed", ADD("a"), "two", &seq, &error);
    ck_assert_msg(status == ANNAL_ERR_UNKNOWN || status == ANNAL_ERR_DISK, "%s", error.message);
    abandon();
    packs_reopen(&p);
    char *before = packs_rows(&p, "SELECT state FROM tasks WHERE id = 'a'");
    ck_ok(packs_append_id(&p, "proj", "task.claimed", ADD("a"), "two", &seq, err));
    ck_assert_uint_eq(seq, 3);
    ck_packs(&p, "SELECT state FROM tasks WHERE id = 'a'", "claimed\n");
    ck_packs(&p, "SELECT COUNT(*) FROM event_index", "3\n");
    packs_ck_rebuild(&p, "tasks.db", 8);
    free(before);
}
END_TEST

/* Kill the process after its first write into a journal. */
static ssize_t write_and_die(void *arg, int fd, const void *bytes, size_t len, uint64_t offset)
{
    char name[64], path[512];
    ssize_t written = annal__system_io.pwrite(arg, fd, bytes, len, offset);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t got = readlink(name, path, sizeof path - 1);
    path[got < 0 ? 0 : got] = '\0';
    if (strstr(path, "/events/") != NULL)
        raise(SIGKILL);
    return written;
}

START_TEST(guards_of_other_sessions_see_the_events_of_a_killed_process)
{
    struct io io = annal__system_io;
    int how = 0;
    setup();
    ck_append(&p, "one", "task.added", ADD("a"));
    ck_append(&p, "two", "task.added", ADD("b"));
    packs_close(&p);
    io.pwrite = write_and_die;
    (void)fflush(stdout);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        const struct seams seams = {.io = &io, .clock = &annal__system_clock};
        const annal_store_options options = {.create = true, .no_keeper = true};
        if (annal__store_open(p.path, &options, &seams, &p.store, NULL) >= 0 &&
            annal_index_open(p.store, NULL, &p.index, NULL) >= 0)
            (void)packs_append(&p, "one", "task.added", ADD("c"), NULL);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert(WIFSIGNALED(how));
    packs_reopen(&p);
    ck_refused(&p, "two", "task.added", ADD("c"), "there is a task of this id already");
    ck_refused(&p, "two", "task.added", ADD("c"), "there is a task of this id already");
    ck_append(&p, "two", "task.added", ADD("d"));
    ck_packs(&p, "SELECT id, session_id FROM tasks ORDER BY 1", "a|one\nb|two\nc|one\nd|two\n");
    packs_ck_rebuild(&p, "tasks.db", 1);
}
END_TEST

START_TEST(guards_see_events_appended_while_their_pack_was_disabled)
{
    char path[600];
    setup();
    ck_append(&p, "one", "task.added", ADD("a"));
    snprintf(path, sizeof path, "%s/packs/tasks.sql", p.path);
    ck_assert_int_eq(unlink(path), 0);
    ck_append(&p, "one", "task.added", "{\"id\":\"b\",\"n\":2}");
    setup();
    ck_refused(&p, "two", "task.added", ADD("b"), "there is a task of this id already");
    packs_ck_rebuild(&p, "tasks.db", 1);
}
END_TEST

START_TEST(guards_wait_until_a_rebuilt_pack_is_filled)
{
    char path[600];
    setup();
    ck_append(&p, "one", "task.added", ADD("a"));
    char text[sizeof TASKS + 100];
    snprintf(text, sizeof text, "%s-- on note.more\nDELETE FROM notes WHERE id = $id;\n", TASKS);
    packs_add(&p, "tasks", text);
    ck_refused(&p, "two", "task.added", ADD("a"), "there is a task of this id already");
    for (int i = 0; i < 3; i++) { /* the same pack without its database */
        static const char *const ends[] = {"", "-wal", "-shm"};
        snprintf(path, sizeof path, "%s/tasks.db%s", p.path, ends[i]);
        (void)unlink(path);
    }
    ck_refused(&p, "two", "task.added", ADD("a"), "there is a task of this id already");
}
END_TEST

START_TEST(a_full_disk_refuses_the_event_and_no_row_is_written)
{
    struct picky_io disk;
    setup();
    ck_append(&p, "proj", "task.added", ADD("a"));
    picky_io_init(&disk);
    open_on(&disk.io);
    picky_io_fail(&disk, PICKY_WRITE, "commit/", ENOSPC, -1);
    annal_error error = {0};
    ck_assert_int_lt(packs_append(&p, "proj", "task.claimed", ADD("a"), &error), 0);
    ck_packs(&p, "SELECT state FROM tasks WHERE id = 'a'", "ready\n");
    abandon();
    packs_reopen(&p);
    ck_packs(&p, "SELECT state FROM tasks WHERE id = 'a'", "ready\n");
    ck_append(&p, "proj", "task.claimed", ADD("a"));
}
END_TEST

START_TEST(a_program_that_locks_the_tables_blocks_only_guarded_appends)
{
    char path[600];
    sqlite3 *db = NULL;
    setup();
    ck_append(&p, "proj", "task.added", ADD("a"));
    annal_index_close(p.index);
    ck_ok(annal_index_open(p.store, &(annal_index_options){.wait_ms = 50}, &p.index, err));
    snprintf(path, sizeof path, "%s/tasks.db", p.path);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    ck_fails(ANNAL_ERR_BUSY, "locked", packs_append(&p, "proj", "task.claimed", ADD("a"), err));
    ck_append(&p, "proj", "something.else", "{}");
    ck_assert_int_eq(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    ck_append(&p, "proj", "task.claimed", ADD("a"));
    ck_packs(&p, "SELECT COUNT(*) FROM event_index", "3\n");
}
END_TEST

START_TEST(a_store_open_for_reading_refuses_guarded_events)
{
    setup();
    ck_append(&p, "proj", "task.added", ADD("a"));
    packs_close(&p);
    const annal_store_options options = {.read_only = true};
    annal_writer *writer = NULL;
    ck_ok(annal_store_open(p.path, &options, &p.store, err));
    ck_ok(annal_index_open(p.store, NULL, &p.index, err));
    ck_fails(ANNAL_ERR_READONLY, "reading only",
             annal_writer_open(p.store, ANNAL_SLICE("proj"), NULL, &writer, err));
}
END_TEST

/* ---- A file with an error ---- */

static void write_tasks(const char *find, const char *replacement)
{
    const char *at = strstr(TASKS, find);
    ck_assert_ptr_nonnull(at);
    struct text text = {0};
    text_add(&text, TASKS, (size_t)(at - TASKS));
    text_add(&text, replacement, strlen(replacement));
    text_add(&text, at + strlen(find), strlen(at + strlen(find)));
    file_write(tmpdir_path(&p.dir, "store/packs/tasks.sql"), text.ptr, text.len);
    free(text.ptr);
    packs_reopen(&p);
}

START_TEST(a_pack_with_an_error_refuses_its_guarded_events_until_it_is_corrected)
{
    static const char *const errors[][2] = {
        {"DELETE FROM notes", "DELETE FRM notes"},         /* SQL */
        {"guarded \"the task", "guraded \"the task"},      /* the guard itself */
        {"-- on task.claimed", "-- onn task.claimed"},     /* its section */
        {"database tasks.db", "database sessions.db"},     /* the first line */
        {"-- forget\n", "-- on task.claimed   guarded\n"}, /* a guard without a sentence */
        {"-- on task.claimed", "-- o n task.claimed"},
        {"-- on task.claimed   guarded", "-- on t.ask d"}, /* a line with another type */
        {TASKS, ""},                                       /* an empty file */
    };
    setup();
    ck_append(&p, "proj", "task.added", ADD("a"));
    ck_append(&p, "proj", "task.claimed", "{\"id\":\"a\",\"run\":\"r1\"}");
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        annal_error error = {0};
        write_tasks(errors[i][0], errors[i][1]);
        ck_assert_msg(packs_append(&p, "proj", "task.claimed", "{\"id\":\"a\",\"run\":\"r2\"}",
                                   &error) == ANNAL_ERR_REFUSED,
                      "%s", errors[i][1]);
        ck_assert_ptr_nonnull(strstr(
            error.message, "the guards of pack 'tasks', because the pack's file has an error"));
        ck_assert_ptr_nonnull(strstr(error.message, "tasks.sql:"));
        ck_assert_int_eq(packs_append(&p, "proj", "task.added", ADD("b"), &error),
                         ANNAL_ERR_REFUSED); /* a fill section counts as a guard */
        ck_append(&p, "proj", "other.event", "{}");
    }
    write_tasks("-- pack tasks", "-- pack tasks");
    ck_refused(&p, "proj", "task.claimed", "{\"id\":\"a\",\"run\":\"r2\"}",
               "the task is not ready, or another run has claimed it");
    ck_append(&p, "proj", "task.added", ADD("b"));
}
END_TEST

/* The guards of a pack outlive the text of its file. */
START_TEST(a_pack_whose_file_is_no_longer_text_refuses_the_events_it_guarded)
{
    static const char *const bytes[] = {"", "\0\0", "-- pack tasks\0"};
    const size_t lengths[] = {0, 2, 14};
    const char *file = tmpdir_path(&p.dir, "store/packs/tasks.sql");
    setup();
    ck_append(&p, "proj", "task.added", ADD("a"));
    for (size_t i = 0; i < 3; i++) {
        annal_error error = {0};
        file_write(file, bytes[i], lengths[i]);
        packs_reopen(&p);
        ck_assert_int_eq(packs_append(&p, "proj", "task.added", ADD("b"), &error),
                         ANNAL_ERR_REFUSED);
        ck_assert_ptr_nonnull(strstr(error.message, ": a pack must be a text file"));
        ck_append(&p, "proj", "other.event", "{}");
    }
    ck_assert_int_eq(unlink(tmpdir_path(&p.dir, "store/packs/.tasks.guards")), 0);
    packs_reopen(&p);
    ck_assert_int_eq(packs_append(&p, "proj", "other.event", "{}", NULL), ANNAL_ERR_REFUSED);
    write_tasks("-- pack tasks", "-- pack tasks");
    ck_append(&p, "proj", "task.added", ADD("b"));
}
END_TEST

START_TEST(a_guard_removed_before_the_file_became_wrong_refuses_nothing)
{
    setup();
    write_tasks(
        "-- on task.claimed   guarded \"the task is not ready, or another run has claimed it\"",
        "-- on task.claimed");
    ck_append(&p, "proj", "task.added", ADD("a"));
    file_write(tmpdir_path(&p.dir, "store/packs/tasks.sql"), "", 0);
    packs_reopen(&p);
    ck_append(&p, "proj", "task.claimed", ADD("a"));
}
END_TEST

START_TEST(a_list_of_packs_with_a_byte_0_disables_no_guard)
{
    annal_error error = {0};
    PACKS_ENABLE(&p, "teams");
    file_write(tmpdir_path(&p.dir, "store/packs/enabled"), "\0eams\n", 6);
    packs_reopen(&p);
    ck_assert_int_eq(packs_append(&p, "s", "other.event", "{}", &error), ANNAL_ERR_REFUSED);
    ck_assert_ptr_nonnull(
        strstr(error.message, "packs/enabled: the list of packs contains a byte 0"));
}
END_TEST

/* ---- Verification ---- */

static int collect(void *arg, const annal_pack_finding *finding)
{
    text_add(arg, finding->remark ? "remark: " : "finding: ", finding->remark ? 8 : 9);
    text_add(arg, finding->what, strlen(finding->what));
    text_add(arg, "\n", 1);
    return 0;
}

START_TEST(verify_reports_events_that_bypassed_their_guard)
{
    struct text text = {0};
    setup();
    ck_append(&p, "proj", "task.added", ADD("a"));
    ck_append(&p, "proj", "task.claimed", ADD("a"));
    packs_append_past(&p, "proj", "task.claimed", "{\"id\":\"a\",\"run\":\"late\"}");
    packs_append_past(&p, "other", "name.taken", "{\"name\":\"n\"}");
    packs_append_past(&p, "proj", "task.moved", "{\"id\":\"a\",\"to\":\"done\"}");
    free(packs_rows(&p, "SELECT 1 FROM tasks"));
    text_add(&text, "", 0);
    ck_ok(annal_pack_verify(p.index, collect, &text, err));
    ck_assert_str_eq(text.ptr,
                     "finding: event 3 of session 'proj': task.claimed was appended although its "
                     "guard refuses it: the task is not ready, or another run has claimed it\n");
    free(text.ptr);
}
END_TEST

/* Terminal statuses of a lionagi session. */
static bool is_terminal(const char *status)
{
    static const char *const ends[] = {"completed", "failed", "timed_out", "aborted", "cancelled"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strncmp(status, ends[i], strlen(ends[i])) == 0)
            return true;
    return false;
}

START_TEST(no_sequence_of_accepted_events_leaves_a_terminal_status_without_override_and_reason)
{
    static const char *const statuses[] = {"running", "completed", "failed", "timed_out",
                                           "aborted", "cancelled", "idle",   "nonsense"};
    struct random random = random_init(77);
    unsigned accepted = 0, left = 0;
    PACKS_ENABLE(&p, "lionagi");
    ck_append(&p, "s", "session.created", "{\"status\":\"running\"}");
    char *before = packs_rows(&p, "SELECT status FROM state.sessions WHERE id = 's'");
    for (unsigned step = 0; step < 250; step++) {
        char data[300];
        annal_error error = {0};
        bool override = random_below(&random, 3) == 0, reason = random_below(&random, 2) == 0;
        const char *to = statuses[random_below(&random, 8)];
        static const char *const types[] = {"session.transition", "session.transition",
                                            "session.updated", "session.created", "session.ended"};
        const char *type = types[random_below(&random, 5)];
        bool updates = strcmp(type, "session.updated") == 0;
        snprintf(data, sizeof data,
                 updates ? "{\"set\":{\"status\":\"%s\"}%s%s}"
                         : "{\"to\":\"%s\",\"status\":\"running\"%s%s}",
                 to, override ? ",\"override\":true" : "",
                 reason ? ",\"reason_summary\":\"it was wrong\"" : "");
        if (packs_append(&p, "s", type, data, &error) < 0)
            continue;
        char *after = packs_rows(&p, "SELECT status FROM state.sessions WHERE id = 's'");
        accepted++;
        if (strcmp(before, after) != 0 && is_terminal(before)) {
            left++;
            ck_assert_msg(override && reason, "%.20s became %.20s by %s %s", before, after, type,
                          data);
        }
        free(before);
        before = after;
    }
    ck_assert_uint_gt(accepted, 10);
    ck_assert_uint_gt(left, 2);
    free(before);
    packs_ck_rebuild(&p, "state.db", 9);
}
END_TEST

Suite *suite_guard(void)
{
    Suite *suite = suite_create("guard");
    TCase *all = suite_case(suite, "all", packs_setup, packs_teardown);
    tcase_add_test(all, a_refusal_has_the_message_of_the_pack_and_writes_nothing);
    tcase_add_test(all, a_refused_first_event_creates_no_session);
    tcase_add_test(all, a_retry_returns_the_first_seq_even_if_the_guard_would_now_refuse);
    tcase_add_test(all, a_retry_that_its_guard_would_permit_again_changes_no_row);
    tcase_add_test(all, each_draft_sees_the_rows_of_earlier_drafts_and_all_or_none_are_appended);
    tcase_add_test(all, the_callers_expected_seq_is_honoured);
    tcase_add_test(all, a_guard_waits_for_pending_events_of_its_process);
    tcase_add_test(all, a_guard_does_not_refuse_an_event_that_a_pending_event_permits);
    tcase_add_test(all, unguarded_types_are_appended_without_a_guard);
    tcase_add_test(all, a_sweep_right_after_an_append_at_level_batch_keeps_its_artifact);
    tcase_add_test(all, msgpack_is_guarded_like_json);
    tcase_add_test(all, msgpack_unchanged_by_packs_is_kept_byte_for_byte);
    tcase_add_test(all, a_retry_after_an_unknown_outcome_agrees_with_the_tables);
    tcase_add_test(all, guards_of_other_sessions_see_the_events_of_a_killed_process);
    tcase_add_test(all, guards_see_events_appended_while_their_pack_was_disabled);
    tcase_add_test(all, guards_wait_until_a_rebuilt_pack_is_filled);
    tcase_add_test(all, a_full_disk_refuses_the_event_and_no_row_is_written);
    tcase_add_test(all, a_program_that_locks_the_tables_blocks_only_guarded_appends);
    tcase_add_test(all, a_store_open_for_reading_refuses_guarded_events);
    tcase_add_test(all, a_pack_with_an_error_refuses_its_guarded_events_until_it_is_corrected);
    tcase_add_test(all, a_pack_whose_file_is_no_longer_text_refuses_the_events_it_guarded);
    tcase_add_test(all, a_guard_removed_before_the_file_became_wrong_refuses_nothing);
    tcase_add_test(all, a_list_of_packs_with_a_byte_0_disables_no_guard);
    tcase_add_test(all, verify_reports_events_that_bypassed_their_guard);
    tcase_add_test(
        all, no_sequence_of_accepted_events_leaves_a_terminal_status_without_override_and_reason);
    return suite;
}
