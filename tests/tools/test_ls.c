/* SPDX-License-Identifier: Apache-2.0 */
/* annal ls, and prefixes of session ids on the command line. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdlib.h>
#include <string.h>

static const char sessions[] =
    "{\"type\":\"session.created\",\"data\":{\"agent_id\":\"codex\",\"model\":\"gpt-5\"}}\n"
    "{\"type\":\"message.added\",\"ts\":\"2026-01-02T00:00:00Z\","
    "\"data\":{\"role\":\"user\",\"content\":\"Why is the tide\\nlate?\"}}\n"
    "{\"type\":\"agent.turn.usage\",\"data\":{\"input_tokens\":10,\"output_tokens\":1}}\n";

static const char child[] =
    "{\"type\":\"session.created\",\"ts\":\"2026-01-01T00:00:00Z\",\"data\":"
    "{\"agent_id\":\"codex\",\"parent_session_id\":\"run-1\",\"model\":\"o3\"}}\n";

static void begin(void)
{
    CLI(&cli, sessions, "append", "run-1");
    CLI(&cli, child, "append", "run-1.child");
    CLI(&cli,
        "{\"type\":\"session.created\",\"ts\":\"2026-01-03T00:00:00Z\",\"data\":"
        "{\"agent_id\":\"pi\",\"title\":\"The other\"}}\n",
        "append", "other-2");
    cli_assert_done(&cli);
}

/* Assert the order of the ids that --json prints. */
static void ck_order(const char *want)
{
    char got[200] = "";
    cli_assert_done(&cli);
    for (const char *at = cli.out; (at = strstr(at, "{\"session_id\":\"")) != NULL;) {
        at += strlen("{\"session_id\":\"");
        strcat(strncat(got, at, strcspn(at, "\"")), " ");
    }
    ck_assert_str_eq(got, want);
}

START_TEST(ls_filters_and_sorts)
{
    begin();
    CLI(&cli, NULL, "ls", "--json", "--agent", "codex", "--sort", "tokens");
    ck_order("run-1 run-1.child ");
    CLI(&cli, NULL, "ls", "--json", "--model", "gpt*");
    ck_order("run-1 ");
    CLI(&cli, NULL, "ls", "--json", "--model", "3");
    ck_order("run-1.child ");
    CLI(&cli, NULL, "ls", "--json", "--sort", "title");
    ck_order("other-2 run-1 run-1.child ");
    CLI(&cli, NULL, "ls", "--json", "--since", "2026-01-02T12:00:00Z", "--until", "x");
    ck_assert_int_eq(cli.exit_status, EXIT_USAGE);
    DONE(&cli, "ls", "--format", "csv", "--since", "2026-01-02T12:00:00Z", "--agent", "pi");
    ck_assert_int_eq(strncmp(cli.out, "session_id,status,", 18), 0);
    ck_assert_ptr_nonnull(strstr(cli.out, "\r\nother-2,idle,"));
    ck_assert_ptr_null(strstr(cli.out, "run-1"));
    CLI(&cli, NULL, "ls", "--sort", "size");
    cli_assert_refused(&cli, EXIT_USAGE, "--sort must be active, created");
}
END_TEST

START_TEST(a_tree_shows_sub_agents_and_forks_below_their_parent)
{
    begin();
    CLI(&cli, NULL, "fork", "run-1", "run-1.fork", "--at", "2");
    CLI(&cli, "{\"type\":\"session.created\",\"data\":{\"parent_session_id\":\"loop-b\"}}\n",
        "append", "loop-a");
    CLI(&cli, "{\"type\":\"session.created\",\"data\":{\"parent_session_id\":\"loop-a\"}}\n",
        "append", "loop-b");
    CLI(&cli, NULL, "ls", "--tree", "--json", "--sort", "agent");
    ck_order("loop-b loop-a run-1 run-1.fork run-1.child other-2 ");
    DONE(&cli, "ls", "--tree");
    ck_assert_ptr_nonnull(strstr(cli.out, "\nrun-1  "));
    ck_assert_ptr_nonnull(strstr(cli.out, "\n  run-1.child  "));
    ck_assert_ptr_nonnull(strstr(cli.out, "\n  run-1.fork  "));
}
END_TEST

START_TEST(ls_prints_a_title_on_one_line_and_keeps_it_on_a_narrow_terminal)
{
    begin();
    CLI(&cli, NULL, "ls");
    ck_assert_ptr_nonnull(strstr(cli.out, "  Why is the tide late?  "));
    ck_assert_ptr_nonnull(strstr(cli.out, "  -  "));
    cli.columns = "60";
    DONE(&cli, "ls", "--agent", "codex");
    ck_assert_ptr_nonnull(strstr(cli.out, "Why is the tide late?"));
    ck_assert_ptr_null(strstr(cli.out, "TURNS"));
    ck_assert_uint_le(strcspn(cli.out, "\n"), 60);
}
END_TEST

START_TEST(a_long_id_is_cut_only_on_a_terminal)
{
    char id[91];
    memset(id, 'a', 90);
    id[90] = '\0';
    CLI(&cli, "1\n", "append", id, "--type", "n");
    CLI(&cli, NULL, "ls");
    ck_assert_ptr_nonnull(strstr(cli.out, id));
    cli.columns = "80";
    CLI(&cli, NULL, "ls");
    cli_assert_done(&cli);
    ck_assert_ptr_null(strstr(cli.out, id));
    ck_assert_ptr_nonnull(strstr(cli.out, "\u2026aaaa"));
    ck_assert_uint_le(strcspn(cli.out, "\n"), 80);
}
END_TEST

START_TEST(on_a_terminal_ls_prints_the_shortest_unique_prefix_of_an_id)
{
#define UUID(last) "019cae51-7a10-7c33-9d02-4be0a1f35c" last
    static const char *const ids[] = {UUID("70"), UUID("70.agent-1"), UUID("70.agent-2"),
                                      "019cae51-7b10-7c33-9d02-4be0a1f35c70", "019cae5z"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        CLI(&cli, "1\n", "append", ids[i], "--type", "n");
    cli.columns = "80";
    DONE(&cli, "ls");
    ck_assert_ptr_nonnull(strstr(cli.out, "\n019cae51-7a  "));
    ck_assert_ptr_nonnull(strstr(cli.out, "\n019cae51-7b  "));
    ck_assert_ptr_nonnull(strstr(cli.out, "\n019cae5z  "));
    ck_assert_ptr_nonnull(strstr(cli.out, "\n019cae51\u2026.agent-1  "));
    ck_assert_ptr_nonnull(strstr(cli.out, "\n019cae51\u2026.agent-2  "));
    DONE(&cli, "cat", "019cae51-7a");
}
END_TEST

START_TEST(a_cost_is_marked_if_it_is_computed_or_covers_part_of_the_tokens)
{
    CLI(&cli, "{\"input_tokens\":200000,\"model\":\"x\"}", "append", "none", "--type",
        "agent.turn.usage");
    CLI(&cli, "{\"input_tokens\":1000,\"cost_usd\":1.5}\n{\"input_tokens\":2990}", "append", "some",
        "--type", "agent.turn.usage");
    CLI(&cli, "{\"model\":\"x\",\"input\":30,\"output\":60}", "append", "prices", "--type",
        "price.set");
    CLI(&cli, NULL, "ls");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "~$6.00  "));
    ck_assert_ptr_nonnull(strstr(cli.out, " $1.50 of 25%  "));
    CLI(&cli, NULL, "ls", "--json", "--sort", "cost");
    ck_order("none some prices ");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"total_cost_usd\":null"));
    CLI(&cli, NULL, "show", "none");
    ck_assert_ptr_nonnull(strstr(cli.out, "\ncost                 ~$6.00\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\n~   computed from list prices"));
    CLI(&cli, NULL, "show", "some");
    ck_assert_ptr_nonnull(strstr(cli.out, "\ncost                 $1.50 of 25%\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\nof N%   the cost of N% of the tokens"));
    ck_assert_ptr_null(strstr(cli.out, "\n-   not known")); /* the output contains no "-" */
    CLI(&cli, NULL, "report", "some");
    ck_assert_ptr_nonnull(strstr(cli.out, "  $1.50 of 25%\n"));
}
END_TEST

START_TEST(a_unique_prefix_of_an_id_selects_its_session)
{
    static const char *const verbs[][4] = {
        {"cat", "othe"},    {"show", "othe"},           {"query", "othe"},
        {"replay", "othe"}, {"verify", "othe"},         {"tail", "othe"},
        {"export", "othe"}, {"diff", "othe", "0", "1"}, {"snapshot", "list", "othe"}};
    begin();
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        cli_run(&cli, NULL,
                (const char *[]){verbs[i][0], verbs[i][1], verbs[i][2],
                                 verbs[i][2] ? verbs[i][3] : NULL, NULL});
        ck_assert_msg(cli.exit_status == 0, "%s: %s", verbs[i][0], cli.err);
    }
    CLI(&cli, NULL, "search", "tide", "--session", "othe", "--json");
    cli_assert_refused(&cli, EXIT_REFUSED, "nothing found");
    CLI(&cli, NULL, "show", "othe");
    ck_assert_ptr_nonnull(strstr(cli.out, "other-2\n"));
    CLI(&cli, NULL, "show",
        "run-1"); /* a whole id selects its session, even if other ids begin with it */
    cli_assert_done(&cli);
    CLI(&cli, NULL, "show",
        "run-"); /* a prefix that only a session and its sub-agents share selects the session */
    ck_assert_ptr_nonnull(strstr(cli.out, "run-1\n"));
    CLI(&cli, "1\n", "append", "run-2", "--type", "n");
    CLI(&cli, NULL, "cat", "run-");
    cli_assert_refused(&cli, EXIT_USAGE, "2 sessions begin with 'run-': run-1, run-2");
    CLI(&cli, NULL, "cat", "oth");
    cli_assert_refused(&cli, EXIT_REFUSED, "there is no session 'oth'");
    CLI(&cli, "1\n", "append", "othe", "--type", "n"); /* begins a new session */
    CLI(&cli, NULL, "delete", "other");
    cli_assert_refused(&cli, EXIT_REFUSED, "there is no session 'other'");
    CLI(&cli, NULL, "ls", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"session_id\":\"othe\","));
}
END_TEST

START_TEST(sql_finds_a_session_by_a_unique_prefix)
{
    begin();
    DONE(&cli, "sql",
         "SELECT session_id('ot') AS a, session_id('run-1') AS b, session_id('x') AS c", "--json");
    ck_assert_str_eq(cli.out, "{\"a\":\"other-2\",\"b\":\"run-1\",\"c\":null}\n");
    DONE(&cli, "sql", "SELECT session_id('run') AS a", "--json");
    ck_assert_str_eq(cli.out, "{\"a\":\"run-1\"}\n");
    CLI(&cli, "1\n", "append", "run-2", "--type", "n");
    CLI(&cli, NULL, "sql", "SELECT session_id('run')");
    cli_assert_refused(&cli, EXIT_REFUSED, "the beginning of the id is ambiguous");
}
END_TEST

#define CREATED(ts, directory)                                                                     \
    "{\"type\":\"session.created\",\"ts\":\"" ts "\",\"data\":{\"working_directory\":\"" directory \
    "\"}}\n"
#define MOVED(ts, directory)                                                                       \
    "{\"type\":\"session.updated\",\"ts\":\"" ts                                                   \
    "\",\"data\":{\"set\":{\"working_directory\":\"" directory "\"}}}\n"
#define TOKENS(ts)                                                                                 \
    "{\"type\":\"agent.turn.usage\",\"ts\":\"" ts "\",\"data\":{\"input_tokens\":7}}\n"

START_TEST(sessions_of_a_moved_directory_match_its_old_and_its_new_name)
{
    static const char *const names[] = {"/home/ada/quay", "/home/ada/pier", "pier", "quay",
                                        "/home/ada/quay/"};
    DONE_WITH(&cli,
              CREATED("2026-03-01T09:00:00Z", "/home/ada/quay") TOKENS("2026-03-01T09:01:00Z"),
              "append", "before");
    DONE_WITH(&cli,
              CREATED("2026-03-02T09:00:00Z", "/home/ada/quay/")
                  MOVED("2026-03-03T09:00:00Z", "/home/ada/pier"),
              "append", "during");
    DONE_WITH(&cli,
              CREATED("2026-03-04T09:00:00Z", "/home/ada/pier") TOKENS("2026-03-04T09:01:00Z"),
              "append", "after");
    /* It only visited another directory, in which sessions begin later: no directory was moved. */
    DONE_WITH(&cli,
              CREATED("2026-03-02T09:00:00Z", "/home/ada/tide")
                  MOVED("2026-03-02T09:30:00Z", "/home/ada/pier"),
              "append", "guest");
    DONE_WITH(&cli, CREATED("2026-03-05T09:00:00Z", "/home/ada/tide"), "append", "tide");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        DONE(&cli, "ls", "--project", names[i], "--json");
        ck_assert_ptr_nonnull(strstr(cli.out, "\"before\""));
        ck_assert_ptr_nonnull(strstr(cli.out, "\"during\""));
        ck_assert_ptr_nonnull(strstr(cli.out, "\"after\""));
        ck_assert_ptr_nonnull(strstr(cli.out, "\"project\":\"/home/ada/pier\""));
        ck_assert_ptr_null(strstr(cli.out, "guest"));
    }
    DONE(&cli, "ls", "--project", "/home/ada/pie", "--json");
    ck_assert_str_eq(cli.out, "");
    DONE(&cli, "ls", "--sort", "project");
    ck_assert_ptr_nonnull(strstr(cli.out, "PROJECT"));
    DONE(&cli, "report", "--project", "quay", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out,
                                 "{\"section\":\"projects\",\"project\":\"/home/ada/pier\","
                                 "\"sessions\":2,\"requests\":2,\"input_tokens\":14,"));
}
END_TEST

START_TEST(ls_ignores_an_implausible_time_when_it_sorts_and_filters)
{
    DONE_WITH(&cli, TOKENS("2026-01-02T09:00:00Z") TOKENS("2099-01-01T00:00:00Z"), "append", "odd");
    DONE_WITH(&cli, TOKENS("2026-01-03T09:00:00Z"), "append", "even");
    DONE_WITH(&cli, TOKENS("0001-01-01T00:00:00Z") TOKENS("2026-01-04T09:00:00Z"), "append", "old");
    DONE(&cli, "ls", "--json");
    char *odd = strstr(cli.out, "\"odd\""), *even = strstr(cli.out, "\"even\"");
    ck_assert(odd != NULL && even != NULL && even < odd);
    ck_assert_ptr_nonnull(strstr(odd, "\"last_activity_at\":\"2026-01-02T09:00:00.000000Z\""));
    ck_assert_ptr_nonnull(strstr(odd, "\"time_from\":\"implausible\""));
    DONE(&cli, "ls", "--since", "2026-01-03", "--json");
    ck_assert_ptr_null(strstr(cli.out, "\"odd\""));
    DONE(&cli, "report", "--since", "2026-01-03", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"section\":\"total\",\"sessions\":2,"));
    DONE(&cli, "ls");
    ck_assert_ptr_nonnull(strstr(cli.out, " ?  "));
}
END_TEST

#define FROM_HOST(host)                                                                            \
    "{\"type\":\"session.created\",\"data\":{\"source_host\":\"" host                              \
    "\",\"source_path\":\"/logs/a.jsonl\"}}\n" TOKENS("2026-01-02T09:00:00Z")

START_TEST(ls_shows_hosts_if_they_differ)
{
    DONE_WITH(&cli, FROM_HOST("pier"), "append", "one");
    DONE(&cli, "ls");
    ck_assert_ptr_null(strstr(cli.out, "HOST"));
    DONE(&cli, "report");
    ck_assert_ptr_null(strstr(cli.out, "by host"));
    DONE_WITH(&cli, FROM_HOST("quay"), "append", "two");
    DONE(&cli, "ls");
    ck_assert_ptr_nonnull(strstr(cli.out, "HOST"));
    ck_assert_ptr_nonnull(strstr(cli.out, "quay"));
    DONE(&cli, "ls", "--json");
    ck_assert_ptr_nonnull(strstr(
        cli.out,
        "\"source_host\":\"pier\",\"source_path\":\"/logs/a.jsonl\",\"source_state\":null,"));
    DONE(&cli, "report", "--json");
    ck_assert_ptr_nonnull(
        strstr(cli.out, "{\"section\":\"hosts\",\"source_host\":\"pier\",\"sessions\":1,"));
    DONE(&cli, "show", "two");
    ck_assert_ptr_nonnull(strstr(cli.out, "/logs/a.jsonl"));
}
END_TEST

Suite *suite_ls(void)
{
    Suite *suite = suite_create("ls");
    TCase *tcase = suite_case(suite, "ls", cli_setup, cli_teardown);
    tcase_add_test(tcase, ls_filters_and_sorts);
    tcase_add_test(tcase, a_tree_shows_sub_agents_and_forks_below_their_parent);
    tcase_add_test(tcase, a_long_id_is_cut_only_on_a_terminal);
    tcase_add_test(tcase, on_a_terminal_ls_prints_the_shortest_unique_prefix_of_an_id);
    tcase_add_test(tcase, ls_prints_a_title_on_one_line_and_keeps_it_on_a_narrow_terminal);
    tcase_add_test(tcase, a_cost_is_marked_if_it_is_computed_or_covers_part_of_the_tokens);
    tcase_add_test(tcase, a_unique_prefix_of_an_id_selects_its_session);
    tcase_add_test(tcase, sql_finds_a_session_by_a_unique_prefix);
    tcase_add_test(tcase, sessions_of_a_moved_directory_match_its_old_and_its_new_name);
    tcase_add_test(tcase, ls_shows_hosts_if_they_differ);
    tcase_add_test(tcase, ls_ignores_an_implausible_time_when_it_sorts_and_filters);
    return suite;
}
