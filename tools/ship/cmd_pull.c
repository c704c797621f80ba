/* SPDX-License-Identifier: Apache-2.0 */
/* The verb annal pull. */
#include "tools/cli/command.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"
#include "tools/ship/pull.h"
#include "tools/ship/remote.h"

enum { TIMEOUT_S = 30 };

static int run_remote(const struct args *args)
{
    struct remote_where where;
    if (args_has(args, "tree"))
        return fail_usage(
            "--tree needs a database or a lake as the source: a server sends one session");
    int exit_status = push_where_read(args, args_get(args, "from"), &where);
    return exit_status != 0 ? exit_status : push_pull_remote(args, &where);
}

static int run(const struct args *args)
{
    struct pull_options options = {
        .from = {.url = args_get(args, "from"),
                 .store = args_get(args, "store-name"),
                 .quiet_ms = (uint32_t)fields_count(args, "timeout", TIMEOUT_S) * 1000},
        .session = args_get(args, "SESSION"),
        .tree = args_has(args, "tree"),
        .json = args->json};
    annal_store *store = NULL;
    if (options.from.url == NULL)
        return fail_usage(
            "--from is missing: name the target to which the session was shipped, or a server");
    if (push_is_url(options.from.url))
        return run_remote(args);
    int exit_status = ship_find_kind(options.from.url, &options.kind);
    if (exit_status == 0 && options.kind->source == NULL)
        return fail_refused(
            "sessions cannot be pulled from a stream: a stream contains events, but no journals");
    if (exit_status == 0)
        exit_status = store_open(args, OPEN_CREATE, 0, &store);
    if (exit_status == 0)
        exit_status = pull_run(store, &options);
    return store_close(store, out_finish(exit_status));
}

static const struct field fields[] = {
    OPERAND("SESSION", FIELD_ID, NULL, "session to pull"),
    OPTION("from", "TARGET", FIELD_TEXT, NULL,
           "postgresql://, file:///, s3:// or https:// address"),
    OPTION("store-name", "NAME", FIELD_TEXT, NULL, "store that shipped the session (the last one)"),
    FLAG("tree", NULL, "also pull its sub-agents and forks, and theirs"),
    REMOTE_OPTIONS,
    CREATE_OPTION,
    FIELDS_END};

const struct command cmd_pull = {
    COMMAND("pull", "copy a session from a target or a server into this store", pull, fields, run),
};
