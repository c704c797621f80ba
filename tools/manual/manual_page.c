/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annal-manual <tools/manual/annal.1.in >docs/annal.1: writes the manual page of the command.
 *
 * A line "@verb NAME" is replaced by the help of that verb; the lines after it, which only the page
 * has, are printed before the examples of the verb. All other lines are copied. A verb that is
 * missing, unknown or used twice is an error.
 */
#include "tools/cli/manual.h"

#include <stdio.h>
#include <string.h>

#define LINE_BYTES   4096
#define VERBS_MAX    64
#define VERB_KEYWORD "@verb "

static int fail(const char *what, const char *verb)
{
    fprintf(stderr, "annal-manual: %s verb '%s'\n", what, verb);
    return 1;
}

/* Return the index in commands[] of the verb in a line "@verb NAME"; -1 if it does not exist. */
static int place_of(const char *name)
{
    for (int i = 0; commands[i] != NULL; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return i;
    return -1;
}

int main(void)
{
    char line[LINE_BYTES];
    bool seen[VERBS_MAX] = {false}, noted = true;
    const struct command *verb = NULL; /* verb whose examples are printed next, or NULL */
    while (fgets(line, sizeof line, stdin) != NULL) {
        bool begins = strncmp(line, VERB_KEYWORD, strlen(VERB_KEYWORD)) == 0;
        if (verb != NULL && (begins || strncmp(line, ".S", 2) == 0)) {
            manual_print_examples(verb);
            verb = NULL;
        }
        if (!begins) {
            printf("%s%s", verb != NULL && !noted ? ".PP\n" : "", line);
            noted = true;
            continue;
        }
        line[strcspn(line, "\n")] = '\0';
        const char *name = line + strlen(VERB_KEYWORD);
        int place = place_of(name);
        if (place < 0 || place >= VERBS_MAX || seen[place])
            return fail(place < 0 ? "there is no" : "too many or twice:", name);
        seen[place] = true;
        noted = false;
        verb = commands[place];
        manual_print_verb(NULL, verb);
    }
    for (int i = 0; commands[i] != NULL; i++)
        if (!seen[i])
            return fail("the page has no", commands[i]->name);
    return fflush(stdout) == 0 && !ferror(stdin) ? 0 : 1;
}
