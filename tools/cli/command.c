/* SPDX-License-Identifier: Apache-2.0 */
/* Find the verb, run it, and return its exit status. */
#include "tools/cli/command.h"
#include "tools/cli/args.h"
#include "tools/cli/out.h"
#include "tools/cli/verbs.h"

#include <locale.h>
#include <signal.h>

static int dispatch(const struct args *args)
{
    if (args->command == NULL && args->noun == NULL && args->version)
        return cmd_version.run(args);
    if (args->command == NULL && args->help) {
        if (args->noun != NULL)
            help_print_noun(args->noun);
        else
            help_print_all();
        return EXIT_DONE;
    }
    if (args->command == NULL && args->noun != NULL)
        return fail_usage("a verb is missing: 'annal help %s' lists the verbs of %s",
                          args->noun->name, args->noun->name);
    if (args->command == NULL)
        return fail_usage("a verb is missing: 'annal help' lists the verbs");
    if (args->help) {
        help_print_command(args->noun, args->command);
        return EXIT_DONE;
    }
    return args->command->run(args);
}

int command_main(int argc, char **argv)
{
    struct args args = {0};
    setlocale(LC_CTYPE, "C.UTF-8"); /* for wcwidth(3); journals are UTF-8 in every locale */
    signal(SIGPIPE, SIG_IGN);       /* if the reader is gone, the store must still be closed */
    signal(SIGXFSZ, SIG_IGN);       /* a write then reports that there is no space */
    out_open();
    int exit_status = args_parse(&args, argc, argv);
    if (exit_status == 0)
        exit_status = dispatch(&args);
    exit_status = out_finish(exit_status);
    args_done(&args);
    return exit_status;
}
