/* SPDX-License-Identifier: Apache-2.0 */
/* annal prune: the deleted sessions, their dependent rows, and the report. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASSERT_OUT(cli, part)                                                                      \
    ck_assert_msg(strstr((cli)->out, part) != NULL, "'%s' is not in %s", part, (cli)->out)

/* Append a session with a branch and three messages, last changed at this time. */
static void add_session(const char *id, const char *time)
{
    char lines[2000];
    snprintf(
        lines, sizeof lines,
        "{\"type\":\"session.created\",\"data\":{\"created_at\":\"%s\",\"updated_at\":\"%s\"},"
        "\"ts\":\"%s\"}\n"
        "{\"type\":\"branch.created\",\"data\":{\"id\":\"b-%s\"},\"ts\":\"%s\"}\n"
        "{\"type\":\"message.added\",\"data\":{\"id\":\"%s-1\",\"role\":\"user\",\"content\":1,"
        "\"branch_id\":\"b-%s\"},\"ts\":\"%s\"}\n"
        "{\"type\":\"message.added\",\"data\":{\"id\":\"%s-2\",\"role\":\"user\",\"content\":1,"
        "\"branch_id\":\"b-%s\"},\"ts\":\"%s\"}\n"
        "{\"type\":\"message.added\",\"data\":{\"id\":\"%s-3\",\"role\":\"user\",\"content\":1,"
        "\"branch_id\":\"b-%s\"},\"ts\":\"%s\"}\n",
        time, time, time, id, time, id, id, time, id, id, time, id, id, time);
    DONE_WITH(&cli, lines, "append", id);
}

static void store_with_sessions(void)
{
    CLI(&cli, NULL, "pack", "enable", "lionagi");
    add_session("old", "2020-01-01T00:00:00Z");
    add_session("older", "2019-01-01T00:00:00Z");
    add_session("fresh", "2030-01-01T00:00:00Z");
}

static void ask(const char *sql, const char *rows)
{
    DONE(&cli, "sql", "--format", "csv", sql);
    const char *at = strchr(cli.out, '\n');
    ck_assert_ptr_nonnull(at);
    char got[500];
    size_t len = 0;
    for (at++; *at != '\0' && len < sizeof got - 1; at++)
        if (*at != '\r')
            got[len++] = *at == '\n' ? ' ' : *at;
    got[len] = '\0';
    ck_assert_str_eq(got, rows);
}

START_TEST(a_dry_run_of_prune_counts_and_changes_nothing)
{
    store_with_sessions();
    DONE(&cli, "prune", "--keep-n", "0", "--dry-run");
    ASSERT_OUT(&cli, "would prune 2 session(s), 2 branch(es), 0 progression(s), 0 message(s)");
    ask("SELECT count(*) FROM state.sessions", "3 ");
    ask("SELECT count(*) FROM event_index WHERE type = 'session.pruned'", "0 ");
}
END_TEST

START_TEST(prune_deletes_branches_and_keeps_messages_of_orphan_progressions)
{
    store_with_sessions();
    DONE(&cli, "prune", "--keep-n", "2");
    ASSERT_OUT(&cli, "pruned 1 session(s), 1 branch(es), 0 progression(s), 0 message(s)");
    ask("SELECT id FROM state.sessions ORDER BY id", "fresh old ");
    ask("SELECT id FROM branches ORDER BY id", "b-fresh b-old ");
    ask("SELECT count(*) FROM messages", "9 ");
    ask("SELECT id FROM main.sessions WHERE id <> '_state' ORDER BY id", "fresh old ");
    ask("SELECT details ->> '$.sessions' FROM admin_events WHERE action = 'prune'", "1 ");
    CLI(&cli, NULL, "prune", "--keep-n", "2");
    ASSERT_OUT(&cli, "pruned 0 session(s)");
}
END_TEST

START_TEST(with_orphan_progressions_prune_deletes_unmentioned_messages)
{
    store_with_sessions();
    /* A survivor mentions a message of a pruned session; so does the other pruned session. */
    DONE_WITH(&cli, "{\"progression_id\":\"b-fresh\",\"message_id\":\"old-2\"}\n", "append",
              "fresh", "--type", "progression.appended");
    CLI(&cli,
        "{\"type\":\"progression.appended\",\"ts\":\"2019-01-01T00:00:00Z\",\"data\":{"
        "\"progression_id\":\"b-older\",\"message_id\":\"old-1\"}}\n",
        "append", "older");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "prune", "--keep-n", "0", "--orphan-progressions", "--dry-run");
    ASSERT_OUT(&cli, "would prune 2 session(s), 2 branch(es), 4 progression(s), 5 message(s)");
    DONE(&cli, "prune", "--keep-n", "0", "--orphan-progressions");
    ASSERT_OUT(&cli, "pruned 2 session(s), 2 branch(es), 4 progression(s), 5 message(s)");
    ask("SELECT id FROM messages ORDER BY id", "fresh-1 fresh-2 fresh-3 old-2 ");
    ask("SELECT id FROM progressions ORDER BY id", "b-fresh fresh ");
    CLI(&cli, NULL, "reindex");
    unlink(tmpdir_path(&cli.dir, "store/state.db"));
    ask("SELECT id FROM messages ORDER BY id", "fresh-1 fresh-2 fresh-3 old-2 ");
}
END_TEST

static void append(const char *session, const char *type, const char *data)
{
    DONE_WITH(&cli, data, "append", session, "--type", type);
}

START_TEST(prune_keeps_a_journal_whose_messages_others_mention)
{
    store_with_sessions();
    add_session("far", "2018-01-01T00:00:00Z"); /* only old needs it, and fresh needs old */
    append("old", "session.updated", "{\"set\":{\"updated_at\":\"2018-01-01T00:00:00Z\"}}\n");
    append("old", "progression.appended",
           "{\"progression_id\":\"old\",\"message_id\":\"far-2\"}\n");
    append("old", "session.updated", "{\"set\":{\"updated_at\":1000}}\n");
    append("fresh", "progression.appended",
           "{\"progression_id\":\"fresh\",\"message_id\":\"old-1\"}\n");
    CLI(&cli, NULL, "prune", "--keep-n", "0", "--delete-journals", "--dry-run", "--json");
    ck_assert_int_eq(cli.exit_status, 0);
    ASSERT_OUT(&cli, "\"session_id\":\"old\",\"pruned\":false,\"branches\":1,\"progressions\":0,"
                     "\"messages\":0,\"messages_needed\":1,\"needed_by\":\"fresh\"}");
    ASSERT_OUT(&cli, "\"messages\":3,\"journals\":1,\"journals_kept\":2");
    CLI(&cli, NULL, "prune", "--keep-n", "0", "--delete-journals");
    ck_assert_int_eq(cli.exit_status, 0);
    ASSERT_OUT(&cli, "pruned 3 session(s), 3 branch(es), 2 progression(s), 3 message(s)\n"
                     "deleted 1 journal(s)\n2 journal(s) stay");
    ck_assert_ptr_nonnull(strstr(cli.err, "'far' stays: session 'old' needs 1 of its messages"));
    ask("SELECT id FROM session_messages WHERE in_session = 'fresh' ORDER BY ord",
        "fresh-1 fresh-2 fresh-3 old-1 ");
    ask("SELECT count(*) FROM messages WHERE id GLOB 'far-*' OR id GLOB 'older-*'", "3 ");
}
END_TEST

START_TEST(prune_keeps_the_newest_sessions_and_sessions_without_an_agent)
{
    store_with_sessions();
    CLI(&cli,
        "{\"type\":\"team.created\",\"ts\":\"2001-01-01T00:00:00Z\",\"data\":{\"name\":\"t\"}}\n",
        "append", "team_t");
    CLI(&cli, "{\"type\":\"tool.called\",\"ts\":\"2001-01-01T00:00:00Z\",\"data\":{}}\n", "append",
        "nameless");
    CLI(&cli, NULL, "prune");
    ASSERT_OUT(&cli, "pruned 0 session(s)");
    DONE(&cli, "prune", "--keep-n", "0", "--keep-days", "0", "--json");
    ASSERT_OUT(&cli, "{\"session_id\":\"old\",\"pruned\":true,\"branches\":1,");
    ASSERT_OUT(&cli, "\"dry_run\":false,\"sessions\":2,");
    ask("SELECT id FROM main.sessions WHERE id <> '_state' ORDER BY id", "fresh nameless team_t ");
}
END_TEST

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

START_TEST(without_the_pack_prune_takes_the_age_of_the_last_event)
{
    add_session("old", "2020-01-01T00:00:00Z");
    add_session("fresh", "2030-01-01T00:00:00Z");
    const char *large = tmpdir_path(&cli.dir, "store/artifacts/old/" ABC ".zst");
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "store/artifacts"), 0700), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "store/artifacts/old"), 0700), 0);
    file_write(large, "large", 5);
    DONE(&cli, "prune", "--keep-n", "0", "--delete-journals");
    ASSERT_OUT(&cli, "pruned 1 session(s)");
    ASSERT_OUT(&cli, "deleted 1 journal(s)");
    ask("SELECT id FROM sessions WHERE id <> '_state'", "fresh ");
    ck_assert_int_ne(access(tmpdir_path(&cli.dir, "store/events/old.jsonl"), F_OK), 0);
    ck_assert_int_ne(access(large, F_OK), 0);
}
END_TEST

START_TEST(prune_keeps_a_journal_that_a_fork_needs_and_deletes_the_others)
{
    static const char fork[] =
        "{\"annal\":1,\"session\":\"child\",\"file\":\"00000000000000000000000000000001\","
        "\"created\":\"2026-01-06T07:24:00.000000Z\",\"fork\":{\"session\":\"older\",\"seq\":2,"
        "\"h\":\"0000000000000002\"},\"h\":\"cdb67a66e65dadec\"}\n";
    store_with_sessions();
    cli_journal_write(&cli, "child", fork, sizeof fork - 1);
    CLI(&cli, NULL, "prune", "--keep-n", "0", "--delete-journals", "--json");
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(
        cli.err,
        "session 'older' was removed from the tables, but the journal of the session stays: "));
    ASSERT_OUT(&cli, ",\"journals\":1,\"journals_kept\":1,\"kept\":0,\"linked\":0}");
    ask("SELECT (details ->> '$.journals') || (details ->> '$.journals_kept') FROM admin_events "
        "WHERE action = 'prune'",
        "11 ");
}
END_TEST

START_TEST(prune_names_the_sessions_that_messages_of_a_team_keep)
{
    static const char messages[] =
        "{\"type\":\"team.created\",\"data\":{\"name\":\"t\",\"members\":[\"alice\"]}}\n"
        "{\"type\":\"team.message\",\"data\":{\"id\":\"m1\",\"sender\":\"alice\","
        "\"to\":\"all\",\"content\":\"hi\",\"session_id\":\"old\"}}\n"
        "{\"type\":\"team.message\",\"data\":{\"id\":\"m2\",\"sender\":\"alice\","
        "\"to\":\"all\",\"content\":\"hi\",\"session_id\":\"fresh\"}}\n";
    store_with_sessions();
    CLI(&cli, NULL, "pack", "enable", "teams");
    CLI(&cli, messages, "append", "team_t");
    ask("SELECT count(*) FROM team_messages WHERE session_id IS NOT NULL", "2 ");
    for (int dry = 1; dry >= 0; dry--) {
        CLI(&cli, NULL, "prune", "--keep-n", "0", "--json", dry ? "--dry-run" : "--json");
        ck_assert_int_eq(cli.exit_status, 0);
        ASSERT_OUT(&cli, "{\"session_id\":\"old\",\"pruned\":false,\"branches\":0,"
                         "\"progressions\":0,\"messages\":0,\"linked_by\":\"t\"}\n");
        ASSERT_OUT(&cli, ",\"sessions\":1,");
        ASSERT_OUT(&cli, ",\"linked\":1}\n");
        ck_assert_str_eq(
            cli.err, "annal: session 'old' is kept: messages of team 't' refer to the session\n");
    }
    ask("SELECT id FROM state.sessions WHERE id IN ('old', 'older') ORDER BY id", "old ");
    CLI(&cli, NULL, "prune", "--keep-n", "0");
    ASSERT_OUT(&cli, "1 old session(s) stay: messages of teams refer to them\n");
}
END_TEST

/* Indexing the new events takes longer than a command waits for others. */
START_TEST(prune_updates_the_tables_before_it_deletes_journals)
{
    const int MESSAGES = (int)full_or(8000, 3000);
    static const char message[] =
        "{\"type\":\"message.added\",\"data\":{\"id\":\"m-%05d\",\"role\":"
        "\"user\",\"content\":1,\"branch_id\":\"b-fresh\"}}\n";
    char *lines = malloc((size_t)MESSAGES * (sizeof message + 3) + 1);
    size_t len = 0;
    ck_assert_ptr_nonnull(lines);
    store_with_sessions();
    for (int i = 0; i < MESSAGES; i++)
        len += (size_t)sprintf(lines + len, message, i);
    DONE_WITH(&cli, lines, "append", "--level", "batch", "fresh");
    free(lines);
    unlink(tmpdir_path(&cli.dir, "store/state.db"));
    CLI(&cli, NULL, "prune", "--keep-n", "0", "--delete-journals");
    ck_assert_msg(cli.exit_status == 0, "%s", cli.err);
    ASSERT_OUT(&cli, "pruned 2 session(s)");
    ASSERT_OUT(&cli, "deleted 2 journal(s)");
}
END_TEST

Suite *suite_prune(void)
{
    Suite *suite = suite_create("prune");
    TCase *tcase = suite_case(suite, "prune", cli_setup, cli_teardown);
    tcase_add_test(tcase, a_dry_run_of_prune_counts_and_changes_nothing);
    tcase_add_test(tcase, prune_deletes_branches_and_keeps_messages_of_orphan_progressions);
    tcase_add_test(tcase, with_orphan_progressions_prune_deletes_unmentioned_messages);
    tcase_add_test(tcase, prune_keeps_a_journal_whose_messages_others_mention);
    tcase_add_test(tcase, prune_keeps_the_newest_sessions_and_sessions_without_an_agent);
    tcase_add_test(tcase, without_the_pack_prune_takes_the_age_of_the_last_event);
    tcase_add_test(tcase, prune_keeps_a_journal_that_a_fork_needs_and_deletes_the_others);
    tcase_add_test(tcase, prune_names_the_sessions_that_messages_of_a_team_keep);
    tcase_add_test(tcase, prune_updates_the_tables_before_it_deletes_journals);
    return suite;
}
