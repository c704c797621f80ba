/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of a session, for the head of an export, from a first pass over it. */
#ifndef TOOLS_EXPORT_SUMMARY_H
#define TOOLS_EXPORT_SUMMARY_H

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
    struct buf fields[FIELD_COUNT]; /* raw JSON strings, or empty */
    uint64_t events;
    uint64_t lost; /* damaged places in the journal */
    uint64_t calls;
    uint64_t failed_calls;
    bool takes_back;  /* a usage takes back counted tokens */
    int64_t first_us; /* earliest and latest time; 0: no event has a time */
    int64_t last_us;
    struct spending spending;
    bool rests;            /* the agent has answered: event_rests() */
    struct open_set open;  /* as of the end */
    uint64_t answered_seq; /* turn that ended in an answer only, so it is not in open; 0: none */
};

annal_status summary_make(struct summary *summary, struct export *export, annal_error *err);
void summary_done(struct summary *summary);

/* Return "rolled back" or "abandoned" if this turn, raw, was taken back; NULL if it is live. */
const char *summary_taken_back(const struct summary *summary, annal_slice turn_id);

/* Return the field, raw, or empty. */
annal_slice summary_field(const struct summary *summary, enum session_field field);

#endif
