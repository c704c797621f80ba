#include "tools/args.h"
#include "tools/verbs.h"

#include <stdio.h>
#include <string.h>

static void print_option(const struct option *option)
{
    char left[40];
    snprintf(left, sizeof left, "--%s%s%s%s", option->name, option->value ? " " : "",
             option->value ? option->value : "", option->repeatable ? " ..." : "");
    printf("  %-22s %s\n", left, option->help);
}

/* "TEAM [TEXT]", and the options that must be given: "--from NAME". */
static void print_fields(const struct field *field)
{
    for (; field != NULL && field->kind != FIELD_END; field++) {
        const struct option *option = &field->option;
        if (option->name != NULL && field->required)
            printf(" --%s %s", option->name, option->value);
        else if (option->name == NULL && option->value != NULL)
            printf(field->required ? " %s%s" : " [%s%s]", option->value,
                   field->kind == FIELD_LIST ? "..." : "");
    }
}

static void print_operands(const struct field *field)
{
    const char *head = "operands:\n", *tail = "";
    for (; field != NULL && field->kind != FIELD_END; field++) {
        const struct option *option = &field->option;
        if (option->name == NULL && option->value != NULL) {
            printf("%s  %-22s %s\n", head, option->value, option->help);
            head = "";
            tail = "\n";
        }
    }
    printf("%s", tail);
}

void help_print_command(const struct group *group, const struct command *command)
{
    int at = 0;
    const char *name = group ? group->name : "";
    const char *space = group ? " " : "";
    const struct option *option = command_option(command, &at);
    bool options = !command->no_store || option != NULL;
    printf("annal %s%s%s: %s\n\n", name, space, command->name, command->summary);
    printf("usage: annal %s%s%s%s", name, space, command->name, options ? " [options]" : "");
    if (command->operands != NULL && command->operands[0] != '\0')
        printf(" %s", command->operands);
    print_fields(command->fields);
    printf("\n\n");
    if (command->about != NULL)
        printf("%s\n\n", command->about);
    print_operands(command->fields);
    if (options)
        printf("options:\n");
    for (; option != NULL; option = command_option(command, &at))
        print_option(option);
    for (option = args_common; !command->no_store && option->name != NULL; option++)
        print_option(option);
    printf("%sexamples:\n%s", options ? "\n" : "", command->examples);
}

void help_print_group(const struct group *group)
{
    printf("annal %s: %s\n\nusage: annal %s VERB [options]\n\n", group->name, group->summary,
           group->name);
    for (const struct command *verb = group->verbs; verb->name != NULL; verb++)
        printf("  %-14s %s\n", verb->name, verb->summary);
    if (group->pack != NULL)
        printf("\nThe store runs the pack %s: 'annal pack enable %s'.\n", group->pack, group->pack);
    printf("\n'annal help %s VERB' tells more.\n", group->name);
}

void help_print_all(void)
{
    printf("annal: an event store for AI-agent sessions\n\n"
           "usage: annal [--store DIR] [--json] VERB [options]\n\n");
    for (int i = 0; commands[i] != NULL; i++)
        printf("  %-11s %s\n", commands[i]->name, commands[i]->summary);
    for (int i = 0; groups[i] != NULL; i++)
        printf("%s  %-11s %s\n", i == 0 ? "\nwith a second verb ('annal help pack'):\n" : "",
               groups[i]->name, groups[i]->summary);
    printf("\nThe store is --store DIR, else $ANNAL_STORE, else $XDG_DATA_HOME/annal, else\n"
           "~/.local/share/annal. Data goes to standard output, everything else to\n"
           "standard error.\n\n"
           "exit status: 0 done; 1 refused, or the answer is no; 2 wrong usage;\n"
           "3 the store or the system failed, or there is no store\n\n"
           "'annal help VERB' tells more.\n");
}

static int run(const struct args *args)
{
    if (args->operand_count == 0) {
        help_print_all();
        return EXIT_DONE;
    }
    const char *name = args->operands[0];
    const struct command *command = command_find(name);
    const struct group *group = command == NULL ? group_find(name) : NULL;
    if (command == NULL && group == NULL)
        return args_fail_verb(NULL, name);
    if (command != NULL && args->operand_count > 1)
        return fail_usage("annal %s has no verbs of its own: 'annal help %s' explains it", name,
                          name);
    if (group != NULL && args->operand_count == 1) {
        help_print_group(group);
        return EXIT_DONE;
    }
    if (group != NULL)
        command = group_verb(group, args->operands[1]);
    if (command == NULL)
        return args_fail_verb(group, args->operands[1]);
    help_print_command(group, command);
    return EXIT_DONE;
}

const struct command cmd_help = {
    .name = "help",
    .operands = "[VERB [VERB]]",
    .operands_max = 2,
    .summary = "explain the command, or one verb",
    .about = "Without VERB: lists the verbs. 'annal VERB --help' is the same as 'annal help\n"
             "VERB'. Some verbs are of two words.",
    .examples = "  annal help\n  annal help append\n  annal help team send\n",
    .no_store = true,
    .run = run};
