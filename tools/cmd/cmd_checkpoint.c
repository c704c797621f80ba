#include "tools/cli/args.h"
#include "tools/cli/open.h"
#include "tools/cli/out.h"

#include <annal/index.h>

#include <inttypes.h>
#include <string.h>
#include <strings.h>

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
        say("%s: %s", what->name, what->error->message);
    } else if (checkpoint->args->json) {
        fputs("{\"database\":", stdout);
        out_json_string(annal_slice_of(what->name));
        printf(",\"busy\":%d,\"log\":%" PRId64 ",\"checkpointed\":%" PRId64
               ",\"bytes_before\":%" PRIu64 ",\"bytes_after\":%" PRIu64 "}\n",
               what->busy ? 1 : 0, what->log_pages, what->checkpointed, what->bytes_before,
               what->bytes_after);
    } else if (what->log_pages < 0 && !what->busy) {
        printf("%s: has no WAL\n", what->name);
    } else {
        printf("%s: busy=%d, log=%" PRId64 ", checkpointed=%" PRId64 "; %s, now %s\n", what->name,
               what->busy ? 1 : 0, what->log_pages, what->checkpointed,
               human_bytes(before, what->bytes_before), human_bytes(after, what->bytes_after));
    }
    return 0;
}

static int read_mode(const struct args *args, annal_wal_mode *out)
{
    static const struct {
        const char *name;
        annal_wal_mode mode;
    } modes[] = {{"TRUNCATE", ANNAL_WAL_TRUNCATE},
                 {"PASSIVE", ANNAL_WAL_PASSIVE},
                 {"FULL", ANNAL_WAL_FULL},
                 {"RESTART", ANNAL_WAL_RESTART}};
    const char *name = args_get(args, "mode");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (name == NULL || strcasecmp(name, modes[i].name) == 0) {
            *out = modes[i].mode;
            return 0;
        }
    return fail_usage("--mode is TRUNCATE, PASSIVE, RESTART or FULL, not '%s'", name);
}

static int run(const struct args *args)
{
    struct checkpoint checkpoint = {.args = args};
    annal_wal_mode mode = ANNAL_WAL_TRUNCATE;
    annal_error err = {0};
    annal_store *store = NULL;
    annal_index *index = NULL;
    int exit_status = read_mode(args, &mode);
    if (exit_status == 0)
        exit_status = store_open(args, OPEN_WRITE, 0, &store);
    if (exit_status == 0 && annal_index_open(store, NULL, &index, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0 &&
        annal_index_wal_checkpoint(index, mode, print_one, &checkpoint, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0 && checkpoint.failed)
        exit_status = EXIT_STORAGE;
    annal_index_close(index);
    return store_close(store, exit_status);
}

static const struct option options[] = {
    {"mode", "MODE", "TRUNCATE (default), PASSIVE, RESTART or FULL", false},
    {NULL, NULL, NULL, false}};

const struct command cmd_checkpoint = {
    .name = "checkpoint",
    .operands = "",
    .summary = "move the WAL of each database into it",
    .about = "Runs PRAGMA wal_checkpoint on sessions.db and on the databases of the packs that\n"
             "are on, and prints what SQLite answers: busy (a reader was in the way), how many\n"
             "pages the log has, and how many of them are in the database now. TRUNCATE makes\n"
             "the -wal file empty when nobody reads.\n"
             "\n"
             "Only this command and the writers of Annal may checkpoint, under a lock: in\n"
             "SQLite before 3.51.3 two connections that write and checkpoint at once can\n"
             "corrupt the file. So do not run that PRAGMA in another program.",
    .examples = "  annal checkpoint\n  annal checkpoint --mode PASSIVE --json\n",
    .options = options,
    .run = run};
