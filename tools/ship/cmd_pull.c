/* SPDX-License-Identifier: Apache-2.0 */
/* annal pull: the verb. */
#include "tools/cli/command.h"
#include "tools/cli/fields.h"
#include "tools/cli/open.h"
#include "tools/cli/out.h"
#include "tools/ship/pull.h"
#include "tools/ship/remote.h"

enum { TIMEOUT_S = 30 };

static int run_remote(const struct args *args)
{
    struct remote_where where;
    if (args_has(args, "tree"))
        return fail_usage("--tree is for a database or a lake: a server gives one session");
    int exit_status = remote_where_read(args, args_get(args, "from"), &where);
    return exit_status != 0 ? exit_status : pull_remote(args, &where);
}

static int run(const struct args *args)
{
    struct pull_options options = {
        .from = {.url = args_get(args, "from"),
                 .store = args_get(args, "store-name"),
                 .quiet_ms = (uint32_t)args_count(args, "timeout", TIMEOUT_S) * 1000},
        .session = args_get(args, "SESSION"),
        .tree = args_has(args, "tree"),
        .json = args->json};
    annal_store *store = NULL;
    if (options.from.url == NULL)
        return fail_usage("--from is missing: where was the session shipped to?");
    if (remote_is_url(options.from.url))
        return run_remote(args);
    int exit_status = ship_find_kind(options.from.url, &options.kind);
    if (exit_status == 0 && options.kind->find == NULL)
        return fail_refused("sessions cannot be pulled from a stream: it has events, no journals");
    if (exit_status == 0)
        exit_status = store_open(args, OPEN_CREATE, 0, &store);
    if (exit_status == 0)
        exit_status = pull_run(store, &options);
    return store_close(store, out_finish(exit_status));
}

static const struct field fields[] = {
    OPERAND("SESSION", FIELD_ID, NULL, "the session"),
    OPTION("from", "TARGET", FIELD_TEXT, NULL,
           "postgresql://, file:///, s3:// or https:// address"),
    OPTION("store-name", "NAME", FIELD_TEXT, NULL,
           "the store that shipped it (the one that did so last)"),
    FLAG("tree", NULL, "also its sub-agents and forks, and theirs"),
    REMOTE_OPTIONS,
    CREATE_OPTION,
    FIELDS_END};

const struct command cmd_pull = {
    .name = "pull",
    .summary = "bring a session from where it was shipped, or from a server",
    .about = "The session gets its own journal again, byte for byte, under its own id, and\n"
             "goes on here. Every event is proved: its hash, which depends on all events\n"
             "before it, must be the one that it had, up to the last event that the target\n"
             "has. A fork comes with those that it was forked from.\n"
             "\n"
             "It takes its place whole. Until then nothing of it is in the store, and a\n"
             "session that is here with another history stays as it is; the exit status is\n"
             "then 1. What is here already is not sent again: pull again to get what was\n"
             "shipped since, or after an interruption. Appends on two hosts make two\n"
             "histories, so be sure that the old host has stopped.\n"
             "\n"
             "A lake (file:///, s3://) needs --store-name, and DuckDB's library to read its\n"
             "files; with --tree it reads all of them. From a server (annal serve) it comes as\n"
             "a bundle, with its artifacts.\n"
             "\n"
             "With --json {\"session_id\", \"store\", \"seq\", \"h\", \"sessions\", \"events\",\n"
             "\"added\", \"extended\", \"already_there\", \"missing_artifacts\"}; events are\n"
             "those that came. From a server: what 'annal import bundle --json' prints.",
    .examples = "  annal pull run-17 --from postgresql://db.example/fleet\n"
                "  annal pull run-17 --from postgresql://db.example/fleet --store-name host7\n"
                "  annal pull run-17 --from postgresql://db.example/fleet --tree\n"
                "  annal pull run-17 --from s3://bucket/lake --store-name host7\n"
                "  annal pull run-17 --from https://host7:7117 --token-file host7.token\n",
    .fields = fields,
    .run = run,
};
