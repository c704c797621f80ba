/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void append_events(const char *session, int count)
{
    char input[4000];
    size_t len = 0;
    for (int i = 1; i <= count; i++)
        len += (size_t)snprintf(input + len, sizeof input - len, "{\"n\":%d}\n", i);
    DONE_WITH(&cli, input, "append", session, "--type", "n");
}

static int count_lines(const char *text)
{
    int lines = 0;
    while ((text = strchr(text, '\n')) != NULL) {
        lines++;
        text++;
    }
    return lines;
}

START_TEST(cat_starts_at_the_seq_of_from)
{
    append_events("s1", 10);
    DONE(&cli, "cat", "s1", "--from", "9");
    ck_assert_int_eq(count_lines(cli.out), 2);
    ck_assert_int_eq(strncmp(cli.out, "{\"seq\":9,\"ts\":\"", 15), 0);
    DONE(&cli, "cat", "s1", "--from", "11");
    ck_assert_str_eq(cli.out, "");
}
END_TEST

START_TEST(cat_prints_the_last_events_and_long_events_whole)
{
    append_events("s1", 10);
    DONE(&cli, "cat", "s1", "--last", "3");
    ck_assert_int_eq(count_lines(cli.out), 3);
    ck_assert_int_eq(strncmp(cli.out, "{\"seq\":8,\"ts\":\"", 15), 0);
    DONE(&cli, "cat", "s1", "--last", "0");
    ck_assert_str_eq(cli.out, "");
    CLI(&cli, NULL, "cat", "s1", "--last", "3", "--from", "2");
    ck_assert_int_eq(cli.exit_status, EXIT_USAGE);

    const size_t bytes = 900000;
    char *input = malloc(bytes + 4);
    memset(input, 'x', bytes);
    memcpy(input + bytes, "\"\n", 3);
    input[0] = '"';
    DONE_WITH(&cli, input, "append", "s1", "--type", "n");
    DONE(&cli, "cat", "s1", "--last", "1");
    const char *data = strstr(cli.out, "\"data\":");
    ck_assert_ptr_nonnull(data);
    ck_assert_int_eq(strncmp(data + 7, input, bytes + 1), 0);
    ck_assert_str_eq(data + 7 + bytes + 1, "}\n");
    free(input);
}
END_TEST

START_TEST(a_missing_session_is_refused)
{
    append_events("s1", 1);
    CLI(&cli, NULL, "cat", "s2");
    cli_assert_refused(&cli, EXIT_REFUSED, "s2");
    CLI(&cli, NULL, "verify", "s1", "s2");
    cli_assert_refused(&cli, EXIT_REFUSED, "s2");
    CLI(&cli, NULL, "show", "s2");
    cli_assert_refused(&cli, EXIT_REFUSED, "s2");
    CLI(&cli, NULL, "query", "s2");
    cli_assert_refused(&cli, EXIT_REFUSED, "s2");
    ck_assert_int_eq(cli_journals(&cli), 1);
}
END_TEST

/* Where event seq begins in the bytes of a journal. */
static size_t line_begin(const char *journal, int seq)
{
    const char *at = journal;
    for (int i = 0; i < seq; i++)
        at = strchr(at, '\n') + 1;
    return (size_t)(at - journal);
}

START_TEST(verify_names_a_damaged_event_and_cat_prints_every_other_event)
{
    char where[60];
    size_t len;
    append_events("good", 3);
    append_events("hurt", 10);
    char *journal = cli_journal(&cli, "hurt", &len);
    size_t at = line_begin(journal, 5);
    *strstr(journal + at, "\"n\":5") ^= 1;
    cli_journal_write(&cli, "hurt", journal, len);
    free(journal);

    CLI(&cli, NULL, "verify");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    snprintf(where, sizeof where, "hurt: event 5 at byte %zu: ", at);
    ck_assert_msg(strstr(cli.out, where) != NULL, "%s", cli.out);
    ck_assert_ptr_null(strstr(cli.out, "good:"));
    CLI(&cli, NULL, "verify", "--json", "hurt");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    snprintf(where, sizeof where, "{\"session_id\":\"hurt\",\"seq\":5,\"offset\":%zu,", at);
    ck_assert_msg(strstr(cli.out, where) != NULL, "%s", cli.out);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"sessions\":1,\"events\":9,"));
    DONE(&cli, "verify", "good");

    CLI(&cli, NULL, "cat", "hurt");
    cli_assert_refused(&cli, EXIT_REFUSED, "session 'hurt', event 5 at byte");
    ck_assert_int_eq(count_lines(cli.out), 9);
    ck_assert_ptr_null(strstr(cli.out, "\"seq\":5,"));
}
END_TEST

START_TEST(any_flipped_byte_is_reported_and_costs_at_most_its_line)
{
    enum { EVENTS = 6, STEP = 17 };
    size_t len;
    append_events("s", EVENTS);
    char *journal = cli_journal(&cli, "s", &len);
    for (size_t at = 0; at < len; at += STEP) {
        journal[at] ^= 0x10;
        cli_journal_write(&cli, "s", journal, len);
        journal[at] ^= 0x10;
        CLI(&cli, NULL, "verify", "--json");
        ck_assert_msg(cli.exit_status == EXIT_REFUSED, "byte %zu: exit status %d", at,
                      cli.exit_status);
        ck_assert_ptr_nonnull(strstr(cli.out, "{\"session_id\":\"s\",\"seq\":"));
        CLI(&cli, NULL, "cat", "s");
        ck_assert_msg(count_lines(cli.out) >= EVENTS - 1, "byte %zu: %s", at, cli.out);
        cli_assert_refused(&cli, EXIT_REFUSED, "session 's'");
    }
    free(journal);
}
END_TEST

/* Replace the journal of s1 by these bytes; assert that cat and tail print the events and report
 * the rest. */
static void assert_end_is_named(const char *journal, size_t len, int events, const char *what)
{
    static const char *const verbs[] = {"cat", "tail"};
    cli_journal_write(&cli, "s1", journal, len);
    for (size_t i = 0; i < 2; i++) {
        CLI(&cli, NULL, verbs[i], "s1", "--from", "1");
        cli_assert_refused(&cli, EXIT_REFUSED, what);
        ck_assert_int_eq(count_lines(cli.out), events);
    }
}

START_TEST(unreadable_bytes_at_the_end_of_a_journal_are_reported)
{
    char what[100];
    size_t len;
    append_events("s1", 3);
    char *journal = cli_journal(&cli, "s1", &len);
    size_t last = line_begin(journal, 3);
    snprintf(what, sizeof what,
             "session 's1': %zu bytes at byte %zu, after event 2, are not readable",
             len - last - 20, last);
    assert_end_is_named(journal, len - 20, 2, what);
    journal[last + 10] ^= 1;
    snprintf(what, sizeof what,
             "session 's1': %zu bytes at byte %zu, after event 2, are not readable", len - last,
             last);
    assert_end_is_named(journal, len, 2, what);
    assert_end_is_named(
        "nonsense\n", 9, 0,
        "session 's1': all 9 bytes of the journal are not readable: the header is damaged");
    free(journal);
}
END_TEST

START_TEST(tail_prints_an_object_for_each_unreadable_event)
{
    char object[200];
    size_t len;
    append_events("s1", 4);
    append_events("s2", 1);
    char *journal = cli_journal(&cli, "s1", &len);
    size_t second = line_begin(journal, 2), third = line_begin(journal, 3);
    size_t last = line_begin(journal, 4);
    journal[third - 30] ^= 1; /* of event 2 */
    journal[len - 30] ^= 1;   /* of the last event */
    cli_journal_write(&cli, "s1", journal, len);
    CLI(&cli, NULL, "tail", "--all", "--json");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    snprintf(object, sizeof object,
             "{\"session_id\":\"s1\",\"seq\":2,\"damage\":{\"offset\":%zu,\"length\":%zu,"
             "\"event_lost\":true,\"what\":\"",
             second, third - second);
    ck_assert_msg(strstr(cli.out, object) != NULL, "no %s in %s", object, cli.out);
    snprintf(object, sizeof object,
             "{\"session_id\":\"s1\",\"seq\":4,\"damage\":{\"offset\":%zu,\"length\":%zu,"
             "\"event_lost\":true,\"what\":\"a damaged or unfinished line\"}}\n",
             last, len - last);
    ck_assert_msg(strstr(cli.out, object) != NULL, "no %s in %s", object, cli.out);
    ck_assert_int_eq(count_lines(cli.out), 2 + 1 + 2);
    CLI(&cli, NULL, "tail", "--all");
    ck_assert_int_eq(count_lines(cli.out), 2 + 1);
    free(journal);
}
END_TEST

START_TEST(a_line_that_its_writer_completes_in_time_is_not_reported_as_damage)
{
    size_t len;
    int input, output, status;
    append_events("s1", 3);
    char *journal = cli_journal(&cli, "s1", &len);
    cli_journal_write(&cli, "s1", journal, len - 20);
    pid_t pid = cli_start(&cli, (const char *[]){"cat", "s1", NULL}, &input, &output);
    usleep(80 * 1000);
    cli_journal_write(&cli, "s1", journal, len);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    close(input);
    close(output);
    free(journal);
}
END_TEST

START_TEST(verify_of_a_sound_store_prints_how_much_it_read)
{
    append_events("a", 2);
    append_events("b", 3);
    DONE(&cli, "verify");
    ck_assert_ptr_nonnull(strstr(cli.out, "verified 2 sessions, 5 events, "));
    ck_assert_ptr_nonnull(strstr(cli.out, ": nothing found\n"));
}
END_TEST

START_TEST(cat_succeeds_if_its_reader_closes_the_pipe)
{
    int input, output, status;
    append_events("s", 200);
    pid_t pid = cli_start(&cli, (const char *[]){"cat", "s", NULL}, &input, &output);
    close(output);
    close(input);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(output_that_cannot_be_written_is_a_failure)
{
    static const int events[] = {1, 300};
    char command[900];
    for (size_t i = 0; i < 2; i++) {
        append_events("s", events[i]);
        snprintf(command, sizeof command, "'%s' --store %s cat s >/dev/full 2>%s", ANNAL_COMMAND,
                 cli.store, tmpdir_path(&cli.dir, "said"));
        int status = system(command);
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), EXIT_STORAGE);
        char *said = file_read(tmpdir_path(&cli.dir, "said"), NULL);
        ck_assert_int_eq(strncmp(said, "annal: print to standard output: ", 33), 0);
        free(said);
    }
}
END_TEST

#define HALVES "{\"s\":\"a \\ud83d b \\ud83d\\ude00 \\udc00\"}"
#define MENDED "{\"s\":\"a \\ufffd b \\ud83d\\ude00 \\ufffd\"}"

START_TEST(without_raw_half_a_surrogate_pair_is_printed_as_the_replacement_character)
{
    static const char *const verbs[][6] = {{"cat", "h"},
                                           {"query", "h"},
                                           {"query", "--type", "n", "--json"},
                                           {"tail", "h"},
                                           {"export", "h"},
                                           {"replay", "h", "--events", "--json"},
                                           {"export", "h", "--format", "html"}};
    CLI(&cli, HALVES "\n", "append", "h", "--type", "n");
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        const char *words[8] = {NULL};
        int count = 0;
        while (verbs[i][count] != NULL) {
            words[count] = verbs[i][count];
            count++;
        }
        cli_run(&cli, NULL, words);
        ck_assert_msg(strstr(cli.out, MENDED) != NULL, "%s: %s", words[0], cli.out);
        words[count] = "--raw";
        cli_run(&cli, NULL, words);
        ck_assert_msg(strstr(cli.out, HALVES) != NULL, "%s: %s", words[0], cli.out);
    }
    CLI(&cli, NULL, "query", "h", "--format", "csv");
    ck_assert_ptr_nonnull(strstr(cli.out, "a \\ufffd b"));
    CLI(&cli, NULL, "sql", "--format", "csv", "SELECT data->>'s' FROM events");
    ck_assert_ptr_nonnull(strstr(cli.out, "a \xEF\xBF\xBD b "));
}
END_TEST

/* Longer than a piece, with half a pair wherever a piece may end. */
START_TEST(half_surrogate_pairs_in_long_data_are_replaced_across_pieces)
{
    size_t count = 2 << 20;
    char *text = malloc(count * 7 + 40);
    size_t len = (size_t)sprintf(text, "{\"s\":\"");
    for (size_t i = 0; len < count; i++)
        len += (size_t)sprintf(text + len, i % 3 == 0   ? "\\ud83d"
                                           : i % 3 == 1 ? "\\ude00"
                                                        : "abcde");
    len += (size_t)sprintf(text + len, "\\ud83d\"}\n");
    CLI(&cli, text, "append", "long", "--type", "n");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "cat", "long");
    ck_assert_ptr_nonnull(strstr(cli.out, "abcde\\ud83d\\ude00abcde"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\\ufffd\"}}\n"));
    char *half = strstr(cli.out, "\\ufffd");
    ck_assert_ptr_null(strstr(half + 1, "\\ufffd"));
    free(text);
}
END_TEST

Suite *suite_cat(void)
{
    Suite *suite = suite_create("cat");
    TCase *reading = suite_case(suite, "reading", cli_setup, cli_teardown);
    tcase_add_test(reading, cat_starts_at_the_seq_of_from);
    tcase_add_test(reading, cat_prints_the_last_events_and_long_events_whole);
    tcase_add_test(reading, a_missing_session_is_refused);
    tcase_add_test(reading, verify_names_a_damaged_event_and_cat_prints_every_other_event);
    tcase_add_test(reading, any_flipped_byte_is_reported_and_costs_at_most_its_line);
    tcase_add_test(reading, unreadable_bytes_at_the_end_of_a_journal_are_reported);
    tcase_add_test(reading, a_line_that_its_writer_completes_in_time_is_not_reported_as_damage);
    tcase_add_test(reading, tail_prints_an_object_for_each_unreadable_event);
    tcase_add_test(reading, verify_of_a_sound_store_prints_how_much_it_read);
    tcase_add_test(reading, output_that_cannot_be_written_is_a_failure);
    tcase_add_test(reading, cat_succeeds_if_its_reader_closes_the_pipe);
    tcase_add_test(reading,
                   without_raw_half_a_surrogate_pair_is_printed_as_the_replacement_character);
    tcase_add_test(reading, half_surrogate_pairs_in_long_data_are_replaced_across_pieces);
    return suite;
}
