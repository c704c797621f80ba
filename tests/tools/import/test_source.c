/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of logs: bits that change, processes that die, texts that no copy has. What a user sees:
 * tests/commands/source.test and source_forms.test. */
#include "index/sys/row_text.h"
#include "journal/base/buf.h"
#include "journal/base/hash.h"
#include "journal/sys/sources.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/source/copies.h"
#include "tools/source/copies_files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLAIN 1000000 /* lines from this number on are easy to compress */

/* ---- Logs ---- */

static const char *log_path(void)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/log.jsonl", cli.dir.path);
    return path;
}

static void add_line(struct buf *log, const char *session, int number)
{
    uint64_t noise = number < PLAIN ? annal__hash(&number, sizeof number, 7) : 0;
    ck_assert_int_ge(
        annal__buf_printf(log,
                          "{\"type\":\"user\",\"uuid\":\"u%d\",\"sessionId\":\"%s\",\"timestamp\":"
                          "\"2026-03-01T10:00:%02d.000Z\",\"message\":{\"role\":\"user\","
                          "\"content\":\"number %d, %016" PRIx64 "%016" PRIx64 "\"}}\n",
                          number, session, number % 60, number, noise, noise * 77),
        0);
}

static void add_lines(struct buf *log, const char *session, int from, int until)
{
    for (int i = from; i < until; i++)
        add_line(log, session, i);
}

static void write_bytes(const char *path, const char *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
    ck_assert_int_eq(close(fd), 0);
}

static void write_log(const struct buf *log)
{
    write_bytes(log_path(), log->ptr, log->len);
}

/* Write the log, and give it a time in the past. */
static void import(const struct buf *log, time_t time)
{
    const struct timespec times[2] = {{.tv_sec = time}, {.tv_sec = time, .tv_nsec = 123456789}};
    write_log(log);
    ck_assert_int_eq(utimensat(AT_FDCWD, log_path(), times, 0), 0);
    DONE(&cli, "import", "claude-code", log_path());
}

static void assert_log_is(const char *path, const struct buf *log)
{
    size_t len;
    char *bytes = file_read(path, &len);
    ck_assert_uint_eq(len, log->len);
    ck_assert_int_eq(memcmp(bytes, log->ptr, len), 0);
    free(bytes);
}

/* ---- Damage and death ---- */

static annal_store *open_store(void)
{
    annal_store *store = NULL;
    annal_error err = {0};
    ck_assert_msg(annal_store_open(cli.store, NULL, &store, &err) == 0, "%s", err.message);
    return store;
}

static annal_status take(annal_store *store, bool *out_settled)
{
    annal_error err = {0};
    char journal[33] = "";
    const struct copies_session sessions[] = {{"s-1", journal}};
    annal_status status = copies_take(
        store,
        &(struct copies_log){
            .path = log_path(), .kind = "claude-code", .sessions = sessions, .session_count = 1},
        out_settled, &err);
    ck_assert_msg(status >= 0, "%s", err.message);
    return status;
}

static int collect(void *arg, annal_slice bytes)
{
    return annal__buf_append_slice(arg, bytes);
}

struct names {
    char all[64][SOURCES_NAME_BYTES];
    uint64_t bytes[64];
    int count, faults;
};

static int collect_name(void *arg, const struct copy *copy)
{
    struct names *names = arg;
    ck_assert_int_lt(names->count, 64);
    names->bytes[names->count] = copy->bytes;
    snprintf(names->all[names->count++], SOURCES_NAME_BYTES, "%s", copy->name);
    return 0;
}

static void count_fault(void *arg, const char *name, const annal_error *err)
{
    (void)name;
    ck_assert_int_ne(err->message[0], '\0');
    ((struct names *)arg)->faults++;
}

static void list_names(annal_store *store, struct names *names)
{
    annal_error err = {0};
    *names = (struct names){0};
    ck_assert_msg(
        copies_each(store, (annal_slice){0}, true, collect_name, count_fault, names, &err) == 0,
        "%s", err.message);
}

/* Flip a bit of each byte of a file in turn, and read a copy: it is the whole log, or refused, or
 * an earlier state of the log that is reported as such. */
static void flip_bytes(annal_store *store, const char *file, const char *name,
                       const struct buf *log, const struct buf *earlier)
{
    struct buf got = {0};
    char path[900];
    size_t len, found = 0;
    snprintf(path, sizeof path, "%s/sources/%s", cli.store, file);
    char *bytes = file_read(path, &len);
    for (size_t at = 0; at < len; at++) {
        bytes[at] ^= (char)(1 << at % 8);
        write_bytes(path, bytes, len);
        bytes[at] ^= (char)(1 << at % 8);
        annal__buf_clear(&got);
        annal_status status = copies_read(store, name, 0, collect, &got, NULL);
        const struct buf *is = status == ANNAL_END ? earlier : log;
        found += status != ANNAL_OK;
        ck_assert(status < 0 || (got.len == is->len && memcmp(got.ptr, is->ptr, got.len) == 0));
    }
    /* what is not found is a bit of a zstd frame that changes nothing */
    ck_assert_uint_ge(100 * found, 95 * len);
    write_bytes(path, bytes, len);
    free(bytes);
    annal__buf_done(&got);
}

START_TEST(a_flipped_bit_in_a_copy_is_found_and_never_restored)
{
    struct buf log[3] = {{0}, {0}, {0}};
    struct names names;
    add_lines(&log[0], "s-1", PLAIN, PLAIN + 40);
    add_lines(&log[1], "s-1", PLAIN, PLAIN + 35);
    add_line(&log[1], "s-1", 777);
    ck_assert_int_ge(annal__buf_append(&log[2], log[1].ptr, log[1].len), 0);
    add_line(&log[2], "s-1", 778);
    for (int i = 0; i < 3; i++)
        import(&log[i], 1700000000 + i);
    annal_store *store = open_store();
    list_names(store, &names);
    ck_assert_int_eq(names.count, 2);
    /* the newest one reads the generation before, too */
    flip_bytes(store, names.all[0], names.all[1], &log[2], NULL);
    flip_bytes(store, names.all[1], names.all[1], &log[2], &log[1]);
    annal_store_close(store, NULL);
    DONE(&cli, "source", "restore", "s-1", "--force");
    assert_log_is(log_path(), &log[2]);
    for (int i = 0; i < 3; i++)
        annal__buf_done(&log[i]);
}
END_TEST

/* The log after a number of steps: it grows, and is rewritten each fifth time. */
static void make_step(struct buf *log, int step)
{
    annal__buf_clear(log);
    for (int i = 0; i <= step / 5; i++)
        add_lines(log, "s-1", 1000 * i, 1000 * i + 40);
    add_lines(log, "s-1", 500000 + 1000 * (step / 5), 500000 + 1000 * (step / 5) + 9 * (step % 5));
}

/* In a child process: write the log step by step, and copy it. */
static void copy_steps(int from, int progress)
{
    struct buf log = {0};
    annal_store *store = open_store();
    for (int step = from;; step++) {
        bool settled = false;
        make_step(&log, step);
        write_log(&log);
        while (!settled)
            (void)take(store, &settled);
        ck_assert_int_eq(write(progress, &step, sizeof step), (ssize_t)sizeof step);
    }
}

START_TEST(a_process_that_is_killed_while_it_copies_loses_no_generation)
{
    const char *more = getenv("SOURCE_KILLS");
    const int kills = more != NULL ? atoi(more) : 12;
    struct buf log = {0}, got = {0};
    struct names names;
    int done = -1, progress[2];
    uint64_t seed = 1;
    make_step(&log, 0);
    import(&log, 1700000000);
    ck_assert_int_eq(pipe2(progress, O_CLOEXEC | O_NONBLOCK), 0);
    for (int i = 0; i < kills; i++) {
        seed = annal__hash(&seed, sizeof seed, 3);
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            copy_steps(done + 1, progress[1]);
            _exit(0);
        }
        ck_assert_int_gt(child, 0);
        const struct timespec pause = {.tv_nsec = (long)(20000000 + seed % 60000000)};
        nanosleep(&pause, NULL);
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        int before = done;
        while (read(progress[0], &done, sizeof done) == (ssize_t)sizeof done)
            ;
        ck_assert_int_ge(done, before);
    }
    ck_assert_int_gt(done, 2);
    annal_store *store = open_store();
    list_names(store, &names);
    ck_assert_int_eq(names.faults, 0);
    ck_assert_int_ge(names.count, done / 5 + 1);
    for (int i = 0; i < names.count; i++) {
        annal__buf_clear(&got);
        ck_assert_int_eq(copies_read(store, names.all[i], 0, collect, &got, NULL), 0);
        int step = 0;
        for (bool same = false; !same; step++) {
            ck_assert_int_le(step, done + kills);
            make_step(&log, step);
            same = log.len == got.len && memcmp(log.ptr, got.ptr, got.len) == 0;
        }
    }
    make_step(&log, done);
    ck_assert_uint_ge(got.len, log.len); /* the newest is at least the last that was complete */
    annal_store_close(store, NULL);
    close(progress[0]);
    close(progress[1]);
    annal__buf_done(&log);
    annal__buf_done(&got);
}
END_TEST

/* ---- Texts from outside ---- */

#define TEXT_HEAD(table, other)                                                                    \
    "{\"annal_rows\":1,\"encoding\":\"UTF-8\",\"user_version\":0,\"application_id\":0,\"tables\":" \
    "[\"" table "\"],\"others\":[" other "]}\n"
#define T           "CREATE TABLE t (a)"
#define ROW(values) "\"t\",\"1\"\t\"" values "\"\n"

static const struct {
    const char *text;
    bool good;
} texts[] = {
    {TEXT_HEAD(T, "") ROW("1,'x'"), true},
    {TEXT_HEAD(T, "\"CREATE INDEX i ON t (lower(a))\"") ROW("1,'x'"), true},
    {TEXT_HEAD(T, "") ROW("1,'x'") ROW("1,CAST(X'00' AS TEXT)"), true},
    {"", false},
    {"{}\n", false},
    {"{\"annal_rows\":2}\n", false},
    {"{\"annal_rows\":1,\"encoding\":\"UTF-8\",\"tables\":[],\"others\":[]}\n", false},
    {TEXT_HEAD(T, "") "\"t\",\"1\"\t\"1,'x'\"", false}, /* without its end */
    {TEXT_HEAD(T, "") ROW("1"), false},
    {TEXT_HEAD(T, "") ROW("1,2,3"), false},
    {TEXT_HEAD(T, "") "\"u\",\"1\"\t\"1,2\"\n", false},
    {TEXT_HEAD(T, "") "1\t\"1,2\"\n", false},
    {TEXT_HEAD(T, "") "\"sqlite_schema\",\"1\"\t\"1,1,1,1,1,1\"\n", false},
    {TEXT_HEAD(T, "") ROW("1,2); DROP TABLE t; --"), false},
    {TEXT_HEAD(T, "") ROW("1,(SELECT 1)"), false},
    {TEXT_HEAD("CREATE TABLE t AS SELECT 1 AS a", ""), false},
    {TEXT_HEAD(T, "") ROW("1,load_extension('x')"), false},
    {TEXT_HEAD(T, "") ROW("1,readfile('/etc/passwd')"), false},
    {TEXT_HEAD("ATTACH '/tmp/annal-never' AS x", ""), false},
    {TEXT_HEAD("CREATE TABLE t AS WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a FROM r) "
               "SELECT a FROM r",
               ""),
     false},
    {TEXT_HEAD("CREATE TABLE t (a); CREATE TABLE u (a)", ""), false},
    {TEXT_HEAD("CREATE TEMP TABLE t (a)", ""), false},
    {TEXT_HEAD("CREATE VIRTUAL TABLE t USING dbstat", ""), false},
    {TEXT_HEAD("PRAGMA writable_schema = 1", ""), false},
    {TEXT_HEAD(T, "\"DROP TABLE t\""), false},
    {TEXT_HEAD(T, "1"), false},
};
enum { TEXTS = sizeof texts / sizeof *texts };

static FILE *text_file(const char *text)
{
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    rewind(file);
    return file;
}

START_TEST(a_text_that_does_more_than_create_and_fill_tables_is_refused)
{
    annal_error err = {0};
    FILE *file = text_file(texts[_i].text);
    close(open(tmpdir_path(&cli.dir, "to.db"), O_CREAT | O_WRONLY, 0600));
    annal_status status = annal__row_text_build(file, tmpdir_path(&cli.dir, "to.db"), &err);
    ck_assert_msg((status == ANNAL_OK) == texts[_i].good, "%s: %d %s", texts[_i].text, status,
                  err.message);
    ck_assert(status == ANNAL_OK || (status == ANNAL_ERR_CORRUPT && err.message[0] != '\0'));
    ck_assert_int_ne(access("/tmp/annal-never", F_OK), 0);
    fclose(file);
}
END_TEST

#define FILES "{\"annal_files\":1}\n"
#define A_FILE(name)                                                                               \
    "\"" name "\"\t{\"mode\":420,\"mtime_ns\":1700000000000000000,\"text\":\"x\"}\n"

static const char *const files_texts[] = {
    "",
    "{}\n",
    FILES A_FILE("../outside"),
    FILES A_FILE("/tmp/annal-never"),
    FILES A_FILE("a/../../outside"),
    FILES A_FILE(""),
    FILES A_FILE("a\\u0000b"),
    FILES A_FILE("link/outside"),
    FILES "\"a\"\t{\"mode\":420,\"text\":\"x\"}\n",
    FILES "\"a\"\t{\"mode\":420,\"mtime_ns\":1,\"base64\":\"*\"}\n",
    FILES "\"a\"\n",
    FILES "a\t{}\n",
};
enum { FILES_TEXTS = sizeof files_texts / sizeof *files_texts };

START_TEST(files_are_written_only_below_their_directory)
{
    annal_error err = {0};
    char root[600], path[700];
    uint64_t count = 0;
    FILE *file = text_file(files_texts[_i]);
    snprintf(root, sizeof root, "%s/root", cli.dir.path);
    ck_assert_int_eq(mkdir(root, 0700), 0);
    snprintf(path, sizeof path, "%s/link", root);
    ck_assert_int_eq(symlink(cli.dir.path, path), 0);
    ck_assert_int_lt(copies_files_restore(file, root, true, &count, &err), 0);
    ck_assert_int_ne(err.message[0], '\0');
    snprintf(path, sizeof path, "%s/outside", cli.dir.path);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_ne(access("/tmp/annal-never", F_OK), 0);
    fclose(file);
}
END_TEST

Suite *suite_source(void)
{
    Suite *suite = suite_create("source");
    TCase *tc = suite_case(suite, "source", cli_setup, cli_teardown);
    tcase_add_test(tc, a_flipped_bit_in_a_copy_is_found_and_never_restored);
    tcase_add_test(tc, a_process_that_is_killed_while_it_copies_loses_no_generation);
    tcase_add_loop_test(tc, a_text_that_does_more_than_create_and_fill_tables_is_refused, 0, TEXTS);
    tcase_add_loop_test(tc, files_are_written_only_below_their_directory, 0, FILES_TEXTS);
    return suite;
}
