/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damage each page of each database of a store, one after the other. No answer is wrong: a question
 * gives the same answer as before, or is refused, and the next gives it. verify reports the page.
 */
#include "tests/support/random.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096

enum kind { ZEROS, RANDOM, SECTOR, BIT, OTHER_PAGE, KINDS };

static const char *const databases[] = {"sessions.db", "search.db", "notes.db"};

static const char pack_text[] =
    "-- pack notes   version 1   database notes.db\n"
    "CREATE TABLE notes (session TEXT NOT NULL, seq INTEGER NOT NULL, text TEXT,"
    " PRIMARY KEY (session, seq));\n"
    "CREATE INDEX notes_text ON notes(text);\n"
    "-- on message.added\n"
    "INSERT INTO notes VALUES (:session, :seq, $content);\n"
    "-- forget\n"
    "DELETE FROM notes WHERE session = :session;\n";

/* Together they read every table and every index. */
static const struct {
    const char *words[5];
} questions[] = {
    {.words = {"ls", "--json"}},
    {.words = {"query"}},
    {.words = {"query", "--type", "message.added", "--json"}},
    {.words = {"search", "harbour", "--json"}},
    {.words = {"report"}},
    {.words = {"show", "s3", "--json"}},
    {.words = {"sql", "--format", "jsonl", "SELECT * FROM tool_calls ORDER BY 1, 2, 3"}},
    {.words = {"sql", "--format", "jsonl",
               "SELECT type, count(*) AS n FROM event_index GROUP BY type"}},
    {.words = {"sql", "--format", "jsonl", "SELECT * FROM notes ORDER BY 1, 2"}},
    {.words = {"sql", "--format", "jsonl", "SELECT * FROM turns ORDER BY 1, 2"}},
    {.words = {"sql", "--format", "jsonl", "SELECT seq FROM notes WHERE text GLOB 'a*' LIMIT 3"}},
};

#define QUESTIONS (sizeof questions / sizeof *questions)

static char *answers[QUESTIONS];

static const char *file_of(const char *name)
{
    char inside[64];
    snprintf(inside, sizeof inside, "store/%s", name);
    return tmpdir_path(&cli.dir, inside);
}

/* Enough events for tables with inner pages and values with overflow pages. */
static void fill(void)
{
    char long_text[6000] = "";
    memset(long_text, 'x', sizeof long_text - 1);
    for (int s = 0; s < 5; s++) {
        char name[8], *input = malloc(200000), *at = input;
        snprintf(name, sizeof name, "s%d", s);
        at += sprintf(at, "{\"type\":\"session.created\",\"data\":{\"agent_id\":\"a%d\"}}\n", s);
        for (int i = 0; i < 60; i++)
            at +=
                sprintf(at,
                        "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t%d\"}}\n"
                        "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":"
                        "\"a harbour %d of %d\"}}\n"
                        "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c%d\",\"tool\":\"Bash\","
                        "\"input\":{\"command\":\"make %d\"}}}\n",
                        i, i, s, i, i);
        sprintf(at,
                "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":\"b %s\"}}\n",
                long_text);
        CLI(&cli, input, "append", name);
        ck_assert_int_eq(cli.exit_status, EXIT_DONE);
        free(input);
    }
    ck_assert(mkdir(file_of("packs"), 0700) == 0 || errno == EEXIST);
    file_write(file_of("packs/notes.sql"), pack_text, sizeof pack_text - 1);
}

static void ask(size_t question)
{
    cli_run(&cli, NULL, questions[question].words);
}

static void note_answers(void)
{
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < QUESTIONS; i++) {
            ask(i);
            ck_assert_msg(cli.exit_status == EXIT_DONE, "%s: %s", questions[i].words[0], cli.err);
            free(answers[i]);
            answers[i] = strdup(cli.out);
        }
}

/* ---- Damage ---- */

static unsigned damages;

static void damage(struct random *random, char *bytes, size_t len, size_t page, enum kind kind)
{
    char *at = bytes + page * PAGE;
    damages++;
    size_t pages = len / PAGE;
    switch (kind) {
    case ZEROS:
        memset(at, 0, PAGE);
        break;
    case RANDOM:
    case SECTOR:
        for (int i = 0; i < (kind == RANDOM ? PAGE : 512); i++)
            at[i + (kind == SECTOR ? 512 * (int)(page % 8) : 0)] = (char)random_below(random, 256);
        break;
    case BIT:
        at[random_below(random, PAGE)] ^= (char)(1 << random_below(random, 8));
        break;
    default:
        memmove(at, bytes + (page + 1) % pages * PAGE, PAGE);
    }
}

/* Write into the same file, so that its wal and its locks still belong to it. */
static void overwrite(const char *name, const char *bytes, size_t len)
{
    FILE *file = fopen(file_of(name), "r+");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
}

static void ck_answer(size_t question, const char *where)
{
    ask(question);
    if (cli.exit_status == EXIT_DONE && strcmp(cli.out, answers[question]) == 0)
        return;
    ck_assert_msg(cli.exit_status != EXIT_DONE && strstr(cli.err, "try again") != NULL,
                  "%s: annal %s %s ended with %d: %s%s", where, questions[question].words[0],
                  questions[question].words[1], cli.exit_status, cli.err, cli.out);
    ask(question);
    ck_assert_msg(cli.exit_status == EXIT_DONE && strcmp(cli.out, answers[question]) == 0,
                  "%s, asked again: annal %s ended with %d: %s%s", where,
                  questions[question].words[0], cli.exit_status, cli.err, cli.out);
}

/* Run verify: returns whether it reports the database, as it must if the page is in use. */
static bool verify_names(const char *name, const char *where)
{
    CLI(&cli, NULL, "verify");
    bool named = strstr(cli.out, name) != NULL;
    ck_assert_msg(cli.exit_status == (named ? EXIT_REFUSED : EXIT_DONE), "%s: %s%s", where, cli.out,
                  cli.err);
    return named;
}

/* Over all pages, each question is the first after a damage once. */
static unsigned sweep(struct random *random, const char *name, enum kind kind, size_t step)
{
    unsigned named = 0;
    size_t len, count = full_or(QUESTIONS, 2);
    char where[80];
    for (size_t page = kind % step;; page += step) {
        char *bytes = file_read(file_of(name), &len);
        if (page * PAGE >= len) {
            free(bytes);
            return named;
        }
        damage(random, bytes, len, page, kind);
        overwrite(name, bytes, len);
        free(bytes);
        snprintf(where, sizeof where, "%s, page %zu, damage %d", name, page, (int)kind);
        if ((page + kind) % 5 == 0)
            named += verify_names(name, where);
        for (size_t i = 0; i < count; i++)
            ck_answer((page / step + i) % QUESTIONS, where);
    }
}

START_TEST(no_damaged_page_of_a_database_gives_a_wrong_answer)
{
    struct random random = random_init(35);
    unsigned named = 0;
    fill();
    note_answers();
    for (size_t i = 0; i < full_or(3, 1) * sizeof databases / sizeof *databases; i++)
        for (int kind = 0; kind < KINDS; kind++)
            named += sweep(&random, databases[i % (sizeof databases / sizeof *databases)],
                           (enum kind)kind, full_or(1, 29));
    printf("%u damages, no wrong answer\n", damages);
    ck_assert_uint_gt(named, 5);
}
END_TEST

START_TEST(a_row_that_another_program_wrote_into_the_index_is_damage)
{
    char command[400];
    if (system("command -v sqlite3 >/dev/null") != 0) {
        fprintf(stderr, "skipped: sqlite3 is not installed\n");
        return;
    }
    CLI(&cli, "{\"text\":\"one\"}\n", "append", "s1", "--type", "n");
    DONE(&cli, "ls", "--json");
    snprintf(command, sizeof command, "sqlite3 %s/sessions.db \"UPDATE sessions SET title = 'x'\"",
             cli.store);
    ck_assert_int_eq(system(command), 0);
    ck_assert(verify_names("sessions.db", "the shell"));
    CLI(&cli, NULL, "sql", "--format", "jsonl", "SELECT title FROM sessions");
    ck_assert_str_eq(cli.out, "{\"title\":null}\n");
    DONE(&cli, "verify");
}
END_TEST

Suite *suite_sweep(void)
{
    Suite *suite = suite_create("sweep");
    TCase *tests = suite_case(suite, "sweep", cli_setup, cli_teardown);
    tcase_add_test(tests, no_damaged_page_of_a_database_gives_a_wrong_answer);
    tcase_add_test(tests, a_row_that_another_program_wrote_into_the_index_is_damage);
    return suite;
}
