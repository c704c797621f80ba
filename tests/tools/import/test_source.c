/* SPDX-License-Identifier: Apache-2.0 */
/* annal source: logs are copied by an import, and restored byte for byte. */
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/hash.h"
#include "journal/sys/sources.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"
#include "tools/source/copies.h"

#include <dirent.h>
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

static int count_copies(void)
{
    char path[600];
    int count = 0;
    snprintf(path, sizeof path, "%s/sources", cli.store);
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    if (directory != NULL)
        closedir(directory);
    return count;
}

static int64_t number_in(const char *json, const char *member)
{
    const char *at = strstr(json, member);
    ck_assert_msg(at != NULL, "no %s in %s", member, json);
    return strtoll(at + strlen(member), NULL, 10);
}

/* ---- The command ---- */

START_TEST(a_deleted_log_is_restored_byte_for_byte_with_its_mode_and_time)
{
    struct buf log = {0};
    struct stat before, after;
    add_lines(&log, "s-1", 0, 50);
    ck_assert_int_ge(annal__buf_append(&log, "{\"type\":\"us\0\xff", 13), 0); /* a torn line */
    CLI(&cli, NULL, "source", "ls");
    cli_assert_refused(&cli, EXIT_STORAGE, "no store");
    write_log(&log);
    ck_assert_int_eq(chmod(log_path(), 0604), 0);
    import(&log, 1700000000);
    ck_assert_int_eq(stat(log_path(), &before), 0);
    DONE(&cli, "source", "ls", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"state\":\"kept\""));
    ck_assert_int_eq(unlink(log_path()), 0);
    DONE(&cli, "source", "ls", "--lost", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"state\":\"deleted\""));
    DONE(&cli, "source", "restore", "s-1");
    ck_assert_ptr_nonnull(strstr(cli.out, "claude --resume s-1\n"));
    assert_log_is(log_path(), &log);
    ck_assert_int_eq(stat(log_path(), &after), 0);
    ck_assert_uint_eq(after.st_mode, before.st_mode);
    ck_assert_int_eq(after.st_mtim.tv_sec, 1700000000);
    ck_assert_int_eq(after.st_mtim.tv_nsec, 123456789);
    DONE(&cli, "import", "claude-code", log_path(), "--recheck"); /* it is the same generation */
    DONE(&cli, "source", "generations", "s-1", "--json");
    ck_assert_ptr_null(strchr(strchr(cli.out, '\n') + 1, '\n'));
    annal__buf_done(&log);
}
END_TEST

START_TEST(a_log_that_was_rewritten_begins_a_generation_that_shares_unchanged_lines)
{
    struct buf first = {0}, second = {0}, third = {0}, grown = {0};
    const struct buf *const all[] = {&first, &second, &grown};
    char to[600];
    add_lines(&first, "s-1", 0, 300);
    add_lines(&second, "s-1", 0, 100); /* a part was cut out, and a line was changed */
    add_line(&second, "s-1", 9999);
    add_lines(&second, "s-1", 150, 300);
    add_lines(&third, "s-1", 0, 50); /* cut short */
    add_lines(&grown, "s-1", 0, 51); /* and grown again */
    import(&first, 1700000000);
    import(&second, 1700000001);
    import(&third, 1700000002);
    import(&grown, 1700000003);
    DONE(&cli, "source", "generations", "s-1", "--json");
    const char *row = cli.out;
    for (int i = 0; i < 3; i++, row = strchr(row, '\n') + 1) {
        ck_assert_int_eq(number_in(row, "\"generation\":"), i + 1);
        ck_assert_int_eq(number_in(row, "\"bytes\":"), (int64_t)all[i]->len);
        if (i > 0) /* a record for what is the same, and the new line */
            ck_assert_int_lt(number_in(row, "\"stored_bytes\":"), 2000);
    }
    ck_assert_str_eq(row, "");
    snprintf(to, sizeof to, "%s/to", cli.dir.path);
    for (int i = 0; i < 3; i++) {
        const char number[] = {(char)('1' + i), '\0'};
        DONE(&cli, "source", "restore", "s-1", "--generation", number, "--to", to, "--force");
        assert_log_is(to, all[i]);
    }
    DONE(&cli, "source", "restore", "s-1", "--to", to, "--force");
    assert_log_is(to, &grown);
    ck_assert_ptr_nonnull(strstr(cli.out, "generation 1 has more bytes: --generation 1 restores"));
    CLI(&cli, NULL, "source", "restore", "s-1", "--generation", "4", "--to", to);
    cli_assert_refused(&cli, EXIT_REFUSED, "no such copy");
    annal__buf_done(&first);
    annal__buf_done(&second);
    annal__buf_done(&third);
    annal__buf_done(&grown);
}
END_TEST

START_TEST(restore_replaces_no_other_file_without_force)
{
    struct buf log = {0}, other = {0};
    char to[600];
    add_lines(&log, "s-1", 0, 5);
    add_lines(&other, "s-1", 7, 9);
    import(&log, 1700000000);
    DONE(&cli, "source", "restore", "s-1"); /* it is the same */
    write_log(&other);
    CLI(&cli, NULL, "source", "restore", "s-1");
    cli_assert_refused(&cli, EXIT_REFUSED, "was written later than the copy");
    assert_log_is(log_path(), &other);
    snprintf(to, sizeof to, "%s/new/directory/to", cli.dir.path);
    DONE(&cli, "source", "restore", "s-1", "--to", to);
    assert_log_is(to, &log);
    DONE(&cli, "source", "restore", "s-1", "--force");
    assert_log_is(log_path(), &log);
    ck_assert_int_eq(unlink(log_path()), 0);
    ck_assert_int_eq(symlink(to, log_path()), 0);
    CLI(&cli, NULL, "source", "restore", "s-1");
    cli_assert_refused(&cli, EXIT_REFUSED, "is not a regular file");
    CLI(&cli, NULL, "source", "restore", "s-2");
    cli_assert_refused(&cli, EXIT_REFUSED, "s-2");
    annal__buf_done(&log);
    annal__buf_done(&other);
}
END_TEST

START_TEST(delete_removes_the_copies_of_every_log_with_events_of_the_session)
{
    struct buf log = {0};
    add_lines(&log, "s-1", 0, 5);
    add_lines(&log, "s-2", 5, 9);
    import(&log, 1700000000);
    DONE(&cli, "source", "restore", "s-2", "--force");
    assert_log_is(log_path(), &log);
    add_lines(&log, "s-1", 9, 12);
    log.ptr[23] ^= 1; /* of the id of the first line */
    import(&log, 1700000001);
    ck_assert_int_eq(count_copies(), 3);
    DONE(&cli, "delete", "s-2");
    ck_assert_int_eq(count_copies(), 0);
    /* the log has lines of a deleted session: it is not copied */
    CLI(&cli, NULL, "import", "claude-code", log_path(), "--recheck");
    ck_assert_int_eq(count_copies(), 0);
    DONE(&cli, "import", "claude-code", log_path(), "--again", "--no-copies");
    ck_assert_int_eq(count_copies(), 0);
    DONE(&cli, "import", "claude-code", log_path(), "--again");
    ck_assert_int_eq(count_copies(), 2);
    DONE(&cli, "delete", "s-1");
    DONE(&cli, "delete", "s-2");
    ck_assert_int_eq(count_copies(), 0);
    annal__buf_done(&log);
}
END_TEST

START_TEST(a_list_of_copies_shows_the_first_session_and_the_number_of_the_others)
{
    struct buf log = {0};
    add_lines(&log, "s-1", 0, 2);
    import(&log, 1700000000);
    DONE(&cli, "source", "ls");
    ck_assert_msg(strstr(cli.out, " s-1\n") != NULL, "%s", cli.out);
    add_lines(&log, "s-2", 5, 9);
    add_lines(&log, "s-3", 10, 12);
    import(&log, 1700000001);
    DONE(&cli, "source", "ls");
    ck_assert_msg(strstr(cli.out, " s-1 +2\n") != NULL, "%s", cli.out);
    DONE(&cli, "source", "ls", "--json");
    ck_assert_msg(strstr(cli.out, "\"sessions\":[\"s-1\",\"s-2\",\"s-3\"]") != NULL, "%s", cli.out);
    annal__buf_done(&log);
}
END_TEST

/* ---- Following ---- */

static pid_t start_follow(int *input, int *output)
{
    return cli_start(
        &cli, (const char *[]){"import", "claude-code", log_path(), "--follow", "--json", NULL},
        input, output);
}

static void end_follow(pid_t follow, int signal, int input, int output)
{
    ck_assert_int_eq(kill(follow, signal), 0);
    ck_assert_int_eq(waitpid(follow, NULL, 0), follow);
    close(input);
    close(output);
}

/* Wait until the newest generation has this size; the test's own limit ends it. */
static void wait_for_copy(size_t bytes)
{
    char wanted[40];
    const struct timespec pause = {.tv_nsec = 20000000};
    snprintf(wanted, sizeof wanted, "\"bytes\":%zu,", bytes);
    do {
        nanosleep(&pause, NULL);
        CLI(&cli, NULL, "source", "ls", "--json");
    } while (strstr(cli.out, wanted) == NULL);
}

START_TEST(a_log_is_copied_while_it_is_followed_also_by_a_process_that_is_killed)
{
    enum { STATES = 6 };
    struct buf log[STATES] = {{0}};
    char to[600];
    int input, output;
    snprintf(to, sizeof to, "%s/to", cli.dir.path);
    for (int i = 0; i < STATES; i++) { /* each without the first lines of the last */
        add_lines(&log[i], "s-1", 10 * i, 60 + 9 * i);
        write_log(&log[i]);
        pid_t follow = start_follow(&input, &output);
        wait_for_copy(log[i].len);
        if (i % 2 == 0 && ++i < STATES) { /* rewritten while it is followed */
            add_lines(&log[i], "s-1", 10 * i, 60 + 9 * i);
            write_log(&log[i]);
            wait_for_copy(log[i].len);
        }
        end_follow(follow, SIGKILL, input, output);
    }
    for (int i = 0; i < STATES; i++) {
        const char number[] = {(char)('1' + i), '\0'};
        DONE(&cli, "source", "restore", "s-1", "--generation", number, "--to", to, "--force");
        assert_log_is(to, &log[i]);
        annal__buf_done(&log[i]);
    }
}
END_TEST

START_TEST(a_follow_does_not_copy_a_log_with_lines_of_a_session_deleted_in_the_meantime)
{
    struct buf log = {0};
    int input, output;
    const struct timespec pause = {.tv_nsec = 20000000};
    add_lines(&log, "s-1", 0, 5);
    add_lines(&log, "s-2", 5, 9);
    write_log(&log);
    pid_t follow = start_follow(&input, &output);
    wait_for_copy(log.len);
    DONE(&cli, "delete", "--yes", "s-2");
    ck_assert_int_eq(count_copies(), 0);
    add_lines(&log, "s-2", 9, 12);
    add_lines(&log, "s-1", 12, 15);
    write_log(&log);
    do { /* the lines of the other session are imported */
        nanosleep(&pause, NULL);
        CLI(&cli, NULL, "cat", "s-1");
    } while (strstr(cli.out, "number 14, ") == NULL);
    end_follow(follow, SIGINT, input, output);
    ck_assert_int_eq(count_copies(), 0);
    CLI(&cli, NULL, "cat", "s-2");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    annal__buf_done(&log);
}
END_TEST

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

START_TEST(verify_names_a_damaged_copy)
{
    struct buf log = {0};
    struct names names;
    char path[900];
    size_t len;
    add_lines(&log, "s-1", 0, 5);
    import(&log, 1700000000);
    DONE(&cli, "verify");
    ck_assert_ptr_nonnull(strstr(cli.out, "copies of logs: 1, checked"));
    annal_store *store = open_store();
    list_names(store, &names);
    annal_store_close(store, NULL);
    snprintf(path, sizeof path, "%s/sources/%s", cli.store, names.all[0]);
    char *bytes = file_read(path, &len);
    bytes[len / 2] ^= 1;
    write_bytes(path, bytes, len);
    CLI(&cli, NULL, "verify");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, names.all[0]));
    ck_assert_ptr_nonnull(strstr(cli.out, "1 finding"));
    CLI(&cli, NULL, "verify", "s-1", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"source\":\""));
    ck_assert_int_eq(unlink(log_path()), 0);
    CLI(&cli, NULL, "source", "restore", "s-1");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_int_ne(access(log_path(), F_OK), 0);
    /* without the damaged file, the next import copies the log again */
    ck_assert_int_eq(unlink(path), 0);
    import(&log, 1700000000);
    DONE(&cli, "verify");
    DONE(&cli, "source", "restore", "s-1", "--force");
    assert_log_is(log_path(), &log);
    free(bytes);
    annal__buf_done(&log);
}
END_TEST

START_TEST(a_backup_contains_the_copies_with_all_generations)
{
    struct buf first = {0}, second = {0};
    const char *backup = strdup(tmpdir_path(&cli.dir, "backup"));
    const char *restored = strdup(tmpdir_path(&cli.dir, "restored"));
    add_lines(&first, "s-1", 0, 90);
    add_lines(&second, "s-1", 0, 50);
    add_lines(&second, "s-2", 90, 95);
    import(&first, 1700000000);
    import(&second, 1700000001);
    DONE(&cli, "backup", backup);
    DONE(&cli, "backup", "--check", backup);
    DONE(&cli, "restore", backup, "--store", restored);
    DONE(&cli, "verify", "--store", restored);
    ck_assert_ptr_nonnull(strstr(cli.out, "copies of logs: 2, checked"));
    DONE(&cli, "source", "restore", "s-2", "--store", restored, "--force");
    assert_log_is(log_path(), &second);
    DONE(&cli, "source", "restore", "s-1", "--generation", "1", "--store", restored, "--force");
    assert_log_is(log_path(), &first);
    free((void *)(uintptr_t)backup);
    free((void *)(uintptr_t)restored);
    annal__buf_done(&first);
    annal__buf_done(&second);
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

Suite *suite_source(void)
{
    Suite *suite = suite_create("source");
    TCase *tc = suite_case(suite, "source", cli_setup, cli_teardown);
    tcase_add_test(tc, a_deleted_log_is_restored_byte_for_byte_with_its_mode_and_time);
    tcase_add_test(tc, a_log_that_was_rewritten_begins_a_generation_that_shares_unchanged_lines);
    tcase_add_test(tc, restore_replaces_no_other_file_without_force);
    tcase_add_test(tc, delete_removes_the_copies_of_every_log_with_events_of_the_session);
    tcase_add_test(tc, a_list_of_copies_shows_the_first_session_and_the_number_of_the_others);
    tcase_add_test(tc, a_log_is_copied_while_it_is_followed_also_by_a_process_that_is_killed);
    tcase_add_test(tc,
                   a_follow_does_not_copy_a_log_with_lines_of_a_session_deleted_in_the_meantime);
    tcase_add_test(tc, a_flipped_bit_in_a_copy_is_found_and_never_restored);
    tcase_add_test(tc, verify_names_a_damaged_copy);
    tcase_add_test(tc, a_backup_contains_the_copies_with_all_generations);
    tcase_add_test(tc, a_process_that_is_killed_while_it_copies_loses_no_generation);
    return suite;
}
