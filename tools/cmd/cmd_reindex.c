/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/clock.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/progress.h"
#include "tools/cli/store_open.h"

#include <annal/index.h>

#include <inttypes.h>

struct reindex {
    struct progress line;
    annal_index_progress last;
};

static int show(void *arg, const annal_index_progress *progress)
{
    struct reindex *reindex = arg;
    reindex->last = *progress;
    reindex->line.total = progress->bytes_total;
    progress_set(&reindex->line, progress->bytes_done, NULL);
    return 0;
}

static int rebuild(const struct args *args, annal_index *index)
{
    annal_error err = {0};
    struct reindex reindex = {0};
    char events[HUMAN_BYTES], bytes[HUMAN_BYTES];
    int64_t begun_us = annal__clock_monotonic_us();
    progress_begin(&reindex.line, "index", 0);
    annal_status status = annal_index_rebuild(
        index, &(annal_catch_up_options){.progress = show, .arg = &reindex}, &err);
    progress_hide(&reindex.line);
    if (status < 0)
        return fail_error(&err);
    double seconds = (double)(annal__clock_monotonic_us() - begun_us) / 1e6;
    if (args->json)
        printf("{\"events\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"seconds\":%.3f}\n",
               reindex.last.events, reindex.last.bytes_total, seconds);
    else
        printf("indexed %s events, %s, in %.2f s\n", human_count(events, reindex.last.events),
               human_bytes(bytes, reindex.last.bytes_total), seconds);
    return EXIT_DONE;
}

static int run(const struct args *args)
{
    return store_with_index(args, OPEN_WRITE, rebuild);
}

const struct command cmd_reindex = {
    .name = "reindex", .summary = "rebuild the index from the journals", HELP(reindex), .run = run};
