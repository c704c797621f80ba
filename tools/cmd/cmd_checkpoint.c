/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"

#include <annal/index.h>

#include <inttypes.h>

struct checkpoint {
    const struct args *args;
    bool failed;
};

static int print_one(void *arg, const annal_maintenance *what)
{
    struct checkpoint *checkpoint = arg;
    char before[HUMAN_BYTES], after[HUMAN_BYTES];
    if (!what->done) {
        checkpoint->failed = true;
        say("checkpoint database %s: %s", what->name, what->error->message);
    } else if (checkpoint->args->json) {
        out_json("{\"database\":?,\"busy\":#,\"log\":#,\"checkpointed\":#,\"bytes_before\":#,"
                 "\"bytes_after\":#}\n",
                 annal_slice_of(what->name), JSON_I64(what->busy ? 1 : 0),
                 JSON_I64(what->log_pages), JSON_I64(what->checkpointed),
                 JSON_U64(what->bytes_before), JSON_U64(what->bytes_after));
    } else if (what->log_pages < 0 && !what->busy) {
        printf("%s: has no WAL\n", what->name);
    } else {
        printf("%s: busy=%d, log=%" PRId64 ", checkpointed=%" PRId64 "; %s, now %s\n", what->name,
               what->busy ? 1 : 0, what->log_pages, what->checkpointed,
               human_bytes(before, what->bytes_before), human_bytes(after, what->bytes_after));
    }
    return 0;
}

static int checkpoint_all(const struct args *args, annal_index *index)
{
    struct checkpoint checkpoint = {.args = args};
    static const annal_wal_mode modes[] = {ANNAL_WAL_TRUNCATE, ANNAL_WAL_PASSIVE, ANNAL_WAL_FULL,
                                           ANNAL_WAL_RESTART};
    int choice = fields_choice(args, "mode");
    annal_wal_mode mode = modes[choice < 0 ? 0 : choice];
    annal_error err = {0};
    if (annal_index_wal_checkpoint(index, mode, print_one, &checkpoint, &err) < 0)
        return fail_error(&err);
    return checkpoint.failed ? EXIT_STORAGE : EXIT_DONE;
}

static int run(const struct args *args)
{
    return store_with_index(args, OPEN_WRITE, checkpoint_all);
}

static const struct field fields[] = {OPTION_WITH("mode", "MODE", FIELD_CHOICE, NULL,
                                                  "mode of PRAGMA wal_checkpoint (TRUNCATE)",
                                                  .choices = "TRUNCATE|PASSIVE|FULL|RESTART"),
                                      FIELDS_END};

const struct command cmd_checkpoint = {COMMAND(
    "checkpoint", "move the WAL of each database into the database", checkpoint, fields, run)};
