/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/alloc.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"
#include "tools/cmd/import_found.h"
#include "tools/import/watch_unit.h"

static int install(const struct args *args)
{
    annal_store *store;
    int exit_status = store_open(args, OPEN_CREATE, 0, &store);
    if (exit_status == EXIT_DONE)
        exit_status = store_close(store, EXIT_DONE);
    char *path = store_path(args);
    if (exit_status == EXIT_DONE)
        exit_status = path != NULL ? watch_unit_install(path)
                                   : fail_storage("install the unit of annal watch: out of memory");
    annal__free(path);
    return exit_status;
}

static int run(const struct args *args)
{
    if (args_has(args, "install"))
        return install(args);
    return args_has(args, "uninstall") ? watch_unit_uninstall() : import_found(args, true);
}

static const struct field fields[] = {
    FLAG("all-users", NULL, "logs in the home directories of all users too"),
    FLAG("again", NULL, "import deleted sessions too"),
    FLAG("no-copies", NULL, "keep no copies of the logs (see 'annal source')"),
    OPTION_WITH("install", NULL, FIELD_FLAG, NULL, "run it now and after each login, with systemd",
                .without = "uninstall"),
    FLAG("uninstall", NULL, "stop it, and remove its unit"),
    LIMIT_OPTIONS,
    OPTION_WITH("format", "FORMAT", FIELD_CHOICE, NULL, "format of new journals (jsonl)",
                .choices = JOURNAL_FORMATS),
    CREATE_OPTION,
    FIELDS_END};

const struct command cmd_watch = {
    COMMAND("watch", "import the logs of this machine's agents while they are written", watch,
            fields, run),
};
