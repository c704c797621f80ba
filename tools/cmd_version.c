#include "tools/args.h"

#include <stdio.h>

static int run(const struct args *args)
{
    if (args->json)
        printf("{\"version\":\"%s\"}\n", annal_version());
    else
        printf("annal %s\n", annal_version());
    return EXIT_DONE;
}

const struct command cmd_version = {
    .name = "version",
    .operands = "",
    .summary = "print the version",
    .about = "Prints the version of the command and of the library in it.",
    .examples = "  annal version\n",
    .run = run};
