/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of a session for the head of an export, from a first pass over its events. */
#pragma once

#include "tools/export/export.h"
#include "tools/export/open_set.h"
#include "tools/show/event_facts.h"

enum session_field {
    FIELD_TITLE,
    FIELD_AGENT,
    FIELD_PROVIDER,
    FIELD_MODEL,
    FIELD_DIRECTORY,
    FIELD_BRANCH,
    FIELD_PARENT,
    FIELD_COUNT
};

struct summary {
    struct buf fields[FIELD_COUNT]; /* raw JSON strings; empty if unknown */
    uint64_t events;
    uint64_t lost; /* number of damaged places in the journal */
    uint64_t calls;
    uint64_t failed_calls;
    bool takes_back;  /* whether a usage has negative tokens */
    int64_t first_us; /* earliest and latest time, in us; 0 if no event has a time */
    int64_t last_us;
    struct spending spending;
    bool rests;           /* whether the agent is idle at the end (event_rests()) */
    struct open_set open; /* calls and turns that are open at the end */
    /* seq of the last event telemetry.superseded; calls, turns and usage of earlier events do not
     * count */
    uint64_t superseded_seq;
    uint64_t recovered_seq; /* seq of the last event import.recovered */
    /* seq of the event that began a turn without an event that ends it, which ended in an answer
     * and is therefore not in open; 0 if there is none */
    uint64_t answered_seq;
};

annal_status summary_make(struct summary *summary, struct export *export, annal_error *err);
void summary_done(struct summary *summary);

/* Return "rolled back" or "abandoned" if a turn was undone; NULL if it was not, or was restored.
 * turn_id is raw JSON. */
const char *summary_taken_back(const struct summary *summary, annal_slice turn_id);

/* Return whether the event is left out: it is from telemetry, and the log of the session, which was
 * imported later, says the same (event telemetry.superseded); or it is an unreadable line of a
 * document that was whole later (event import.recovered). */
bool summary_supersedes(const struct summary *summary, const annal_event *event);

/* Return a field as raw JSON; empty if unknown. */
annal_slice summary_field(const struct summary *summary, enum session_field field);
