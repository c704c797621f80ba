/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of a user's pack: annal NOUN VERB works as soon as the pack's file is in the store. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"
#include "tools/cli/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define HEAD                                                                                       \
    "-- pack tasks   version 1   database tasks.db\n"                                              \
    "CREATE TABLE tasks (session_id TEXT, id TEXT, title TEXT, tags TEXT, rank INTEGER,\n"         \
    "                    PRIMARY KEY (session_id, id));\n"                                         \
    "-- on task.added   guarded \"a task of this id is there already\"\n"                          \
    "INSERT INTO tasks VALUES (:session, $id, $title, $tags, $run::rank);\n"

static const char tasks[] =
    HEAD "-- noun task   \"what is to be done\"\n"
         "-- verb task add   appends task.added   session tasks_{LIST}   \"add a \"task\"\"\n"
         "--   LIST         text             \"whose it is\"\n"
         "--   ID           text id          \"what it is called\"\n"
         "--   [TITLE]      body title = \"nothing\"\n"
         "--                                 \"what is to be done\"\n"
         "--   --tag TAG    list tags (a|b)  \"a tag; repeat it\"\n"
         "--   --rank N     number run.rank required\n"
         "--                                 \"how urgent it is\"\n"
         "--   source = \"shell\"\n"
         "--   says     task {id} of {LIST} is number {seq}\n"
         "--   about    A task has a title.\n"
         "--            on the next line it goes on.\n"
         "--   example  annal task add home t1 \\\n"
         "--                --rank 1\n"
         "-- verb task ls   selects   \"list the tasks\"\n"
         "--   --rank N     number = 1       \"only of this rank (1)\"\n"
         "--   [LIST]       text             \"whose (all)\"\n"
         "SELECT id, title, tags\n"
         "  FROM tasks.tasks -- by its full name; and a comment\n"
         " WHERE rank = ?1 AND (?2 IS NULL OR session_id = 'tasks_' || ?2);\n"
         "-- That was all.\n";

static void drop(const char *text)
{
    mkdir(tmpdir_path(&cli.dir, "store/packs"), 0700);
    file_write(tmpdir_path(&cli.dir, "store/packs/tasks.sql"), text, strlen(text));
}

static void init_with_tasks(void)
{
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    drop(tasks);
}

static const char rows_pack[] =
    HEAD "-- noun task   \"what is to be done\"\n"
         "-- verb task again   appends task.added   each   \"add them to another list\"\n"
         "--   FROM         text             \"whose\"\n"
         "--   TO           text             \"for whom\"\n"
         "--   --strict     flag             \"stop at the first refusal\"\n"
         "--   none     {FROM} has no task\n"
         "SELECT 'tasks_' || ?2 AS session, json_object('id', id, 'title', title) AS data,\n"
         "       'task ' || id || ' again' AS says, iif(?3, NULL, 'task ' || id) AS subject\n"
         "FROM tasks WHERE session_id = 'tasks_' || ?1 ORDER BY id;\n"
         "-- verb task files   writes   \"a file for each task\"\n"
         "--   DIR          text             \"where\"\n"
         "--   LIST         text             \"whose\"\n"
         "--   none     {LIST} has no task\n"
         "SELECT 'tasks' AS folder, id AS name, '.txt' AS suffix,\n"
         "       nullif(title, 'gone') AS content\n"
         "FROM tasks WHERE session_id = 'tasks_' || ?2 ORDER BY id;\n"
         "-- verb task lines   selects   lines   \"print them\"\n"
         "--   --most N     number = 9 (1..10)  \"at most N (9)\"\n"
         "SELECT id, '* ' || title AS line FROM tasks ORDER BY id LIMIT ?1;\n";

static void init_with_rows(void)
{
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    drop(rows_pack);
    DONE_WITH(&cli,
              "{\"type\":\"task.added\",\"data\":{\"id\":\"t1\",\"title\":\"one\\ntwo\"}}\n"
              "{\"type\":\"task.added\",\"data\":{\"id\":\"../t2\",\"title\":\"x\"}}\n",
              "append", "tasks_home");
}

/* A value that cannot be a file's name or content, and the end of the message. */
static const struct {
    const char *row, *said;
} wrong_rows[] = {
    {"'a', 'b', '', 7", "row 2 of the SELECT of this verb: column 'content' is a number"},
    {"'a', 'b', '', x'00'", "column 'content' is a BLOB, not a text: use CAST"},
    {"'a', 1.5, '', 'c'", "column 'name' is a number, not a text: use CAST"},
    {"'a', NULL, '', 'c'", "column 'name' is NULL, not a text"},
    {"NULL, 'b', '', 'c'", "column 'folder' is NULL, not a text"},
    {"'a' || char(0) || 'z', 'b', '', 'c'", "column 'folder' has a NUL byte"},
    {"'a', 'b', '.m' || char(0) || 'd', 'c'", "column 'suffix' has a NUL byte"},
    {"'/etc', 'b', '', 'c'", "'/etc/b'"},
    {"'a', '', '', 'c'", "'a/'"},
    {"'a', 'b', '/../../x', 'c'", "'a/b/../../x'"},
};

START_TEST(a_row_that_cannot_be_a_file_is_refused_and_a_file_has_all_bytes_of_its_row)
{
    char text[2000], place[300];
    size_t len;
    init_with_rows();
    snprintf(place, sizeof place, "%s", tmpdir_path(&cli.dir, "w"));
    for (size_t i = 0; i < sizeof wrong_rows / sizeof *wrong_rows; i++) {
        snprintf(text, sizeof text,
                 HEAD "-- noun task   \"x\"\n-- verb task files   writes   \"y\"\n"
                      "--   DIR   text   \"z\"\n"
                      "SELECT 't' AS folder, 'n' AS name, '' AS suffix, NULL AS content\n"
                      "UNION ALL SELECT %s;\n",
                 wrong_rows[i].row);
        drop(text);
        CLI(&cli, NULL, "task", "files", place);
        cli_assert_refused(&cli, EXIT_REFUSED, wrong_rows[i].said);
    }
    drop(HEAD "-- noun task   \"x\"\n-- verb task files   writes   \"y\"\n"
              "--   DIR   text   \"z\"\n"
              "SELECT '' AS folder, 'a' || char(0) AS name, '' AS suffix,\n"
              "       'b' || char(0) || 'c' AS content;\n");
    DONE(&cli, "task", "files", place);
    char *content = file_read(tmpdir_path(&cli.dir, "w/a%00"), &len);
    ck_assert_uint_eq(len, 3);
    ck_assert_mem_eq(content, "b\0c", 3);
    free(content);
}
END_TEST

START_TEST(help_manual_and_completion_know_the_verbs_of_a_users_pack)
{
    init_with_tasks();
    DONE(&cli, "task", "add", "--help");
    ck_assert_str_eq(
        cli.out, "annal task add: add a \"task\"\n\n"
                 "usage: annal task add [options] LIST ID [TITLE] --rank N\n\n"
                 "A task has a title.\non the next line it goes on.\n\n"
                 "operands:\n"
                 "  LIST                   whose it is\n"
                 "  ID                     what it is called\n"
                 "  TITLE                  what is to be done\n\n"
                 "options:\n"
                 "  --tag TAG ...          a tag; repeat it\n"
                 "                         one of a, b\n"
                 "  --rank N               how urgent it is\n"
                 "  --event-id ID          id of this event; a repeated append adds nothing\n"
                 "  --cause SESSION:SEQ    event that caused this event\n"
                 "  --store DIR            the store (default: see 'annal help')\n"
                 "  --json                 output as one JSON object a line\n"
                 "  --wait SECONDS         total time to wait for other processes (10)\n"
                 "  --utc                  days, hours and times without a zone in UTC\n"
                 "  --zone NAME            the same in this zone, such as Europe/Berlin or +05:30\n"
                 "  --keep-free MIB        space that appends leave free on the disk (16)\n"
                 "  --unsafe-filesystem    allow writes on FUSE or NFS: a crash may lose events\n\n"
                 "examples:\n"
                 "  annal task add home t1 \\\n"
                 "      --rank 1\n");
    DONE(&cli, "help", "task");
    ck_assert_ptr_nonnull(strstr(cli.out, "  ls             list the tasks\n"));
    CLI(&cli, NULL, "help", "--words", "task");
    ck_assert_str_eq(cli.out, "add\nls\n");
    CLI(&cli, NULL, "help", "--words", "task", "ls");
    ck_assert_str_eq(cli.out, "--rank=\n--store=\n--json\n--wait=\n--utc\n--zone=\n--keep-free=\n"
                              "--unsafe-filesystem\n--help\n");
    CLI(&cli, NULL, "help", "--man");
    ck_assert_ptr_nonnull(strstr(cli.out, ".SS annal task add LIST ID [TITLE]\n"));
    CLI(&cli, NULL, "taks");
    cli_assert_refused(&cli, EXIT_USAGE, "did you mean 'task'?");
}
END_TEST

START_TEST(verbs_of_a_users_pack_belong_to_its_store_and_are_listed_last)
{
    init_with_tasks();
    DONE(&cli, "help", "--words");
    const char *last = strstr(cli.out, "\ntask\n");
    ck_assert(last != NULL && strcmp(last, "\ntask\n") == 0);
    ck_assert_ptr_null(strstr(cli.out, "\ndecision\n")); /* its pack is off */
    DONE(&cli, "pack", "enable", "memory");
    DONE(&cli, "help", "--words");
    ck_assert_ptr_nonnull(strstr(cli.out, "\ndecision\n"));
    CLI(&cli, NULL, "task", "ls", "--store", tmpdir_path(&cli.dir, "other"));
    cli_assert_refused(&cli, EXIT_USAGE, "verb 'task' does not exist");
    char *store = strdup(cli.store);
    cli.store = tmpdir_path(&cli.dir, "other");
    CLI(&cli, NULL, "task", "ls");
    cli_assert_refused(&cli, EXIT_USAGE, "verb 'task' does not exist");
    DONE(&cli, "task", "ls", "--store", store);
    free(store);
}
END_TEST

#define NOUN "-- noun task   \"x\"\n"
#define ONE  "-- verb task add   appends task.added   session tasks   \"y\"\n"
#define ADD  NOUN ONE
#define LS   NOUN "-- verb task ls   selects   \"y\"\n"

static const struct {
    const char *verbs; /* their first line is 6 */
    const char *said;
} mistakes[] = {
    {"-- noun Task   \"x\"\n", ":6: write a noun as '-- noun NOUN"},
    {"-- noun task\n", ":6: write a noun as '-- noun NOUN"},
    {"-- noun task   \"x\"\nSELECT 1;\n", ":6: a noun has no SQL"},
    {NOUN NOUN, ":7: the noun 'task' occurs twice"},
    {"-- verb task ls   selects   \"y\"\nSELECT 1;\n", ":6: a verb must follow the line of its"},
    {NOUN "-- verb note ls   selects   \"y\"\nSELECT 1;\n", ":7: the verbs of 'note' must follow"},
    {NOUN "-- verb task l_s   selects   \"y\"\nSELECT 1;\n",
     ":7: 'l_s' cannot be the name of a verb"},
    {NOUN "-- verb task ls   selects\nSELECT 1;\n", ":7: a verb is '-- verb NOUN VERB"},
    {NOUN "-- verb task ls   \"y\"\nSELECT 1;\n", ":7: a verb is '-- verb NOUN VERB"},
    {NOUN "-- verb task ls   runs   \"y\"\n", ":7: only verbs of built-in packs"},
    {NOUN "-- verb task ls   appends A   session s   \"y\"\n", ":7: 'A' is not an event type"},
    {NOUN "-- verb task ls   appends a   \"y\"\n", ":7: the session of the event is missing"},
    {NOUN "-- verb task ls   appends a   session s_{X}   \"y\"\n",
     ":7: session s_{X}: each {NAME}"},
    {NOUN "-- Verb task ls\n", ":7: '-- Verb task ls' does not begin a section"},
    {ADD ONE, ":8: the verb 'task add' occurs twice"},
    {ADD "--   NAME text name\n", ":8: a line must end with its help in quotes"},
    {ADD "--   NAME text name 'x'\n", ":8: ''x'' is not allowed after the kind"},
    {ADD "--   NAME words name \"x\"\n", ":8: 'words' is not a kind of value"},
    {ADD "--   name text name \"x\"\n", ":8: 'name' cannot begin a line"},
    {ADD "--   name = x\n", ":8: write a constant of data as 'MEMBER = JSON'"},
    {ADD "--   NAME text name = x \"x\"\n", ":8: JSON must follow ="},
    {ADD "--   A text a \"x\"\n--   A text b \"x\"\n", ":9: 'A' occurs twice"},
    {ADD "--   A list a \"x\"\n--   B text b \"x\"\n", ":9: A takes all remaining operands"},
    {ADD "--   [A] text a \"x\"\n--   B text b \"x\"\n", ":9: A is optional, so B"},
    {ADD "--   --a text a \"x\"\n", ":8: write an option as '--name VALUE kind'"},
    {ADD "--   --store DIR text a \"x\"\n", ":8: every verb has an option --store"},
    {ADD "--   --cause X text a \"x\"\n", ":8: every verb has an option --cause"},
    {ADD "--   --a N number a (1|2) \"x\"\n", ":8: write the allowed values of a number as (1.."},
    {ADD "--   --a T time a (1|2) \"x\"\n", ":8: only a text, a list or a number has choices"},
    {ADD "--   none x\n", ":7: only a verb with 'each' or 'writes' can have 'none'"},
    {NOUN "-- verb task x   appends a   each   \"y\"\n",
     ":7: a verb that selects needs one SELECT"},
    {NOUN "-- verb task x   each   \"y\"\nSELECT 1;\n", ":7: a verb is '-- verb NOUN VERB"},
    {NOUN "-- verb task x   writes   \"y\"\nSELECT 1;\n", ":7: a verb that writes files needs"},
    {NOUN "-- verb task x   appends a   each   \"y\"\nSELECT 1 AS data;\n",
     ":7: the SELECT of the verb 'x' needs a column 'session'"},
    {NOUN "-- verb task x   writes   \"y\"\n--   DIR text \"x\"\nSELECT 1 AS folder, 2 AS name;\n",
     ":7: the SELECT of the verb 'x' needs a column 'suffix'"},
    {NOUN "-- verb task x   appends a   each   \"y\"\n--   A text a \"x\"\n",
     ":8: 'a' cannot be a member of data: this verb takes data from its SELECT"},
    {ADD "--   says x\n--   says y\n", ":9: a verb has only one 'says'"},
    {ADD "--   about\n", ":8: a verb has only one 'about', with a text"},
    {ADD "--   says {id\n", ":7: says: a { without its }"},
    {ADD "SELECT 1;\n", ":7: only a verb that selects has SQL"},
    {LS "\n-- nothing\n", ":7: a verb that selects needs one SELECT"},
    {LS "-- nothing\nSELECT 1;\n", ":8: a line of a verb must begin with two dashes"},
    {ADD "--   A text a \"x\"\n--  B text b \"x\"\n",
     ":9: a line of a verb must begin with two dashes"},
    {ADD "--\tA text a \"x\"\n", ":8: a line of a verb must begin with two dashes"},
    {LS "SELECT 1; SELECT 2;\n", ":7: a verb that selects needs one SELECT"},
    {LS "DELETE FROM tasks;\n", ":7: a verb that selects needs one SELECT"},
    {LS "--   says x\nSELECT 1;\n", ":7: a verb that selects prints rows"},
    {LS "--   A text a \"x\"\nSELECT 1;\n", ":8: 'a' cannot be a member of data"},
    {LS "--   A text \"x\"\nSELECT id,\n naem FROM tasks WHERE id = ?1;\n",
     ":10: no such column: naem"},
    {LS "SELECT id\n\nFORM tasks;\n", ":10: near \"tasks\": syntax error"},
    {LS "WITH x AS (SELECT 1) DELETE FROM tasks;\n", ":8: only statements that read"},
    {LS "--   A text \"x\"\nSELECT ?2;\n", ":9: parameter '?2' is not one of ?1 to ?1"},
    {LS "--   A text \"x\"\nSELECT ?;\n", ":9: parameter '?' is not one of ?1 to ?1"},
    {LS "SELECT $id FROM tasks;\n", ":8: parameter '$id' is not one of ?1 to ?0"},
    {LS "SELECT '?9' -- ?8\nFROM elsewhere.tasks WHERE id = ?7;\n", ":9: parameter '?7' is not"},
    {LS "SELECT 1 AS \"?1\" FROM elsewhere.tasks /* :x */\nWHERE id = :id;\n",
     ":9: parameter ':id' is not one of"},
    {LS "--   A text \"x\"\nSELECT ?99999999999999999999999;\n", ":9: parameter '?9999999"},
    {LS "--   A text \"x\"\nSELECT ?0;\n", ":9: parameter '?0' is not one of"},
};

START_TEST(check_prints_the_line_of_a_mistake_in_a_verb)
{
    char text[2000];
    const char *path = tmpdir_path(&cli.dir, "tasks.sql");
    file_write(path, tasks, strlen(tasks));
    DONE(&cli, "pack", "check", path);
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        snprintf(text, sizeof text, "%s%s", HEAD, mistakes[i].verbs);
        file_write(path, text, strlen(text));
        CLI(&cli, NULL, "pack", "check", path);
        ck_assert_msg(strstr(cli.err, mistakes[i].said) != NULL, "%s: %s", mistakes[i].said,
                      cli.err);
        cli_assert_refused(&cli, EXIT_REFUSED, "tasks.sql:");
    }
}
END_TEST

START_TEST(all_code_belongs_to_existing_verbs)
{
    for (size_t i = 0; verb_codes[i] != NULL; i++) {
        for (const struct verb_code *code = verb_codes[i]; code->noun != NULL; code++) {
            const struct noun *noun = noun_find(code->noun);
            ck_assert_msg(noun != NULL && noun_verb(noun, code->verb) != NULL, "%s %s", code->noun,
                          code->verb);
        }
    }
}
END_TEST

/* So the loaded packs make no difference. */
START_TEST(all_builtin_nouns_have_different_names)
{
    const struct noun *noun, *other;
    for (size_t i = 0; (noun = noun_at(i)) != NULL; i++) {
        ck_assert_msg(command_find(noun->name) == NULL, "%s", noun->name);
        for (size_t j = i + 1; (other = noun_at(j)) != NULL; j++)
            ck_assert_str_ne(noun->name, other->name);
        ck_assert_ptr_eq(noun_find(noun->name), noun);
    }
}
END_TEST

Suite *suite_user_verbs(void)
{
    Suite *suite = suite_create("user_verbs");
    TCase *tcase = suite_case(suite, "user_verbs", cli_setup, cli_teardown);
    tcase_add_test(tcase,
                   a_row_that_cannot_be_a_file_is_refused_and_a_file_has_all_bytes_of_its_row);
    tcase_add_test(tcase, help_manual_and_completion_know_the_verbs_of_a_users_pack);
    tcase_add_test(tcase, verbs_of_a_users_pack_belong_to_its_store_and_are_listed_last);
    tcase_add_test(tcase, check_prints_the_line_of_a_mistake_in_a_verb);
    tcase_add_test(tcase, all_code_belongs_to_existing_verbs);
    tcase_add_test(tcase, all_builtin_nouns_have_different_names);
    return suite;
}
