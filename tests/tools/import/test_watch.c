/* SPDX-License-Identifier: Apache-2.0 */
/* annal import without KIND, and annal watch: the logs of agents where the agents keep them. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DATA(path) ANNAL_SOURCE "/tests/data/" path

/* ---- A home directory ---- */

/* PATH below the home directory, and the directories above it. */
static const char *at_home(const char *path)
{
    static char whole[600];
    snprintf(whole, sizeof whole, "%s/home/%s", cli.dir.path, path);
    for (char *slash = strchr(whole + strlen(cli.dir.path) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(whole, 0755);
        *slash = '/';
    }
    return whole;
}

static void link_at_home(const char *data, const char *path)
{
    ck_assert_int_eq(symlink(data, at_home(path)), 0);
}

static void write_at_home(const char *path, const char *text)
{
    FILE *file = fopen(at_home(path), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void setup(void)
{
    static const char *const variables[] = {"CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME",
                                            "XDG_CONFIG_HOME", "OPENCODE_DB"};
    static char home[500];
    cli_setup();
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    snprintf(home, sizeof home, "%s/home", cli.dir.path);
    ck_assert_int_eq(mkdir(home, 0755), 0);
    cli.as_home = home;
}

static void assert_prints(const char *what)
{
    ck_assert_msg(strstr(cli.out, what) != NULL, "no '%s' in: %s", what, cli.out);
}

static bool is_there(const char *path)
{
    return access(at_home(path), F_OK) == 0;
}

/* ---- annal import ---- */

START_TEST(import_without_a_kind_imports_the_logs_of_every_agent)
{
    link_at_home(DATA("claude-code"), ".claude/projects");
    link_at_home(DATA("codex"), ".codex/sessions");
    link_at_home(DATA("pi"), ".pi/agent/sessions");
    DONE(&cli, "import", "--dry-run", "--json");
    assert_prints("{\"agent\":\"claude-code\",\"place\":");
    assert_prints("{\"agent\":\"codex\",\"place\":");
    assert_prints("{\"agent\":\"pi\",\"place\":");
    ck_assert(!is_there(".local/share/annal"));
    CLI(&cli, NULL, "import");
    ck_assert_int_eq(cli.exit_status, 0);
    assert_prints("annal watch ");
    DONE(&cli, "sql",
         "SELECT group_concat(agent_id) FROM (SELECT DISTINCT agent_id FROM sessions ORDER BY 1)");
    assert_prints("claude-code,codex,pi");
    CLI(&cli, NULL, "import");
    assert_prints(" 0 events added");
}
END_TEST

START_TEST(an_environment_variable_of_an_agent_sets_its_log_directory)
{
    link_at_home(DATA("codex"), "else where*/sessions");
    setenv("CODEX_HOME", at_home("else where*"), 1);
    write_at_home("else where?", "");
    DONE(&cli, "import", "--dry-run", "--json");
    assert_prints("\"agent\":\"codex\"");
    assert_prints("else where*/sessions\"");
    ck_assert_ptr_null(strchr(strchr(cli.out, '\n') + 1, '\n')); /* and no other */
    setenv("CODEX_HOME", "relative", 1);
    CLI(&cli, NULL, "import", "--dry-run");
    ck_assert_int_eq(cli.exit_status, 1);
}
END_TEST

START_TEST(a_directory_with_two_names_is_read_once)
{
    link_at_home(DATA("codex"), ".codex/sessions");
    setenv("CODEX_HOME", at_home(".codex"), 1);
    DONE(&cli, "import", "--dry-run", "--json");
    ck_assert_ptr_null(strchr(strchr(cli.out, '\n') + 1, '\n'));
}
END_TEST

START_TEST(an_import_that_finds_no_log_reports_it_and_creates_no_store)
{
    CLI(&cli, NULL, "import");
    cli_assert_refused(&cli, 1, "no agent has logs in its usual place");
    ck_assert(!is_there(".local"));
    CLI(&cli, NULL, "import", "codex", cli.as_home, "--all-users");
    ck_assert_int_eq(cli.exit_status, 2);
}
END_TEST

START_TEST(a_dry_run_of_paths_lists_them_and_imports_nothing)
{
    DONE(&cli, "import", "codex", DATA("codex"), "--dry-run");
    assert_prints("codex");
    ck_assert(!is_there(".local"));
}
END_TEST

/* ---- annal watch ---- */

/* Run the command until its output contains the text. */
static void wait_for(const char *text, const char *const *words)
{
    for (;;) { /* the test's own limit ends it */
        cli_run(&cli, NULL, words);
        if (strstr(cli.out, text) != NULL)
            return;
        poll(NULL, 0, 50);
    }
}

START_TEST(a_watch_imports_new_lines_and_logs_of_agents_installed_later)
{
    int input, output, how;
    const char *const doctor[] = {"doctor", NULL}, *const ls[] = {"ls", "--json", NULL};
    pid_t watch = cli_start(&cli, (const char *[]){"watch", NULL}, &input, &output);
    char process[40];
    snprintf(process, sizeof process, "process %d watches the logs of agents", (int)watch);
    wait_for(process, doctor);
    write_at_home(".claude/projects/p/s-1.jsonl",
                  "{\"type\":\"user\",\"uuid\":\"u1\",\"sessionId\":\"s-1\",\"timestamp\":"
                  "\"2026-03-01T10:00:00.000Z\",\"message\":{\"role\":\"user\",\"content\":\"when "
                  "is high water\"}}\n");
    wait_for("when is high water", ls);
    link_at_home(DATA("pi"), ".pi/agent/sessions");
    wait_for("\"agent_id\":\"pi\"", ls);
    CLI(&cli, NULL, "watch");
    ck_assert_int_ne(cli.exit_status, 0);
    ck_assert_msg(strstr(cli.err, process) != NULL, "%s", cli.err);
    kill(watch, SIGTERM);
    ck_assert_int_eq(waitpid(watch, &how, 0), watch);
    ck_assert(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    close(input);
    close(output);
    CLI(&cli, NULL, "doctor");
    assert_prints("run 'annal watch'");
}
END_TEST

START_TEST(install_writes_a_unit_for_this_store_and_uninstall_removes_it)
{
    char path[700];
    const char *unit = ".config/systemd/user/annal-watch.service";
    write_at_home("bin/systemctl", "#!/bin/sh\necho \"$*\" >>\"$HOME/called\"\n");
    ck_assert_int_eq(chmod(at_home("bin/systemctl"), 0755), 0);
    snprintf(path, sizeof path, "%s/home/bin:%s", cli.dir.path, getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("CODEX_HOME", "/srv/$100 % \"codex\"", 1);
    DONE(&cli, "watch", "--install", "--store", at_home("a \"store\" of 100 %"));
    char *text = file_read(at_home(unit), NULL);
    ck_assert_msg(strstr(text, "/home/a \\\"store\\\" of 100 %%\"\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "Environment=\"CODEX_HOME=/srv/$100 %% \\\"codex\\\"\"\n") != NULL,
                  "%s", text);
    free(text);
    DONE(&cli, "watch", "--uninstall");
    ck_assert(!is_there(unit));
    text = file_read(at_home("called"), NULL);
    ck_assert_str_eq(text, "--user daemon-reload\n"
                           "--user enable --now annal-watch.service\n"
                           "--user disable --now annal-watch.service\n"
                           "--user daemon-reload\n");
    free(text);
    CLI(&cli, NULL, "watch", "--uninstall");
    cli_assert_refused(&cli, 1, "annal-watch.service");
}
END_TEST

Suite *suite_watch(void)
{
    Suite *suite = suite_create("watch");
    TCase *tc = suite_case(suite, "watch", setup, cli_teardown);
    tcase_add_test(tc, import_without_a_kind_imports_the_logs_of_every_agent);
    tcase_add_test(tc, an_environment_variable_of_an_agent_sets_its_log_directory);
    tcase_add_test(tc, a_directory_with_two_names_is_read_once);
    tcase_add_test(tc, an_import_that_finds_no_log_reports_it_and_creates_no_store);
    tcase_add_test(tc, a_dry_run_of_paths_lists_them_and_imports_nothing);
    tcase_add_test(tc, a_watch_imports_new_lines_and_logs_of_agents_installed_later);
    tcase_add_test(tc, install_writes_a_unit_for_this_store_and_uninstall_removes_it);
    return suite;
}
