/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tools/cli.h"
#include "index/db/db.h"
#include "index/db/patience.h"

#include "tests/support/runner.h"
#include "tools/cli/command.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

enum { WORDS_MAX = 40, NOBODY = 65534 };

struct cli cli;

void cli_setup(void)
{
    cli = (struct cli){0};
    tmpdir_init(&cli.dir);
    cli.store = tmpdir_path(&cli.dir, "store");
}

static void forget(struct cli *self)
{
    free(self->out);
    free(self->err);
    self->out = self->err = NULL;
}

void cli_teardown(void)
{
    forget(&cli);
    tmpdir_done(&cli.dir);
}

static bool test_has_threads(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)getppid());
    return count_names(path, "") != 1;
}

/* Whether the test has the store or a database open: then this process inherited its locks and
 * SQLite's state of its files. */
static bool test_has_open(const char *store)
{
    bool has = false;
    DIR *directory = opendir("/proc/self/fd");
    for (struct dirent *entry; directory != NULL && !has && (entry = readdir(directory)) != NULL;) {
        char target[1024];
        ssize_t len = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        target[len > 0 ? len : 0] = '\0';
        has = strncmp(target, store, strlen(store)) == 0 || strstr(target, ".db") != NULL;
    }
    if (directory != NULL)
        closedir(directory);
    return has;
}

/*
 * Only what a new process would have: three files, and no handler of Check's, which kills the whole
 * group.
 */
static void leave_the_test(void)
{
    static const int handled[] = {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2};
    closefrom(STDERR_FILENO + 1);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++) {
        struct sigaction action;
        if (sigaction(handled[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            signal(handled[i], SIG_DFL);
    }
}

void cli_exec(const struct cli *self, const char *const *words)
{
    char *argv[WORDS_MAX] = {strdup("annal")};
    int count = 1;
    while (words[count - 1] != NULL && count + 1 < WORDS_MAX) {
        argv[count] = strdup(words[count - 1]); /* options are cut off at their '=' */
        count++;
    }
    unsetenv("COLUMNS");
    if (self->columns != NULL)
        setenv("COLUMNS", self->columns, 1);
    unsetenv("XDG_DATA_HOME");
    unsetenv("ANNAL_STORE");
    setenv("HOME", self->as_home != NULL ? self->as_home : "/nowhere", 1);
    if (self->as_home == NULL)
        setenv("ANNAL_STORE", self->store, 1);
    if (self->as_nobody && (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        _exit(126);
    if (!self->own_program && !test_has_threads() && !test_has_open(self->store)) {
        leave_the_test();
        int exit_status = command_main(count, argv);
#ifdef __SANITIZE_ADDRESS__
        if (full_or(true, false) && __lsan_do_recoverable_leak_check() != 0)
            exit_status = 125; /* a status that no verb returns */
#endif
        _exit(exit_status);
    }
    execv(ANNAL_COMMAND, argv);
    _exit(127);
}

void cli_run_bytes(struct cli *self, const void *input, size_t len, const char *const *words)
{
    const char *in = tmpdir_path(&self->dir, "in");
    const char *out = tmpdir_path(&self->dir, "out");
    const char *err = tmpdir_path(&self->dir, "err");
    int status = 0;
    forget(self);
    file_write(in, input, len);
    fflush(NULL); /* the unwritten output of this process is not the command's output */
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        dup2(open(in, O_RDONLY), STDIN_FILENO);
        dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
        dup2(open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
        cli_exec(self, words);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    self->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    self->out = file_read(out, &self->out_len);
    self->err = file_read(err, &self->err_len);
}

void cli_run(struct cli *self, const char *input, const char *const *words)
{
    cli_run_bytes(self, input == NULL ? "" : input, input == NULL ? 0 : strlen(input), words);
}

pid_t cli_start(struct cli *self, const char *const *words, int *out_input, int *out_output)
{
    int input[2], output[2];
    ck_assert_int_eq(pipe2(input, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(output, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        cli_exec(self, words);
    }
    close(input[0]);
    close(output[1]);
    *out_input = input[1];
    *out_output = output[0];
    return pid;
}

void cli_assert_done(const struct cli *self)
{
    ck_assert_msg(self->exit_status == 0 && self->err_len == 0, "exit status %d, stderr: %s",
                  self->exit_status, self->err);
}

void cli_assert_refused(const struct cli *self, int exit_status, const char *what)
{
    ck_assert_msg(self->exit_status == exit_status, "exit status %d, not %d; stderr: %s",
                  self->exit_status, exit_status, self->err);
    ck_assert_msg(strncmp(self->err, "annal: ", 7) == 0, "stderr: %s", self->err);
    const char *newline = strchr(self->err, '\n');
    ck_assert_msg(newline != NULL && newline[1] == '\0', "not one line: %s", self->err);
    ck_assert_msg(*what != '\0', "any sentence has \"\" in it");
    ck_assert_msg(strstr(self->err, what) != NULL, "no '%s' in: %s", what, self->err);
}

int cli_journals(const struct cli *self)
{
    char path[512];
    snprintf(path, sizeof path, "%s/events", self->store);
    return (int)count_names(path, "");
}

static const char *journal_path(struct cli *self, const char *session)
{
    char name[300];
    snprintf(name, sizeof name, "store/events/%s.jsonl", session);
    return tmpdir_path(&self->dir, name);
}

char *cli_journal(struct cli *self, const char *session, size_t *out_len)
{
    return file_read(journal_path(self, session), out_len);
}

void cli_journal_write(struct cli *self, const char *session, const void *bytes, size_t len)
{
    file_write(journal_path(self, session), bytes, len);
}

void cli_change_database(struct cli *run, const char *name, const char *sql)
{
    struct patience patience;
    uint32_t wait_ms = 1000;
    sqlite3 *db = NULL;
    char inside[64];
    snprintf(inside, sizeof inside, "store/%s", name);
    ck_assert_int_eq(annal__patience_init(&patience, NULL, &wait_ms, NULL), 0);
    patience.proves = true;
    ck_assert_int_eq(annal__db_open_on(annal__patience_vfs(&patience),
                                       tmpdir_path(&run->dir, inside), SQLITE_OPEN_READWRITE, &db,
                                       NULL),
                     0);
    ck_assert_int_eq(sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL), SQLITE_OK);
    ck_assert_int_eq(annal__db_exec(db, sql, NULL), 0);
    ck_assert_int_eq(annal__db_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL), 0);
    annal__db_close(db);
    annal__patience_done(&patience);
}
