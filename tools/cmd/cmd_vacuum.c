/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"

#include <annal/index.h>

#include <inttypes.h>

struct vacuum {
    const struct args *args;
    bool failed;
};

static int print_one(void *arg, const annal_maintenance *what)
{
    struct vacuum *vacuum = arg;
    char before[HUMAN_BYTES], after[HUMAN_BYTES];
    if (!what->done) {
        vacuum->failed = true;
        say("vacuum database %s: %s", what->name, what->error->message);
    } else if (vacuum->args->json) {
        out_json("{\"database\":?,\"bytes_before\":#,\"bytes_after\":#}\n",
                 annal_slice_of(what->name), JSON_U64(what->bytes_before),
                 JSON_U64(what->bytes_after));
    } else {
        printf("%s: %s, now %s%s\n", what->name, human_bytes(before, what->bytes_before),
               human_bytes(after, what->bytes_after),
               what->busy ? " (another process reads: its WAL stays for a while)" : "");
    }
    return 0;
}

static int vacuum_all(const struct args *args, annal_index *index)
{
    struct vacuum vacuum = {.args = args};
    annal_error err = {0};
    if (annal_index_vacuum(index, print_one, &vacuum, &err) < 0)
        return fail_error(&err);
    return vacuum.failed ? EXIT_STORAGE : EXIT_DONE;
}

static int run(const struct args *args)
{
    return store_with_index(args, OPEN_WRITE, vacuum_all);
}

const struct command cmd_vacuum = {.name = "vacuum",
                                   .summary = "rewrite the databases without their free pages",
                                   HELP(vacuum),
                                   .run = run};
