/* SPDX-License-Identifier: Apache-2.0 */
/* Runs annal project export and import, which write a project's memory to files and read proposals
 * from them. */
#include "tools/cli/must.h"
#include "tools/cli/verbs.h"
#include "tools/verbs/agentweaver.h"

#include <annal/packs/mirror.h>

#include <inttypes.h>

static int print_file(void *arg, const annal_mirror_file *file)
{
    const struct verb_call *call = arg;
    if (!call->args->json)
        return 0;
    out_json("{\"#\":?}\n", annal_slice_of(file->deleted ? "deleted" : "written"),
             annal_slice_of(file->path));
    return 0;
}

int verbs_mirror_export(const struct args *args)
{
    struct verb_call call;
    annal_mirror_counts counts = {0};
    annal_error err = {0};
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = verb_need_pack(&call, "memory");
    if (exit_status == 0 &&
        annal_mirror_export(call.index, annal_slice_of(args_get(args, "PROJECT")),
                            args_get(args, "DIR"), print_file, &call, &counts, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0 && !args->json)
        printf("%" PRIu64 " files written, %" PRIu64 " deleted, %" PRIu64 " unchanged\n",
               counts.written, counts.deleted, counts.unchanged);
    return verb_close(&call, exit_status);
}

static int print_proposal(void *arg, const annal_mirror_proposal *proposal)
{
    struct verb_call *call = arg;
    switch (proposal->outcome) {
    case ANNAL_MIRROR_TAKEN:
        call->seq = proposal->seq;
        call->data = proposal->data;
        if (call->args->json)
            verb_print(call);
        call->data = (annal_slice){0};
        break;
    case ANNAL_MIRROR_REFUSED:
        say("the proposal '%.*s' in the inbox is refused: %s", ANNAL_FMT(proposal->slug),
            proposal->message);
        break;
    case ANNAL_MIRROR_UNREADABLE:
        say("the file '%s' in the inbox is left out: %s", proposal->file, proposal->message);
        break;
    }
    return 0;
}

int verbs_mirror_import(const struct args *args)
{
    struct verb_call call;
    annal_mirror_imported imported = {0};
    annal_error err = {0};
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = verb_need_pack(&call, "memory");
    if (exit_status == 0 && args_has(args, "event-id"))
        exit_status = fail_usage("--event-id names one event, but this verb may append several");
    if (exit_status == 0)
        exit_status = verb_set_session(&call, "proj_%s", args_get(args, "PROJECT"));
    const annal_mirror_import_options options = {.cause = annal_slice_of(args_get(args, "cause")),
                                                 .wait_ms = call.wait_ms};
    if (exit_status == 0 &&
        annal_mirror_import(call.index, annal_slice_of(args_get(args, "PROJECT")),
                            args_get(args, "DIR"), &options, print_proposal, &call, &imported,
                            &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0 && !args->json)
        printf("%" PRIu64 " proposals read from %" PRIu64 " files\n", imported.taken,
               imported.files);
    return verb_close(&call, exit_status);
}
