/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a session as a conversation for people: who said what, the arguments and results of tools,
 * and the cost up to each turn. docs/events.md lists the types that have a form of their own here;
 * another event is shown as its type and the beginning of its data. Bookkeeping (import.record,
 * session.updated, agent.turn.usage, messages without a text) is not shown.
 *
 *      12  09:14:06  user
 *                    Why is high water printed an hour late?
 *      13  09:14:09  → Grep  localtime|utcoffset src  ← Found 2 files src/table.py (33 lines)
 *
 * A result that directly follows its call is printed on the line of the call. With full, calls and
 * results are printed in full.
 */
#pragma once

#include "tools/show/event_facts.h"

struct conversation {
    /* session for the hint how to read cut texts; NULL: the hint names --full */
    const char *session;
    bool colours;
    /* whether the end of the last printed line can be completed later, as on a terminal */
    bool rewrites;
    bool full;         /* whether nothing is cut */
    int columns;       /* width of the terminal; 0 without a terminal */
    const char *types; /* glob of the types to show; NULL or empty for the conversation */
    struct spending spending;
    struct known_calls calls;

    char day[12]; /* day of the previous event, YYYY-MM-DD */
    uint64_t seq; /* seq of the current event */
    bool hinted;
    struct {
        annal_slice
            id; /* raw id of the call on the last line; empty if the last line is not a call */
        struct buf bytes; /* memory for id */
        int used;         /* number of columns that the call takes */
    } call;
};

void conversation_done(struct conversation *conversation);

/* Return whether an event is shown. The usage in a hidden event still counts. */
bool conversation_shows(const struct conversation *conversation, const annal_event *event);

/* End the line of a call that may still receive its result. Call it before other output. */
void conversation_end_line(struct conversation *conversation);

/* Print an event on stdout if it is shown, and add its usage to the totals. */
void conversation_print(struct conversation *conversation, const annal_event *event);

/* As conversation_print(), for an event whose data is too long for memory: begin has its first
 * bytes. */
void conversation_print_long(struct conversation *conversation, const annal_event *event,
                             annal_slice begin, uint64_t data_bytes);

/*
 * If the first event to print is not event 1: add a turn before it, and whether the turn has ended
 * (conversation_know_turn()), or a call without a result (conversation_know_call()). Ids and names
 * are text. A turn counts for events after seq.
 */
void conversation_know_turn(struct conversation *conversation, annal_slice turn_id, bool ended,
                            uint64_t seq);
void conversation_know_call(struct conversation *conversation, annal_slice call_id,
                            annal_slice tool);
