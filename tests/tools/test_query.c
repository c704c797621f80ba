/* SPDX-License-Identifier: Apache-2.0 */
/* ls, show, query, sql, stats, reindex. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char history[] =
    "{\"type\":\"session.created\",\"ts\":\"2026-01-06T07:00:00Z\",\"data\":{\"agent_id\":\"a1\","
    "\"provider\":\"p\",\"model\":\"m\",\"title\":\"Mend the gate\"}}\n"
    "{\"type\":\"tool.called\",\"ts\":\"2026-01-06T08:00:00Z\",\"data\":{\"name\":\"Bash\"}}\n"
    "{\"type\":\"tool.returned\",\"ts\":\"2026-01-06T09:00:00Z\",\"data\":{\"output\":\"a,"
    "\\\"b\\\"\\n\"}}\n"
    "{\"type\":\"session.ended\",\"ts\":\"2026-01-06T10:00:00Z\",\"data\":{}}\n";

static void begin(void)
{
    DONE_WITH(&cli, history, "append", "old");
    DONE_WITH(&cli, "{\"type\":\"tool.called\",\"data\":{\"name\":\"Read\"}}\n", "append", "new");
}

static void assert_out(const char *want)
{
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, want);
}

static void assert_holds(const char *part)
{
    ck_assert_msg(strstr(cli.out, part) != NULL, "no '%s' in: %s", part, cli.out);
}

START_TEST(a_query_filters_by_members_of_data_and_counts_by_group)
{
    begin();
    CLI(&cli, NULL, "query", "--where", "data->>'$.name' = 'Bash'", "--count");
    assert_out("1\n");
    CLI(&cli, NULL, "query", "--group-by", "type", "--limit", "2");
    assert_out("TYPE             EVENTS\ntool.called           2\n"
               "session.created       1\n");
    CLI(&cli, NULL, "query", "--group-by", "session", "--json");
    assert_out("{\"session_id\":\"old\",\"events\":4}\n"
               "{\"session_id\":\"new\",\"events\":1}\n");
    CLI(&cli, NULL, "query", "--group-by", "day", "--where", "type <> 'session.ended'", "--until",
        "2026-01-07", "--format", "csv");
    assert_out("day,events\r\n2026-01-06,3\r\n");
    CLI(&cli, NULL, "query", "--order", "commit", "--desc", "--limit", "1", "--type", "tool.*",
        "--format", "csv", "old");
    assert_holds("old,3,");
}
END_TEST

START_TEST(a_query_refuses_a_wrong_option_and_names_the_right_values)
{
    static const struct {
        const char *option, *value, *says;
        int exit_status;
    } wrong[] = {
        {"--order", "seq", "time or commit", EXIT_USAGE},
        {"--group-by", "turn", "agent, week or month", EXIT_USAGE},
        {"--where", " ", "needs an SQL expression", EXIT_USAGE},
        {"--where", "nope = 1", "invalid expression in the filter: SQL: no such column: nope",
         EXIT_REFUSED},
    };
    begin();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CLI(&cli, NULL, "query", wrong[i].option, wrong[i].value);
        cli_assert_refused(&cli, wrong[i].exit_status, wrong[i].says);
    }
    CLI(&cli, NULL, "query", "--count", "--format", "csv");
    cli_assert_refused(&cli, EXIT_USAGE, "--group-by");
}
END_TEST

START_TEST(a_search_prints_events_with_the_words_marked)
{
    begin();
    CLI(&cli, NULL, "search", "--info");
    assert_out("search is on; the first search reads all journals\n");
    CLI(&cli, NULL, "search", "mend", "gate", "--events");
    assert_out("old  seq 1  2026-01-06T07:00:00.000000Z  session.created\n"
               "    a1  Mend the gate\n    p m [Mend] the [gate]\n");
    CLI(&cli, NULL, "search", "bash", "--session", "old", "--events", "--json", "--context", "1");
    assert_holds("{\"session_id\":\"old\",\"agent_id\":\"a1\",\"title\":\"Mend the gate\","
                 "\"seq\":2,\"timestamp\":\"2026-01-06T08:00:00."
                 "000000Z\",\"type\":\"tool.called\",\"role\":\"assistant\",\"tool\":\"\","
                 "\"rank\":");
    assert_holds(",\"snippet\":\"**Bash**\"}\n{\"session_id\":\"old\",\"seq\":1,");
    assert_holds("\"seq\":3,");
    CLI(&cli, NULL, "search", "gate", "mends", "--context", "1");
    assert_holds("old  2026-01-06T09:00:00.000000Z\n    a1  Mend the gate\n"
                 "    gate in 1 event, mends in 1; 2 of 2 in event 1\n"
                 "  seq 1  2026-01-06T07:00:00.000000Z  session.created\n");
    assert_holds("    p m [Mend] the [gate]\n");
    assert_holds("      2  08:00:00");
    ck_assert_ptr_null(strstr(cli.out, "(null)"));
    CLI(&cli, NULL, "search", "zebra");
    cli_assert_refused(&cli, EXIT_REFUSED,
                       "nothing found in 2 sessions; the store has 4 events with text; --all also");
    CLI(&cli, NULL, "search", "zebra", "--role", "user", "--all");
    cli_assert_refused(&cli, EXIT_REFUSED, "events with text; restricted by --role\n");
    CLI(&cli, NULL, "delete", "old", "--yes");
    CLI(&cli, NULL, "search", "gate");
    cli_assert_refused(&cli, EXIT_REFUSED, "nothing found");
    CLI(&cli, NULL, "search", "--off");
    assert_out("search is switched off\n");
    CLI(&cli, NULL, "search", "gate");
    cli_assert_refused(&cli, EXIT_STORAGE, "annal search --on");
    CLI(&cli, NULL, "search", "--on");
    CLI(&cli, NULL, "search", "--rebuild", "--json");
    assert_holds("{\"on\":true,\"exists\":true,\"documents\":1,\"bytes\":");
}
END_TEST

START_TEST(a_search_refuses_wrong_options_and_names_the_right_values)
{
    begin();
    CLI(&cli, NULL, "search");
    cli_assert_refused(&cli, EXIT_USAGE, "search needs words");
    CLI(&cli, NULL, "search", "a", "--match", "b");
    cli_assert_refused(&cli, EXIT_USAGE, "--match");
    CLI(&cli, NULL, "search", "a", "--off");
    cli_assert_refused(&cli, EXIT_USAGE, "take no other option");
    CLI(&cli, NULL, "search", "a", "--session", "../b");
    cli_assert_refused(&cli, EXIT_USAGE, "session");
    CLI(&cli, NULL, "search", "--match", "a AND (");
    cli_assert_refused(&cli, EXIT_REFUSED, "invalid search expression");
    CLI(&cli, NULL, "search", "!?");
    cli_assert_refused(&cli, EXIT_REFUSED, "nothing to search for");
}
END_TEST

/* Tokens and costs by day, model and session; durations of tools; numbers of failures. */
START_TEST(the_views_of_core_sum_costs)
{
    static const char events[] =
        "{\"type\":\"turn.started\",\"ts\":\"2026-01-06T23:00:00Z\",\"data\":{\"turn_id\":\"1\"}}\n"
        "{\"type\":\"agent.turn.usage\",\"ts\":\"2026-01-06T23:00:01Z\",\"data\":{\"turn_id\":"
        "\"1\","
        "\"model\":\"big\",\"input_tokens\":10,\"output_tokens\":4,\"cost_usd\":0.25}}\n"
        "{\"type\":\"tool.called\",\"ts\":\"2026-01-06T23:00:02Z\",\"data\":{\"call_id\":\"a\","
        "\"tool\":\"bash\"}}\n"
        "{\"type\":\"tool.returned\",\"ts\":\"2026-01-06T23:00:02.250Z\",\"data\":{\"call_id\":"
        "\"a\",\"output\":\"\"}}\n"
        "{\"type\":\"tool.called\",\"ts\":\"2026-01-07T00:00:02Z\",\"data\":{\"call_id\":\"b\","
        "\"tool\":\"bash\"}}\n"
        "{\"type\":\"tool.failed\",\"ts\":\"2026-01-07T00:00:03Z\",\"data\":{\"call_id\":\"b\","
        "\"duration_ms\":40}}\n"
        "{\"type\":\"turn.failed\",\"ts\":\"2026-01-07T00:00:04Z\",\"data\":{\"turn_id\":\"1\","
        "\"input_tokens\":5,\"output_tokens\":1}}\n"
        "{\"type\":\"turn.failed\",\"ts\":\"2026-01-07T00:00:05Z\",\"data\":{\"turn_id\":\"1\","
        "\"input_tokens\":500,\"output_tokens\":100}}\n";
    DONE_WITH(&cli, events, "append", "s");
    CLI(&cli, NULL, "sql", "--format", "csv",
        "SELECT day, requests, input_tokens, output_tokens, cost_usd FROM usage_by_day");
    assert_out("day,requests,input_tokens,output_tokens,cost_usd\r\n"
               "2026-01-06,1,10,4,0.25\r\n2026-01-07,1,5,1,\r\n");
    CLI(&cli, NULL, "sql", "--format", "csv",
        "SELECT m.model, m.input_tokens, s.input_tokens, s.first_day, s.last_day, t.input_tokens "
        "FROM usage_by_model m, usage_by_session s, sessions t");
    assert_out("model,input_tokens,input_tokens,first_day,last_day,input_tokens\r\n"
               "big,15,15,2026-01-06,2026-01-07,15\r\n");
    CLI(&cli, NULL, "sql", "--format", "csv", "SELECT * FROM tool_stats");
    assert_out("tool,calls,returned,failed,dangling,failure_rate,p50_ms,p95_ms,max_ms,"
               "total_ms\r\nbash,2,1,1,0,0.5,40,250,250,290\r\n");
    CLI(&cli, NULL, "sql", "--format", "csv", "SELECT * FROM errors_by_day");
    assert_out("day,tool_calls,failed_tool_calls,tool_failure_rate,turns,failed_turns,"
               "turn_failure_rate\r\n2026-01-06,1,0,0,1,1,1\r\n"
               "2026-01-07,1,1,1,0,0,\r\n");
    CLI(&cli, "{}\n", "append", "s", "--type", "session.pruned");
    CLI(&cli, NULL, "sql", "--format", "csv", "SELECT count(*) AS n FROM usage");
    assert_out("n\r\n0\r\n");
}
END_TEST

START_TEST(a_query_reads_events_that_cannot_be_indexed_from_the_journals)
{
    begin();
    CLI(&cli, NULL, "query", "--count");
    assert_out("5\n");
    int lock = open(tmpdir_path(&cli.dir, "store/locks/index"), O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(flock(lock, LOCK_EX | LOCK_NB), 0);
    CLI(&cli, history, "append", "old");
    CLI(&cli, NULL, "query", "--count");
    assert_out("9\n");
    close(lock);
}
END_TEST

START_TEST(a_snapshot_does_not_wait_for_the_index)
{
    begin();
    DONE(&cli, "snapshot", "old");
    CLI(&cli, NULL, "stats", "--json");
    assert_holds("{\"session_id\":\"old\",\"journal_seq\":4,\"indexed_seq\":0,");
    CLI(&cli, NULL, "ls");
    CLI(&cli, NULL, "sql", "--json", "SELECT session_id, seq FROM snapshots");
    assert_out("{\"session_id\":\"old\",\"seq\":4}\n");
    CLI(&cli, NULL, "snapshot", "none");
    cli_assert_refused(&cli, EXIT_REFUSED, "none");
}
END_TEST

START_TEST(ls_prints_a_dash_for_an_unknown_time)
{
    CLI(&cli, "{\"type\":\"a\",\"ts\":\"1970-01-01T00:00:00.000001Z\",\"data\":1}\n", "append",
        "s");
    DONE(&cli, "ls");
    assert_holds("  -  ");
    ck_assert_ptr_null(strstr(cli.out, "1970"));
    CLI(&cli, NULL, "ls", "--json");
    assert_holds("\"last_activity_at\":\"1970-01-01T00:00:00.000001Z\"");
}
END_TEST

START_TEST(a_table_of_events_is_narrow_off_a_terminal_too)
{
    char line[1100];
    snprintf(line, sizeof line, "\"%0*d\"", 1000, 7);
    CLI(&cli, line, "append", "s", "--type", "a");
    DONE(&cli, "query", "--format", "table");
    char *row = strchr(cli.out, '\n') + 1;
    ck_assert_msg(strlen(row) < 150, "%s", row);
    ck_assert_ptr_nonnull(strstr(row, "00\u2026\n"));
    cli.columns = "400";
    CLI(&cli, NULL, "query", "--format", "table");
    row = strchr(cli.out, '\n') + 1;
    ck_assert_msg(strlen(row) > 350 && strlen(row) < 410, "%s", row);
    CLI(&cli, NULL, "query", "--format", "csv");
    ck_assert_ptr_nonnull(strstr(cli.out, "0007"));
}
END_TEST

START_TEST(ls_reports_an_empty_list_and_filters_by_limit_and_status)
{
    CLI(&cli, NULL, "pack", "enable", "lionagi");
    CLI(&cli, NULL, "ls");
    ck_assert_int_eq(cli.exit_status, 0);
    ck_assert_str_eq(cli.out, "");
    ck_assert_ptr_nonnull(strstr(cli.err, "no sessions yet"));
    for (char name[] = "s1"; name[1] <= '5'; name[1]++)
        CLI(&cli, NULL, "lionagi", "session", name, "--status", "running");
    CLI(&cli, NULL, "lionagi", "transition", "s3", "failed");
    DONE(&cli, "ls", "--limit", "2", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"session_id\":\"s3\""));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"session_id\":\"s5\""));
    ck_assert_ptr_null(strstr(cli.out, "\"session_id\":\"s4\""));
    CLI(&cli, NULL, "ls", "--status", "failed", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"session_id\":\"s3\""));
    ck_assert_ptr_null(strstr(cli.out, "\"session_id\":\"s1\""));
    DONE(&cli, "ls", "--status", "timed_out", "--json");
    ck_assert_str_eq(cli.out, "");
}
END_TEST

START_TEST(ls_lists_the_last_active_session_first)
{
    begin();
    DONE(&cli, "ls");
    ck_assert_int_eq(strncmp(cli.out, "SESSION", 7), 0);
    ck_assert_ptr_nonnull(strstr(cli.out, "\nnew "));
    ck_assert(strstr(cli.out, "\nnew ") < strstr(cli.out, "\nold "));
    assert_holds("Mend the gate");
    DONE(&cli, "ls", "--json", "--status", "ended");
    ck_assert_int_eq(strncmp(cli.out,
                             "{\"session_id\":\"old\",\"status\":\"ended\",\"events\":4,"
                             "\"total_turns\":0,\"total_tokens\":0,",
                             70),
                     0);
    CLI(&cli, NULL, "ls", "--limit", "1", "--json");
    assert_holds("{\"session_id\":\"new\"");
    ck_assert_ptr_null(strstr(cli.out, "\"old\""));
    CLI(&cli, NULL, "ls", "--status", "nonsense");
    assert_out("");
}
END_TEST

START_TEST(ls_on_a_narrow_terminal_leaves_columns_out)
{
    static const char session[] = "0199b2c4-5e77-7d02-b1aa-2f60c8d9e413";
    begin();
    CLI(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", session);
    cli.columns = "60";
    DONE(&cli, "ls", "--limit", "1");
    ck_assert_ptr_nonnull(strstr(cli.out, "\n0199b2c4  "));
    ck_assert_ptr_nonnull(strstr(cli.out, "HEALTH"));
    ck_assert_ptr_null(strstr(cli.out, "STATUS"));
    ck_assert_uint_le(strcspn(cli.out, "\n"), 60);
    cli.columns = "200";
    CLI(&cli, NULL, "ls", "--limit", "1");
    ck_assert_ptr_nonnull(strstr(cli.out, "STATUS"));
}
END_TEST

START_TEST(query_filters_by_session_type_time_and_seq)
{
    begin();
    CLI(&cli, NULL, "query", "old", "--seq", "2..2");
    assert_out("{\"session_id\":\"old\",\"seq\":2,\"timestamp\":\"2026-01-06T08:00:00.000000Z\","
               "\"type\":\"tool.called\",\"data\":{\"name\":\"Bash\"}}\n");
    CLI(&cli, NULL, "query", "--count");
    assert_out("5\n");
    CLI(&cli, NULL, "query", "--count", "--json", "--type", "tool.*");
    assert_out("{\"events\":3}\n");
    CLI(&cli, NULL, "query", "--count", "--type", "tool.called", "--type", "session.*");
    assert_out("4\n");
    CLI(&cli, NULL, "query", "--count", "--since", "1h");
    assert_out("1\n");
    CLI(&cli, NULL, "query", "--count", "--since=2026-01-06T08:00:00Z",
        "--until=2026-01-06T10:00Z");
    assert_out("2\n");
    CLI(&cli, NULL, "query", "--count", "old", "new", "--seq", "..1");
    assert_out("2\n");
    CLI(&cli, NULL, "query", "--count", "old", "--seq", "3..");
    assert_out("2\n");
    CLI(&cli, NULL, "query", "--count", "old", "--seq", "3");
    assert_out("1\n");
    DONE(&cli, "query", "--limit", "2", "--format", "csv", "--type", "tool.*");
    assert_holds("session_id,seq,timestamp,type,id,cause,data\r\n");
    assert_holds("old,3,2026-01-06T09:00:00.000000Z,tool.returned,,,"
                 "\"{\"\"output\"\":\"\"a,\\\"\"b\\\"\"\\n\"\"}\"\r\n");
    DONE(&cli, "query", "old", "--format", "table");
    assert_holds(
        "old        2  2026-01-06T08:00:00.000000Z  tool.called      {\"name\":\"Bash\"}\n");
}
END_TEST

START_TEST(sql_that_does_not_end_is_stopped)
{
    static const char endless[] =
        "(WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c)";
    char select[200], where[200];
    begin();
    snprintf(select, sizeof select, "SELECT %s", endless);
    snprintf(where, sizeof where, "%s > 0", endless);
    CLI(&cli, NULL, "sql", "--timeout", "1", select);
    cli_assert_refused(&cli, EXIT_REFUSED,
                       "the statement was stopped after 1 seconds; --timeout, --memory");
    CLI(&cli, NULL, "query", "--timeout", "1", "--where", where);
    cli_assert_refused(&cli, EXIT_REFUSED,
                       "the statement was stopped after 1 seconds for one row; --timeout");
    CLI(&cli, NULL, "replay", "old", "--timeout", "1", "--sql", select);
    cli_assert_refused(&cli, EXIT_REFUSED, "the statement was stopped after 1 seconds; --timeout");
    static const char one_call[] = "instr(zeroblob(9000000), zeroblob(4000000) || x'01')";
    snprintf(select, sizeof select, "SELECT %s", one_call);
    CLI(&cli, NULL, "sql", "--timeout", "1", select);
    cli_assert_refused(&cli, EXIT_REFUSED,
                       "stopped after 1 seconds, inside one call of a function");
    CLI(&cli, NULL, "query", "--timeout", "1", "--where", one_call);
    cli_assert_refused(&cli, EXIT_REFUSED,
                       "stopped after 1 seconds, inside one call of a function");
    CLI(&cli, NULL, "sql", "--memory", "8", "SELECT length(zeroblob(3000000))");
    cli_assert_refused(&cli, EXIT_REFUSED, "a value is larger than 2 MB; --timeout, --memory");
    CLI(&cli, NULL, "sql", "--timeout", "soon", "SELECT 1");
    cli_assert_refused(&cli, EXIT_USAGE, "--timeout needs a whole number");
}
END_TEST

START_TEST(sql_answers_and_changes_nothing)
{
    begin();
    const char *query = "SELECT session_id, count(*) AS n, 1.5 AS r, NULL AS e FROM events"
                        " WHERE type = 'tool.called' GROUP BY 1 ORDER BY 1";
    CLI(&cli, NULL, "sql", query);
    assert_out("session_id  n    r  e\nnew         1  1.5  \nold         1  1.5  \n");
    CLI(&cli, NULL, "sql", query, "--json");
    assert_out("{\"session_id\":\"new\",\"n\":1,\"r\":1.5,\"e\":null}\n"
               "{\"session_id\":\"old\",\"n\":1,\"r\":1.5,\"e\":null}\n");
    CLI(&cli, NULL, "sql", query, "--format", "csv");
    assert_out("session_id,n,r,e\r\nnew,1,1.5,\r\nold,1,1.5,\r\n");
    CLI(&cli, NULL, "sql", "SELECT data FROM events WHERE session_id = 'old' AND seq = 3",
        "--json");
    assert_out("{\"data\":\"{\\\"output\\\":\\\"a,\\\\\\\"b\\\\\\\"\\\\n\\\"}\"}\n");
    static const char *const wrong[] = {"SELEC 1", "DELETE FROM sessions", "SELECT * FROM nowhere",
                                        "", "SELECT 1; SELECT 2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CLI(&cli, NULL, "sql", wrong[i]);
        cli_assert_refused(&cli, EXIT_REFUSED, "annal: ");
        ck_assert_str_eq(cli.out, "");
    }
    CLI(&cli, NULL, "ls", "--json");
    assert_holds("\"old\"");
}
END_TEST

START_TEST(a_statement_may_begin_with_a_comment)
{
    static const char *const statements[] = {
        "-- the busiest\nSELECT 1 AS n",
        "--the busiest\nSELECT 1 AS n",
        "--busiest\nSELECT 1 AS n",
        "--\nSELECT 1 AS n",
        "--a=b\nSELECT 1 AS n",
        "/* the busiest */ SELECT 1 AS n",
        "\n  -- one\n /* two */ SELECT 1 AS n",
        "SELECT 1 AS n -- one",
    };
    begin();
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        CLI(&cli, NULL, "sql", "--format", "jsonl", statements[i]);
        assert_out("{\"n\":1}\n");
        CLI(&cli, NULL, "sql", statements[i], "--json");
        assert_out("{\"n\":1}\n");
    }
    CLI(&cli, NULL, "sql", "-- nothing else");
    cli_assert_refused(&cli, EXIT_REFUSED, "annal: ");
    CLI(&cli, NULL, "sql", "--nothing");
    cli_assert_refused(&cli, EXIT_USAGE, "annal sql has no option '--nothing'");
    CLI(&cli, NULL, "query", "-- old");
    cli_assert_refused(&cli, EXIT_USAGE, "has no option");
}
END_TEST

START_TEST(control_characters_are_printed_unchanged_into_a_pipe)
{
    CLI(&cli,
        "{\"type\":\"session.created\",\"data\":{\"title\":\"\\u001b[31mred\\u009b\\u0007\"}}\n",
        "append", "s");
    DONE(&cli, "ls");
    assert_holds("\033[31mred\xc2\x9b\a");
    DONE(&cli, "show", "s");
    assert_holds("\033[31mred\xc2\x9b\a");
    CLI(&cli, NULL, "sql", "SELECT title FROM sessions");
    assert_out("title\n\033[31mred\xc2\x9b\a\n");
}
END_TEST

START_TEST(show_prints_journal_totals_and_types)
{
    begin();
    DONE(&cli, "show", "old");
    assert_holds("tool.called");
    assert_holds("Mend the gate");
    DONE(&cli, "show", "old", "--json");
    assert_holds("{\"session_id\":\"old\",\"file\":\"");
    assert_holds("\"journal_seq\":4,\"indexed_seq\":4,");
    assert_holds("\"types\":{");
    assert_holds("\"tool.called\":1");
    assert_holds("\"turns\":[],\"sources\":[],\"session_notes\":[],\"snapshots\":[");
    ck_assert_ptr_eq(strchr(cli.out, '\n'), cli.out + cli.out_len - 1);
}
END_TEST

START_TEST(without_the_index_every_answer_is_the_same)
{
    static const char *const questions[][5] = {{"ls", "--json"},
                                               {"query"},
                                               {"show", "old", "--json"},
                                               {"sql", "SELECT * FROM event_index"},
                                               {"query", "--type", "tool.*", "--count"}};
    begin();
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        cli_run(&cli, NULL, questions[i]);
        cli_assert_done(&cli);
        char *before = strdup(cli.out);
        unlink(tmpdir_path(&cli.dir, "store/sessions.db"));
        unlink(tmpdir_path(&cli.dir, "store/sessions.db-wal"));
        unlink(tmpdir_path(&cli.dir, "store/sessions.db-shm"));
        cli_run(&cli, NULL, questions[i]);
        assert_out(before);
        DONE(&cli, "reindex");
        assert_holds("indexed 5 events");
        cli_run(&cli, NULL, questions[i]);
        assert_out(before);
        free(before);
    }
}
END_TEST

START_TEST(stats_counts_events_and_lists_lagging_sessions)
{
    begin();
    DONE(&cli, "reindex", "--json");
    DONE(&cli, "stats");
    assert_holds("sessions       2\n");
    assert_holds("events         5\n");
    assert_holds("index lag      none\n");
    CLI(&cli, history, "append", "late");
    DONE(&cli, "stats", "--json");
    assert_holds("{\"session_id\":\"late\",\"journal_seq\":4,\"indexed_seq\":0,");
    assert_holds("\"sessions\":3,\"events\":9,\"indexed_events\":5,");
    assert_holds("{\"type\":\"tool.called\",\"events\":2}");
    CLI(&cli, NULL, "stats");
    assert_holds("in 1 session");
    assert_holds("late ");
}
END_TEST

/* Drop the rights of root, which can write read-only files. */
static bool begin_read_only(bool with_index)
{
    char command[600];
    begin();
    if (with_index)
        CLI(&cli, NULL, "reindex");
    snprintf(command, sizeof command, "chmod 755 %s && chmod -R a+rX,a-w %s", cli.dir.path,
             cli.store);
    ck_assert_int_eq(system(command), 0);
    cli.as_nobody = geteuid() == 0;
    CLI(&cli, NULL, "version");
    return cli.exit_status == 0;
}

static void end_read_only(void)
{
    char command[600];
    snprintf(command, sizeof command, "chmod -R u+w %s", cli.store);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(a_store_on_read_only_media_is_read_with_or_without_an_index)
{
    if (begin_read_only(_i == 1)) {
        /* It may report that it cannot read the commit logs; only the exit status matters. */
        CLI(&cli, NULL, "ls", "--json");
        ck_assert_int_eq(cli.exit_status, 0);
        assert_holds("\"old\"");
        CLI(&cli, NULL, "query", "--count");
        ck_assert_str_eq(cli.out, "5\n");
        CLI(&cli, NULL, "cat", "new");
        ck_assert_int_eq(cli.exit_status, 0);
        CLI(&cli, NULL, "verify");
        ck_assert_int_eq(cli.exit_status, 0);
        CLI(&cli, NULL, "reindex");
        cli_assert_refused(&cli, EXIT_STORAGE, cli.store);
        CLI(&cli, history, "append", "old");
        cli_assert_refused(&cli, EXIT_STORAGE, cli.store);
        ck_assert_ptr_null(strstr(cli.out, "\"seq\""));
    } else {
        fprintf(stderr, "skipped: the command cannot be run as another user here\n");
    }
    end_read_only();
}
END_TEST

START_TEST(verify_reports_an_index_that_differs_from_the_journals)
{
    static const struct {
        const char *change;
        const char *finding;
    } changes[] = {
        {"DELETE FROM event_index WHERE session_id = 'old' AND seq = 2", "old: event 2 at byte "},
        {"UPDATE event_index SET type = 'x' WHERE session_id = 'old' AND seq = 3",
         "the row of the index differs from the journal"},
        {"INSERT INTO event_index (session_id, seq, type, timestamp) VALUES ('old', 0, 'x', '')",
         "a row for an event that the journal does not have"},
        {"UPDATE sessions SET title = 'Other' WHERE id = 'old'",
         "the row in sessions differs from a fold of the events"},
        {"UPDATE sessions SET total_tokens = 1 WHERE id = 'old'",
         "the row in sessions differs from a fold of the events"},
        {"INSERT INTO turns (id, session_id, sequence, status, created_at)"
         " VALUES ('old:x', 'old', 1, 'x', '')",
         "the rows in turns differ from a fold of the events"},
    };
    begin();
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        DONE(&cli, "reindex");
        DONE(&cli, "verify");
        cli_change_database(&cli, "sessions.db", changes[i].change);
        CLI(&cli, NULL, "verify");
        ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
        assert_holds(changes[i].finding);
        assert_holds("5 events, ");
    }
}
END_TEST

START_TEST(a_lagging_index_is_mentioned_and_not_a_finding)
{
    begin();
    CLI(&cli, NULL, "reindex");
    DONE(&cli, "verify");
    assert_holds("verified 2 sessions, 5 events, ");
    CLI(&cli, history, "append", "old");
    DONE(&cli, "verify");
    assert_holds("verified 2 sessions (for 1 of them the index lags), 9 events, ");
    assert_holds(": nothing found\n");
}
END_TEST

START_TEST(a_session_replaced_since_it_was_indexed_is_not_a_finding)
{
    begin();
    CLI(&cli, NULL, "reindex");
    ck_assert_int_eq(unlink(tmpdir_path(&cli.dir, "store/events/old.jsonl")), 0);
    CLI(&cli, "{\"type\":\"other\",\"data\":1}\n", "append", "old");
    DONE(&cli, "verify");
    assert_holds("for 1 of them the index lags");
    CLI(&cli, NULL, "ls");
    DONE(&cli, "verify");
    assert_holds("verified 2 sessions, ");
}
END_TEST

START_TEST(a_query_reports_unreadable_bytes_at_the_end_of_a_journal)
{
    static const struct {
        const char *words[5];
        int exit_status;
    } queries[] = {{{"query"}, EXIT_REFUSED},
                   {{"query", "old", "--format", "csv"}, EXIT_REFUSED},
                   {{"query", "--limit", "100"}, EXIT_REFUSED},
                   {{"query", "new"}, EXIT_DONE},
                   {{"query", "--limit", "2"}, EXIT_DONE},
                   {{"query", "old", "--seq", "..2"}, EXIT_DONE}};
    size_t len;
    begin();
    char *journal = cli_journal(&cli, "old", &len);
    cli_journal_write(&cli, "old", journal, len - 30);
    free(journal);
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        cli_run(&cli, NULL, queries[i].words);
        if (queries[i].exit_status == EXIT_DONE)
            cli_assert_done(&cli);
        else
            cli_assert_refused(&cli, EXIT_REFUSED, ", after event 3, are not readable");
    }
}
END_TEST

START_TEST(a_session_given_twice_counts_once)
{
    begin();
    DONE(&cli, "verify", "new", "old", "new");
    assert_holds("verified 2 sessions, 5 events, ");
    CLI(&cli, NULL, "query", "new", "new", "--count");
    assert_out("1\n");
}
END_TEST

START_TEST(groups_are_also_hours_tools_models_and_agents)
{
    CLI(&cli,
        "{\"type\":\"session.created\",\"ts\":\"2026-01-06T07:24:00Z\",\"data\":{\"agent_id\":"
        "\"codex\","
        "\"model\":\"m1\"}}\n"
        "{\"type\":\"tool.called\",\"ts\":\"2026-01-06T08:24:00Z\",\"data\":{\"call_id\":\"c1\","
        "\"tool\":\"Bash\"}}\n"
        "{\"type\":\"tool.called\",\"ts\":\"2026-01-06T08:25:00Z\",\"data\":{\"call_id\":\"c2\","
        "\"tool\":\"Read\"}}\n"
        "{\"type\":\"tool.failed\",\"ts\":\"2026-01-06T08:26:00Z\",\"data\":{\"call_id\":\"c1\"}}"
        "\n",
        "append", "g1");
    cli_assert_done(&cli);
    CLI(&cli, "1\n", "append", "g2", "--type", "n");
#define GROUPS(by, expected, ...)                                                                  \
    do {                                                                                           \
        CLI(&cli, NULL, "query", "--group-by", by, "--format", "csv", __VA_ARGS__);                \
        cli_assert_done(&cli);                                                                     \
        ck_assert_str_eq(cli.out, expected);                                                       \
    } while (0)
    GROUPS("hour", "hour,events\r\n2026-01-06T07,1\r\n2026-01-06T08,3\r\n", "g1");
    GROUPS("hour", "hour,events\r\n2026-01-06T08,3\r\n", "g1", "--where", "type LIKE 'tool.%'");
    GROUPS("tool", "tool,events\r\nBash,2\r\nRead,1\r\n", "--since", "2020-01-01");
    GROUPS("tool", "tool,events\r\nBash,1\r\n", "--type", "tool.failed");
    GROUPS("model", "model,events\r\nm1,4\r\n", "g1");
    GROUPS("agent", "agent_id,events\r\ncodex,4\r\n,1\r\n", "g1", "g2");
    CLI(&cli, NULL, "query", "--group-by", "tool", "--where", "1");
    cli_assert_refused(&cli, EXIT_REFUSED, "cannot be combined with an expression");
}
END_TEST

Suite *suite_query(void)
{
    Suite *suite = suite_create("query");
    TCase *answers = suite_case(suite, "answers", cli_setup, cli_teardown);
    tcase_add_test(answers, a_query_filters_by_members_of_data_and_counts_by_group);
    tcase_add_test(answers, a_query_refuses_a_wrong_option_and_names_the_right_values);
    tcase_add_test(answers, a_search_prints_events_with_the_words_marked);
    tcase_add_test(answers, a_search_refuses_wrong_options_and_names_the_right_values);
    tcase_add_test(answers, the_views_of_core_sum_costs);
    tcase_add_test(answers, a_query_reads_events_that_cannot_be_indexed_from_the_journals);
    tcase_add_test(answers, a_snapshot_does_not_wait_for_the_index);
    tcase_add_test(answers, ls_prints_a_dash_for_an_unknown_time);
    tcase_add_test(answers, a_table_of_events_is_narrow_off_a_terminal_too);
    tcase_add_test(answers, ls_reports_an_empty_list_and_filters_by_limit_and_status);
    tcase_add_test(answers, ls_lists_the_last_active_session_first);
    tcase_add_test(answers, ls_on_a_narrow_terminal_leaves_columns_out);
    tcase_add_test(answers, query_filters_by_session_type_time_and_seq);
    tcase_add_test(answers, sql_that_does_not_end_is_stopped);
    tcase_add_test(answers, sql_answers_and_changes_nothing);
    tcase_add_test(answers, a_statement_may_begin_with_a_comment);
    tcase_add_test(answers, control_characters_are_printed_unchanged_into_a_pipe);
    tcase_add_test(answers, show_prints_journal_totals_and_types);
    tcase_add_test(answers, without_the_index_every_answer_is_the_same);
    tcase_add_loop_test(answers, a_store_on_read_only_media_is_read_with_or_without_an_index, 0, 2);
    tcase_add_test(answers, verify_reports_an_index_that_differs_from_the_journals);
    tcase_add_test(answers, a_lagging_index_is_mentioned_and_not_a_finding);
    tcase_add_test(answers, a_session_replaced_since_it_was_indexed_is_not_a_finding);
    tcase_add_test(answers, a_query_reports_unreadable_bytes_at_the_end_of_a_journal);
    tcase_add_test(answers, a_session_given_twice_counts_once);
    tcase_add_test(answers, stats_counts_events_and_lists_lagging_sessions);
    tcase_add_test(answers, groups_are_also_hours_tools_models_and_agents);
    return suite;
}
