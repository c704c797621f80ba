/*
 * A session as a conversation that people read: who said what, which tool was called with what and
 * returned what, what it cost so far. docs/events.md has the types that are known here; of any
 * other event its type and the beginning of its data are shown.
 *
 *      12  09:14:06  user
 *                    Why is high water printed an hour late?
 *      13  09:14:09  → Grep  pattern: localtime|utcoffset, path: src
 *      14  09:14:09  ← Grep  Found 2 files
 *                    src/table.py
 *                    … 31 more lines: annal query tides --seq 14..14
 */
#ifndef TOOLS_SHOW_CONVERSATION_H
#define TOOLS_SHOW_CONVERSATION_H

#include "tools/show/event_facts.h"

struct conversation {
    const char *session; /* for the hint that says how to read what was cut */
    bool colours;
    bool full;   /* cut nothing */
    int columns; /* of the terminal; 0: none */
    struct spending spending;
    struct known_calls calls;

    int64_t day; /* of the event before; 0: there was none */
    bool hinted;
};

/* Print an event on stdout, and add what it used to the tally. */
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
