/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/databases.h"
#include "journal/sys/delete.h"
#include "tests/packs/fixture.h"
#include "tests/support/runner.h"

#include "journal/store.h"
#include "tests/support/failing_io.h"

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void setup(void)
{
    packs_setup();
    PACKS_ENABLE(&p, "lionagi");
}

/* ---- In a store, through the guards ---- */

static void add_message(const char *session, const char *id, const char *more)
{
    char data[300];
    snprintf(data, sizeof data, "{\"id\":\"%s\",\"role\":\"user\",\"content\":{\"n\":1}%s}", id,
             more);
    ck_append(&p, session, "message.added", data);
}

/* In a child with a store of its own: returns 0 if it registered the class, 1 if it was refused. */
static int register_in_child(const char *path)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_writer *writer = NULL;
    annal_error err = {0};
    const annal_draft draft = {.type = ANNAL_SLICE("message_type.registered"),
                               .data = ANNAL_SLICE("{\"lion_class\":\"my.Thing\"}")};
    annal_status status =
        annal_store_open(path, &(annal_store_options){.no_keeper = true}, &store, &err);
    if (status >= 0)
        status = annal_index_open(store, NULL, &index, &err);
    if (status >= 0)
        status = annal_writer_open(store, ANNAL_SLICE("_state"),
                                   &(annal_writer_options){.wait_ms = 30000}, &writer, &err);
    if (status >= 0)
        status = annal_pack_append(index, writer, &draft, 1, NULL, NULL, &err);
    annal_writer_close(writer);
    annal_index_close(index);
    if (store != NULL && annal_store_close(store, NULL) < 0)
        return 3;
    return status == ANNAL_OK ? 0 : status == ANNAL_ERR_REFUSED ? 1 : 2;
}

START_TEST(one_of_several_processes_registers_a_class)
{
    enum { CHILDREN = 8 };
    pid_t children[CHILDREN];
    int answers[4] = {0};
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(register_in_child(p.path));
    }
    for (int i = 0; i < CHILDREN; i++) {
        int status = 0;
        waitpid(children[i], &status, 0);
        ck_assert(WIFEXITED(status));
        answers[WEXITSTATUS(status)]++;
    }
    ck_assert_int_eq(answers[0], 1);
    ck_assert_int_eq(answers[1], CHILDREN - 1);
    ck_packs(&p, "SELECT type_id FROM message_types WHERE lion_class = 'my.Thing'", "6\n");
    ck_packs(&p, "SELECT count(*) FROM event_index WHERE type = 'message_type.registered'", "1\n");
}
END_TEST

/* s1 was pruned with all its ids; s2 and s0, the first by name, use these ids past the guards. */
START_TEST(a_pruned_id_is_not_used_again_in_any_order)
{
    static const char *const later[] = {"s2", "s0"};
    p.past_us = 1500000000000000;
    for (int round = 0; round < 2; round++) {
        packs_append_past(&p, round == 0 ? "s1" : "s3", "session.created", "{}");
        packs_append_past(&p, round == 0 ? "s1" : "s3", "branch.created", "{\"id\":\"b\"}");
        packs_append_past(&p, round == 0 ? "s1" : "s3", "message.added",
                          "{\"id\":\"m\",\"role\":\"user\",\"content\":1,\"branch_id\":\"b\"}");
        packs_append_past(&p, round == 0 ? "s1" : "s3", "session.pruned",
                          "{\"orphan_progressions\":true,\"keep_progressions\":[],"
                          "\"keep_messages\":[]}");
    }
    ck_packs(&p, "SELECT kind, id, session_id FROM pruned_ids ORDER BY 1, 2",
             "branch|b|s1\nmessage|m|s1\nprogression|b|s1\nprogression|s1|s1\nprogression|s3|s3\n");
    ck_append(&p, "s2", "session.created", "{}");
    ck_refused(&p, "s2", "branch.created", "{\"id\":\"b\"}", "which was pruned");
    ck_refused(&p, "s2", "message.added", "{\"id\":\"m\",\"role\":\"user\",\"content\":1}",
               "which was pruned");
    for (int i = 0; i < 2; i++) {
        packs_append_past(&p, later[i], "branch.created", "{\"id\":\"b\"}");
        packs_append_past(&p, later[i], "message.added",
                          "{\"id\":\"m\",\"role\":\"user\",\"content\":2,\"branch_id\":\"b\"}");
        ck_packs(&p, "SELECT id, session_id FROM messages", i == 0 ? "" : "m|s0\n");
        for (unsigned seed = 1; seed < 8; seed++)
            packs_ck_rebuild(&p, "state.db", seed);
    }
    ck_packs(&p, "SELECT id, session_id FROM branches", "b|s0\n");
    ck_packs(&p, "SELECT id FROM pruned_ids ORDER BY 1", "s1\ns3\n");
}
END_TEST

/* Tables of an older version of the pack: pack_database.c compares them with its own. */
START_TEST(tables_without_the_late_columns_gain_them_in_place)
{
    add_message("s1", "m1", "");
    ck_packs(&p, "SELECT 1 FROM messages LIMIT 0", "");
    for (int i = 0; i < 2; i++) {
        ck_text(
            packs_shell(
                &p, "state.db",
                i == 0
                    ? "ALTER TABLE sessions DROP COLUMN process; ALTER TABLE sessions DROP COLUMN "
                      "reason_codes; ALTER TABLE sessions DROP COLUMN delivery; ALTER TABLE "
                      "sessions "
                      "DROP COLUMN health; DROP INDEX idx_messages_sender; UPDATE _pack SET "
                      "tables_hash = 1; INSERT INTO messages (id, session_id) VALUES ('mark', 's');"
                    : ""),
            "");
        packs_reopen(&p);
        ck_append(&p, "s1", "session.updated", "{\"set\":{\"health\":\"poor\"}}");
        ck_packs(&p, "SELECT id, health, delivery, reason_codes, process FROM state.sessions",
                 "s1|poor||[]|\n");
        ck_packs(&p, "SELECT count(*) FROM messages WHERE id = 'mark'", "1\n");
        ck_packs(&p, "SELECT count(*) FROM state.sqlite_schema WHERE name = 'idx_messages_sender'",
                 "1\n");
    }
}
END_TEST

START_TEST(an_old_check_on_the_status_is_dropped_and_rows_and_indexes_stay)
{
    ck_append(&p, "s1", "session.created", "{\"status\":\"running\",\"name\":\"n\"}");
    ck_packs(&p, "SELECT 1 FROM messages LIMIT 0", "");
    ck_text(
        packs_shell(
            &p, "state.db",
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, "
            "'status          TEXT', 'status TEXT CHECK (status IN (''running'', ''completed'', "
            "''failed'', ''aborted''))') WHERE name = 'sessions'; UPDATE _pack SET tables_hash = "
            "1; "
            "SELECT changes();"),
        "1\n");
    for (int i = 0; i < 2; i++) {
        packs_reopen(&p);
        ck_packs(&p, "SELECT id, name, status FROM state.sessions",
                 i == 0 ? "s1|n|running\n" : "s1|n|timed_out\n");
        ck_packs(&p,
                 "SELECT sql LIKE '%timed_out%' OR sql LIKE '%CHECK (status%' "
                 "FROM state.sqlite_schema WHERE name = 'sessions'",
                 "0\n");
        ck_packs(&p, "SELECT count(*) FROM pragma_index_list('sessions', 'state')", "4\n");
        if (i == 0)
            ck_append(&p, "s1", "session.transition", "{\"to\":\"timed_out\"}");
    }
}
END_TEST

static int count_pruned(void *arg, const annal_pruned *pruned)
{
    annal_pruned *sum = arg;
    ck_assert_ptr_null(pruned->kept);
    sum->branches += pruned->branches;
    sum->progressions += pruned->progressions;
    sum->messages += pruned->messages;
    return 0;
}

START_TEST(more_sessions_are_pruned_than_a_statement_has_parameters)
{
    enum { SESSIONS = 1050 };
    annal_pruned sum = {.branches = 0};
    p.past_us = 1500000000000000;
    for (unsigned i = 0; i < SESSIONS; i++) {
        char session[20];
        snprintf(session, sizeof session, "s%04u", i);
        packs_append_past(&p, session, "session.created", "{}");
    }
    add_message("s0001", "m", ",\"created_at\":1500000000");
    annal_prune_options options = {
        .before_us = 1600000000000000, .orphan_progressions = true, .dry_run = true};
    ck_ok(annal_session_prune(p.index, &options, count_pruned, &sum, err));
    ck_assert_uint_eq(sum.progressions, SESSIONS);
    ck_assert_uint_eq(sum.messages, 1);
    options.keep_n = SESSIONS - 3;
    options.dry_run = false;
    sum = (annal_pruned){.branches = 0};
    ck_ok(annal_session_prune(p.index, &options, count_pruned, &sum, err));
    ck_assert_uint_eq(sum.messages, 1);
    ck_packs(&p, "SELECT count(*), min(id) FROM state.sessions", "1047|s0003\n");
    ck_packs(&p, "SELECT count(*) FROM messages", "0\n");
    ck_packs(&p, "SELECT count(*) FROM progressions", "1047\n");
}
END_TEST

static int delete_pruned(void *arg, const annal_pruned *pruned)
{
    (void)arg;
    if (pruned->kept == NULL)
        ck_ok(annal__replace_delete(p.store, pruned->session, NULL, err));
    else
        ck_assert_ptr_nonnull(strstr(pruned->kept->message, "changed in the meantime"));
    return 0;
}

/* Open the store without a commit log on a disk that refuses writes to journals and logs. */
static void reopen_on_full_disk(struct failing_io *disk)
{
    packs_close(&p);
    ck_assert_int_eq(unlink(tmpdir_path(&p.dir, "store/commit/00.log")), 0);
    failing_io_init(disk);
    disk->only = "pwrite";
    disk->with_errno = ENOSPC;
    disk->for_good = true;
    disk->fail_at = 1;
    const struct seams seams = {.io = &disk->io, .clock = &annal__system_clock};
    const annal_store_options options = {.no_keeper = true, .wait_ms = 2000};
    ck_ok(annal__store_open(p.path, &options, &seams, &p.store, err));
    ck_ok(annal_index_open(p.store, NULL, &p.index, err));
}

START_TEST(on_a_full_disk_journals_are_pruned_without_an_event)
{
    static struct failing_io disk;
    annal_session_info info;
    p.past_us = 1500000000000000;
    packs_append_past(&p, "s1", "session.created", "{}");
    packs_append_past(&p, "s2", "session.created", "{}");
    ck_ok(annal_index_catch_up(p.index, (annal_slice){NULL, 0}, NULL, err));
    reopen_on_full_disk(&disk);
    annal_prune_options options = {.before_us = 1600000000000000};
    ck_fails(ANNAL_ERR_FULL, "No space",
             annal_session_prune(p.index, &options, delete_pruned, &p, err));
    ck_ok(annal_session_info_get(p.store, ANNAL_SLICE("s1"), &info, err));
    options.delete_journals = true;
    ck_ok(annal_session_prune(p.index, &options, delete_pruned, &p, err));
    ck_fails(ANNAL_ERR_NOTFOUND, "no session 's1'",
             annal_session_info_get(p.store, ANNAL_SLICE("s1"), &info, err));
    ck_fails(ANNAL_ERR_NOTFOUND, "no session 's2'",
             annal_session_info_get(p.store, ANNAL_SLICE("s2"), &info, err));
}
END_TEST

/* Forbid or allow this process files larger than 256 KiB; it can still write smaller files. */
static void limit_files(bool limited)
{
    static struct rlimit before;
    static void (*handler)(int);
    struct rlimit little = {.rlim_cur = 256 << 10};
    if (limited) {
        ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
        handler = signal(SIGXFSZ, SIG_IGN);
    }
    little.rlim_max = before.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, limited ? &little : &before), 0);
    if (!limited)
        signal(SIGXFSZ, handler);
}

static int ck_needed(void *arg, const annal_pruned *pruned)
{
    (void)arg;
    ck_assert_ptr_null(pruned->kept);
    ck_assert_str_eq(pruned->session.ptr, "s1");
    ck_assert_str_eq(pruned->needed_by.ptr, "s2");
    return 0;
}

static int no_pruned(void *arg, const annal_pruned *pruned)
{
    (void)arg;
    ck_abort_msg("'%.*s' is told", ANNAL_FMT(pruned->session));
}

/* 0: state.db cannot store the event that names a message of s1; 1: state.db cannot be opened. */
START_TEST(no_journal_is_pruned_if_the_tables_cannot_be_filled)
{
    enum { LARGE = 600 << 10 };
    struct failing_io disk;
    annal_prune_options options = {.before_us = 1600000000000000, .delete_journals = true};
    const char *state = tmpdir_path(&p.dir, "store/state.db");
    const char *away = tmpdir_path(&p.dir, "state.db");
    p.past_us = 1500000000000000;
    packs_append_past(&p, "s1", "session.created", "{}");
    packs_append_past(&p, "s1", "message.added", "{\"id\":\"m1\",\"role\":\"user\",\"content\":1}");
    p.past_us = 1700000000000000;
    packs_append_past(&p, "s2", "session.created", "{}");
    ck_ok(annal_index_catch_up(p.index, (annal_slice){NULL, 0},
                               &(annal_catch_up_options){.packs = true}, err));
    char *data = malloc(LARGE + 200);
    int begin = sprintf(data, "{\"id\":\"m2\",\"role\":\"user\",\"content\":\"");
    memset(data + begin, 'x', LARGE);
    strcpy(data + begin + LARGE, "\"}");
    packs_append_past(&p, "s2", "message.added", data);
    free(data);
    packs_append_past(&p, "s2", "progression.created", "{\"id\":\"p2\"}");
    packs_append_past(&p, "s2", "progression.appended",
                      "{\"progression_id\":\"p2\",\"message_id\":\"m1\"}");
    reopen_on_full_disk(&disk);
    if (_i == 0) {
        limit_files(true);
    } else {
        options.dry_run = true; /* otherwise the guard of session.pruned fails first */
        ck_assert_int_eq(rename(state, away), 0);
        ck_assert_int_eq(mkdir(state, 0700), 0);
    }
    annal_error error = {0};
    annal_status status = annal_session_prune(p.index, &options, no_pruned, NULL, &error);
    if (_i == 0)
        limit_files(false);
    else
        ck_assert_int_eq(rmdir(state) + rename(away, state), 0);
    ck_assert_msg(status == ANNAL_ERR_BUSY &&
                      strstr(error.message, "cannot find out which journals are needed") != NULL,
                  "%s: %s", annal_status_name(status), error.message);
    packs_reopen(&p);
    options.dry_run = false;
    ck_ok(annal_session_prune(p.index, &options, ck_needed, NULL, err));
}
END_TEST

/* A reader attaches ten databases: of eleven packs, the last by name is left out. */
START_TEST(no_journal_is_pruned_if_the_tables_of_its_users_cannot_be_attached)
{
    enum { OTHERS = 10 };
    const annal_prune_options options = {.before_us = 1600000000000000, .delete_journals = true};
    p.past_us = 1500000000000000;
    packs_append_past(&p, "s1", "session.created", "{}");
    ck_packs(&p, "SELECT id FROM state.sessions", "s1\n");
    for (unsigned i = 0; i < OTHERS; i++) {
        char name[20], pack[200];
        snprintf(name, sizeof name, "a%u", i);
        snprintf(pack, sizeof pack,
                 "-- pack %s   version 1   database %s.db\n"
                 "CREATE TABLE t%u (n INTEGER);\n"
                 "-- on a\nINSERT INTO t%u VALUES (1);\n",
                 name, name, i, i);
        packs_add(&p, name, pack);
    }
    ck_fails(ANNAL_ERR_BUSY, "'lionagi' cannot be queried",
             annal_session_prune(p.index, &options, no_pruned, NULL, err));
}
END_TEST

static int count_calls(void *arg, const annal_pruned *pruned)
{
    unsigned *count = arg;
    ck_assert_ptr_null(pruned->kept);
    (*count)++;
    return 0;
}

/* Bytes by which files on the disk can still grow. */
static uint64_t room;

static ssize_t write_little(void *arg, int fd, const void *bytes, size_t len, uint64_t offset)
{
    struct stat file;
    uint64_t grows = 0;
    if (fstat(fd, &file) == 0 && offset + len > (uint64_t)file.st_size)
        grows = offset + len - (uint64_t)file.st_size;
    if (grows > room) {
        errno = ENOSPC;
        return -1;
    }
    room -= grows;
    return annal__system_io.pwrite(arg, fd, bytes, len, offset);
}

static int has_little(void *arg, int fd, struct io_space *out_space)
{
    int failed = annal__system_io.space(arg, fd, out_space);
    out_space->free_bytes = room;
    return failed;
}

/* With the log of an earlier process, or without a log and with room for less than a log, or hardly
 * more. */
START_TEST(on_an_almost_full_disk_sessions_are_pruned_and_nothing_else_is_appended)
{
    struct io io = annal__system_io;
    unsigned pruned = 0;
    annal_session_info info;
    p.past_us = 1500000000000000;
    packs_append_past(&p, "s1", "session.created", "{}");
    packs_append_past(&p, "s2", "session.created", "{}");
    ck_ok(annal_index_catch_up(p.index, (annal_slice){NULL, 0}, NULL, err));
    packs_close(&p);
    if (_i > 0)
        ck_assert_int_eq(unlink(tmpdir_path(&p.dir, "store/commit/00.log")), 0);

    room = _i == 2 ? (2 << 20) + (16 << 10) : 1 << 20;
    io.pwrite = write_little;
    io.space = has_little;
    const struct seams seams = {.io = &io, .clock = &annal__system_clock};
    const annal_store_options store_options = {.no_keeper = true, .wait_ms = 2000};
    ck_ok(annal__store_open(p.path, &store_options, &seams, &p.store, err));
    ck_ok(annal_index_open(p.store, NULL, &p.index, err));
    const annal_prune_options options = {.before_us = 1600000000000000};
    ck_ok(annal_session_prune(p.index, &options, count_calls, &pruned, err));
    ck_assert_uint_eq(pruned, 2);
    ck_packs(&p, "SELECT count(*) FROM state.sessions", "0\n");
    ck_ok(annal_session_info_get(p.store, ANNAL_SLICE("s1"), &info, err));
    ck_assert_uint_eq(info.last_seq, 2);
    p.past_us = 0;
    ck_fails(ANNAL_ERR_FULL, "nothing was written",
             packs_append(&p, "s3", "session.created", "{}", err));
    packs_reopen(&p);
    ck_assert_int_eq(access(tmpdir_path(&p.dir, "store/commit/00.log"), F_OK), _i > 0 ? -1 : 0);
    ck_packs(&p, "SELECT count(*) FROM state.sessions", "0\n");
    ck_append(&p, "s3", "session.created", "{}");
}
END_TEST

static int delete_what_goes(void *arg, const annal_pruned *pruned)
{
    (void)arg;
    if (pruned->kept == NULL && pruned->needed_by.len == 0)
        ck_ok(annal__replace_delete(p.store, pruned->session, NULL, err));
    else
        ck_assert_str_eq(pruned->kept->message, "messages of team 't' refer to the session");
    return 0;
}

START_TEST(prune_keeps_a_session_that_a_team_refers_to)
{
    annal_session_info info;
    PACKS_ENABLE(&p, "teams");
    ck_append(&p, "team_t", "team.created", "{\"name\":\"t\",\"members\":[\"alice\"]}");
    ck_append(&p, "team_t", "team.message",
              "{\"id\":\"m1\",\"sender\":\"alice\",\"to\":\"all\",\"content\":\"hi\","
              "\"session_id\":\"s1\"}");
    p.past_us = 1500000000000000;
    packs_append_past(&p, "s1", "session.created", "{}");
    packs_append_past(&p, "s2", "session.created", "{}");
    const annal_prune_options options = {.before_us = 1600000000000000, .delete_journals = true};
    ck_ok(annal_session_prune(p.index, &options, delete_what_goes, &p, err));
    ck_ok(annal_session_info_get(p.store, ANNAL_SLICE("s1"), &info, err));
    ck_fails(ANNAL_ERR_NOTFOUND, "there is no session",
             annal_session_info_get(p.store, ANNAL_SLICE("s2"), &info, err));
}
END_TEST

static int note_kept(void *arg, const annal_pruned *pruned)
{
    (void)arg;
    if (pruned->session.len == 2) /* the first session; the second becomes active now */
        packs_append_past(&p, "s2-late", "message.added",
                          "{\"id\":\"late\",\"role\":\"user\",\"content\":1,\"created_at\":2e9}");
    else
        ck_assert_ptr_nonnull(strstr(pruned->kept->message, "changed since it was selected"));
    return 0;
}

START_TEST(a_session_that_becomes_active_during_a_prune_is_kept)
{
    p.past_us = 1500000000000000;
    packs_append_past(&p, "s1", "session.created", "{}");
    packs_append_past(&p, "s2-late", "session.created", "{}");
    const annal_prune_options options = {.before_us = 1600000000000000};
    ck_ok(annal_session_prune(p.index, &options, note_kept, &p, err));
    ck_packs(&p, "SELECT id FROM state.sessions", "s2-late\n");
    packs_ck_rebuild(&p, "state.db", 12);
}
END_TEST

static int note_table(void *arg, const char *database, annal_slice name, uint64_t rows)
{
    struct text *text = arg;
    char line[100];
    if (strcmp(database, "notes.db") == 0 && name.ptr[0] == 'x')
        text_add(text, line,
                 (size_t)snprintf(line, sizeof line, "%.*s %llu\n", ANNAL_FMT(name),
                                  (unsigned long long)rows));
    return 0;
}

/* Only users can have created such a table, in a writable database. */
START_TEST(tables_of_an_unknown_module_are_not_counted)
{
    struct text text = {0};
    packs_add(&p, "notes",
              "-- pack notes   version 1   database notes.db   sessions s1   writable\n"
              "CREATE TABLE IF NOT EXISTS x_mine (a);\n");
    ck_packs(&p, "SELECT 1 FROM x_mine LIMIT 0", "");
    ck_text(packs_shell(&p, "notes.db",
                        "INSERT INTO x_mine VALUES (1); PRAGMA writable_schema = ON; "
                        "INSERT INTO sqlite_schema VALUES ('table', 'x_far', 'x_far', 0, "
                        "'CREATE VIRTUAL TABLE x_far USING nothing_of_ours(a)');"),
            "");
    ck_ok(annal__maintain_tables(p.index, note_table, &text, err));
    ck_assert_str_eq(text.ptr, "x_mine 1\n");
    free(text.ptr);
}
END_TEST

/*
 * In a child: append count events to a session, each with its own id. The keeper of the child gives
 * the session to other processes while it waits.
 */
static int append_in_child(const char *path, const char *session, char mark, int count)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_writer *writer = NULL;
    annal_error err = {0};
    annal_status status =
        annal_store_open(path, &(annal_store_options){.wait_ms = 30000}, &store, &err);
    if (status >= 0)
        status = annal_index_open(store, &(annal_index_options){.wait_ms = 30000}, &index, &err);
    for (int i = 0; status >= 0 && i < count; i++) {
        char data[100];
        snprintf(data, sizeof data,
                 "{\"id\":\"%c%d\",\"role\":\"user\",\"content\":%d,\"set\":{\"name\":\"n\"}}",
                 mark, i, i);
        const annal_draft draft = {.type = mark == 'u' ? ANNAL_SLICE("session.updated")
                                                       : ANNAL_SLICE("message.added"),
                                   .data = annal_slice_of(data)};
        status = annal_writer_open(store, annal_slice_of(session),
                                   &(annal_writer_options){.wait_ms = 30000}, &writer, &err);
        if (status >= 0)
            status = annal_pack_append(index, writer, &draft, 1, NULL, NULL, &err);
        annal_writer_close(writer);
        writer = NULL;
    }
    if (status < 0)
        fprintf(stderr, "%c: %s\n", mark, err.message);
    annal_index_close(index);
    if (store != NULL && annal_store_close(store, NULL) < 0)
        return 3;
    return status < 0 ? 2 : 0;
}

static void wait_for(const pid_t *children, int count)
{
    for (int i = 0; i < count; i++) {
        int status = 0;
        waitpid(children[i], &status, 0);
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), 0);
    }
}

START_TEST(a_third_process_sees_the_rows_of_two_others_and_a_held_lock_is_an_error)
{
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(append_in_child(p.path, i == 0 ? "s1" : "s2", i == 0 ? 'a' : 'b', 10));
    }
    wait_for(children, 2);
    ck_packs(&p, "SELECT count(*), count(DISTINCT session_id) FROM messages", "20|2\n");

    sqlite3 *other = NULL;
    ck_assert_int_eq(sqlite3_open(tmpdir_path(&p.dir, "store/state.db"), &other), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    annal_index_close(p.index);
    ck_ok(annal_index_open(p.store, &(annal_index_options){.wait_ms = 200}, &p.index, err));
    ck_fails(ANNAL_ERR_BUSY, "locked",
             packs_append(&p, "s1", "message.added",
                          "{\"id\":\"c\",\"role\":\"user\",\"content\":1}", err));
    sqlite3_close(other);
    ck_append(&p, "s1", "message.added", "{\"id\":\"c\",\"role\":\"user\",\"content\":1}");
    ck_packs(&p, "SELECT count(*) FROM messages", "21\n");
}
END_TEST

START_TEST(many_processes_that_append_to_a_session_leave_no_gap)
{
    enum { CHILDREN = 5, EACH = 10 };
    static const char marks[CHILDREN] = {'a', 'b', 'c', 'd', 'u'};
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(append_in_child(p.path, "s1", marks[i], EACH));
    }
    wait_for(children, CHILDREN);
    ck_packs(&p, "SELECT count(*), min(seq), max(seq) FROM event_index WHERE session_id = 's1'",
             "50|1|50\n");
    ck_packs(&p, "SELECT json_array_length(collection) FROM progressions WHERE id = 's1'", "40\n");
    ck_packs(&p, "SELECT count(*) FROM event_index WHERE session_id = 's1' AND seq > 45", "5\n");
    packs_ck_rebuild(&p, "state.db", 29);
}
END_TEST

START_TEST(large_bodies_of_any_character_are_kept_whole)
{
    enum { COUNT = 100000 };
    static const char *const characters[] = {"x", "\\\"", "\\\\"};
    for (int i = 0; i < 3; i++) {
        char *data = malloc(2 * COUNT + 200);
        size_t len = (size_t)sprintf(data, "{\"id\":\"m%d\",\"role\":\"user\",\"content\":\"", i);
        for (int j = 0; j < COUNT; j++)
            len += (size_t)sprintf(data + len, "%s", characters[i]);
        sprintf(data + len, "\"}");
        ck_append(&p, "s1", "message.added", data);
        free(data);
    }
    ck_packs(&p, "SELECT id, length(content ->> '$'), length(content) FROM messages ORDER BY id",
             "m0|100000|100002\nm1|100000|200002\nm2|100000|200002\n");
}
END_TEST

Suite *suite_lionagi(void)
{
    Suite *suite = suite_create("lionagi");
    TCase *tcase = suite_case(suite, "pack", setup, packs_teardown);
    tcase_add_test(tcase, one_of_several_processes_registers_a_class);
    tcase_add_test(tcase, a_pruned_id_is_not_used_again_in_any_order);
    tcase_add_test(tcase, tables_without_the_late_columns_gain_them_in_place);
    tcase_add_test(tcase, an_old_check_on_the_status_is_dropped_and_rows_and_indexes_stay);
    tcase_add_test(tcase, more_sessions_are_pruned_than_a_statement_has_parameters);
    tcase_add_test(tcase, on_a_full_disk_journals_are_pruned_without_an_event);
    tcase_add_test(tcase, no_journal_is_pruned_if_the_tables_of_its_users_cannot_be_attached);
    tcase_add_loop_test(tcase, no_journal_is_pruned_if_the_tables_cannot_be_filled, 0, 2);
    tcase_add_loop_test(
        tcase, on_an_almost_full_disk_sessions_are_pruned_and_nothing_else_is_appended, 0, 3);
    tcase_add_test(tcase, prune_keeps_a_session_that_a_team_refers_to);
    tcase_add_test(tcase, a_session_that_becomes_active_during_a_prune_is_kept);
    tcase_add_test(tcase, tables_of_an_unknown_module_are_not_counted);
    tcase_add_test(tcase, a_third_process_sees_the_rows_of_two_others_and_a_held_lock_is_an_error);
    tcase_add_test(tcase, many_processes_that_append_to_a_session_leave_no_gap);
    tcase_add_test(tcase, large_bodies_of_any_character_are_kept_whole);
    return suite;
}
