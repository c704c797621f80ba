/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each verb once as the built program: under a sanitizer it is also searched for leaks when it
 * ends.
 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"
#include "tools/cli/verbs.h"

#include <stdlib.h>
#include <string.h>

static const char history[] =
    "{\"type\":\"session.created\",\"data\":{\"agent_id\":\"a1\"}}\n"
    "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c1\",\"tool\":\"Bash\"}}\n"
    "{\"type\":\"tool.returned\",\"data\":{\"call_id\":\"c1\",\"output\":\"refused\"}}\n";

#define LOGS ANNAL_SOURCE "/tests/data/codex"

/*
 * The runs, in this order. One verb for each noun is enough: all of its verbs share verb_append()
 * and verb_select().
 */
static const char *const story[][8] = {
    {"append", "s1"},
    {"append", "s2"},
    {"import", "codex", LOGS},
    {"pack", "enable", "lionagi"},
    {"pack", "enable", "teams"},
    {"pack", "enable", "agentweaver"},
    {"pack", "enable", "memory"},
    {"cat", "s1"},
    {"ls"},
    {"show", "s1"},
    {"query", "s1"},
    {"sql", "SELECT count(*) FROM events"},
    {"schema"},
    {"search", "refused"},
    {"fix", "no match"},
    {"how", "flag", "feet"},
    {"replay", "s1"},
    {"diff", "s1", "1", "2"},
    {"tail", "s1"},
    {"stats"},
    {"report"},
    {"snapshot", "take", "s1"},
    {"export", "s1", "--format", "markdown"},
    {"handoff", "019cae51-7a10-7c33-9d02-4be0a1f35c70", "--to", "pi", "--to-path", "HANDED"},
    {"artifact", "ls"},
    {"cursor", "list"},
    {"source", "ls"},
    {"mcp"},
    {"acp", "--", "true"},
    {"ship", "schema"},
    {"lionagi", "session", "l1"},
    {"team", "create", "red"},
    {"prose", "init", "--help"},
    {"project", "create", "p1"},
    {"cast", "ls", "p1"},
    {"workflow", "create", "w1", "--project", "p1"},
    {"run", "ls"},
    {"backlog", "ls", "p1"},
    {"revision", "ls", "r1"},
    {"lease", "show", "r1"},
    {"usage", "totals"},
    {"decision", "ls", "p1"},
    {"note", "add", "s1:1", "x"},
    {"note", "ls"},
    {"memory", "ls", "p1"},
    {"context", "ls", "p1"},
    {"plan", "ls", "w1"},
    {"steering", "ls", "w1"},
    {"convert", "s1", "--format", "msgpack"},
    {"repair", "s1", "--dry-run"},
    {"fork", "s1", "--at", "2", "s1b"},
    {"reindex"},
    {"prune", "--dry-run"},
    {"delete", "--yes", "s2"},
    {"checkpoint"},
    {"vacuum"},
    {"verify"},
    {"step", "ls"},
    {"doctor"},
    {"backup", "BACKUP"},
    {"restore", "BACKUP", "--store", "RESTORED"},
    {"help"},
    {"version"},
};

/* Verbs that run until a signal, or need another server or a repository, have tests of their
 * own. */
static const char *const elsewhere[] = {"blame", "home",  "log",  "pull",
                                        "push",  "serve", "ship", "watch"};

static bool in_story(const char *word)
{
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strcmp(elsewhere[i], word) == 0)
            return true;
    for (size_t i = 0; i < sizeof story / sizeof *story; i++)
        if (strcmp(story[i][0], word) == 0)
            return true;
    return false;
}

START_TEST(each_verb_succeeds_and_frees_its_memory)
{
    cli.own_program = true;
    for (size_t i = 0; i < sizeof story / sizeof *story; i++) {
        const char *words[9] = {0};
        for (size_t word = 0; word < 8 && story[i][word] != NULL; word++) {
            words[word] = story[i][word];
            if (strcmp(words[word], "BACKUP") == 0)
                words[word] = tmpdir_path(&cli.dir, "backup");
            if (strcmp(words[word], "HANDED") == 0)
                words[word] = tmpdir_path(&cli.dir, "handed.jsonl");
            if (strcmp(words[word], "RESTORED") == 0)
                words[word] = tmpdir_path(&cli.dir, "restored");
        }
        cli_run(&cli, strcmp(words[0], "append") == 0 ? history : NULL, words);
        ck_assert_msg(cli.exit_status == 0, "annal %s %s: exit status %d, stderr: %s", words[0],
                      words[1] == NULL ? "" : words[1], cli.exit_status, cli.err);
    }
}
END_TEST

#define MISSING "'%s' is not run: add a run of it to story[], or its name to elsewhere[]"

START_TEST(the_list_of_runs_contains_every_verb_and_noun)
{
    for (size_t i = 0; commands[i] != NULL; i++)
        ck_assert_msg(in_story(commands[i]->name), MISSING, commands[i]->name);
    for (size_t i = 0; noun_at(i) != NULL; i++)
        ck_assert_msg(in_story(noun_at(i)->name), MISSING, noun_at(i)->name);
}
END_TEST

Suite *suite_every_verb(void)
{
    Suite *suite = suite_create("every_verb");
    TCase *tests = suite_case(suite, "every_verb", cli_setup, cli_teardown);
    tcase_add_test(tests, each_verb_succeeds_and_frees_its_memory);
    tcase_add_test(tests, the_list_of_runs_contains_every_verb_and_noun);
    return suite;
}
