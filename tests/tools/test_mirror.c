/* SPDX-License-Identifier: Apache-2.0 */
/* A project's memory as files in the workspace of agents, who may create links there. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <annal/event.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char tree[300];

static void setup(void)
{
    cli_setup();
    snprintf(tree, sizeof tree, "%s", tmpdir_path(&cli.dir, "w"));
    DONE(&cli, "pack", "enable", "agentweaver");
    DONE(&cli, "pack", "enable", "memory");
}

static void propose(const char *slug)
{
    DONE(&cli, "decision", "propose", "p1", "T", "--agent", "ada", "--type", "scope", "--content",
         "C", "--slug", slug);
}

/* Run a command of the shell in the directory of the test; $X is place. */
static void shell(const char *what, const char *place)
{
    char command[900];
    snprintf(command, sizeof command, "cd '%s' && X='%s' && %s", tmpdir_path(&cli.dir, ""), place,
             what);
    ck_assert_msg(system(command) == 0, "%s", command);
}

/* rest/ represents the rest of the disk, where links lead. List its content. */
static char *outside(void)
{
    size_t len;
    shell("(cd $X && find . -exec ls -ld --time-style=+ {} +) >list", "rest");
    return file_read(tmpdir_path(&cli.dir, "list"), &len);
}

START_TEST(an_export_with_json_names_each_file_that_it_changes)
{
    propose("a/b");
    DONE(&cli, "project", "export", "p1", tree, "--json");
    ck_assert_str_eq(cli.out, "{\"written\":\".squad/decisions.md\"}\n"
                              "{\"written\":\".squad/decisions/inbox/a%2Fb.md\"}\n"
                              "{\"written\":\".squad/identity/now.md\"}\n"
                              "{\"written\":\".agentweaver/context/boundaries.md\"}\n"
                              "{\"written\":\".agentweaver/context/patterns.md\"}\n");
    DONE(&cli, "decision", "promote", "p1", "i1");
    DONE(&cli, "project", "export", "p1", tree, "--json");
    ck_assert_str_eq(cli.out, "{\"deleted\":\".squad/decisions/inbox/a%2Fb.md\"}\n"
                              "{\"written\":\".squad/decisions.md\"}\n"
                              "{\"written\":\".agentweaver/context/boundaries.md\"}\n");
}
END_TEST

START_TEST(a_failure_to_write_a_mirror_names_the_path)
{
    propose("a");
    file_write(tree, "x", 1);
    CLI(&cli, NULL, "project", "export", "p1", tree);
    cli_assert_refused(&cli, 1, "/w': Not a directory");
}
END_TEST

START_TEST(an_export_follows_no_link_in_the_workspace_of_agents)
{
    static const char *const places[] = {
        ".squad/decisions/inbox",      ".squad/agents/ada", ".agentweaver",
        ".squad/decisions.md",         ".squad/identity",   ".squad/decisions/inbox/b.md",
        ".squad/agents/ada/history.md"};
    propose("a");
    propose("b");
    DONE(&cli, "decision", "reject", "p1", "i1");
    DONE(&cli, "memory", "note", "p1", "ada", "c", "--type", "learning");
    shell("mkdir $X && echo theirs >rest/a.md", "rest"); /* the name of a stale proposal */
    char *before = outside();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char what[400];
        shell("rm -rf w && mkdir -p \"$(dirname w/$X)\"", places[i]);
        shell(strstr(places[i], ".md") != NULL ? "ln -s \"$PWD/rest/new\" w/$X"
                                               : "ln -s \"$PWD/rest\" w/$X",
              places[i]);
        snprintf(what, sizeof what, "%s' is a symbolic link", places[i]);
        CLI(&cli, NULL, "project", "export", "p1", tree);
        cli_assert_refused(&cli, 1, what);
        char *after = outside();
        ck_assert_msg(strcmp(before, after) == 0, "%s: %s", places[i], after);
        free(after);
    }
    free(before);
    shell("ln -s rest $X", "link"); /* the path that the user gives may be a link */
    DONE(&cli, "project", "export", "p1", tmpdir_path(&cli.dir, "link"));
    shell("test -f rest/$X", ".squad/decisions.md");
}
END_TEST

START_TEST(an_import_follows_neither_a_link_in_the_inbox_nor_an_inbox_that_is_a_link)
{
    propose("known");
    DONE(&cli, "project", "export", "p1", tree);
    shell("printf -- '---\\nagent: eve\\nslug: %s\\ntype: scope\\ntitle: T\\n---\\nsecret\\n' $X "
          ">m.md",
          "fresh");
    shell("cp m.md w/.squad/decisions/inbox && ln -s \"$PWD/m.md\" w/.squad/decisions/inbox/$X",
          "l.md");
    CLI(&cli, NULL, "project", "import", "p1", tree);
    ck_assert_str_eq(cli.out, "1 proposals read from 3 files\n");
    ck_assert_ptr_nonnull(
        strstr(cli.err, "l.md' in the inbox is left out: the file is a symbolic"));
    shell("mv w/.squad/decisions/inbox $X && ln -s \"$PWD/elsewhere\" w/.squad/decisions/inbox",
          "elsewhere");
    CLI(&cli, NULL, "project", "import", "p1", tree);
    cli_assert_refused(&cli, 1, "/inbox' is a symbolic link");
}
END_TEST

START_TEST(a_bad_file_in_the_inbox_blocks_no_other_proposal)
{
    char inbox[400];
    size_t len = ANNAL_DATA_BYTES_MAX / 6 + 1000;
    propose("known");
    DONE(&cli, "project", "export", "p1", tree);
    snprintf(inbox, sizeof inbox, "%s/.squad/decisions/inbox/c.md", tree);
    shell("cd w/.squad/decisions/inbox && mkdir a.md && mkfifo b.md && rm $X", "known.md");
    char *large = malloc(len);
    ck_assert_ptr_nonnull(large);
    memset(large, '\1', len); /* six times as long in JSON */
    memcpy(large, "---\nagent: eve\nslug: big\ntype: scope\ntitle: T\n---\n", 50);
    file_write(inbox, large, len);
    free(large);
    shell("cd w/.squad/decisions/inbox && truncate -s $X d.md", "67108866");
    shell("printf -- '---\\nagent: b\\nslug: %s\\ntype: scope\\ntitle: T\\n---\\nBody\\n' $X "
          ">w/.squad/decisions/inbox/m.md",
          "fresh");
    CLI(&cli, NULL, "project", "import", "p1", tree);
    ck_assert_str_eq(cli.out, "1 proposals read from 5 files\n");
    for (char name[] = "a.md"; name[0] <= 'd'; name[0]++)
        ck_assert_msg(strstr(cli.err, name) != NULL, "%s: %s", name, cli.err);
    ck_assert_ptr_nonnull(strstr(cli.err, "c.md' in the inbox is left out: the file is longer"));
}
END_TEST

START_TEST(an_unreadable_inbox_is_an_error_of_the_caller)
{
    propose("a");
    DONE(&cli, "project", "export", "p1", tree);
    shell("cd w/.squad/decisions && mv inbox aside && touch $X", "inbox");
    CLI(&cli, NULL, "project", "import", "p1", tree);
    cli_assert_refused(&cli, 1, "inbox': Not a directory");
    DONE(&cli, "project", "import", "p1", tmpdir_path(&cli.dir, "nowhere"));
    ck_assert_str_eq(cli.out, "0 proposals read from 0 files\n");
    CLI(&cli, NULL, "project", "import", "a/b", tree);
    cli_assert_refused(&cli, 2, "not a valid session id");
}
END_TEST

START_TEST(recover_returns_the_runs_that_its_options_name)
{
    static const char merging[] =
        "{\"type\":\"run.created\",\"data\":{\"project_id\":\"shop\"}}\n"
        "{\"type\":\"run.worktree_set\",\"data\":{\"worktree_path\":\"/w\",\"worktree_branch\":"
        "\"b\"}}\n{\"type\":\"run.started\",\"data\":{}}\n"
        "{\"type\":\"run.review_ready\",\"data\":{\"tree_hash\":\"T\"}}\n"
        "{\"type\":\"run.approved\",\"data\":{\"tree_hash\":\"T\"}}\n"
        "{\"type\":\"run.transition\",\"data\":{\"to\":\"merging\",\"expected\":"
        "[\"awaiting_review\",\"committing\"]}}\n";
    DONE(&cli, "project", "create", "shop");
    DONE_WITH(&cli, merging, "append", "run_r1");
    DONE_WITH(&cli, merging, "append", "run_r2");
    DONE(&cli, "run", "recover", "--project", "other");
    ck_assert_str_eq(cli.out, "");
    DONE(&cli, "run", "recover", "--status", "committing");
    ck_assert_str_eq(cli.out, "");
    DONE(&cli, "run", "recover", "--project", "shop");
    ck_assert_str_eq(cli.out, "run r1 was merging and awaits review again\n"
                              "run r2 was merging and awaits review again\n");
}
END_TEST

Suite *suite_mirror(void)
{
    Suite *suite = suite_create("mirror");
    TCase *tcase = suite_case(suite, "mirror", setup, cli_teardown);
    tcase_add_test(tcase, an_export_with_json_names_each_file_that_it_changes);
    tcase_add_test(tcase, an_export_follows_no_link_in_the_workspace_of_agents);
    tcase_add_test(tcase,
                   an_import_follows_neither_a_link_in_the_inbox_nor_an_inbox_that_is_a_link);
    tcase_add_test(tcase, a_failure_to_write_a_mirror_names_the_path);
    tcase_add_test(tcase, a_bad_file_in_the_inbox_blocks_no_other_proposal);
    tcase_add_test(tcase, an_unreadable_inbox_is_an_error_of_the_caller);
    tcase_add_test(tcase, recover_returns_the_runs_that_its_options_name);
    return suite;
}
