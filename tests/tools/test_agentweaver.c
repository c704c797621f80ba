/* SPDX-License-Identifier: Apache-2.0 */
/* annal project, run, backlog, decision, memory and related verbs, as a user types them. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void init_packs(void)
{
    DONE(&cli, "pack", "enable", "agentweaver");
    DONE(&cli, "pack", "enable", "memory");
}

/* Collect the values of a text field from all lines of JSON, each followed by a space. */
static char *fields(const char *name)
{
    static char all[1000];
    char begin[60];
    all[0] = '\0';
    snprintf(begin, sizeof begin, "\"%s\":\"", name);
    for (const char *at = cli.out; (at = strstr(at, begin)) != NULL;) {
        at += strlen(begin);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%.*s ", (int)strcspn(at, "\""), at);
    }
    return all;
}

/* ---- Runs ---- */

START_TEST(a_tail_stops_after_the_end_of_a_run_and_a_replay_continues)
{
    init_packs();
    CLI(&cli,
        "{\"type\":\"agent.message\",\"data\":{}}\n{\"type\":\"merge.failed\",\"data\":{}}\n"
        "{\"type\":\"agent.message\",\"data\":{\"n\":2}}\n",
        "append", "run_r1");
    cli_assert_done(&cli);
    DONE(&cli, "run", "tail", "r1", "--all", "--json");
    ck_assert_str_eq(fields("type"), "agent.message merge.failed agent.message ");
    /* After an end that more events follow, the tail waits for the next end. */
    int input, output, status;
    char out[4000];
    size_t len = 0;
    pid_t tail = cli_start(&cli, (const char *[]){"run", "tail", "r1", "--from", "2", NULL}, &input,
                           &output);
    DONE_WITH(&cli, "{\"type\":\"run.completed\",\"data\":{}}\n", "append", "run_r1");
    ck_assert_int_eq(waitpid(tail, &status, 0), tail);
    for (ssize_t got; (got = read(output, out + len, sizeof out - 1 - len)) > 0;)
        len += (size_t)got;
    out[len] = '\0';
    close(input);
    close(output);
    ck_assert_int_eq(status, 0);
    ck_assert_ptr_null(strstr(out, "\"seq\":1,"));
    ck_assert_ptr_nonnull(strstr(out, "\"seq\":2,"));
    ck_assert_ptr_nonnull(strstr(out, "\"seq\":3,"));
    ck_assert_ptr_nonnull(strstr(out, "run.completed"));
    /* A run that has already ended is printed without waiting. */
    DONE(&cli, "run", "tail", "r1", "--from", "5");
    ck_assert_str_eq(cli.out, "");
}
END_TEST

/* ---- The compiler of contexts ---- */

#define DECISION(id, type, day)                                                                    \
    "{\"type\":\"decision.created\",\"data\":{\"decision_id\":\"" id "\",\"type\":\"" type         \
    "\",\"title\":\"T\",\"content\":\"c\",\"created_at\":\"2026-01-" day "T00:00:00Z\"}}\n"
#define NOTE(id, agent, type, importance, tags, content, day)                                      \
    "{\"type\":\"memory.noted\",\"data\":{\"memory_id\":\"" id "\",\"agent_name\":\"" agent        \
    "\",\"type\":\"" type "\",\"importance\":\"" importance "\",\"tags\":\"" tags                  \
    "\",\"content\":\"" content "\",\"created_at\":\"2026-01-" day "T00:00:00Z\"}}\n"

/* ---- The mirror ---- */

static void put(const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "w/.squad/decisions/inbox/%s", name);
    const char *full = tmpdir_path(&cli.dir, path);
    file_write(full, text, strlen(text));
}

START_TEST(an_import_of_the_inbox_adds_missing_proposals_and_changes_no_other)
{
    init_packs();
    const char *tree = tmpdir_path(&cli.dir, "w");
    DONE(&cli, "decision", "propose", "p1", "Here", "--agent", "ada", "--content", "x", "--slug",
         "here");
    DONE(&cli, "decision", "reject", "p1", "i1");
    DONE(&cli, "project", "export", "p1", tree);
    mkdir(tmpdir_path(&cli.dir, "w/.squad/decisions"), 0777);
    mkdir(tmpdir_path(&cli.dir, "w/.squad/decisions/inbox"), 0777);
    put("a.md",
        "---\r\nagent: bob\r\nslug: fresh\r\ntype: learning\r\ntitle: \"A \\\"fresh\\\" one\"\r\n"
        "---\r\n\r\nBody.\r\n\r\n**Rationale:** Because.\r\n");
    put("b.md", "---\nagent: bob\nslug: here\ntype: scope\ntitle: Other\n---\nBody.\n");
    put("c.md", "no front matter\n");
    put("d.md", "---\nagent: bob\nslug: s\ntype: scope\n---\nno title\n");
    CLI(&cli, NULL, "project", "import", "p1", tree, "--event-id", "e1");
    cli_assert_refused(&cli, 2, "--event-id names one event");
    CLI(&cli, NULL, "project", "import", "p1", tree);
    ck_assert_int_eq(cli.exit_status, 0);
    ck_assert_str_eq(cli.out, "1 proposals read from 4 files\n");
    ck_assert_ptr_nonnull(strstr(cli.err, "c.md' in the inbox is left out: not a proposal"));
    ck_assert_ptr_nonnull(strstr(cli.err, "d.md' in the inbox is left out: not a proposal"));
    DONE(&cli, "sql", "--json",
         "SELECT slug, title, content, rationale, status, agent_name FROM memory.decision_inbox "
         "ORDER BY slug");
    ck_assert_str_eq(cli.out,
                     "{\"slug\":\"fresh\",\"title\":\"A \\\"fresh\\\" one\",\"content\":\"Body.\","
                     "\"rationale\":\"Because.\",\"status\":\"pending\",\"agent_name\":\"bob\"}\n"
                     "{\"slug\":\"here\",\"title\":\"Here\",\"content\":\"x\",\"rationale\":null,"
                     "\"status\":\"rejected\",\"agent_name\":\"ada\"}\n");
    CLI(&cli, NULL, "project", "import", "p1", tree);
    ck_assert_str_eq(cli.out, "0 proposals read from 4 files\n");
}
END_TEST

Suite *suite_agentweaver(void)
{
    Suite *suite = suite_create("agentweaver");
    TCase *tcase = suite_case(suite, "agentweaver", cli_setup, cli_teardown);
    tcase_add_test(tcase, a_tail_stops_after_the_end_of_a_run_and_a_replay_continues);
    tcase_add_test(tcase, an_import_of_the_inbox_adds_missing_proposals_and_changes_no_other);
    return suite;
}
