/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints events for people, a line each, cut to the width of the terminal: seq, time, type, role or
 * tool, and text.
 *
 *     2026-03-02  tides
 *         12  09:14:06  message.added     user  Why is high water printed an hour late?
 *         13  09:14:09  tool.called       Grep  localtime|utcoffset src
 *         14  09:14:09  tool.returned     Grep  Found 2 files src/table.py src/clock.py
 *
 * A line with the day, and with the session if there are several, precedes the first event of each.
 */
#pragma once

#include "tools/cli/args.h"
#include "tools/show/event_facts.h"

#include <annal/index.h>

struct event_lines {
    /* index in which the tool of a result is found if its call was not printed; NULL: the tool is
     * not printed */
    annal_index *index;
    bool sessions; /* whether several sessions are printed */
    struct known_calls calls;
    char day[12];
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

/* Return whether to print events for people: stdout is a terminal, and the user chose no other
 * format. */
bool event_lines_wanted(const struct args *args);

void event_line_print(struct event_lines *lines, annal_slice session, const annal_event *event);

/* As event_line_print(), for an event whose data is too long for memory. */
void event_line_print_long(struct event_lines *lines, annal_slice session, const annal_event *event,
                           uint64_t data_bytes);
