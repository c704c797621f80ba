#include "tools/cli/fields.h"
#include "tools/cli/open.h"
#include "tools/cli/out.h"

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
        say("%s: %s", what->name, what->error->message);
    } else if (vacuum->args->json) {
        fputs("{\"database\":", stdout);
        out_json_string(annal_slice_of(what->name));
        printf(",\"bytes_before\":%" PRIu64 ",\"bytes_after\":%" PRIu64 "}\n", what->bytes_before,
               what->bytes_after);
    } else {
        printf("%s: %s, now %s%s\n", what->name, human_bytes(before, what->bytes_before),
               human_bytes(after, what->bytes_after),
               what->busy ? " (somebody reads: its WAL stays for a while)" : "");
    }
    return 0;
}

static int run(const struct args *args)
{
    struct vacuum vacuum = {.args = args};
    annal_error err = {0};
    annal_store *store = NULL;
    annal_index *index = NULL;
    int exit_status = store_open(args, OPEN_WRITE, 0, &store);
    if (exit_status == 0 && annal_index_open(store, NULL, &index, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0 && annal_index_vacuum(index, print_one, &vacuum, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0 && vacuum.failed)
        exit_status = EXIT_STORAGE;
    annal_index_close(index);
    return store_close(store, exit_status);
}

const struct command cmd_vacuum = {
    .name = "vacuum",
    .summary = "rewrite the databases without their free pages",
    .about = "Runs VACUUM on sessions.db and on the databases of the packs that are on, which\n"
             "gives back the space of rows that are gone, for instance after 'annal prune'.\n"
             "Appends and readers go on; catching up waits until it is done. It needs as much\n"
             "space again while it runs.",
    .examples = "  annal vacuum\n",
    .run = run};
