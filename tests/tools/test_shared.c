/* SPDX-License-Identifier: Apache-2.0 */
/* Stores that several users share: modes, and journals that a user may not read. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static const char *in_store(const char *name)
{
    char inside[100];
    snprintf(inside, sizeof inside, "store/%s", name);
    return tmpdir_path(&cli.dir, inside);
}

static unsigned mode_of(const char *name)
{
    struct stat info;
    ck_assert_msg(lstat(in_store(name), &info) == 0, "%s", name);
    return (unsigned)info.st_mode & 07777;
}

START_TEST(new_files_belong_to_the_group_that_may_write_the_store)
{
    static const struct {
        mode_t store;
        unsigned file, directory;
    } cases[] = {{02770, 0660, 02770}, {0770, 0660, 0770}, {0700, 0600, 0700},
                 {0755, 0600, 0700},   {0750, 0600, 0700}, {01777, 0660, 0770}};
    static const char *const files[] = {"events/s1.jsonl", "sessions.db", "commit/00.log",
                                        "locks/index", "search.db"};
    mode_t mask = umask(077);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(mkdir(in_store(""), 0700), 0);
        ck_assert_int_eq(chmod(in_store(""), cases[i].store), 0);
        CLI(&cli, "{\"text\":\"tide\"}\n", "append", "s1", "--type", "message.user");
        ck_assert_int_eq(cli.exit_status, EXIT_DONE);
        DONE(&cli, "search", "tide");
        DONE(&cli, "ls");
        for (size_t f = 0; f < sizeof files / sizeof *files; f++)
            ck_assert_msg(mode_of(files[f]) == cases[i].file, "%o: %s is %o", cases[i].store,
                          files[f], mode_of(files[f]));
        ck_assert_uint_eq(mode_of("events"), cases[i].directory);
        ck_assert_int_eq(rename(in_store(""), tmpdir_path(&cli.dir, "old")), 0);
        char command[300];
        snprintf(command, sizeof command, "rm -rf %s", tmpdir_path(&cli.dir, "old"));
        ck_assert_int_eq(system(command), 0);
    }
    umask(mask);
}
END_TEST

/* Each ends with status 1, prints the answer, and names the forbidden session. */
static const struct {
    const char *words[5];
    const char *answer;
} questions[] = {
    {{"ls"}, "seen"},
    {{"query"}, "harbour"},
    {{"query", "--count"}, "\n"},
    {{"sql", "--format", "jsonl", "SELECT count(*) AS n FROM sessions"}, "{\"n\":"},
    {{"sql", "--format", "jsonl", "SELECT data->>'text' AS t FROM events"}, "harbour"},
    {{"search", "harbour"}, "harbour"},
    {{"report"}, "seen"},
    {{"export", "--format", "jsonl"}, "harbour"},
    {{"verify"}, "hidden"},
    {{"doctor"}, "hidden"},
};

static void ask_all(const char *how)
{
    cli.as_nobody = true;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        cli_run(&cli, NULL, questions[i].words);
        ck_assert_msg(cli.exit_status == EXIT_REFUSED, "%s: %s: %d %s", how, questions[i].words[0],
                      cli.exit_status, cli.err);
        ck_assert_msg(strstr(cli.out, questions[i].answer) != NULL, "%s: %s: %s", how,
                      questions[i].words[0], cli.out);
        ck_assert_msg(strstr(cli.err, "'hidden'") != NULL || strstr(cli.out, "'hidden'") != NULL,
                      "%s: %s: %s", how, questions[i].words[0], cli.err);
    }
    static const char *const verbs[] = {"show", "query", "cat", "tail"};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        CLI(&cli, NULL, verbs[i], "hidden");
        ck_assert_msg(cli.exit_status == EXIT_STORAGE, "%s: %s: %d", how, verbs[i],
                      cli.exit_status);
        ck_assert_msg(strstr(cli.err, "you may not read the journal of session 'hidden'; ") != NULL,
                      "%s: %s: %s", how, verbs[i], cli.err);
    }
    cli.as_nobody = false;
}

/* Also a session that was indexed while it was readable. */
START_TEST(a_forbidden_session_is_reported_and_the_others_are_answered)
{
    char command[400];
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: only root can give a file to another user\n");
        return;
    }
    CLI(&cli, "{\"text\":\"harbour\"}\n", "append", "seen", "--type", "message.user");
    CLI(&cli, "{\"text\":\"secret\"}\n", "append", "hidden", "--type", "message.user");
    snprintf(command, sizeof command, "chown -R %d:%d %s", NOBODY, NOBODY, cli.store);
    ck_assert_int_eq(chmod(cli.dir.path, 0755), 0);
    for (int indexed = 0; indexed < 2; indexed++) {
        ck_assert_int_eq(system(command), 0);
        ck_assert_int_eq(chmod(in_store("events/hidden.jsonl"), 0600), 0);
        cli.as_nobody = true;
        if (indexed == 1) {
            DONE(&cli, "ls");
            DONE(&cli, "search", "secret");
        }
        cli.as_nobody = false;
        ck_assert_int_eq(chmod(in_store("events/hidden.jsonl"), 0), 0);
        ask_all(indexed == 1 ? "mode 000, indexed" : "mode 000");
        ck_assert_int_eq(chown(in_store("events/hidden.jsonl"), 0, 0), 0);
        ck_assert_int_eq(chmod(in_store("events/hidden.jsonl"), 0600), 0);
        ask_all(indexed == 1 ? "of another user, indexed" : "of another user");
    }
}
END_TEST

/* In a child process: run a verb in a namespace with an empty /proc. Returns 77 if the namespace is
 * forbidden. */
static int without_proc(const char *answer, const char *verb, const char *operand)
{
    int fd = open(answer, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
        return 76;
    if ((unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("t", "/proc", "tmpfs", 0, NULL) != 0)
        return 77;
    setenv("ANNAL_STORE", cli.store, 1);
    /* Not cli_exec(): the leak sanitizer needs /proc. */
    char *words[] = {(char *)"annal", (char *)verb, (char *)operand, NULL};
    int exit_status = command_main(operand == NULL ? 2 : 3, words);
    return fflush(NULL) == 0 ? exit_status : 75;
}

START_TEST(without_proc_readers_answer)
{
    static const char *const words[][3] = {{"query", NULL, "harbour"},
                                           {"ls", NULL, "seen"},
                                           {"search", "harbour", "harbour"},
                                           {"show", "seen", "seen"},
                                           {"verify", NULL, "nothing found"}};
    const char *answer = tmpdir_path(&cli.dir, "answer");
    DONE_WITH(&cli, "{\"text\":\"harbour\"}\n", "append", "seen", "--type", "message.user");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        int outcome;
        pid_t child = fork();
        if (child == 0)
            _exit(without_proc(answer, words[i][0], words[i][1]));
        ck_assert_int_eq(waitpid(child, &outcome, 0), child);
        ck_assert(WIFEXITED(outcome));
        if (WEXITSTATUS(outcome) == 77) {
            fprintf(stderr, "skipped: nothing can be mounted over /proc here\n");
            return;
        }
        char *text = file_read(answer, NULL);
        ck_assert_msg(WEXITSTATUS(outcome) == 0 && strstr(text, words[i][2]) != NULL, "%s: %d %s",
                      words[i][0], WEXITSTATUS(outcome), text);
        free(text);
    }
}
END_TEST

Suite *suite_shared(void)
{
    Suite *suite = suite_create("shared");
    TCase *tests = suite_case(suite, "shared", cli_setup, cli_teardown);
    tcase_add_test(tests, new_files_belong_to_the_group_that_may_write_the_store);
    tcase_add_test(tests, a_forbidden_session_is_reported_and_the_others_are_answered);
    tcase_add_test(tests, without_proc_readers_answer);
    return suite;
}
