/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs blame and log: what git answers, joined with what sessions wrote (tools/show/git). */
#include "tools/cli/catch_up.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/rows.h"
#include "tools/cli/spawn.h"
#include "tools/cli/store_open.h"
#include "tools/cli/whole_file.h"
#include "tools/show/values.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GIT_BYTES_MAX = 64 << 20 };

extern char **environ;
extern const char annal__sql_git_edits[], annal__sql_git_blame[], annal__sql_git_log[];

/* ---- git and the store ---- */

struct answer {
    annal_store *store;
    struct rows rows;
    uint64_t count;
};

/* Run `git WORDS...` (NULL ends the words), and append its output. Return whether it succeeded. */
static bool ask_git(const char *const words[], struct buf *out)
{
    int ends[2], status = 1;
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int failed = spawn_start(&child, "git", &actions, words, NULL);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    bool whole = failed == 0 && whole_file_read_fd(ends[0], GIT_BYTES_MAX, out);
    close(ends[0]);
    while (failed == 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return whole && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int print_columns(void *arg, const annal_row *row)
{
    return rows_columns(&((struct answer *)arg)->rows, row);
}

static int print_row(void *arg, const annal_row *row)
{
    struct answer *answer = arg;
    answer->count++;
    return rows_row(&answer->rows, row);
}

/* Open the store, run edits.sql and the rest as one SELECT, and print its rows. Return the exit
 * status; EXIT_REFUSED if there are no rows. */
static int print_answer(const struct args *args, const char *rest, const annal_value *params,
                        size_t param_count)
{
    annal_index *index = NULL;
    annal_error err = {0};
    SCOPED_BUF sql = {0};
    struct answer answer = {.rows = {.format = args->json ? OUT_JSONL : OUT_TABLE, .unfold = true}};
    int exit_status = store_open(args, OPEN_READ, 0, &answer.store);
    if (exit_status == EXIT_DONE)
        exit_status = catch_up_open(answer.store, NULL, &index);
    must_printf(&sql, "%s%s", annal__sql_git_edits, rest);
    if (exit_status == EXIT_DONE) {
        const annal_sql_options options = {
            .params = params, .param_count = param_count, .columns = print_columns};
        if (annal_index_sql(index, annal__buf_slice(&sql), &options, print_row, &answer, &err) < 0)
            exit_status = fail_error(&err);
        rows_done(&answer.rows);
    }
    if (exit_status == EXIT_DONE && answer.count == 0)
        exit_status =
            fail_refused("%s: no session in this store wrote these lines", args->command->name);
    annal_index_close(index);
    return store_close(answer.store, out_finish(exit_status));
}

/* ---- blame ---- */

/* Split FILE:LINE or FILE:FIRST-LAST, unless a file has this name. */
static void split(char *path, uint64_t *first, uint64_t *last)
{
    char *colon = strrchr(path, ':'), *end = NULL;
    *first = 1;
    *last = INT32_MAX;
    if (access(path, F_OK) == 0 || colon == NULL || colon[1] < '1' || colon[1] > '9')
        return;
    uint64_t from = strtoull(colon + 1, &end, 10), to = from;
    if (*end == '-')
        to = strtoull(end + 1, &end, 10);
    if (*end != '\0' || from > INT32_MAX || to > INT32_MAX)
        return;
    *colon = '\0';
    *first = from;
    *last = to;
}

/* Find the name of the file in its repository, as "+++ b/NAME", and the commit of each line.
 * Without a repository, the name is the whole path. */
static void ask_about(char *path, struct buf *name, struct buf *commits)
{
    char *base = strrchr(path, '/') + 1;
    const char *directory = base - 1 == path ? "/" : path;
    SCOPED_BUF prefix = {0};
    const char *const blame[] = {"git", "-C", directory, "blame", "-l", "-s", "--", base, NULL};
    const char *const ask[] = {"git", "-C", directory, "rev-parse", "--show-prefix", NULL};
    base[-1] = '\0';
    if (ask_git(ask, &prefix)) {
        must_printf(name, "+++ b/%.*s%s", (int)prefix.len - 1, prefix.ptr, base);
        if (!ask_git(blame, commits))
            annal__buf_clear(commits);
    } else {
        must_printf(name, "+++ b%s/%s", path, base);
    }
}

static int run_blame(const struct args *args)
{
    char given[PATH_MAX], path[PATH_MAX];
    uint64_t first = 1, last = INT32_MAX;
    SCOPED_BUF text = {0}, name = {0}, commits = {0};
    int exit_status = EXIT_DONE;
    snprintf(given, sizeof given, "%s", args_get(args, "FILE"));
    split(given, &first, &last);
    if (realpath(given, path) == NULL || !whole_file_read(path, GIT_BYTES_MAX, &text))
        exit_status = fail_refused("blame: read '%s': %s", given, strerror(errno));
    else
        ask_about(path, &name, &commits);
    const annal_value params[] = {text_value(annal__buf_slice(&name)),
                                  text_value(annal__buf_slice(&text)),
                                  integer_value((int64_t)first), integer_value((int64_t)last),
                                  text_or_null(annal__buf_slice(&commits))};
    return exit_status != EXIT_DONE ? exit_status
                                    : print_answer(args, annal__sql_git_blame, params, 5);
}

static const struct field blame_fields[] = {
    OPERAND("FILE", FIELD_TEXT, NULL, "the file; FILE:LINE or FILE:FIRST-LAST"), FIELDS_END};

const struct command cmd_blame = {
    COMMAND("blame", "show which session wrote each line of a file, and for whom", blame,
            blame_fields, run_blame)};

/* ---- log ---- */

static int run_log(const struct args *args)
{
    SCOPED_BUF patch = {0};
    const char *range = args_get(args, "git");
    const char *const words[] = {"git",
                                 "-c",
                                 "core.quotePath=off",
                                 "log",
                                 "-p",
                                 "-U0",
                                 "--no-color",
                                 "--no-ext-diff",
                                 "--no-textconv",
                                 "--src-prefix=a/",
                                 "--dst-prefix=b/",
                                 "--format=commit %H %cI %s",
                                 "--end-of-options",
                                 range,
                                 "--",
                                 NULL};
    int exit_status = EXIT_DONE;
    if (!ask_git(words, &patch))
        exit_status = fail_refused("log: 'git log %s' failed in this directory, or printed more "
                                   "than 64 MiB",
                                   range);
    const annal_value params[] = {text_value(annal__buf_slice(&patch))};
    return exit_status != EXIT_DONE ? exit_status
                                    : print_answer(args, annal__sql_git_log, params, 1);
}

static const struct field log_fields[] = {
    OPTION_WITH("git", "RANGE", FIELD_TEXT, NULL, "commits, such as main..HEAD", .required = true),
    FIELDS_END};

const struct command cmd_log = {
    COMMAND("log", "list commits with the sessions that wrote them", log, log_fields, run_log)};
