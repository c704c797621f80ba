#include "tools/args.h"
#include "tools/event_out.h"
#include "tools/open.h"
#include "tools/out.h"

#include <annal/tail.h>

enum { LOOK_MS = 500 }; /* how often to notice that nobody reads any more */

/* Print what is there; with follow go on until the reader goes away. */
static int follow(annal_tail *tail, annal_slice session, bool forever)
{
    annal_error err = {0};
    annal_event event;
    int exit_status = EXIT_DONE;
    for (;;) {
        annal_status status = annal_tail_next(tail, 0, &event, &err);
        if (status == ANNAL_END) {
            if (!out_flush() || !forever || out_reader_is_gone())
                return exit_status;
            status = annal_tail_next(tail, LOOK_MS, &event, &err);
        }
        if (status < 0)
            return fail_error(&err);
        if (status == ANNAL_DAMAGE) {
            annal_damage damage = annal_tail_damage(tail);
            event_say_damage(session, &damage);
            exit_status = EXIT_REFUSED;
        } else if (status == ANNAL_OK) {
            event_print(&event, session);
            if (!out_wanted())
                return exit_status;
        }
    }
}

static int tail_session(annal_store *store, annal_slice session, uint64_t from_seq, bool forever)
{
    annal_error err = {0};
    annal_tail *tail = NULL;
    int waits = 0;
    annal_session_info info;
    /* A tail would wait for a session that is not there; without --follow there is nothing to wait
     * for. */
    if (!forever && annal_session_info_get(store, session, &info, &err) < 0)
        return fail_error(&err);
    if (annal_tail_open(store, session, from_seq, &tail, &err) < 0)
        return fail_error(&err);
    int exit_status = follow(tail, session, forever);
    annal_tail_close(tail);
    if (!forever && exit_status == EXIT_DONE && out_wanted())
        exit_status = event_check_end(store, session, (annal_position){0}, &waits);
    return exit_status;
}

static int run(const struct args *args)
{
    annal_slice session;
    uint64_t from_seq = 1;
    annal_store *store = NULL;
    int exit_status = args_session(args, 0, &session);
    if (exit_status == 0)
        exit_status = args_number(args, "from", &from_seq);
    if (exit_status == 0)
        exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == 0)
        exit_status = tail_session(store, session, from_seq, args_has(args, "follow"));
    return store_close(store, exit_status);
}

static const struct option options[] = {
    {"from", "SEQ", "begin with event SEQ (1)", false},
    {"follow", NULL, "wait for new events, print each once it is durable", false},
    {NULL, NULL, NULL, false}};

const struct command cmd_tail = {
    .name = "tail",
    .operands = "SESSION",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "print a session's events, and follow it live",
    .about = "Prints the events there are, one JSON object a line with session_id, seq,\n"
             "timestamp, type, id, cause and data. With --follow it then waits, without\n"
             "polling, and prints each new event as soon as it is durable: no gap between\n"
             "history and present, no repeat. A session that does not exist yet is waited\n"
             "for. Ctrl-C ends it.",
    .examples = "  annal tail sess_1 --follow\n"
                "  annal tail sess_1 --from 100 --follow | jq -r .data.content\n",
    .options = options,
    .run = run};
