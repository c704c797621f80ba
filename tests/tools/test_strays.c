/* SPDX-License-Identifier: Apache-2.0 */
/* Journals that a user copied or renamed within events/: annal reports them, keeps them, and works
 * without them. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char history[] =
    "{\"type\":\"session.created\",\"data\":{\"agent_id\":\"a1\"}}\n"
    "{\"type\":\"message.user\",\"data\":{\"text\":\"where is the harbour\"}}\n"
    "{\"type\":\"tool.called\",\"data\":{\"name\":\"Bash\"}}\n";

static const char *in_events(const char *name)
{
    char inside[300];
    snprintf(inside, sizeof inside, "store/events/%s", name);
    return tmpdir_path(&cli.dir, inside);
}

static void copy_journal(const char *from, const char *to)
{
    size_t len;
    char *bytes = file_read(in_events(from), &len);
    file_write(in_events(to), bytes, len);
    free(bytes);
}

static void set_up(void)
{
    CLI(&cli, history, "append", "orig");
    DONE_WITH(&cli, history, "append", "other");
}

static void put_artifact(void)
{
    const char *file = tmpdir_path(&cli.dir, "content");
    file_write(file, "precious", 8);
    DONE(&cli, "artifact", "put", "orig", file);
}

/* Count the lines of stderr, and assert that they contain this word. */
static unsigned lines_with(const char *word)
{
    unsigned count = 0;
    ck_assert_msg(strstr(cli.err, word) != NULL, "no '%s' on stderr, but: %s", word, cli.err);
    for (const char *at = cli.err; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    return count;
}

/* A verb that does not read all sessions need not report strays. */
static const struct {
    const char *words[8];
    bool quiet;  /* the verb reports no strays */
    bool varies; /* the output contains sizes and times */
} questions[] = {
    {.words = {"ls", "--json"}},
    {.words = {"sql", "SELECT session_id, seq, data FROM events ORDER BY 1, 2"}},
    {.words = {"sql", "SELECT id, status FROM sessions ORDER BY 1"}},
    {.words = {"query"}},
    {.words = {"query", "--count"}},
    {.words = {"search", "harbour"}},
    {.words = {"search", "--rebuild"}, .varies = true},
    {.words = {"reindex"}, .varies = true},
    {.words = {"stats"}, .varies = true},
    {.words = {"stats", "--plot"}, .varies = true},
    {.words = {"tail", "--all"}},
    {.words = {"export"}},
    {.words = {"export", "--format", "markdown"}},
    {.words = {"export", "--format", "otlp"}},
    {.words = {"export", "--format", "bundle"}},
    {.words = {"backup", "BACKUP"}, .varies = true},
    {.words = {"prune", "--dry-run", "--keep-days", "0", "--keep-n", "0"}, .varies = true},
    {.words = {"artifact", "sweep", "--dry-run"}},
    {.words = {"pack", "list"}, .varies = true},
    {.words = {"pack", "rebuild", "lionagi"}, .varies = true},
    {.words = {"pack", "rebuild", "prose"}, .varies = true},
    {.words = {"cast", "ls", "p1"}},
    {.words = {"run", "ls"}},
    {.words = {"cursor", "list"}, .quiet = true},
    {.words = {"checkpoint"}, .quiet = true, .varies = true},
    {.words = {"vacuum"}, .quiet = true, .varies = true},
    /* one session */
    {.words = {"cat", "orig"}, .quiet = true},
    {.words = {"show", "orig", "--json"}, .quiet = true},
    {.words = {"query", "orig"}, .quiet = true},
    {.words = {"replay", "orig"}, .quiet = true},
    {.words = {"diff", "orig", "1", "2"}, .quiet = true},
    {.words = {"export", "orig"}, .quiet = true},
    {.words = {"verify", "orig"}, .quiet = true},
};

static void ask(const char *const *question, unsigned round)
{
    const char *words[9] = {0};
    char backup[32];
    snprintf(backup, sizeof backup, "backup%u", round);
    for (size_t i = 0; i < 8 && question[i] != NULL; i++)
        words[i] = strcmp(question[i], "BACKUP") == 0 ? tmpdir_path(&cli.dir, backup) : question[i];
    cli_run(&cli, NULL, words);
}

START_TEST(every_verb_answers_as_without_strays_and_reports_them_once)
{
    set_up();
    static const char *const packs[] = {"lionagi", "prose", "agentweaver", "memory"};
    for (size_t i = 0; i < sizeof packs / sizeof *packs; i++)
        CLI(&cli, NULL, "pack", "enable", packs[i]);
    CLI(&cli, history, "append", "prose_orig");
    put_artifact();
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        ask(questions[i].words, 0);
        char *before = strdup(cli.out);
        int exit_status = cli.exit_status;
        ck_assert_msg(exit_status == 0, "annal %s %s: %s", questions[i].words[0],
                      questions[i].words[1], cli.err);

        copy_journal("orig.jsonl", "copy.jsonl");
        copy_journal("prose_orig.jsonl", "prose_copy.jsonl");
        for (unsigned round = 1; round <= 2; round++) {
            ask(questions[i].words, round);
            ck_assert_msg(cli.exit_status == exit_status, "annal %s %s: exit status %d, %s",
                          questions[i].words[0], questions[i].words[1], cli.exit_status, cli.err);
            if (!questions[i].varies)
                ck_assert_str_eq(cli.out, before);
            if (questions[i].quiet)
                ck_assert_str_eq(cli.err, "");
            else
                ck_assert_uint_eq(lines_with("'copy'"), lines_with("'prose_copy'"));
            if (!questions[i].quiet)
                ck_assert_msg(lines_with("left out") == 2, "%s %s: %s", questions[i].words[0],
                              questions[i].words[1], cli.err);
        }
        ck_assert_int_eq(unlink(in_events("copy.jsonl")), 0);
        ck_assert_int_eq(unlink(in_events("prose_copy.jsonl")), 0);
        free(before);
    }
}
END_TEST

/* Assert that doctor and verify report it, with exit status 1. */
static void assert_named(const char *name)
{
    static const char *const verbs[][3] = {
        {"doctor"}, {"doctor", "--json"}, {"verify"}, {"verify", "--json"}};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        cli_run(&cli, NULL, (const char *[]){verbs[i][0], verbs[i][1], NULL});
        ck_assert_msg(cli.exit_status == EXIT_REFUSED && strstr(cli.out, name) != NULL,
                      "annal %s: exit status %d, no '%s' in: %s", verbs[i][0], cli.exit_status,
                      name, cli.out);
    }
}

START_TEST(doctor_and_verify_report_each_kind_of_stray_and_no_verb_changes_one)
{
    set_up();
    static const char *const names[] = {"copy.jsonl", "orig (copy).jsonl", "-orig.jsonl",
                                        "orig.bak.jsonl"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct stat before, after;
        char session[32];
        snprintf(session, sizeof session, "%.*s", (int)strlen(names[i]) - 6, names[i]);
        copy_journal("orig.jsonl", names[i]);
        ck_assert_int_eq(stat(in_events(names[i]), &before), 0);
        assert_named(session);
        CLI(&cli, NULL, "sql", "--format", "jsonl", "SELECT count(*) AS n FROM events");
        ck_assert_int_eq(cli.exit_status, EXIT_DONE);
        ck_assert_str_eq(cli.out, "{\"n\":6}\n");
        ck_assert_uint_eq(lines_with(session), 1);
        ck_assert_int_eq(stat(in_events(names[i]), &after), 0);
        ck_assert(before.st_ino == after.st_ino && before.st_mtime == after.st_mtime);
        ck_assert_int_eq(unlink(in_events(names[i])), 0);
    }
    DONE(&cli, "doctor");
}
END_TEST

START_TEST(a_renamed_journal_removes_only_its_own_session)
{
    set_up();
    CLI(&cli, NULL, "ls");
    ck_assert_int_eq(rename(in_events("orig.jsonl"), in_events("mine.jsonl")), 0);
    CLI(&cli, NULL, "sql", "--format", "jsonl", "SELECT DISTINCT session_id AS s FROM events");
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    ck_assert_str_eq(cli.out, "{\"s\":\"other\"}\n");
    ck_assert_uint_eq(lines_with("'mine' belongs to session 'orig'"), 1);
    assert_named("mine");
    ck_assert_int_eq(rename(in_events("mine.jsonl"), in_events("orig.jsonl")), 0);
    CLI(&cli, NULL, "sql", "--format", "jsonl", "SELECT count(*) AS n FROM events");
    ck_assert_str_eq(cli.out, "{\"n\":6}\n");
    cli_assert_done(&cli);
}
END_TEST

START_TEST(a_renamed_parent_removes_shared_events_from_its_own_fork_only)
{
    set_up();
    CLI(&cli, NULL, "fork", "orig", "--at", "2", "child");
    CLI(&cli, "{\"n\":1}\n", "append", "child", "--type", "n");
    CLI(&cli, NULL, "fork", "other", "--at", "2", "sound");
    static const char *const histories[] = {
        "sql", "--format", "csv", "SELECT session_id, count(*) AS n FROM history GROUP BY 1", NULL};
    cli_run(&cli, NULL, histories);
    ck_assert_str_eq(cli.out, "session_id,n\r\nchild,3\r\norig,3\r\nother,3\r\nsound,2\r\n");
    ck_assert_int_eq(rename(in_events("orig.jsonl"), in_events("mine.jsonl")), 0);
    cli_run(&cli, NULL, histories);
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    ck_assert_str_eq(cli.out, "session_id,n\r\nchild,1\r\nother,3\r\nsound,2\r\n");
    ck_assert_uint_eq(lines_with("left out: session 'child' is a fork of session 'orig'"), 2);
    CLI(&cli, NULL, "query", "child");
    cli_assert_refused(&cli, EXIT_REFUSED, "there is no session 'orig'");
    ck_assert_int_eq(rename(in_events("other.jsonl"), in_events("orig.jsonl")), 0);
    cli_run(&cli, NULL, histories);
    ck_assert_str_eq(cli.out, "session_id,n\r\nchild,1\r\n");
}
END_TEST

START_TEST(a_copy_over_an_indexed_session_removes_its_rows)
{
    set_up();
    CLI(&cli, "{\"n\":1}\n", "append", "third", "--type", "n");
    CLI(&cli, NULL, "ls");
    copy_journal("orig.jsonl", "third.jsonl");
    for (int round = 0; round < 2; round++) {
        CLI(&cli, NULL, "sql", "--format", "jsonl",
            "SELECT group_concat(id) AS ids FROM (SELECT id FROM sessions ORDER BY 1)");
        ck_assert_int_eq(cli.exit_status, EXIT_DONE);
        ck_assert_str_eq(cli.out, "{\"ids\":\"orig,other\"}\n");
        ck_assert_uint_eq(lines_with("'third'"), 1);
    }
}
END_TEST

START_TEST(a_second_journal_in_the_other_format_is_reported)
{
    set_up();
    copy_journal("orig.jsonl", "kept");
    DONE(&cli, "convert", "orig", "--format", "msgpack");
    ck_assert_int_eq(rename(in_events("orig.mpk"), in_events("new")), 0);
    ck_assert_int_eq(rename(in_events("kept"), in_events("orig.jsonl")), 0);
    CLI(&cli, "{\"n\":1}\n", "append", "orig", "--type", "n");
    CLI(&cli, NULL, "convert", "orig", "--format", "msgpack");
    CLI(&cli, NULL, "convert", "orig", "--format", "jsonl");
    ck_assert_int_eq(rename(in_events("new"), in_events("orig.mpk")), 0);
    CLI(&cli, NULL, "sql", "--format", "jsonl", "SELECT count(*) AS n FROM events");
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    ck_assert_str_eq(cli.out, "{\"n\":7}\n");
    ck_assert_uint_eq(lines_with("'orig' has two journals"), 1);
    assert_named("orig");
}
END_TEST

START_TEST(a_copy_beside_a_journal_of_the_other_format_changes_no_answer)
{
    set_up();
    DONE(&cli, "convert", "other", "--format", "msgpack");
    CLI(&cli, NULL, "query");
    char *before = strdup(cli.out);
    copy_journal("orig.jsonl", "other.jsonl");
    for (int round = 0; round < 2; round++) {
        CLI(&cli, NULL, "query");
        ck_assert_int_eq(cli.exit_status, EXIT_DONE);
        ck_assert_str_eq(cli.out, before);
        ck_assert_uint_eq(lines_with("'other' has two journals, of which 'other.mpk'"), 1);
        CLI(&cli, NULL, "reindex");
        ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    }
    CLI(&cli, NULL, "stats", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"lag_bytes\":0"));
    DONE(&cli, "cat", "other");
    CLI(&cli, "{\"n\":1}\n", "append", "other", "--type", "n");
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    assert_named("other");
    free(before);
}
END_TEST

/* An append looks for snapshots of other processes, and a deletion looks for forks. */
START_TEST(a_verb_whose_answer_is_complete_does_not_report_strays)
{
    set_up();
    copy_journal("orig.jsonl", "orig (copy).jsonl");
    copy_journal("orig.jsonl", "other.mpk");
    DONE_WITH(&cli, history, "append", "new");
    ck_assert_str_eq(cli.err, "");
    DONE(&cli, "delete", "new");
    ck_assert_str_eq(cli.err, "");
    CLI(&cli, NULL, "ls");
    ck_assert_uint_eq(lines_with("orig (copy).jsonl"), 2);
}
END_TEST

START_TEST(a_sweep_keeps_what_a_renamed_journal_names)
{
    set_up();
    put_artifact();
    CLI(&cli, NULL, "artifact", "ls");
    char *before = strdup(cli.out);
    ck_assert_int_eq(rename(in_events("orig.jsonl"), in_events("mine.jsonl")), 0);
    CLI(&cli, NULL, "artifact", "sweep", "--older-than", "0s");
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    CLI(&cli, NULL, "artifact", "ls");
    ck_assert_str_eq(cli.out, before);
    ck_assert_int_eq(unlink(in_events("mine.jsonl")), 0);
    CLI(&cli, NULL, "artifact", "sweep", "--older-than", "0s");
    CLI(&cli, NULL, "artifact", "ls");
    ck_assert_str_ne(cli.out, before);
    free(before);
}
END_TEST

START_TEST(verbs_report_the_first_of_many_strays_and_doctor_reports_all)
{
    set_up();
    char name[32];
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "copy%02d.jsonl", i);
        copy_journal("orig.jsonl", name);
    }
    CLI(&cli, NULL, "ls");
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    ck_assert_uint_eq(lines_with("'annal doctor' lists all"), 9);
    assert_named("copy29");
}
END_TEST

START_TEST(a_verb_given_a_stray_is_refused_with_the_same_sentence)
{
    set_up();
    copy_journal("orig.jsonl", "copy.jsonl");
    static const char *const verbs[][6] = {
        {"cat", "copy"},
        {"show", "copy"},
        {"tail", "copy"},
        {"export", "copy"},
        {"verify", "copy"},
        {"replay", "copy"},
        {"query", "copy"},
        {"append", "copy"},
        {"repair", "copy", "--to", "new"},
        {"fork", "copy", "--at", "2", "new"},
        {"convert", "copy", "--format", "msgpack"},
    };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        cli_run(&cli, history, verbs[i]);
        cli_assert_refused(&cli, EXIT_REFUSED,
                           "the journal of session 'copy' belongs to session 'orig'");
    }
    ck_assert_int_eq(cli_journals(&cli), 3);
}
END_TEST

Suite *suite_strays(void)
{
    Suite *suite = suite_create("strays");
    TCase *tests = suite_case(suite, "strays", cli_setup, cli_teardown);
    tcase_add_test(tests, every_verb_answers_as_without_strays_and_reports_them_once);
    tcase_add_test(tests, doctor_and_verify_report_each_kind_of_stray_and_no_verb_changes_one);
    tcase_add_test(tests, a_renamed_journal_removes_only_its_own_session);
    tcase_add_test(tests, a_renamed_parent_removes_shared_events_from_its_own_fork_only);
    tcase_add_test(tests, a_copy_over_an_indexed_session_removes_its_rows);
    tcase_add_test(tests, a_second_journal_in_the_other_format_is_reported);
    tcase_add_test(tests, a_copy_beside_a_journal_of_the_other_format_changes_no_answer);
    tcase_add_test(tests, a_sweep_keeps_what_a_renamed_journal_names);
    tcase_add_test(tests, a_verb_whose_answer_is_complete_does_not_report_strays);
    tcase_add_test(tests, verbs_report_the_first_of_many_strays_and_doctor_reports_all);
    tcase_add_test(tests, a_verb_given_a_stray_is_refused_with_the_same_sentence);
    return suite;
}
