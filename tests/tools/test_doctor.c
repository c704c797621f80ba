/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"
#include "tools/cmd/disk_probe.h"

#include <annal/journal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether the store has a line of this check with this result. */
static bool has_line(const char *check, const char *result)
{
    char line[100];
    snprintf(line, sizeof line, "{\"check\":\"%s\",\"result\":\"%s\"", check, result);
    return strstr(cli.out, line) != NULL;
}

START_TEST(a_sound_store_has_no_warning)
{
    CLI(&cli, "1\n", "append", "s1", "--type", "n");
    CLI(&cli, NULL, "doctor", "--json");
    ck_assert_str_eq(cli.err, "");
    ck_assert(has_line("store", "ok"));
    ck_assert(has_line("commit log", "ok"));
    ck_assert(has_line("journals", "ok"));
    ck_assert(has_line("index", "ok"));
    ck_assert(has_line("leftovers", "ok"));
    ck_assert(has_line("history", "ok"));
    ck_assert_ptr_null(strstr(cli.out, "journal ends"));
}
END_TEST

START_TEST(doctor_counts_fields_that_do_not_fit_their_types)
{
    CLI(&cli,
        "{\"call_id\":\"a\",\"tool\":\"t\"}\n{\"call_id\":\"b\",\"tool\":\"t\",\"inputt\":1}\n"
        "{\"call_id\":7,\"tool\":\"t\"}\n{\"call_id\":\"c\",\"tool\":\"t\",\"inputt\":{}}\n",
        "append", "s1", "--type", "tool.called");
    CLI(&cli, NULL, "doctor");
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    const char *found = "3 in the newest 20000 events do not fit their types: tool.called: "
                        "\"inputt\" is not a field of this type (2, such as s1:2); tool.called: "
                        "\"call_id\" is of kind integer, and not text (1, such as s1:3)\n";
    ck_assert_msg(strstr(cli.out, found) != NULL, "%s", cli.out);
    CLI(&cli, NULL, "doctor", "--json");
    ck_assert(has_line("fields", "note"));
}
END_TEST

START_TEST(doctor_warns_of_a_damaged_end_foreign_access_and_leftovers)
{
    size_t len;
    CLI(&cli, "{\"n\":\"one\"}\n{\"n\":\"two\"}\n", "append", "s1", "--type", "n");
    char *journal = cli_journal(&cli, "s1", &len);
    *strstr(journal, "two") = 'T';
    cli_journal_write(&cli, "s1", journal, len);
    free(journal);
    ck_assert_int_eq(chmod(cli.store, 0755), 0);
    const char *left = tmpdir_path(&cli.dir, "store/events/x.tmp-0011223344556677");
    file_write(left, "x", 1);
    const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    ck_assert_int_eq(utimensat(-1, left, old, 0), 0);
    CLI(&cli, NULL, "doctor", "--json");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert(has_line("store", "warning"));
    ck_assert(has_line("journal ends", "warning"));
    ck_assert(has_line("leftovers", "warning"));
    ck_assert_ptr_nonnull(strstr(cli.out, "1 damaged: s1"));
    ck_assert_ptr_nonnull(strstr(cli.out, "annal repair SESSION --to NEW"));
    CLI(&cli, NULL, "doctor");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "warning  journal ends 1 damaged: s1\n"));
}
END_TEST

START_TEST(doctor_accepts_a_store_that_its_group_may_write)
{
    static const struct {
        mode_t mode;
        const char *advice; /* NULL: no warning */
    } cases[] = {
        {02770, NULL}, {0770, NULL}, {0700, NULL}, {0750, "chmod 700"}, {0775, "chmod o-rwx"}};
    CLI(&cli, "1\n", "append", "s1", "--type", "n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(chmod(cli.store, cases[i].mode), 0);
        CLI(&cli, NULL, "doctor", "--json");
        ck_assert_msg(has_line("store", cases[i].advice == NULL ? "ok" : "warning"), "%s", cli.out);
        ck_assert(cases[i].advice == NULL ? strstr(cli.out, "chmod") == NULL
                                          : strstr(cli.out, cases[i].advice) != NULL);
    }
}
END_TEST

/* A hole after the events, longer than the part that is searched for the last event: the journal is
 * not a stray, and not sound. */
START_TEST(a_journal_that_ends_in_a_long_hole_is_damaged)
{
    CLI(&cli, "1\n", "append", "s1", "--type", "n");
    const char *journal = tmpdir_path(&cli.dir, "store/events/s1.jsonl");
    ck_assert_int_eq(truncate(journal, 260 << 20), 0);
    CLI(&cli, NULL, "doctor");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "1 damaged: s1"));
}
END_TEST

START_TEST(doctor_lists_overdue_snapshots)
{
    annal_store *store = NULL;
    annal_writer *writer = NULL;
    annal_error err = {0};
    uint64_t seq;
    const annal_draft draft = {.type = ANNAL_SLICE("n"), .data = ANNAL_SLICE("1")};
    ck_assert_int_eq(
        annal_store_open(cli.store, &(annal_store_options){.create = true}, &store, &err), 0);
    ck_assert_int_eq(annal_writer_open(store, ANNAL_SLICE("s1"), NULL, &writer, &err), 0);
    for (int i = 0; i < 1001; i++)
        ck_assert_int_eq(annal_writer_append(writer, &draft, 1,
                                             &(annal_append_options){.level = ANNAL_LEVEL_BATCH},
                                             &seq, &err),
                         0);
    annal_writer_close(writer);
    ck_assert_int_eq(annal_store_close(store, &err), 0);
    CLI(&cli, NULL, "doctor");
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    ck_assert_ptr_nonnull(strstr(cli.out, "overdue for 1 session with 1,001 events: s1;"));
}
END_TEST

START_TEST(doctor_names_the_process_that_owns_a_commit_log)
{
    int input, output, status;
    char ack[40], owner[60];
    pid_t pid =
        cli_start(&cli, (const char *[]){"append", "s1", "--type", "n", NULL}, &input, &output);
    ck_assert_int_eq(write(input, "1\n", 2), 2);
    ck_assert_int_gt(read(output, ack, sizeof ack), 0);
    CLI(&cli, NULL, "doctor");
    snprintf(owner, sizeof owner, "process %d owns it, and 1 session;", (int)pid);
    ck_assert_msg(strstr(cli.out, owner) != NULL, "no '%s' in %s", owner, cli.out);
    ck_assert_ptr_nonnull(strstr(cli.out, "1 groups not checkpointed"));
    close(input);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    close(output);
}
END_TEST

START_TEST(the_disk_probe_measures_syncs_and_leaves_no_file)
{
    CLI(&cli, "1\n", "append", "s1", "--type", "n");
    CLI(&cli, NULL, "doctor", "--disk", "--json");
    ck_assert(cli.exit_status == EXIT_DONE || cli.exit_status == EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"check\":\"disk\","));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"sync_us_p50\":"));
    ck_assert_ptr_null(strstr(cli.out, "\"sync_us_p50\":null"));
    ck_assert_uint_eq(count_names(cli.store, "probe"), 0);
}
END_TEST

static struct disk_probe judged(double write_us, double sync_us, int rotational)
{
    struct disk_probe probe = {.filesystem = "ext4",
                               .device = "sda",
                               .rotational = rotational,
                               .plain = {.rounds = 100, .p50_us = write_us},
                               .overwrite = {.rounds = 100, .p50_us = sync_us}};
    disk_probe_judge(&probe);
    return probe;
}

START_TEST(a_sync_faster_than_the_disk_can_be_is_suspicious)
{
    ck_assert(judged(1, 1.5, 0).suspicious);
    ck_assert(judged(5, 4, 0).suspicious);
    ck_assert(!judged(1, 110, 0).suspicious);
    ck_assert(!judged(1, 110, -1).suspicious);
    ck_assert(judged(1, 110, 1).suspicious);
    ck_assert(!judged(1, 8300, 1).suspicious);
    struct disk_probe memory = {.filesystem = "tmpfs", .in_memory = true};
    disk_probe_judge(&memory);
    ck_assert(memory.suspicious);
    ck_assert_ptr_nonnull(strstr(memory.conclusion, "memory"));
    ck_assert_ptr_nonnull(strstr(judged(1, 110, 0).conclusion, "only a power cut can prove it"));
}
END_TEST

Suite *suite_doctor(void)
{
    Suite *suite = suite_create("doctor");
    TCase *store = suite_case(suite, "store", cli_setup, cli_teardown);
    tcase_add_test(store, a_sound_store_has_no_warning);
    tcase_add_test(store, doctor_warns_of_a_damaged_end_foreign_access_and_leftovers);
    tcase_add_test(store, doctor_accepts_a_store_that_its_group_may_write);
    tcase_add_test(store, a_journal_that_ends_in_a_long_hole_is_damaged);
    tcase_add_test(store, doctor_counts_fields_that_do_not_fit_their_types);
    tcase_add_test(store, doctor_lists_overdue_snapshots);
    tcase_add_test(store, doctor_names_the_process_that_owns_a_commit_log);

    TCase *disk = suite_case(suite, "disk", cli_setup, cli_teardown);
    tcase_add_test(disk, the_disk_probe_measures_syncs_and_leaves_no_file);
    tcase_add_test(disk, a_sync_faster_than_the_disk_can_be_is_suspicious);
    return suite;
}
