/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Print a session as a conversation for people: who said what, the arguments and results of tools,
 * and the cost so far. docs/events.md lists the types that are known here; any other event is shown
 * as its type and the beginning of its data. Bookkeeping (import.record, session.updated,
 * agent.turn.usage, messages without a text) is left out.
 *
 *      12  09:14:06  user
 *                    Why is high water printed an hour late?
 *      13  09:14:09  → Grep  localtime|utcoffset src  ← Found 2 files src/table.py (33 lines)
 *
 * A result that follows directly is printed on the line of its call. With full, calls and results
 * are printed in full.
 */
#ifndef TOOLS_SHOW_CONVERSATION_H
#define TOOLS_SHOW_CONVERSATION_H

#include "tools/show/event_facts.h"

struct conversation {
    const char *session; /* for the hint about cut texts; NULL: the hint names --full */
    bool colours;
    bool rewrites;     /* a finished line can be continued, as on a terminal */
    bool full;         /* nothing is cut */
    int columns;       /* width of the terminal; 0: no terminal */
    const char *types; /* glob of the types to show; empty: the conversation */
    struct spending spending;
    struct known_calls calls;

    char day[12]; /* day of the previous event */
    uint64_t seq; /* seq of the current event */
    bool hinted;
    struct {
        annal_slice id;   /* raw; empty: the last line is not a call */
        struct buf bytes; /* bytes of the id */
        int used;         /* columns */
    } call;
};

void conversation_done(struct conversation *conversation);

/* Return whether an event is shown; a hidden event still counts. */
bool conversation_shows(const struct conversation *conversation, const annal_event *event);

/* End a line that is open for a result. Call it before other output. */
void conversation_end_line(struct conversation *conversation);

/* Print an event on stdout if it is shown, and add its usage to the tally. */
void conversation_print(struct conversation *conversation, const annal_event *event);

/* Do the same for an event whose data is too long for memory: begin has its first bytes. */
void conversation_print_long(struct conversation *conversation, const annal_event *event,
                             annal_slice begin, uint64_t data_bytes);

/*
 * Set the state if the conversation does not begin with event 1: a turn, and whether it has ended;
 * a call without a result. Ids and names as text; the state is valid up to seq.
 */
void conversation_know_turn(struct conversation *conversation, annal_slice turn_id, bool ended,
                            uint64_t seq);
void conversation_know_call(struct conversation *conversation, annal_slice call_id,
                            annal_slice tool);

#endif
