/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/sessions.h"
#include "tools/cli/store_open.h"
#include "tools/ship/nats_tail.h"
#include "tools/show/event_line.h"
#include "tools/show/event_out.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"

#include <annal/tail.h>

#include <inttypes.h>
#include <string.h>

enum {
    LOOK_MS = 500,  /* interval in ms of the check whether the reader of the output is gone */
    LAST_USUAL = 10 /* number of events on a terminal, as in tail(1) */
};

#define COMMIT_US 1000000 /* interval between commits of the cursor, in us */

struct tailing {
    const struct args *args;
    annal_store *store;
    struct session_list list; /* without --follow: the sessions whose ends are checked */
    annal_slice *sessions;
    annal_slice *types;
    annal_tail_options options;
    annal_tail *tail;
    int64_t committed_us;
    bool for_people;
    struct event_lines lines;
};

/* Move the cursor after the printed events, if the output could be written: always if now is true,
 * else once per COMMIT_US. */
static int commit(struct tailing *tailing, bool now)
{
    annal_error err = {0};
    if (tailing->options.cursor.len == 0 ||
        (!now && annal__clock_monotonic_us() - tailing->committed_us < COMMIT_US) || !out_flush())
        return 0;
    tailing->committed_us = annal__clock_monotonic_us();
    return annal_tail_commit(tailing->tail, &err) < 0 ? fail_error(&err) : 0;
}

/* Return whether a failure concerns only the current session, and the tail follows several, so that
 * the others can be read. */
static bool is_of_one(const struct tailing *tailing, annal_status status)
{
    return tailing->options.session_count != 1 && annal_tail_session(tailing->tail).len > 0 &&
           (status == ANNAL_ERR_CORRUPT || status == ANNAL_ERR_UNSUPPORTED);
}

/* Read the next event or damage. ANNAL_END: all was read, the reader of the output is gone, or
 * *out_failed is set. */
static annal_status next(struct tailing *tailing, annal_event *out_event, int *out_failed,
                         annal_error *err)
{
    annal_status status = annal_tail_next(tailing->tail, 0, out_event, err);
    while (status == ANNAL_END) {
        if (!out_flush() || !args_has(tailing->args, "follow") || out_reader_is_gone())
            return ANNAL_END;
        *out_failed = commit(tailing, false);
        if (*out_failed != 0)
            return ANNAL_END;
        status = annal_tail_next(tailing->tail, LOOK_MS, out_event, err);
    }
    return status;
}

/* With --json, print an object in the place of damaged events, for programs that ignore
 * messages. */
static void print_damage(const struct tailing *tailing, annal_slice session,
                         const annal_damage *damage)
{
    if (!tailing->args->json)
        return;
    out_json("{\"session_id\":\"#\",\"seq\":#,\"damage\":{\"offset\":#,\"length\":#,\"event_lost\":"
             "#,\"what\":?}}\n",
             session, JSON_U64(damage->seq), JSON_U64(damage->offset), JSON_U64(damage->length),
             annal_slice_of(damage->event_lost ? "true" : "false"), annal_slice_of(damage->what));
}

/* Print the existing events; with --follow continue until the reader of the output is gone. Return
 * the exit status. */
static int print_events(struct tailing *tailing)
{
    annal_error err = {0};
    annal_event event;
    int exit_status = EXIT_DONE, failed = 0;
    while (failed == 0 && out_wanted()) {
        annal_status status = next(tailing, &event, &failed, &err);
        annal_slice session = annal_tail_session(tailing->tail);
        if (status == ANNAL_END)
            break;
        if (status < 0 && !is_of_one(tailing, status))
            return fail_error(&err);
        if (status < 0) {
            exit_status = fail_error(&err);
            print_damage(tailing, session,
                         &(annal_damage){.event_lost = true, .what = err.message});
        } else if (status == ANNAL_DAMAGE) {
            annal_damage damage = annal_tail_damage(tailing->tail);
            event_say_damage(session, &damage);
            print_damage(tailing, session, &damage);
            exit_status = EXIT_REFUSED;
        } else {
            if (tailing->for_people)
                event_line_print(&tailing->lines, session, &event);
            else
                event_print(&event, session);
            failed = commit(tailing, false);
        }
    }
    if (failed == 0 && out_wanted())
        failed = commit(tailing, true);
    return failed != 0 ? failed : exit_status;
}

/* ---- The command line ---- */

static int read_begin(struct tailing *tailing)
{
    const struct args *args = tailing->args;
    annal_tail_options *options = &tailing->options;
    const char *from = args_get(args, "from");
    bool is_seq = from != NULL && fields_parse_number(from, &options->from_seq);
    bool begins = from != NULL || args_has(args, "last") || args_has(args, "cursor");
    options->last = fields_count(args, "last", tailing->for_people && !begins ? LAST_USUAL : 0);
    options->from_now =
        from != NULL ? strcmp(from, "now") == 0 : args_has(args, "last") && options->last == 0;
    if (is_seq && args->operand_count != 1)
        return fail_usage("--from %s: a seq needs one SESSION; for several, give a time", from);
    if (from != NULL && !is_seq && !options->from_now &&
        !fields_parse_time(from, &options->from_us))
        return fail_usage("--from needs a seq, a time such as 2026-01-06T07:24, an age such as 2h, "
                          "or now, not '%s'",
                          from);
    return 0;
}

static int read_options(struct tailing *tailing)
{
    const struct args *args = tailing->args;
    annal_tail_options *options = &tailing->options;
    if (args_has(args, "all") == (args->operand_count > 0))
        return fail_usage(args->operand_count > 0 ? "--all and SESSION cannot be used together"
                                                  : "tail needs a SESSION, or --all");
    fields_list(args, "type", &tailing->types, &options->type_count);
    options->types = tailing->types;
    options->cursor = fields_text(args, "cursor");
    return read_begin(tailing);
}

/* Read the operands. Without --follow, refuse a session that does not exist; with --follow, the
 * tail waits for it. */
static int list_sessions(struct tailing *tailing)
{
    annal_tail_options *options = &tailing->options;
    fields_list(tailing->args, "SESSION", &tailing->sessions, &options->session_count);
    options->sessions = tailing->sessions;
    return args_has(tailing->args, "follow")
               ? EXIT_DONE
               : sessions_collect(tailing->store, tailing->args, &tailing->list);
}

static int check_ends(struct tailing *tailing, int exit_status)
{
    int waits = 0;
    for (size_t i = 0; exit_status <= EXIT_REFUSED && i < tailing->list.count && out_wanted();
         i++) {
        annal_slice session = annal_slice_of(tailing->list.names[i].id);
        annal_session_info info;
        int at_end = event_check_end(tailing->store, session, (annal_position){0}, &waits);
        if (at_end == EXIT_REFUSED &&
            annal_session_info_get(tailing->store, session, &info, NULL) == ANNAL_OK)
            print_damage(tailing, session,
                         &(annal_damage){.seq = info.end_offset > 0 ? info.last_seq + 1 : 0,
                                         .offset = info.end_offset,
                                         .length = info.bytes - info.end_offset,
                                         .event_lost = true,
                                         .what = "a damaged or unfinished line"});
        exit_status = at_end != EXIT_DONE ? at_end : exit_status;
    }
    return exit_status;
}

/* Tail a stream of NATS, not a store. Return the exit status. */
static int run_stream(const struct args *args)
{
#ifdef ANNAL_SHIP_NATS
    struct nats_tail_options options = {.url = args_get(args, "from"),
                                        .follow = args_has(args, "follow")};
    annal_slice *sessions = NULL;
    if (args_has(args, "type") || args_has(args, "cursor"))
        return fail_usage("--type and --cursor are for a store, not for a stream");
    fields_list(args, "SESSION", &sessions, &options.session_count);
    options.sessions = sessions;
    int exit_status = nats_tail(&options);
    annal__free(sessions);
    return exit_status;
#else
    (void)args;
    return fail_refused("this annal was built without libnats: install libnats-dev and build it "
                        "again");
#endif
}

static int run(const struct args *args)
{
    if (args_has(args, "from") && strncmp(args_get(args, "from"), "nats://", 7) == 0)
        return run_stream(args);
    event_keep_bytes(args_has(args, "raw"));
    struct tailing tailing = {.args = args,
                              .for_people = event_lines_wanted(args),
                              .lines = {.sessions = args->operand_count != 1}};
    annal_error err = {0};
    int exit_status = read_options(&tailing);
    if (exit_status == 0)
        exit_status = store_open(args, tailing.options.cursor.len > 0 ? OPEN_WRITE : OPEN_READ, 0,
                                 &tailing.store);
    if (exit_status == 0) {
        store_wait_each(tailing.store);
        exit_status = list_sessions(&tailing);
    }
    if (exit_status == 0 &&
        annal_tail_open(tailing.store, &tailing.options, &tailing.tail, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0) {
        tailing.committed_us = annal__clock_monotonic_us();
        exit_status = check_ends(&tailing, print_events(&tailing));
    }
    annal_tail_close(tailing.tail);
    sessions_done(&tailing.list);
    annal__free(tailing.sessions);
    annal__free(tailing.types);
    return store_close(tailing.store, exit_status);
}

static const struct field fields[] = {
    OPERAND_MAYBE("SESSION", FIELD_SESSIONS, NULL, "the sessions"),
    FLAG("all", NULL, "every session, including new ones"),
    OPTION("from", "SEQ|TIME", FIELD_TEXT, NULL,
           "first event, or the time before it; now: no history"),
    OPTION_WITH("last", "N", FIELD_COUNT, NULL, "number of last events to begin with",
                .most = ANNAL_TAIL_LAST_MAX, .without = "from"),
    OPTION("type", "GLOB", FIELD_LIST, NULL, "type of the events; may contain *, ? and [abc]"),
    OPTION("cursor", "NAME", FIELD_ID, NULL, "name under which the position is kept"),
    FLAG("follow", NULL, "wait for new events, print each once it is durable"),
    RAW_OPTION,
    FIELDS_END};

const struct command cmd_tail = {
    COMMAND("tail", "print events of some or all sessions, and follow live", tail, fields, run)};
