/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session as a conversation that people read: who said what, which tool was called with what and
 * returned what, what it cost so far. docs/events.md has the types that are known here; of any
 * other event its type and the beginning of its data are shown. Bookkeeping (import.record,
 * session.updated, agent.turn.usage, messages without a text) is not.
 *
 *      12  09:14:06  user
 *                    Why is high water printed an hour late?
 *      13  09:14:09  → Grep  localtime|utcoffset src  ← Found 2 files src/table.py (33 lines)
 *
 * A result that comes next is put on the line of its call. With full, calls and results are whole.
 */
#ifndef TOOLS_SHOW_CONVERSATION_H
#define TOOLS_SHOW_CONVERSATION_H

#include "tools/show/event_facts.h"

struct conversation {
    const char *session; /* for the hint how to read what was cut; NULL: that there is --full */
    bool colours;
    bool rewrites;     /* a line that ended can be continued, as on a terminal */
    bool full;         /* cut nothing */
    int columns;       /* of the terminal; 0: none */
    const char *types; /* a glob: the events that are shown; empty: the conversation */
    struct spending spending;
    struct known_calls calls;

    char day[12]; /* of the event before */
    uint64_t seq; /* of this one */
    bool hinted;
    struct {
        annal_slice id;   /* raw; empty: the last line is not that of a call */
        struct buf bytes; /* of the id */
        int used;         /* columns */
    } call;
};

void conversation_done(struct conversation *conversation);

/* Whether an event is shown; one that is not still counts. */
bool conversation_shows(const struct conversation *conversation, const annal_event *event);

/* End a line that a result may still be put on. Before anything else is printed. */
void conversation_end_line(struct conversation *conversation);

/* Print an event on stdout if it is shown, and add what it used to the tally. */
void conversation_print(struct conversation *conversation, const annal_event *event);

/* As above, for an event whose data is too long to be in memory: begin has its first bytes. */
void conversation_print_long(struct conversation *conversation, const annal_event *event,
                             annal_slice begin, uint64_t data_bytes);

/*
 * What is known already if the conversation does not begin with event 1: a turn, and whether it has
 * ended; a call that has no result. Ids and names as text; this is known up to seq.
 */
void conversation_know_turn(struct conversation *conversation, annal_slice turn_id, bool ended,
                            uint64_t seq);
void conversation_know_call(struct conversation *conversation, annal_slice call_id,
                            annal_slice tool);

#endif
