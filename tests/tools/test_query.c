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

static void assert_holds(const char *part)
{
    ck_assert_msg(strstr(cli.out, part) != NULL, "no '%s' in: %s", part, cli.out);
}

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

Suite *suite_query(void)
{
    Suite *suite = suite_create("query");
    TCase *answers = suite_case(suite, "answers", cli_setup, cli_teardown);
    tcase_add_loop_test(answers, a_store_on_read_only_media_is_read_with_or_without_an_index, 0, 2);
    tcase_add_test(answers, verify_reports_an_index_that_differs_from_the_journals);
    tcase_add_test(answers, a_query_reports_unreadable_bytes_at_the_end_of_a_journal);
    return suite;
}
