/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"

#include <inttypes.h>

/* Index the new session now. If that fails, the next query indexes it. */
static void tell_index(annal_store *store, annal_slice child)
{
    annal_index *index = NULL;
    annal_error err = {0};
    if (annal_index_open(store, NULL, &index, &err) < 0 ||
        annal_index_catch_up(index, child, NULL, &err) < 0)
        say("session '%.*s' is created; the index of the session is updated later: %s",
            ANNAL_FMT(child), err.message);
    annal_index_close(index);
}

static void print_fork(const struct args *args, annal_slice session, const annal_session_info *info)
{
    char at[HUMAN_BYTES];
    if (args->json)
        printf("{\"session_id\":\"%s\",\"parent_session_id\":\"%s\",\"forked_at_seq\":%" PRIu64
               ",\"format\":\"%s\"}\n",
               info->session, info->fork_session, info->fork_seq,
               info->format == ANNAL_FORMAT_JSON ? "jsonl" : "msgpack");
    else
        printf("%s is a fork of %.*s: %s event%s in common\n", info->session, ANNAL_FMT(session),
               human_count(at, info->fork_seq), info->fork_seq == 1 ? "" : "s");
}

static int run(const struct args *args)
{
    const annal_slice session = fields_text(args, "SESSION"), child = fields_text(args, "NEW");
    annal_fork_options how = {.format = ANNAL_FORMAT_DEFAULT};
    const uint64_t at_seq = fields_count(args, "at", ANNAL_FORK_LAST);
    annal_store *store = NULL;
    annal_error err = {0};
    annal_session_info info;
    fields_journal_format(args, &how.format);
    int exit_status = store_open(args, OPEN_WRITE, 0, &store);
    if (exit_status != 0)
        return exit_status;
    if (annal_session_fork(store, session, at_seq, child, &how, &info, &err) < 0) {
        exit_status = fail_error(&err);
    } else {
        print_fork(args, session, &info);
        (void)out_flush();
        tell_index(store, child);
    }
    return out_finish(store_close(store, exit_status));
}

static const struct field fields[] = {
    OPERAND("SESSION", FIELD_SESSION, NULL, "the session"),
    OPERAND("NEW", FIELD_ID, NULL, "the new session"),
    OPTION_WITH("at", "SEQ", FIELD_COUNT, NULL, "last shared event (default: the last event)",
                .least = 1),
    OPTION_WITH("format", "FORMAT", FIELD_CHOICE, NULL,
                "format of the new journal (default: as SESSION)", .choices = JOURNAL_FORMATS),
    FIELDS_END};

const struct command cmd_fork = {
    COMMAND("fork", "continue from any event of a session, in a new session", fork, fields, run)};
