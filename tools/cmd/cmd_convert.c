/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/progress.h"
#include "tools/cli/store_open.h"

#include <annal/snapshot.h>

#include <inttypes.h>

static const struct field fields[] = {OPERAND("SESSION", FIELD_SESSIONS, NULL, "the sessions"),
                                      OPTION_WITH("format", "FORMAT", FIELD_CHOICE, NULL,
                                                  "format of the new journal", .required = true,
                                                  .choices = JOURNAL_FORMATS),
                                      FIELDS_END};

struct convert {
    const struct args *args;
    annal_store *store;
    annal_index *index; /* NULL until a session was converted */
    annal_format format;
    struct progress progress;
    const char *session;
};

static int show(void *arg, uint64_t bytes_done, uint64_t bytes_total)
{
    struct convert *convert = arg;
    convert->progress.total = bytes_total;
    progress_set(&convert->progress, bytes_done, convert->session);
    return 0;
}

static void print_result(const struct convert *convert, const annal_convert_result *result)
{
    const char *format = convert->format == ANNAL_FORMAT_JSON ? "jsonl" : "msgpack";
    char events[HUMAN_BYTES], before[HUMAN_BYTES], after[HUMAN_BYTES];
    if (convert->args->json)
        printf("{\"session_id\":\"%s\",\"format\":\"%s\",\"events_compared\":%" PRIu64
               ",\"bytes_before\":%" PRIu64 ",\"bytes_after\":%" PRIu64 "}\n",
               convert->session, format, result->events, result->bytes_before, result->bytes_after);
    else if (result->events == 0 && result->bytes_before == result->bytes_after)
        printf("%s is %s already\n", convert->session, format);
    else
        printf("converted %s to %s: %s event%s compared, all the same; %s before, %s after\n",
               convert->session, format, human_count(events, result->events),
               result->events == 1 ? "" : "s", human_bytes(before, result->bytes_before),
               human_bytes(after, result->bytes_after));
}

/* Drop the snapshots of a converted session and index its new journal. If that fails, the next
 * query does it. */
static void forget(struct convert *convert, annal_slice session)
{
    annal_error err = {0};
    if ((convert->index == NULL &&
         annal_index_open(convert->store, NULL, &convert->index, &err) < 0) ||
        annal_snapshot_drop(convert->index, session, &err) < 0 ||
        annal_index_catch_up(convert->index, session, NULL, &err) < 0)
        say("session '%.*s' is converted; the index of the session is updated later: %s",
            ANNAL_FMT(session), err.message);
}

static int convert_one(struct convert *convert)
{
    annal_error err = {0};
    annal_convert_result result;
    annal_slice session = annal_slice_of(convert->session);
    const annal_convert_options how = {.format = convert->format, .progress = show, .arg = convert};
    progress_begin(&convert->progress, "convert", 0);
    annal_status status = annal_session_convert(convert->store, session, &how, &result, &err);
    progress_hide(&convert->progress);
    if (status < 0)
        return fail_error(&err);
    print_result(convert, &result);
    (void)out_flush();
    if (result.events > 0)
        forget(convert, session);
    return EXIT_DONE;
}

static int run(const struct args *args)
{
    struct convert convert = {.args = args, .format = ANNAL_FORMAT_DEFAULT};
    fields_journal_format(args, &convert.format);
    int exit_status = store_open(args, OPEN_WRITE, 0, &convert.store);
    if (exit_status != 0)
        return exit_status;
    for (int i = 0; i < args->operand_count && exit_status != EXIT_STORAGE; i++) {
        convert.session = args->operands[i];
        int one = convert_one(&convert);
        exit_status = one > exit_status ? one : exit_status;
    }
    annal_index_close(convert.index);
    return out_finish(store_close(convert.store, exit_status));
}

const struct command cmd_convert = {
    COMMAND("convert", "convert the journals of sessions to another format", convert, fields, run)};
