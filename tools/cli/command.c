/* SPDX-License-Identifier: Apache-2.0 */
/* Run the verb of the command line, or print help. Returns an exit status. */
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
    /* so that wcwidth(3) knows UTF-8 in every locale; events are UTF-8 */
    setlocale(LC_CTYPE, "C.UTF-8");
    /* even if the reader of the output is gone, the store must be closed */
    signal(SIGPIPE, SIG_IGN);
    /* a write beyond the size limit then fails as if the disk were full */
    signal(SIGXFSZ, SIG_IGN);
    out_open();
    int exit_status = args_parse(&args, argc, argv);
    if (exit_status == 0)
        exit_status = dispatch(&args);
    exit_status = out_finish(exit_status);
    args_done(&args);
    return exit_status;
}
