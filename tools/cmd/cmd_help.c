/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/manual.h"
#include "tools/cli/verbs.h"

#include <stdio.h>
#include <string.h>

static void print_option(const struct option *option)
{
    char left[40];
    snprintf(left, sizeof left, "--%s%s%s%s", option->name, option->value ? " " : "",
             option->value ? option->value : "", option->repeatable ? " ..." : "");
    printf("  %-22s %s\n", left, option->help);
}

/* Print "one of a, b, c" below the help of an option, in lines of at most 80 columns. */
static void print_choices(const char *choices)
{
    int column = 0;
    for (const char *at = choices; at != NULL && *at != '\0'; at += *at == '|' ? 1 : 0) {
        int len = (int)strcspn(at, "|");
        if (column == 0)
            column = printf("%25sone of", "");
        else if (column + len + 3 > 80)
            column = printf(",\n%24s", "") - 2;
        else
            column += printf(",");
        column += printf(" %.*s", len, at);
        at += len;
    }
    if (column > 0)
        printf("\n");
}

/* Print the operands and the required options, for example TEAM [TEXT] --from NAME. */
static void print_fields(const struct field *field)
{
    for (; field != NULL && field->kind != FIELD_END; field++) {
        const struct option *option = &field->option;
        if (option->name != NULL && field->required)
            printf(" --%s %s", option->name, option->value);
        else if (field_is_operand(field))
            printf(field->required ? " %s%s" : " [%s%s]", option->value,
                   FIELD_IS_LIST(field->kind) ? "..." : "");
    }
}

static void print_operands(const struct field *field)
{
    const char *head = "operands:\n", *tail = "";
    for (; field != NULL && field->kind != FIELD_END; field++) {
        const struct option *option = &field->option;
        if (field_is_operand(field)) {
            printf("%s  %-22s %s\n", head, option->value, option->help);
            print_choices(field->choices);
            head = "";
            tail = "\n";
        }
    }
    printf("%s", tail);
}

void help_print_command(const struct noun *noun, const struct command *command)
{
    int at = 0;
    const char *name = noun ? noun->name : "";
    const char *space = noun ? " " : "";
    const struct option *option = command_option(command, &at);
    bool options = !command->no_store || option != NULL;
    printf("annal %s%s%s: %s\n\n", name, space, command->name, command->summary);
    printf("usage: annal %s%s%s%s", name, space, command->name, options ? " [options]" : "");
    print_fields(command->fields);
    printf("\n\n");
    if (command->about != NULL)
        printf("%s\n\n", command->about);
    print_operands(command->fields);
    if (options)
        printf("options:\n");
    for (; option != NULL; option = command_option(command, &at)) {
        print_option(option);
        print_choices(command_choices(command, option));
    }
    for (option = args_common; !command->no_store && option->name != NULL; option++)
        print_option(option);
    if (command->examples != NULL)
        printf("%sexamples:\n%s", options ? "\n" : "", command->examples);
}

void help_print_noun(const struct noun *noun)
{
    printf("annal %s: %s\n\nusage: annal %s VERB [options]\n\n", noun->name, noun->summary,
           noun->name);
    for (const struct command *verb = noun->verbs; verb->name != NULL; verb++)
        printf("  %-14s %s\n", verb->name, verb->summary);
    if (noun->of_user)
        printf("\nFrom the pack %s, which is a file in this store.\n", noun->pack);
    else if (noun->pack != NULL && strcmp(noun->pack, "core") != 0)
        printf("\nThe store runs the pack %s: 'annal pack enable %s'.\n", noun->pack, noun->pack);
    printf("\n'annal help %s VERB' explains a verb.\n", noun->name);
}

static void print_nouns(void)
{
    const struct noun *noun;
    const char *before = "\npacks that are off: ", *last = "";
    fputs("\nnouns, with verbs of their own ('annal help pack'):\n", stdout);
    for (size_t i = 0; (noun = noun_at(i)) != NULL; i++) {
        if (noun_is_on(noun))
            printf("  %-11s %s\n", noun->name, noun->summary);
    }
    for (size_t i = 0; (noun = noun_at(i)) != NULL; i++) {
        if (noun_is_on(noun) || strcmp(last, noun->pack) == 0)
            continue;
        printf("%s%s", before, noun->pack);
        last = noun->pack;
        before = ", ";
    }
    fputs(last[0] == '\0' ? "" : " ('annal pack list')\n", stdout);
}

void help_print_all(void)
{
    printf("annal: an event store for AI-agent sessions\n\n"
           "usage: annal [--store DIR] [--json] VERB [options]\n\n");
    for (int i = 0; commands[i] != NULL; i++)
        printf("  %-11s %s\n", commands[i]->name, commands[i]->summary);
    print_nouns();
    printf("\n"
           "The store is --store DIR, else $ANNAL_STORE, else $XDG_DATA_HOME/annal, else\n"
           "~/.local/share/annal. Data goes to standard output, everything else to\n"
           "standard error.\n"
           "\n"
           "exit status: 0 done; 1 refused, or the answer is no; 2 wrong usage; 3 the store\n"
           "or the system failed, or the store does not exist\n"
           "\n"
           "'annal help VERB' explains a verb.\n");
}

/* Find the noun and the verb that the operands name; NULL if not named. Return 0 or an exit
 * status. */
static int find(const struct args *args, const struct noun **out_noun,
                const struct command **out_verb)
{
    const char *name = args->operand_count > 0 ? args->operands[0] : NULL;
    const char *second = args->operand_count > 1 ? args->operands[1] : NULL;
    *out_verb = name != NULL ? command_find(name) : NULL;
    *out_noun = name != NULL && *out_verb == NULL ? noun_find(name) : NULL;
    if (name != NULL && *out_verb == NULL && *out_noun == NULL)
        return args_fail_verb(NULL, name);
    if (*out_verb != NULL && second != NULL)
        return fail_usage("annal %s has no verbs of its own: 'annal help %s' explains it", name,
                          name);
    if (second != NULL)
        *out_verb = noun_verb(*out_noun, second);
    return second != NULL && *out_verb == NULL ? args_fail_verb(*out_noun, second) : 0;
}

static int run(const struct args *args)
{
    const struct noun *noun;
    const struct command *verb;
    int exit_status = find(args, &noun, &verb);
    if (exit_status != 0)
        return exit_status;
    if (args_has(args, "man"))
        manual_print();
    else if (args_has(args, "words"))
        manual_print_words(noun, verb);
    else if (verb != NULL)
        help_print_command(noun, verb);
    else if (noun != NULL)
        help_print_noun(noun);
    else
        help_print_all();
    return EXIT_DONE;
}

static const struct field fields[] = {
    OPERAND_MAYBE("NAME", FIELD_TEXT, NULL, "a verb, or a noun such as pack"),
    OPERAND_MAYBE("VERB", FIELD_TEXT, NULL, "a verb of that noun"),
    FLAG("words", NULL, "words for completion, one a line"),
    FLAG("man", NULL, "manual page of the verbs of two words, annal-verbs(1)"), FIELDS_END};

const struct command cmd_help = {.name = "help",
                                 .summary = "explain the command, or one verb",
                                 HELP(help),
                                 .fields = fields,
                                 .no_store = true,
                                 .run = run};
