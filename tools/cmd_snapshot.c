#include "tools/args.h"
#include "tools/open.h"
#include "tools/out.h"

#include <annal/snapshot.h>

#include <inttypes.h>
#include <stdio.h>

static void print_info(const struct args *args, annal_slice session,
                       const annal_snapshot_info *info)
{
    char bytes[HUMAN_BYTES], raw[HUMAN_BYTES];
    if (args->json)
        printf("{\"session_id\":\"%.*s\",\"seq\":%" PRIu64 ",\"bytes\":%" PRIu64
               ",\"raw_bytes\":%" PRIu64 ",\"base_seq\":%" PRIu64 "}\n",
               ANNAL_FMT(session), info->seq, info->bytes, info->raw_bytes, info->base_seq);
    else
        printf("%.*s: snapshot at seq %" PRIu64 ", %s stored, %s of state\n", ANNAL_FMT(session),
               info->seq, human_bytes(bytes, info->bytes), human_bytes(raw, info->raw_bytes));
}

static int run(const struct args *args)
{
    annal_slice session;
    annal_error err = {0};
    annal_snapshot_info info;
    annal_store *store = NULL;
    annal_index *index = NULL;
    int exit_status = args_session(args, 0, &session);
    if (exit_status == 0)
        exit_status = store_open(args, OPEN_WRITE, 0, &store);
    /* The state is folded from the journal: the index need not be caught up, only be writable. */
    if (exit_status == 0 && (annal_index_open(store, NULL, &index, &err) < 0 ||
                             annal_snapshot_take(index, session, NULL, &info, &err) < 0))
        exit_status = fail_error(&err);
    else if (exit_status == 0)
        print_info(args, session, &info);
    annal_index_close(index);
    return store_close(store, exit_status);
}

const struct command cmd_snapshot = {
    .name = "snapshot",
    .operands = "SESSION",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "take a snapshot of a session's state now",
    .about = "Stores the state of the session after its last event, compressed, so that a\n"
             "replay begins near it. Snapshots are taken by themselves, every 1,000 events,\n"
             "8 MiB or five minutes; they make answers quicker and never change one.",
    .examples = "  annal snapshot sess_1\n",
    .run = run};
