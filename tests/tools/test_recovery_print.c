/* SPDX-License-Identifier: Apache-2.0 */
/* show --recovery: the facts that continue a session after its process died. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char under_way[] =
    "{\"type\":\"turn.started\",\"ts\":\"2026-03-02T08:00:00Z\",\"data\":{\"turn_id\":\"t1\"}}\n"
    "{\"type\":\"message.added\",\"ts\":\"2026-03-02T08:00:01Z\",\"data\":{\"role\":\"user\","
    "\"content\":\"Why is\\nit late?\"}}\n"
    "{\"type\":\"message.added\",\"ts\":\"2026-03-02T08:00:02Z\",\"data\":{\"role\":"
    "\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"Hm.\"},"
    "{\"type\":\"text\",\"text\":\"I look.\"}]}}\n"
    "{\"type\":\"tool.called\",\"ts\":\"2026-03-02T08:00:03Z\",\"data\":{\"call_id\":\"c1\","
    "\"tool\":\"Read\",\"input\":{\"path\":\"a.py\"}}}\n"
    "{\"type\":\"tool.returned\",\"ts\":\"2026-03-02T08:00:04Z\",\"data\":{\"call_id\":\"c1\"}}\n"
    "{\"type\":\"tool.called\",\"ts\":\"2026-03-02T08:00:05Z\",\"data\":{\"call_id\":\"c2\","
    "\"tool\":\"Write\",\"input\":{\"path\":\"\\u001b[31mb.py\",\"text\":\"x\\ny\"}}}\n"
    "{\"type\":\"message.added\",\"ts\":\"2026-03-02T08:00:06Z\",\"data\":{\"role\":"
    "\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"Or not.\"}]}}\n";

static void recover(void)
{
    CLI(&cli, NULL, "show", "s", "--recovery");
}

static void ck_says(const char *what)
{
    ck_assert_msg(strstr(cli.out, what) != NULL, "no '%s' in: %s", what, cli.out);
}

/* Start an agent that appends these events and waits; returns its process id. */
static pid_t run_agent(int *out_input, int *out_output)
{
    char byte = 0;
    pid_t pid = cli_start(&cli, (const char *[]){"append", "s", NULL}, out_input, out_output);
    ck_assert_int_eq(write(*out_input, under_way, strlen(under_way)), (ssize_t)strlen(under_way));
    for (int lines = 0; lines < 7; lines += byte == '\n')
        ck_assert_int_eq(read(*out_output, &byte, 1), 1);
    return pid;
}

START_TEST(recovery_lists_the_open_work_of_a_killed_agent)
{
    int input, output;
    char has[60];
    pid_t pid = run_agent(&input, &output);
    recover();
    cli_assert_done(&cli);
    snprintf(has, sizeof has, "process              %d owns the session\n", (int)pid);
    ck_says(has);
    ck_says("may be at work");
    ck_assert_ptr_null(strstr(cli.out, "--expect-seq"));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(input);
    close(output);

    recover();
    cli_assert_done(&cli);
    ck_says("durable up to        event 7, 2026-03-02T08:00:06.000000Z (");
    ck_says("process              no process owns the session\n");
    ck_says("last user            event 2, ");
    ck_says(": Why is it late?\n");
    ck_says("last assistant       event 3, ");
    ck_says(": I look.\n");
    ck_says("c2        6  Write  2026-03-02T08:00:05.000000Z  path: \033[31mb.py, text: x y\n");
    ck_says("t1        1  started  2026-03-02T08:00:00.000000Z       1\n");
    ck_says("find out the results of 1 call, then append tool.returned or tool.failed with its");
    ck_says("continue turn t1, or append turn.failed or turn.cancelled with its turn_id\n");
    ck_says("annal append s --expect-seq 7\n");
    ck_assert_ptr_null(strstr(cli.out, "c1 "));
}
END_TEST

START_TEST(with_json_recovery_prints_one_object)
{
    CLI(&cli, under_way, "append", "s");
    DONE(&cli, "show", "s", "--recovery", "--json");
    ck_says(
        "{\"session_id\":\"s\",\"seq\":7,\"timestamp\":\"2026-03-02T08:00:06.000000Z\",\"h\":\"");
    ck_says("\"bytes_behind\":0,\"torn\":false,\"unwritten\":null,\"pid\":0,\"indexed_seq\":7,");
    ck_says("\"status\":\"idle\",\"snapshot_seq\":0,\"events_after_snapshot\":7,\"damaged\":0,");
    ck_says("\"calls_without_result\":[{\"call_id\":\"c2\",\"seq\":6,\"tool\":\"Write\","
            "\"called_at\":\"2026-03-02T08:00:05.000000Z\",\"turn_id\":null,"
            "\"input\":\"path: \\u001b[31mb.py, text: x y\"}],");
    ck_says("\"open_turns\":[{\"turn_id\":\"t1\",\"seq\":1,\"status\":\"started\",");
    ck_says("\"last_user_message\":{\"seq\":2,\"timestamp\":\"2026-03-02T08:00:01.000000Z\","
            "\"text\":\"Why is it late?\"}");
    ck_says("\"next\":[\"find out the results of 1 call");
    if (system("command -v python3 >/dev/null") == 0) {
        file_write(tmpdir_path(&cli.dir, "object"), cli.out, cli.out_len);
        char command[400];
        snprintf(command, sizeof command, "python3 -m json.tool %s/object >/dev/null",
                 cli.dir.path);
        ck_assert_int_eq(system(command), 0);
    }
}
END_TEST

START_TEST(recovery_of_a_finished_session_prints_only_how_to_continue)
{
    CLI(&cli, "{\"type\":\"n\",\"data\":1}\n", "append", "s");
    recover();
    cli_assert_done(&cli);
    ck_assert_ptr_null(strstr(cli.out, "calls without"));
    ck_assert_ptr_null(strstr(cli.out, "open turns"));
    ck_assert_ptr_null(strstr(cli.out, "last user"));
    ck_says("to continue\nannal append s --expect-seq 1\n");
    CLI(&cli, NULL, "show", "nobody", "--recovery");
    cli_assert_refused(&cli, EXIT_REFUSED, "nobody");
}
END_TEST

START_TEST(recovery_finds_an_old_message_and_prints_its_snapshot)
{
    enum { EVENTS = 1500 };
    char *many = malloc(EVENTS * 8);
    size_t len = 0;
    for (int i = 0; i < EVENTS; i++)
        len += (size_t)sprintf(many + len, "%d\n", i);
    CLI(&cli, under_way, "append", "s");
    CLI(&cli, many, "append", "s", "--type", "n");
    free(many);
    recover(); /* takes a snapshot, unless the append did */
    recover();
    cli_assert_done(&cli);
    ck_says("last user            event 2, ");
    ck_says("last assistant       event 3, ");
    ck_says("state from           a snapshot at event ");
    ck_says("annal append s --expect-seq 1507\n");
}
END_TEST

START_TEST(recovery_lists_the_newest_of_many_calls)
{
    char *many = malloc(30 * 80);
    size_t len = 0;
    for (int i = 0; i < 30; i++)
        len += (size_t)sprintf(many + len, "{\"call_id\":\"call-%d\",\"tool\":\"T\"}\n", i);
    CLI(&cli, many, "append", "s", "--type", "tool.called");
    free(many);
    recover();
    cli_assert_done(&cli);
    ck_says("call-29     30  T");
    ck_says("call-10     11  T");
    ck_assert_ptr_null(strstr(cli.out, "call-9 "));
    ck_says("\nand 10 before them\n");
    DONE(&cli, "show", "s", "--recovery", "--json");
    ck_says("{\"call_id\":\"call-0\",\"seq\":1,");
}
END_TEST

START_TEST(recovery_reports_a_torn_end_and_damage_differently)
{
    size_t len;
    CLI(&cli, under_way, "append", "s");
    char *journal = cli_journal(&cli, "s", &len);
    char *longer = malloc(len + 20);
    memcpy(longer, journal, len);
    memcpy(longer + len, "{\"seq\":8,\"ts\":\"2026", 20);
    cli_journal_write(&cli, "s", longer, len + 20);
    recover();
    ck_says("end                  20 B after it are torn: a piece of an event");
    ck_says("the next append removes 20 bytes that were never acknowledged\n");
    ck_says("annal append s --expect-seq 7\n");

    *strstr(longer, "I look.") = 'X';
    cli_journal_write(&cli, "s", longer, len);
    recover();
    ck_says("damaged places       1 ('annal verify s' names them)\n");
    ck_says("durable up to        event 7, ");
    free(journal);
    free(longer);
}
END_TEST

START_TEST(recovery_works_on_a_read_only_store)
{
    char command[600];
    CLI(&cli, under_way, "append", "s");
    snprintf(command, sizeof command, "chmod 755 %s && chmod -R a+rX,a-w %s", cli.dir.path,
             cli.store);
    ck_assert_int_eq(system(command), 0);
    cli.as_nobody = geteuid() == 0;
    CLI(&cli, NULL, "version");
    if (cli.exit_status == 0) { /* else another user may not run the built program */
        recover();
        ck_assert_int_eq(cli.exit_status, 0);
        ck_says("durable up to        event 7, ");
        ck_says("c2        6  Write ");
    }
    snprintf(command, sizeof command, "chmod -R u+w %s", cli.store);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(recovery_of_a_fork_includes_shared_events)
{
    CLI(&cli, under_way, "append", "parent");
    DONE(&cli, "fork", "parent", "--at", "6", "s");
    recover();
    cli_assert_done(&cli);
    ck_says("durable up to        event 6, 2026-03-02T08:00:05.000000Z");
    ck_says("fork of              parent, up to event 6\n");
    ck_says("last user            event 2, ");
    ck_says("c2        6  Write  2026-03-02T08:00:05.000000Z  path: \033[31mb.py, text: x y\n");
    ck_says("t1        1  started");
    DONE_WITH(&cli, "{\"type\":\"tool.failed\",\"data\":{\"call_id\":\"c2\"}}\n", "append", "s");
    recover();
    cli_assert_done(&cli);
    ck_says("durable up to        event 7, ");
    ck_assert_ptr_null(strstr(cli.out, "calls without"));
    CLI(&cli, NULL, "show", "s", "--recovery", "--json");
    ck_says("\"fork_session\":\"parent\",\"fork_seq\":6,");
    ck_says("\"calls_without_result\":[],\"open_turns\":[{\"turn_id\":\"t1\"");
}
END_TEST

Suite *suite_recovery_print(void)
{
    Suite *suite = suite_create("recovery_print");
    TCase *tcase = suite_case(suite, "recovery", cli_setup, cli_teardown);
    tcase_add_test(tcase, recovery_lists_the_open_work_of_a_killed_agent);
    tcase_add_test(tcase, with_json_recovery_prints_one_object);
    tcase_add_test(tcase, recovery_of_a_finished_session_prints_only_how_to_continue);
    tcase_add_test(tcase, recovery_finds_an_old_message_and_prints_its_snapshot);
    tcase_add_test(tcase, recovery_lists_the_newest_of_many_calls);
    tcase_add_test(tcase, recovery_reports_a_torn_end_and_damage_differently);
    tcase_add_test(tcase, recovery_works_on_a_read_only_store);
    tcase_add_test(tcase, recovery_of_a_fork_includes_shared_events);
    return suite;
}
