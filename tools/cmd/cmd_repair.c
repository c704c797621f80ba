/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"

#include <annal/journal.h>

#include <inttypes.h>

struct repair {
    const struct args *args;
    annal_slice session;
    annal_slice to; /* id of the new session; empty: only print the gaps */
    annal_format format;
    annal_store *store;
};

static void print_gap_json(const struct repair *repair, const annal_gap *gap)
{
    out_json("{\"session_id\":\"#\",\"first_seq\":#,\"last_seq\":#,\"offset\":#,\"bytes\":#,"
             "\"why\":?}\n",
             repair->session, JSON_U64(gap->first_seq),
             gap->last_seq == 0 ? ANNAL_SLICE("null") : JSON_U64(gap->last_seq),
             JSON_U64(gap->offset), JSON_U64(gap->bytes), annal_slice_of(gap->what));
}

static void print_gap(void *arg, const annal_gap *gap)
{
    const struct repair *repair = arg;
    char bytes[HUMAN_BYTES];
    if (repair->args->json) {
        print_gap_json(repair, gap);
        return;
    }
    printf("%.*s: ", ANNAL_FMT(repair->session));
    if (gap->last_seq == 0)
        printf("from event %" PRIu64 " on, an unknown number", gap->first_seq);
    else if (gap->last_seq == gap->first_seq)
        printf("event %" PRIu64, gap->first_seq);
    else
        printf("events %" PRIu64 " to %" PRIu64, gap->first_seq, gap->last_seq);
    printf(": lost with %s at byte %" PRIu64 ": %s\n", human_bytes(bytes, gap->bytes), gap->offset,
           gap->what);
}

static void print_summary_json(const struct repair *repair, const annal_repair_result *result)
{
    out_json("{\"session_id\":\"#\",\"to\":!", repair->session,
             repair->to.len == 0 ? (annal_slice){0} : repair->to);
    printf(",\"events\":%" PRIu64 ",\"gaps\":%" PRIu64 ",\"gap_events\":%" PRIu64
           ",\"lost_bytes\":%" PRIu64 ",\"mended\":%" PRIu64 ",\"doubled\":%" PRIu64
           ",\"torn_bytes\":%" PRIu64 ",\"last_seq\":%" PRIu64 "}\n",
           result->events, result->gaps, result->gap_events, result->lost_bytes, result->mended,
           result->doubled, result->torn_bytes, result->last_seq);
}

static void print_summary(const struct repair *repair, const annal_repair_result *result)
{
    char text[HUMAN_BYTES], places[HUMAN_BYTES];
    bool dry = repair->to.len == 0;
    if (repair->args->json) {
        print_summary_json(repair, result);
        return;
    }
    if (dry)
        printf("would copy ");
    else
        printf("copied ");
    printf("%s event%s", human_count(text, result->events), result->events == 1 ? "" : "s");
    if (!dry)
        printf(" to session %.*s", ANNAL_FMT(repair->to));
    if (result->gaps == 0)
        printf(": all of them\n");
    else
        printf("; %s gap event%s in %s place%s\n", human_count(text, result->gap_events),
               result->gap_events == 1 ? "" : "s", human_count(places, result->gaps),
               result->gaps == 1 ? "" : "s");
    if (result->mended > 0)
        printf("mended: %s place%s where only a hash, a newline or the header was damaged\n",
               human_count(text, result->mended), result->mended == 1 ? "" : "s");
    if (result->doubled > 0)
        printf("skipped: %s events that were stored twice\n", human_count(text, result->doubled));
    if (result->torn_bytes > 0)
        printf("left out: %s at the end, a piece of an event that was never acknowledged\n",
               human_bytes(text, result->torn_bytes));
}

static int read_options(struct repair *repair)
{
    const struct args *args = repair->args;
    repair->to = fields_text(args, "to");
    fields_journal_format(args, &repair->format);
    if (!args_has(args, "to") && !args_has(args, "dry-run"))
        return fail_usage("repair needs --to NEW, the session to copy into, or --dry-run");
    return 0;
}

static int run(const struct args *args)
{
    struct repair repair = {.args = args};
    annal_repair_result result;
    annal_error err = {0};
    int exit_status = read_options(&repair);
    if (exit_status == 0)
        exit_status =
            store_open(args, repair.to.len > 0 ? OPEN_WRITE : OPEN_READ, 0, &repair.store);
    if (exit_status != 0)
        return store_close(repair.store, exit_status);
    repair.session = fields_text(args, "SESSION");
    if (annal_session_repair(repair.store, repair.session, repair.to,
                             &(annal_repair_options){.format = repair.format}, print_gap, &repair,
                             &result, &err) < 0) {
        exit_status = fail_error(&err);
    } else {
        print_summary(&repair, &result);
        exit_status = result.gaps > 0 ? EXIT_REFUSED : EXIT_DONE;
    }
    return store_close(repair.store, exit_status);
}

static const struct field fields[] = {
    OPERAND("SESSION", FIELD_SESSION, NULL, "the session"),
    OPTION("to", "NEW", FIELD_ID, NULL, "session to create; it must not exist"),
    OPTION_WITH("format", "FORMAT", FIELD_CHOICE, NULL, "format of NEW (default: as SESSION)",
                .choices = JOURNAL_FORMATS),
    OPTION_WITH("dry-run", NULL, FIELD_FLAG, NULL, "print what would be copied, write nothing",
                .without = "to"),
    FIELDS_END};

const struct command cmd_repair = {COMMAND(
    "repair", "copy the sound events of a damaged session to a new session", repair, fields, run)};
