#include "tools/args.h"

#include <stdio.h>
#include <string.h>

static void print_options(const struct option *options)
{
    for (; options != NULL && options->name != NULL; options++) {
        char left[40];
        snprintf(left, sizeof left, "--%s%s%s%s", options->name, options->value ? " " : "",
                 options->value ? options->value : "", options->repeatable ? " ..." : "");
        printf("  %-22s %s\n", left, options->help);
    }
}

void help_print_command(const struct command *command)
{
    bool options = !command->no_store || command->options != NULL;
    printf("annal %s: %s\n\n", command->name, command->summary);
    printf("usage: annal %s%s%s%s\n\n", command->name, options ? " [options]" : "",
           command->operands[0] ? " " : "", command->operands);
    printf("%s\n\n", command->about);
    if (options)
        printf("options:\n");
    print_options(command->options);
    if (!command->no_store)
        print_options(args_common);
    printf("%sexamples:\n%s", options ? "\n" : "", command->examples);
}

void help_print_all(void)
{
    printf("annal: an event store for AI-agent sessions\n\n"
           "usage: annal [--store DIR] [--json] VERB [options]\n\n");
    for (int i = 0; commands[i] != NULL; i++)
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
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
    const struct command *command = command_find(args->operands[0]);
    if (command == NULL)
        return args_fail_verb(args->operands[0]);
    help_print_command(command);
    return EXIT_DONE;
}

const struct command cmd_help = {
    .name = "help",
    .operands = "[VERB]",
    .operands_max = 1,
    .summary = "explain the command, or one verb",
    .about = "Without VERB: lists the verbs. 'annal VERB --help' is the same as 'annal help\n"
             "VERB'.",
    .examples = "  annal help\n  annal help append\n",
    .no_store = true,
    .run = run};
