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

static void ck_has(const char *text)
{
    ck_assert_msg(strstr(cli.out, text) != NULL, "no %s in: %s", text, cli.out);
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

START_TEST(a_task_goes_from_the_backlog_to_the_merge)
{
    init_packs();
    DONE(&cli, "project", "create", "shop", "--name", "The shop", "--workflow", "fix");
    DONE(&cli, "backlog", "add", "shop", "Add a cart", "--json");
    ck_has("\"task_id\":\"t1\"");
    DONE(&cli, "backlog", "commit", "shop", "t1");
    DONE(&cli, "backlog", "claim", "shop", "--run", "r1", "--user", "ada");
    ck_assert_str_eq(cli.out, "task t1 is claimed by run r1\n");
    CLI(&cli, NULL, "backlog", "claim", "shop", "t1", "--run", "r2");
    cli_assert_refused(&cli, 1, "the task is not ready, or another run has claimed it");
    DONE(&cli, "run", "worktree", "r1", "/tmp/r1", "squad/r1");
    DONE(&cli, "run", "review-ready", "r1", "--tree", "T1");
    DONE(&cli, "run", "approve", "r1", "--tree", "T1", "--reviewer", "bob");
    CLI(&cli, NULL, "run", "merge", "r1", "--tree", "T0");
    cli_assert_refused(&cli, 1, "another tree was approved");
    DONE(&cli, "run", "merge", "r1", "--tree", "T1");
    DONE(&cli, "run", "recover");
    ck_assert_str_eq(cli.out, "run r1 was merging and awaits review again\n");
    DONE(&cli, "run", "merge", "r1");
    DONE(&cli, "run", "transition", "r1", "merged", "--expect", "merging", "--commit", "c1");
    CLI(&cli, NULL, "run", "transition", "r1", "failed");
    cli_assert_refused(&cli, 1, "the run has ended");
    DONE(&cli, "run", "show", "r1", "--json");
    ck_has("\"status\":\"merged\"");
    ck_has("\"merged_commit_hash\":\"c1\"");
    DONE(&cli, "usage", "record", "r1", "gpt-5", "--input", "10", "--output", "2");
    DONE(&cli, "usage", "totals", "--by", "project", "--json");
    ck_has("\"id\":\"shop\"");
    ck_has("\"total_tokens\":12");
    DONE(&cli, "usage", "record", "alone", "gpt-5", "--input", "100");
    DONE(&cli, "usage", "totals", "--by", "app", "--json");
    ck_has("\"records\":1,");
    ck_has("\"total_tokens\":12,");
    DONE(&cli, "usage", "totals", "--by", "model", "--json");
    ck_has("\"total_tokens\":112,");
}
END_TEST

START_TEST(an_approval_permits_merging_its_own_tree_only)
{
    init_packs();
    DONE(&cli, "project", "create", "shop");
    DONE(&cli, "run", "create", "r1", "--project", "shop");
    DONE(&cli, "run", "worktree", "r1", "/tmp/r1", "squad/r1");
    DONE(&cli, "run", "review-ready", "r1", "--tree", "T1");
    DONE(&cli, "run", "approve", "r1", "--tree", "T1", "--reviewer", "bob");
    DONE(&cli, "run", "review-ready", "r1", "--tree", "T2");
    DONE(&cli, "run", "show", "r1", "--json");
    ck_has("\"approved_tree_hash\":null");
    ck_has("\"reviewer\":null");
    CLI(&cli, NULL, "run", "merge", "r1");
    cli_assert_refused(&cli, 1, "the run's tree is not approved");
    CLI(&cli, NULL, "run", "transition", "r1", "merged");
    cli_assert_refused(&cli, 1, "the run's tree is not approved");
    DONE(&cli, "run", "transition", "r1", "merged", "--override", "--reason", "shop is down");
    DONE(&cli, "run", "show", "r1", "--json");
    ck_has("\"status\":\"merged\"");
    ck_has("\"reviewer\":null");
    ck_has("\"override_reason\":\"shop is down\"");
}
END_TEST

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

START_TEST(deleting_a_run_deletes_its_own_revisions_only)
{
    init_packs();
    DONE(&cli, "run", "create", "r1");
    DONE(&cli, "run", "create", "r2");
    DONE(&cli, "revision", "record", "r1", "one");
    DONE(&cli, "revision", "record", "r2", "two");
    DONE(&cli, "usage", "record", "r1", "m", "--input", "1");
    DONE(&cli, "delete", "run_r1", "--yes");
    DONE(&cli, "sql", "--json",
         "SELECT (SELECT group_concat(id) FROM runs) AS runs, (SELECT group_concat(raw_comment) "
         "FROM run_revisions) AS revisions, (SELECT count(*) FROM token_usage_records) AS usage, "
         "(SELECT count(*) FROM RunEvents) AS events");
    ck_assert_str_eq(cli.out, "{\"runs\":\"r2\",\"revisions\":\"two\",\"usage\":0,\"events\":2}\n");
}
END_TEST

START_TEST(with_all_packs_enabled_none_refuses_the_events_of_another)
{
    init_packs();
    DONE(&cli, "pack", "enable", "lionagi");
    DONE(&cli, "pack", "enable", "teams");
    DONE(&cli, "run", "create", "r1");
    DONE(&cli, "run", "worktree", "r1", "/w", "b");
    DONE(&cli, "run", "start", "r1");
    DONE(&cli, "run", "transition", "r1", "failed", "--expect", "in_progress");
    DONE(&cli, "lionagi", "session", "s1");
    DONE_WITH(&cli, "{\"to\":\"failed\",\"expected\":[\"running\"]}", "append", "s1", "--type",
              "run.transition");
    DONE(&cli, "sql", "--json",
         "SELECT (SELECT status FROM runs) AS run, (SELECT group_concat(id || status) FROM "
         "state.sessions) AS session");
    ck_assert_str_eq(cli.out, "{\"run\":\"failed\",\"session\":\"s1failed\"}\n");
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

START_TEST(a_context_has_boundaries_then_memories_by_score_then_the_session)
{
    init_packs();
    CLI(&cli,
        DECISION("late", "scope", "09") DECISION("early", "architectural", "02")
            DECISION("no", "process", "01") NOTE("low", "ada", "core_context", "low", "", "c", "20")
                NOTE("odd", "ada", "core_context", "odd", "", "c",
                     "21") NOTE("med", "ada", "core_context", "medium", "", "c",
                                "03") NOTE("old", "ada", "learning", "high", "", "c", "04")
                    NOTE("new", "ada", "pattern", "high", "x", "c",
                         "06") NOTE("shared", "bob", "learning", "high", "a,cross-team", "c", "05")
                        NOTE("no1", "bob", "learning", "high", "", "c", "22")
                            NOTE("no2", "bob", "learning", "high", "no-cross-team", "c", "23")
                                NOTE("no3", "ada", "learning", "medium", "", "c", "24")
                                    NOTE("no4", "ada", "update", "high", "cross-team", "c", "25")
                                        NOTE("no5", "bob", "core_context", "high", "cross-team",
                                             "c", "26") "{\"type\":\"session_context.started\","
                                                        "\"data\":{\"session_id\":\"s1\","
                                                        "\"focus_area\":\"f\"}}\n",
        "append", "proj_p1");
    cli_assert_done(&cli);
    DONE(&cli, "memory", "compile", "p1", "--agent", "ada", "--json");
    ck_assert_str_eq(fields("id"), "early late new shared old med low odd s1 ");
    ck_assert_str_eq(fields("layer"), "boundary boundary memory memory memory memory memory "
                                      "memory session ");
    ck_assert_str_eq(fields("label"),
                     "architectural scope pattern learning from bob learning core core core "
                     "session ");
    ck_has("tagged cross-team");
    DONE(&cli, "memory", "compile", "p1", "--agent", "ada", "--items", "2", "--json");
    ck_assert_str_eq(fields("id"), "early late new shared s1 ");
    DONE(&cli, "memory", "compile", "p1", "--agent", "ada", "--child", "--json");
    ck_assert_str_eq(fields("id"), "early late ");
    DONE(&cli, "memory", "compile", "p1", "--agent", "bob", "--json");
    ck_assert_str_eq(fields("id"), "early late no5 no2 no1 shared s1 ");
    DONE(&cli, "memory", "compile", "nothing", "--agent", "ada");
    ck_assert_str_eq(cli.out, "");
}
END_TEST

START_TEST(the_first_memory_that_does_not_fit_ends_the_choice)
{
    init_packs();
    /* 8 of label, 10 of content and 6: 24 characters, 6 tokens */
    CLI(&cli,
        NOTE("a", "ada", "learning", "high", "", "0123456789", "09")
            NOTE("b", "ada", "learning", "high", "", "a much longer one", "08")
                NOTE("c", "ada", "learning", "high", "", "c", "07"),
        "append", "proj_p1");
    cli_assert_done(&cli);
    DONE(&cli, "memory", "compile", "p1", "--agent", "ada", "--tokens", "6", "--json");
    ck_assert_str_eq(fields("id"), "a ");
    ck_has("\"cost\":24");
    DONE(&cli, "memory", "compile", "p1", "--agent", "ada", "--tokens", "5", "--json");
    ck_assert_str_eq(cli.out, "");
    DONE(&cli, "memory", "compile", "p1", "--agent", "ada", "--tokens", "13", "--json");
    ck_assert_str_eq(fields("id"), "a ");
    DONE(&cli, "memory", "compile", "p1", "--agent", "ada", "--tokens", "14", "--all");
    ck_has("left out: costs 15 characters, and 1 are left");
    DONE(&cli, "memory", "compile", "p1", "--agent", "ada", "--tokens", "18", "--json");
    ck_assert_str_eq(fields("id"), "a b c ");
    CLI(&cli, NULL, "memory", "compile", "p1", "--agent", "ada", "--items", "0");
    cli_assert_refused(&cli, 2, "--items");
}
END_TEST

/* ---- The mirror ---- */

static void put(const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "w/.squad/decisions/inbox/%s", name);
    const char *full = tmpdir_path(&cli.dir, path);
    file_write(full, text, strlen(text));
}

static char *get(const char *name)
{
    char path[300];
    size_t len;
    snprintf(path, sizeof path, "w/%s", name);
    return file_read(tmpdir_path(&cli.dir, path), &len);
}

static bool is_there(const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "w/%s", name);
    return access(tmpdir_path(&cli.dir, path), F_OK) == 0;
}

START_TEST(a_second_export_writes_the_same_bytes_and_deletes_stale_proposals)
{
    init_packs();
    const char *tree = tmpdir_path(&cli.dir, "w");
    DONE(&cli, "decision", "propose", "p1", "Use tabs", "--agent", "ada", "--type", "scope",
         "--content", "Tabs.", "--rationale", "Narrow.");
    DONE(&cli, "decision", "propose", "p1", "Say: \"no\"", "--agent", "ada", "--content", "x",
         "--slug", "../../up");
    DONE(&cli, "memory", "note", "p1", "ada", "two\nlines", "--type", "pattern", "--tag", "b");
    DONE(&cli, "project", "export", "p1", tree);
    ck_assert_str_eq(cli.out, "7 files written, 0 deleted, 0 unchanged\n");
    ck_text(get(".squad/decisions/inbox/use-tabs.md"),
            "---\nagent: ada\nslug: use-tabs\ntype: scope\ntitle: Use tabs\n---\n\n"
            "Tabs.\n\n**Rationale:** Narrow.\n");
    ck_assert(is_there(".squad/decisions/inbox/%2E.%2F..%2Fup.md"));
    ck_assert(is_there(".squad/agents/ada/history.md"));
    ck_text(get(".squad/identity/now.md"), "# Now\n\nNo session is open.\n");
    DONE(&cli, "project", "export", "p1", tree);
    ck_assert_str_eq(cli.out, "0 files written, 0 deleted, 7 unchanged\n");
    put("mine.md", "not taken yet");
    DONE(&cli, "decision", "promote", "p1", "i1");
    DONE(&cli, "project", "export", "p1", tree);
    ck_assert_str_eq(cli.out, "2 files written, 1 deleted, 4 unchanged\n");
    ck_assert(!is_there(".squad/decisions/inbox/use-tabs.md"));
    ck_assert(is_there(".squad/decisions/inbox/mine.md"));
    ck_text(get(".agentweaver/context/boundaries.md"),
            "# Boundaries\n\n## Use tabs (scope)\n\nTabs.\n");
}
END_TEST

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

START_TEST(a_mirror_needs_a_project_and_both_packs)
{
    init_packs();
    const char *tree = tmpdir_path(&cli.dir, "w");
    CLI(&cli, NULL, "project", "export", "typo", tree);
    cli_assert_refused(&cli, 1, "there is no project 'typo'");
    ck_assert_int_ne(access(tree, F_OK), 0);
    DONE(&cli, "pack", "disable", "memory");
    CLI(&cli, NULL, "project", "export", "p1", tree);
    cli_assert_refused(&cli, 3, "pack memory is not enabled");
    CLI(&cli, NULL, "run", "tail", "r1", "--all");
    cli_assert_refused(&cli, 3, "pack memory is not enabled");
}
END_TEST

START_TEST(promote_all_merges_each_pending_proposal_once)
{
    init_packs();
    DONE(&cli, "decision", "propose", "p1", "One", "--agent", "ada", "--content", "x");
    DONE(&cli, "decision", "propose", "p1", "Two", "--agent", "ada", "--content", "x", "--type",
         "scope");
    DONE(&cli, "decision", "promote-all", "p1", "--by", "scribe");
    ck_assert_str_eq(cli.out, "merged 1 proposals\n");
    DONE(&cli, "decision", "promote-all", "p1", "--by", "scribe");
    ck_assert_str_eq(cli.out, "no pending proposal may be merged by the scribe\n");
    DONE(&cli, "decision", "inbox", "p1", "--status", "pending", "--json");
    ck_assert_str_eq(fields("slug"), "two ");
}
END_TEST

Suite *suite_agentweaver(void)
{
    Suite *suite = suite_create("agentweaver");
    TCase *tcase = suite_case(suite, "agentweaver", cli_setup, cli_teardown);
    tcase_add_test(tcase, a_task_goes_from_the_backlog_to_the_merge);
    tcase_add_test(tcase, an_approval_permits_merging_its_own_tree_only);
    tcase_add_test(tcase, a_tail_stops_after_the_end_of_a_run_and_a_replay_continues);
    tcase_add_test(tcase, deleting_a_run_deletes_its_own_revisions_only);
    tcase_add_test(tcase, with_all_packs_enabled_none_refuses_the_events_of_another);
    tcase_add_test(tcase, a_context_has_boundaries_then_memories_by_score_then_the_session);
    tcase_add_test(tcase, the_first_memory_that_does_not_fit_ends_the_choice);
    tcase_add_test(tcase, a_second_export_writes_the_same_bytes_and_deletes_stale_proposals);
    tcase_add_test(tcase, an_import_of_the_inbox_adds_missing_proposals_and_changes_no_other);
    tcase_add_test(tcase, a_mirror_needs_a_project_and_both_packs);
    tcase_add_test(tcase, promote_all_merges_each_pending_proposal_once);
    return suite;
}
