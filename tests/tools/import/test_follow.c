/* SPDX-License-Identifier: Apache-2.0 */
/* annal import --follow: logs that are written, moved, cut short and replaced while it runs. */
#include "tests/support/runner.h"
#include "tests/support/stopped.h"
#include "tests/tools/cli.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SOON_MS = 300000, NOT_MS = 300, LINE_BYTES = 65536 };

/* A running follow with --json: it prints an object for each log that it read. */
static struct following {
    pid_t pid;
    int out;
    char line[LINE_BYTES];
    size_t have; /* bytes of line, the first of which may be a whole object */
} f;

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- The follow ---- */

static void start(const char *kind, const char *path)
{
    int pipes[2];
    const char *err = tmpdir_path(&cli.dir, "follow.err");
    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    (void)unlink(err); /* what an earlier follow printed */
    f.have = 0;
    f.pid = fork();
    ck_assert_int_ge(f.pid, 0);
    if (f.pid == 0) {
        dup2(pipes[1], STDOUT_FILENO);
        dup2(open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
        cli_exec(&cli, (const char *[]){"import", kind, path, "--follow", "--json", NULL});
    }
    close(pipes[1]);
    f.out = pipes[0];
}

static char *said(void)
{
    return file_read(tmpdir_path(&cli.dir, "follow.err"), NULL);
}

static void assert_said(const char *what)
{
    char *err = said();
    ck_assert_msg(strstr(err, what) != NULL, "no '%s' in: %s", what, err);
    free(err);
}

static void assert_said_once(const char *what)
{
    char *err = said(), *first = strstr(err, what);
    ck_assert_msg(first != NULL && strstr(first + 1, what) == NULL, "'%s' not once in: %s", what,
                  err);
    free(err);
}

static void wait_said(const char *what)
{
    for (int64_t until = now_ms() + SOON_MS; now_ms() < until;) {
        if (access(tmpdir_path(&cli.dir, "follow.err"), R_OK) == 0) {
            char *err = said();
            bool found = strstr(err, what) != NULL;
            free(err);
            if (found)
                return;
        }
        poll(NULL, 0, 5);
    }
    assert_said(what);
}

/* Read the next object, without its line break. NULL if none arrives in time. Valid until the next
 * call. */
static const char *next_object(int wait_ms)
{
    static char object[LINE_BYTES];
    for (int64_t until = now_ms() + wait_ms;;) {
        char *end = memchr(f.line, '\n', f.have);
        if (end != NULL) {
            size_t len = (size_t)(end - f.line);
            memcpy(object, f.line, len);
            object[len] = '\0';
            f.have -= len + 1;
            memmove(f.line, end + 1, f.have);
            return object;
        }
        struct pollfd fd = {.fd = f.out, .events = POLLIN};
        int64_t left = until - now_ms();
        if (left <= 0 || poll(&fd, 1, (int)left) <= 0)
            return NULL;
        ssize_t got = read(f.out, f.line + f.have, sizeof f.line - f.have);
        if (got <= 0)
            return NULL;
        f.have += (size_t)got;
    }
}

/* Wait until this number of events were added, by one object or several. */
static void wait_events(int events)
{
    int added = 0;
    while (added < events) {
        const char *object = next_object(SOON_MS);
        ck_assert_msg(object != NULL, "%d events were added, not %d", added, events);
        const char *count = strstr(object, "\"events\":");
        ck_assert_ptr_nonnull(count);
        added += atoi(count + 9);
    }
    ck_assert_int_eq(added, events);
}

static void stop_with(int signal, int exit_status)
{
    int how = 0;
    kill(f.pid, signal);
    ck_assert_int_eq(waitpid(f.pid, &how, 0), f.pid);
    close(f.out);
    if (signal == SIGKILL)
        return;
    char *err = said();
    ck_assert_msg(WIFEXITED(how) && WEXITSTATUS(how) == exit_status, "ended with %x: %s",
                  (unsigned)how, err);
    free(err);
}

static void stop(int signal)
{
    stop_with(signal, 0);
}

/* Start it on an empty directory of logs. */
static const char *begin(const char *kind)
{
    f = (struct following){0};
    const char *logs = tmpdir_path(&cli.dir, "logs");
    ck_assert_int_eq(mkdir(logs, 0700), 0);
    start(kind, logs);
    wait_said("following 0 logs");
    return logs;
}

/* ---- The writers ---- */

static void put(const char *name, const char *how, const char *text)
{
    FILE *file = fopen(tmpdir_path(&cli.dir, name), how);
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* A line of claude-code, of session s-1. It gives one event; the first line of a session, two. */
static const char *line(int n)
{
    static char text[400];
    snprintf(text, sizeof text,
             "{\"type\":\"progress\",\"uuid\":\"u%d\",\"sessionId\":\"s-1\",\"timestamp\":"
             "\"2026-03-01T10:%02d:%02d.000Z\",\"text\":\"said %d\"}\n",
             n, n / 60 % 60, n % 60, n);
    return text;
}

static void put_lines(const char *name, const char *how, int from, int to)
{
    for (int n = from; n <= to; n++)
        put(name, n == from ? how : "a", line(n));
}

/* Assert that each line from 1 to last is one event of s-1, and that an import adds nothing. */
static void assert_each_once(const char *kind, int last)
{
    char text[40], path[300];
    CLI(&cli, NULL, "query", "s-1", "--type", "import.record");
    ck_assert_int_eq(cli.exit_status, 0);
    for (int n = 1; n <= last; n++) {
        snprintf(text, sizeof text, "\"text\":\"said %d\"", n);
        const char *first = strstr(cli.out, text);
        ck_assert_msg(first != NULL, "%s is lost", text);
        ck_assert_msg(strstr(first + 1, text) == NULL, "%s is there twice", text);
    }
    snprintf(path, sizeof path, "%s/logs", cli.dir.path);
    CLI(&cli, NULL, "import", kind, path, "--recheck");
    ck_assert_ptr_nonnull(strstr(cli.out, " 0 events added"));
    DONE(&cli, "verify");
}

/* ---- Lines ---- */

START_TEST(a_line_is_durable_less_than_a_second_after_it_was_written)
{
    begin("claude-code");
    put_lines("logs/a.jsonl", "w", 1, 1);
    wait_events(2);
    int64_t slowest = 0;
    for (int n = 2; n <= 20; n++) {
        int64_t written = now_ms();
        put_lines("logs/a.jsonl", "a", n, n);
        wait_events(1);
        int64_t took = now_ms() - written;
        slowest = took > slowest ? took : slowest;
    }
    ck_assert_int_lt(slowest, scaled_us(1000));
    stop(SIGINT);
    assert_each_once("claude-code", 20);
}
END_TEST

START_TEST(half_a_line_waits_for_its_rest)
{
    begin("claude-code");
    put_lines("logs/a.jsonl", "w", 1, 1);
    wait_events(2);
    char *text = strdup(line(2));
    for (size_t i = 0; text[i] != '\n'; i += 40) {
        char part[41];
        snprintf(part, sizeof part, "%.*s", (int)strcspn(text + i, "\n"), text + i);
        put("logs/a.jsonl", "a", part);
        poll(NULL, 0, 20);
        if (strlen(part) < 40)
            break;
    }
    ck_assert_ptr_null(next_object(NOT_MS));
    put("logs/a.jsonl", "a", "\n");
    wait_events(1);
    free(text);
    stop(SIGTERM);
    assert_each_once("claude-code", 2);
}
END_TEST

START_TEST(a_whole_last_line_without_a_line_break_is_imported_at_the_end)
{
    begin("claude-code");
    char *text = strdup(line(1));
    text[strlen(text) - 1] = '\0';
    put("logs/a.jsonl", "w", text); /* the first line of a log */
    put_lines("logs/b.jsonl", "w", 2, 2);
    wait_events(2);
    free(text);
    text = strdup(line(3));
    text[strlen(text) - 1] = '\0';
    put("logs/b.jsonl", "a", text); /* and a later one of another */
    put("logs/c.jsonl", "w", "{\"type\":\"never whole\"");
    stop(SIGINT);
    assert_each_once("claude-code", 3);
    free(text);
}
END_TEST

START_TEST(an_answer_in_a_text_becomes_a_message_once_its_last_line_is_written)
{
    static const char log[] = "logs/.aider.chat.history.md";
    begin("aider");
    put(log, "w", "\n# aider chat started at 2026-03-02 09:14:06\n\n\n#### When?  \n\nAt fi");
    wait_events(3); /* the session, the turn, the words of the user */
    put(log, "a", "ve,\n\n");
    ck_assert_ptr_null(next_object(NOT_MS / 3));
    put(log, "a", "#### and\nat six.\n\n> Tokens: 8 sent, 5 received.  \n");
    wait_events(1);
    put(log, "a", "\n# aider chat started at 2026-03-02 10:00:00\n\n> Aider v0.86.2  \n> Mod");
    wait_events(3); /* the note, the tokens, the end of the turn */
    stop(SIGINT);
    CLI(&cli, NULL, "sql", "--format", "csv",
        "SELECT session_id, data ->> '$.content' FROM events WHERE type = 'message.added'");
    ck_assert_ptr_nonnull(strstr(cli.out, "aider-2026-03-02-091406,When?\r\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"At five,\n\n#### and\nat six.\"\r\n"));
    CLI(&cli, NULL, "import", "aider", tmpdir_path(&cli.dir, "logs"), "--recheck");
    ck_assert_ptr_nonnull(strstr(cli.out, " 0 events added"));
    DONE(&cli, "source", "restore", "aider-2026-03-02-091406", "--to",
         tmpdir_path(&cli.dir, "copy.md"));
    size_t len, copied;
    char *bytes = file_read(tmpdir_path(&cli.dir, log), &len);
    char *copy = file_read(tmpdir_path(&cli.dir, "copy.md"), &copied);
    ck_assert_mem_eq(copy, bytes, len);
    ck_assert_uint_eq(copied, len);
    free(bytes);
    free(copy);
}
END_TEST

/* ---- Files that appear, disappear and change ---- */

START_TEST(new_logs_are_followed_also_in_new_directories)
{
    begin("claude-code");
    put_lines("logs/a.jsonl", "w", 1, 1);
    wait_events(2);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "logs/deep"), 0700), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "logs/deep/deeper"), 0700), 0);
    put_lines("logs/deep/deeper/b.jsonl", "w", 2, 3);
    put_lines("logs/deep/not-a-log.txt", "w", 4, 4);
    wait_events(3); /* and the second source of the session */
    put_lines("logs/deep/deeper/b.jsonl", "a", 4, 5);
    wait_events(2);
    stop(SIGINT);
    assert_each_once("claude-code", 5);
}
END_TEST

START_TEST(a_log_that_is_cut_short_is_read_from_its_beginning)
{
    begin("claude-code");
    put_lines("logs/a.jsonl", "w", 1, 5);
    wait_events(6);
    put_lines("logs/a.jsonl", "w", 6, 7);
    wait_events(2);
    assert_said("a.jsonl' was cut short or written over; the log is read again from the beginning");
    put_lines("logs/a.jsonl", "a", 8, 8);
    wait_events(1);
    stop(SIGINT);
    assert_each_once("claude-code", 8);
}
END_TEST

/* Shorter, and longer again before the follow looks. */
START_TEST(an_overwritten_log_is_recognized_by_its_bytes)
{
    begin("claude-code");
    put_lines("logs/a.jsonl", "w", 1, 2);
    wait_events(3);
    char *text = calloc(20, 400);
    for (int n = 3; n <= 12; n++)
        strcat(text, line(n));
    put("logs/a.jsonl", "w", text);
    wait_events(10);
    stop(SIGINT);
    assert_each_once("claude-code", 12);
    free(text);
}
END_TEST

START_TEST(a_log_that_is_rotated_loses_neither_its_old_nor_its_new_lines)
{
    begin("claude-code");
    put_lines("logs/a.jsonl", "w", 1, 3);
    wait_events(4);
    ck_assert_int_eq(
        rename(tmpdir_path(&cli.dir, "logs/a.jsonl"), tmpdir_path(&cli.dir, "logs/a.jsonl.1")), 0);
    put_lines("logs/a.jsonl.1", "a", 4, 5); /* by a writer that keeps it open */
    put_lines("logs/a.jsonl", "w", 6, 7);
    wait_events(4);
    put_lines("logs/a.jsonl.1", "a", 8, 8);
    put_lines("logs/a.jsonl", "a", 9, 9);
    wait_events(2);
    assert_said("the log is read again from the beginning");
    stop(SIGINT);
    assert_each_once("claude-code", 9);
}
END_TEST

/* The follow polls the files that it cannot watch. */
START_TEST(a_line_of_a_moved_log_is_durable_less_than_a_second_after_it_was_written)
{
    begin("claude-code");
    put_lines("logs/a.jsonl", "w", 1, 3);
    wait_events(4);
    ck_assert_int_eq(rename(tmpdir_path(&cli.dir, "logs/a.jsonl"), tmpdir_path(&cli.dir, "old")),
                     0);
    put_lines("logs/a.jsonl", "w", 4, 4);
    wait_events(1);
    for (int n = 5; n <= 8; n++) {
        int64_t written = now_ms();
        put_lines("old", "a", n, n);
        wait_events(1);
        ck_assert_int_lt(now_ms() - written, scaled_us(1000));
    }
    stop(SIGINT);
    assert_each_once("claude-code", 8);
}
END_TEST

/* It learns of the rotation and of the signal at the same time. */
START_TEST(a_log_that_is_rotated_just_before_the_end_is_imported_whole)
{
    begin("claude-code");
    put_lines("logs/a.jsonl", "w", 1, 2);
    wait_events(3);
    kill(f.pid, SIGSTOP);
    put_lines("logs/a.jsonl", "a", 3, 5);
    ck_assert_int_eq(rename(tmpdir_path(&cli.dir, "logs/a.jsonl"), tmpdir_path(&cli.dir, "old")),
                     0);
    put_lines("logs/a.jsonl", "w", 6, 7);
    kill(f.pid, SIGTERM);
    stop(SIGCONT);
    assert_each_once("claude-code", 7);
}
END_TEST

START_TEST(a_log_that_is_replaced_is_read_from_its_beginning)
{
    begin("claude-code");
    put_lines("logs/a.jsonl", "w", 1, 3);
    wait_events(4);
    put_lines("new", "w", 2, 6);
    ck_assert_int_eq(rename(tmpdir_path(&cli.dir, "new"), tmpdir_path(&cli.dir, "logs/a.jsonl")),
                     0);
    wait_events(3);
    ck_assert_int_eq(unlink(tmpdir_path(&cli.dir, "logs/a.jsonl")), 0);
    wait_said("a.jsonl' was removed");
    put_lines("logs/a.jsonl", "w", 7, 7);
    wait_events(1);
    stop(SIGINT);
    assert_said_once("a.jsonl' was removed");
    assert_each_once("claude-code", 7);
}
END_TEST

START_TEST(a_follow_reports_an_unknown_layout_once)
{
    static const char lines[] = "{\"type\":\"novel\",\"sessionId\":\"s-1\",\"uuid\":\"u1\"}\n"
                                "{\"type\":\"novel\",\"sessionId\":\"s-1\",\"uuid\":\"u2\"}\n"
                                "{\"type\":\"novel\",\"sessionId\":\"s-1\",\"uuid\":\"u3\"}\n";
    size_t two = (size_t)(strstr(lines, "u3") - lines) -
                 strlen("{'type':'novel','sessionId':'s-1','uuid':'");
    begin("claude-code");
    file_write(tmpdir_path(&cli.dir, "logs/a.jsonl"), lines, two);
    wait_events(3);
    wait_said("2 records are of a layout that the importer claude-code does not know (novel)");
    file_write(tmpdir_path(&cli.dir, "logs/a.jsonl"), lines, sizeof lines - 1);
    wait_events(1);
    stop_with(SIGINT, 1);
    assert_said_once("of a layout that the importer");
}
END_TEST

START_TEST(a_follow_reads_more_logs_than_it_keeps_open)
{
    enum { LOGS = 80 };
    char name[40];
    begin("claude-code");
    for (int n = 1; n <= LOGS; n++) {
        snprintf(name, sizeof name, "logs/%d.jsonl", n);
        put_lines(name, "w", n, n);
    }
    wait_events(2 * LOGS); /* session.created, the lines, and a source for each further log */
    for (int n = 1; n <= LOGS; n++) {
        snprintf(name, sizeof name, "logs/%d.jsonl", n);
        put_lines(name, "a", LOGS + n, LOGS + n);
    }
    wait_events(LOGS);
    stop(SIGINT);
    assert_each_once("claude-code", 2 * LOGS);
}
END_TEST

START_TEST(a_follow_does_not_import_its_own_store)
{
    put("x.jsonl", "w", "{\"a\":1}\n");
    start("jsonl", cli.dir.path); /* the directory contains the store */
    wait_events(1);
    put("x.jsonl", "a", "{\"a\":2}\n");
    wait_events(1);
    ck_assert_ptr_null(next_object(NOT_MS));
    stop(SIGINT);
    CLI(&cli, NULL, "import", "jsonl", cli.dir.path);
    ck_assert_int_eq(cli.exit_status, 0);
    ck_assert_ptr_nonnull(strstr(cli.out, "1 file, 2 lines, 0 of them skipped: 0 events"));
}
END_TEST

/* ---- Other containers ---- */

#define GEMINI(messages)                                                                           \
    "{\"sessionId\":\"s\",\"projectHash\":\"p\",\n\"messages\":[\n" messages "]}\n"
#define MESSAGE(n) "{\"id\":\"m" n "\",\"type\":\"user\",\"content\":\"" n "\"}"

START_TEST(a_document_that_is_half_written_waits_until_it_is_whole)
{
    static const char first[] = GEMINI(MESSAGE("1"));
    static const char second[] = GEMINI(MESSAGE("1") ",\n" MESSAGE("2"));
    begin("gemini-cli");
    put("logs/session-1.json", "w", first);
    wait_events(3);
    char half[sizeof second];
    snprintf(half, sizeof half, "%.*s", (int)sizeof first + 10, second);
    put("logs/session-1.json", "w", half);
    ck_assert_ptr_null(next_object(NOT_MS));
    put("logs/session-1.json", "a", second + strlen(half));
    wait_events(3);
    stop(SIGINT);
    CLI(&cli, NULL, "query", "--type", "import.unreadable", "--count");
    ck_assert_int_eq(atoi(cli.out), 0);
    CLI(&cli, NULL, "import", "gemini-cli", tmpdir_path(&cli.dir, "logs"));
    ck_assert_ptr_nonnull(strstr(cli.out, " 0 events added"));
}
END_TEST

START_TEST(a_document_that_stays_half_written_is_imported_as_far_as_it_goes)
{
    begin("gemini-cli");
    put("logs/session-1.json", "w",
        "{\"sessionId\":\"s\",\n\"messages\":[\n" MESSAGE("1") ",\n{\"id\":\"m2\",\"ty");
    ck_assert_ptr_null(next_object(NOT_MS));
    stop(SIGINT);
    CLI(&cli, NULL, "query", "--type", "message.added", "--count");
    ck_assert_int_eq(atoi(cli.out), 1);
    CLI(&cli, NULL, "query", "--type", "import.unreadable");
    ck_assert_ptr_nonnull(strstr(cli.out, "m2"));
}
END_TEST

START_TEST(a_directory_that_is_one_log_is_followed)
{
    begin("openhands");
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "logs/run"), 0700), 0);
    put("logs/run/base_state.json", "w", "{\"id\":\"run-1\"}");
    wait_events(2);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "logs/run/events"), 0700), 0);
    put("logs/run/events/event-00001.json", "w", "{\"kind\":\"PauseEvent\",");
    ck_assert_ptr_null(next_object(NOT_MS));
    put("logs/run/events/event-00001.json", "a",
        "\"id\":\"e1\",\"timestamp\":\"2026-03-01T10:00:00\",\"source\":\"user\"}");
    ck_assert_ptr_nonnull(next_object(SOON_MS));
    stop(SIGINT);
    CLI(&cli, NULL, "query", "--type", "import.unreadable", "--count");
    ck_assert_int_eq(atoi(cli.out), 0);
    CLI(&cli, NULL, "import", "openhands", tmpdir_path(&cli.dir, "logs"));
    ck_assert_ptr_nonnull(strstr(cli.out, " 0 events added"));
}
END_TEST

static void must(sqlite3 *db, const char *sql)
{
    char *why = NULL;
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK, "%s: %s", sql, why);
}

START_TEST(a_database_is_followed_while_its_writer_keeps_it_open)
{
    sqlite3 *db = NULL;
    begin("openai-agents");
    ck_assert_int_eq(sqlite3_open(tmpdir_path(&cli.dir, "logs/a.db"), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000); /* the command may be reading it */
    must(db, _i == 0 ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE");
    must(db, "CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP, "
             "updated_at TIMESTAMP);"
             "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data "
             "TEXT, created_at TIMESTAMP);"
             "INSERT INTO agent_sessions VALUES ('s', '2026-03-01 10:00:00', '2026-03-01 "
             "10:00:00')");
    for (int n = 1; n <= 5; n++) {
        char sql[300];
        snprintf(sql, sizeof sql,
                 "INSERT INTO agent_messages VALUES (%d, 's', '{\"role\":\"user\",\"content\":"
                 "\"said %d\"}', '2026-03-01 10:00:0%d')",
                 n, n, n);
        must(db, sql);
        while (next_object(50) == NULL) /* until an object reports it */
            CLI(&cli, NULL, "query", "--type", "message.added", "--count");
    }
    must(db, "BEGIN IMMEDIATE; DELETE FROM agent_messages");
    stop(SIGINT);
    must(db, "ROLLBACK");
    sqlite3_close(db);
    CLI(&cli, NULL, "query", "--type", "message.added", "--count");
    ck_assert_int_eq(atoi(cli.out), 5);
    CLI(&cli, NULL, "import", "openai-agents", tmpdir_path(&cli.dir, "logs"));
    ck_assert_ptr_nonnull(strstr(cli.out, " 0 events added"));
}
END_TEST

START_TEST(the_kind_of_a_log_is_detected_when_its_first_line_is_whole)
{
    begin("auto");
    put("logs/a.jsonl", "w", "{\"type\":\"summary\",");
    ck_assert_ptr_null(next_object(NOT_MS));
    put("logs/a.jsonl", "a", "\"summary\":\"x\",\"leafUuid\":\"u\"}\n");
    const char *object = next_object(SOON_MS);
    ck_assert_ptr_nonnull(object);
    ck_assert_ptr_nonnull(strstr(object, "\"kind\":\"claude-code\""));
    stop(SIGINT);
}
END_TEST

/* ---- The end ---- */

/* A process that writes lines 1 to last, each in two writes, and ends. */
static pid_t write_slowly(const char *name, int last)
{
    const char *path = tmpdir_path(&cli.dir, name);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    for (int n = 1; n <= last; n++) {
        const char *text = line(n);
        size_t len = strlen(text), half = (size_t)(n * 7) % len;
        if (write(fd, text, half) < 0 || usleep(500) < 0 || write(fd, text + half, len - half) < 0)
            _exit(1);
    }
    _exit(0);
}

START_TEST(a_killed_follow_that_is_started_again_adds_each_event_once)
{
    enum { LINES = 800, KILLS = 6 };
    int how = 0;
    const char *logs = begin("claude-code");
    pid_t writer = write_slowly("logs/a.jsonl", LINES);
    for (int i = 0; i < KILLS; i++) {
        poll(NULL, 0, 60 + 37 * i);
        stop(SIGKILL);
        start("claude-code", logs);
    }
    ck_assert_int_eq(waitpid(writer, &how, 0), writer);
    ck_assert_int_eq(how, 0);
    wait_said("following ");
    stop(SIGTERM);
    assert_each_once("claude-code", LINES);
}
END_TEST

START_TEST(at_its_end_a_follow_reports_what_it_imported)
{
    int pipes[2], how = 0;
    char text[2000] = "";
    const char *log = tmpdir_path(&cli.dir, "a.jsonl");
    put_lines("a.jsonl", "w", 1, 3);
    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        dup2(pipes[1], STDOUT_FILENO);
        dup2(open(tmpdir_path(&cli.dir, "follow.err"), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
        cli_exec(&cli, (const char *[]){"import", "claude-code", log, "--follow", NULL});
    }
    close(pipes[1]);
    wait_said("following 1 log; Ctrl-C ends it");
    put("a.jsonl", "a", "\nno JSON\n");
    wait_said("line 5 could not be read, and is kept as import.unreadable");
    put_lines("a.jsonl", "a", 3, 4);
    kill(pid, SIGTERM);
    ck_assert_int_eq(waitpid(pid, &how, 0), pid);
    ck_assert_int_eq(how, 0);
    for (ssize_t got, at = 0; (got = read(pipes[0], text + at, sizeof text - 1 - (size_t)at)) > 0;)
        at += got;
    close(pipes[0]);
    ck_assert_msg(strstr(text,
                         "1 file, 7 lines, 2 of them skipped: 6 events added\n"
                         "1 line could not be read, and is kept as import.unreadable\n") != NULL,
                  "%s", text);
}
END_TEST

/* nohup ignores SIGHUP, and shells ignore SIGINT for background processes. */
START_TEST(a_signal_that_was_ignored_at_its_start_does_not_end_a_follow)
{
    const int ignored = _i == 0 ? SIGHUP : SIGINT;
    signal(ignored, SIG_IGN);
    begin("claude-code");
    signal(ignored, SIG_DFL);
    kill(f.pid, ignored);
    poll(NULL, 0, 50);
    put_lines("logs/a.jsonl", "w", 1, 2);
    wait_events(3);
    stop(SIGTERM);
    assert_each_once("claude-code", 2);
}
END_TEST

/* Exit status of a follow of path, which must end at once. */
static int follow_to_the_end(const char *kind, const char *path)
{
    int how = 0;
    start(kind, path);
    wait_said("following ");
    kill(f.pid, SIGTERM);
    ck_assert_int_eq(waitpid(f.pid, &how, 0), f.pid);
    close(f.out);
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

START_TEST(a_follow_refuses_logs_of_unknown_kind_as_an_import_does)
{
    const char *logs = tmpdir_path(&cli.dir, "logs");
    ck_assert_int_eq(mkdir(logs, 0700), 0);
    put("logs/a.jsonl", "w", "no kind\n");
    CLI(&cli, NULL, "import", "auto", logs);
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_int_eq(follow_to_the_end("auto", logs), 1);
    assert_said("a.jsonl' is of an unknown kind: left out");
    put_lines("logs/b.jsonl", "w", 1, 1);
    CLI(&cli, NULL, "import", "auto", logs);
    ck_assert_int_eq(cli.exit_status, 0);
    ck_assert_int_eq(follow_to_the_end("auto", logs), 0);
}
END_TEST

START_TEST(a_follow_ends_when_its_output_is_closed)
{
    int how = 0;
    begin("claude-code");
    put_lines("logs/a.jsonl", "w", 1, 1);
    wait_events(2);
    close(f.out);
    ck_assert_int_eq(waitpid(f.pid, &how, 0), f.pid);
    ck_assert(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    assert_each_once("claude-code", 1);
}
END_TEST

/* ---- What it costs ---- */

/* Write N logs of a line each, with a time of change of a minute ago. */
static const char *put_rested(int logs)
{
    const struct timespec ago[] = {{time(NULL) - 60, 0}, {time(NULL) - 60, 0}};
    const char *path = tmpdir_path(&cli.dir, "logs");
    char name[40];
    ck_assert_int_eq(mkdir(path, 0700), 0);
    for (int n = 1; n <= logs; n++) {
        snprintf(name, sizeof name, "logs/%d.jsonl", n);
        put_lines(name, "w", n, n);
        ck_assert_int_eq(utimensat(AT_FDCWD, tmpdir_path(&cli.dir, name), ago, 0), 0);
    }
    poll(NULL, 0, 200); /* a file that was written just now is not recorded as unchanged */
    return path;
}

static void assert_unchanged(int logs)
{
    for (int n = 1; n <= logs; n++) {
        const char *object = next_object(SOON_MS);
        ck_assert_ptr_nonnull(object);
        ck_assert_ptr_nonnull(strstr(object, "\"events\":0"));
        ck_assert_ptr_nonnull(strstr(object, "\"unchanged\":true"));
    }
}

START_TEST(a_log_that_did_not_change_since_the_last_import_or_follow_is_not_read)
{
    f = (struct following){0};
    const char *logs = put_rested(3);
    if (_i == 0) {
        CLI(&cli, NULL, "import", "claude-code", logs);
    } else {
        start("claude-code", logs);
        wait_said("following 3 logs");
        stop(_i == 1 ? SIGTERM : SIGKILL);
    }
    start("claude-code", logs);
    assert_unchanged(3);
    put_lines("logs/2.jsonl", "a", 4, 4);
    wait_events(1);
    stop(SIGINT);
    assert_each_once("claude-code", 4);
}
END_TEST

START_TEST(a_follow_needs_few_descriptors)
{
    enum { LOGS = 100, DESCRIPTORS = 64 };
    char name[40];
    struct rlimit before, few;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){DESCRIPTORS, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    begin("claude-code");
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (int n = 1; n <= LOGS; n++) {
        snprintf(name, sizeof name, "logs/%d.jsonl", n);
        put_lines(name, "w", n, n);
    }
    wait_events(2 * LOGS);
    stop(SIGINT);
    assert_each_once("claude-code", LOGS);
}
END_TEST

static int64_t children_us(void)
{
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    return used.ru_utime.tv_sec * 1000000 + used.ru_utime.tv_usec;
}

/* Preparing an importer costs many times as much as reading a small log. */
START_TEST(an_importer_is_prepared_once_for_all_followed_logs)
{
    enum { LOGS = 60 };
    f = (struct following){0};
    const char *logs = put_rested(LOGS);
    int64_t begun_us = children_us();
    CLI(&cli, NULL, "import", "claude-code", logs, "--store", tmpdir_path(&cli.dir, "other"));
    int64_t import_us = children_us() - begun_us;
    start("claude-code", logs);
    wait_said("following 60 logs");
    stop(SIGINT);
    int64_t follow_us = children_us() - begun_us - import_us;
    ck_assert_msg(follow_us < 8 * import_us, "%lld us of the processor, an import takes %lld",
                  (long long)follow_us, (long long)import_us);
}
END_TEST

Suite *suite_follow(void)
{
    Suite *suite = suite_create("follow");
    TCase *tc = suite_case(suite, "follow", cli_setup, cli_teardown);
    tcase_add_test(tc, a_line_is_durable_less_than_a_second_after_it_was_written);
    tcase_add_test(tc, half_a_line_waits_for_its_rest);
    tcase_add_test(tc, a_whole_last_line_without_a_line_break_is_imported_at_the_end);
    tcase_add_test(tc, an_answer_in_a_text_becomes_a_message_once_its_last_line_is_written);
    tcase_add_test(tc, new_logs_are_followed_also_in_new_directories);
    tcase_add_test(tc, a_log_that_is_cut_short_is_read_from_its_beginning);
    tcase_add_test(tc, an_overwritten_log_is_recognized_by_its_bytes);
    tcase_add_test(tc, a_log_that_is_rotated_loses_neither_its_old_nor_its_new_lines);
    tcase_add_test(tc, a_line_of_a_moved_log_is_durable_less_than_a_second_after_it_was_written);
    tcase_add_test(tc, a_log_that_is_rotated_just_before_the_end_is_imported_whole);
    tcase_add_test(tc, a_log_that_is_replaced_is_read_from_its_beginning);
    tcase_add_test(tc, a_follow_reports_an_unknown_layout_once);
    tcase_add_test(tc, a_follow_reads_more_logs_than_it_keeps_open);
    tcase_add_test(tc, a_follow_does_not_import_its_own_store);
    tcase_add_test(tc, a_document_that_is_half_written_waits_until_it_is_whole);
    tcase_add_test(tc, a_document_that_stays_half_written_is_imported_as_far_as_it_goes);
    tcase_add_test(tc, a_directory_that_is_one_log_is_followed);
    tcase_add_loop_test(tc, a_database_is_followed_while_its_writer_keeps_it_open, 0, 2);
    tcase_add_test(tc, the_kind_of_a_log_is_detected_when_its_first_line_is_whole);
    tcase_add_test(tc, a_killed_follow_that_is_started_again_adds_each_event_once);
    tcase_add_test(tc, at_its_end_a_follow_reports_what_it_imported);
    tcase_add_loop_test(tc, a_signal_that_was_ignored_at_its_start_does_not_end_a_follow, 0, 2);
    tcase_add_test(tc, a_follow_refuses_logs_of_unknown_kind_as_an_import_does);
    tcase_add_test(tc, a_follow_ends_when_its_output_is_closed);
    tcase_add_loop_test(tc, a_log_that_did_not_change_since_the_last_import_or_follow_is_not_read,
                        0, 3);
    tcase_add_test(tc, a_follow_needs_few_descriptors);
    tcase_add_test(tc, an_importer_is_prepared_once_for_all_followed_logs);
    return suite;
}
