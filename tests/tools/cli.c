#include "tests/tools/cli.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 40, NOBODY = 65534 };

void cli_init(struct cli *cli, const char *file, int line)
{
    *cli = (struct cli){0};
    tmpdir_init(&cli->dir, file, line);
    cli->store = tmpdir_path(&cli->dir, "store");
}

static void forget(struct cli *cli)
{
    free(cli->out);
    free(cli->err);
    cli->out = cli->err = NULL;
}

void cli_done(struct cli *cli)
{
    forget(cli);
    tmpdir_done(&cli->dir);
}

void cli_exec(const struct cli *cli, const char *const *words)
{
    const char *argv[WORDS_MAX] = {"annal"};
    size_t count = 1;
    while (words[count - 1] != NULL && count + 1 < WORDS_MAX) {
        argv[count] = words[count - 1];
        count++;
    }
    unsetenv("COLUMNS");
    if (cli->columns != NULL)
        setenv("COLUMNS", cli->columns, 1);
    unsetenv("XDG_DATA_HOME");
    unsetenv("ANNAL_STORE");
    setenv("HOME", cli->as_home != NULL ? cli->as_home : "/nowhere", 1);
    if (cli->as_home == NULL)
        setenv("ANNAL_STORE", cli->store, 1);
    if (cli->as_nobody && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        _exit(126);
    execv(ANNAL_COMMAND, (char **)argv);
    _exit(127);
}

void cli_run_bytes(struct cli *cli, const void *input, size_t len, const char *const *words)
{
    const char *in = tmpdir_path(&cli->dir, "in");
    const char *out = tmpdir_path(&cli->dir, "out");
    const char *err = tmpdir_path(&cli->dir, "err");
    int status = 0;
    forget(cli);
    file_write(in, input, len);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        dup2(open(in, O_RDONLY), STDIN_FILENO);
        dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
        dup2(open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
        cli_exec(cli, words);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    cli->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    cli->out = file_read(out, &cli->out_len);
    cli->err = file_read(err, &cli->err_len);
}

void cli_run(struct cli *cli, const char *input, const char *const *words)
{
    cli_run_bytes(cli, input == NULL ? "" : input, input == NULL ? 0 : strlen(input), words);
}

pid_t cli_start(struct cli *cli, const char *const *words, int *out_input, int *out_output)
{
    int input[2], output[2];
    ck_assert_int_eq(pipe2(input, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(output, O_CLOEXEC), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        cli_exec(cli, words);
    }
    close(input[0]);
    close(output[1]);
    *out_input = input[1];
    *out_output = output[0];
    return pid;
}

void cli_assert_done(const struct cli *cli)
{
    ck_assert_msg(cli->exit_status == 0 && cli->err_len == 0, "exit status %d, stderr: %s",
                  cli->exit_status, cli->err);
}

void cli_assert_refused(const struct cli *cli, int exit_status, const char *what)
{
    ck_assert_msg(cli->exit_status == exit_status, "exit status %d, not %d; stderr: %s",
                  cli->exit_status, exit_status, cli->err);
    ck_assert_msg(strncmp(cli->err, "annal: ", 7) == 0, "stderr: %s", cli->err);
    const char *newline = strchr(cli->err, '\n');
    ck_assert_msg(newline != NULL && newline[1] == '\0', "not one line: %s", cli->err);
    ck_assert_msg(strstr(cli->err, what) != NULL, "no '%s' in: %s", what, cli->err);
}

int cli_journals(const struct cli *cli)
{
    char path[512];
    int count = 0;
    snprintf(path, sizeof path, "%s/events", cli->store);
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.' ? 1 : 0;
    if (directory != NULL)
        closedir(directory);
    return count;
}

static const char *journal_path(struct cli *cli, const char *session)
{
    char name[300];
    snprintf(name, sizeof name, "store/events/%s.jsonl", session);
    return tmpdir_path(&cli->dir, name);
}

char *cli_journal(struct cli *cli, const char *session, size_t *out_len)
{
    return file_read(journal_path(cli, session), out_len);
}

void cli_journal_write(struct cli *cli, const char *session, const void *bytes, size_t len)
{
    file_write(journal_path(cli, session), bytes, len);
}
