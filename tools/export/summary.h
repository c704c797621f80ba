/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a session as a whole, at the head of an export: from a first pass over it. */
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
    struct buf fields[FIELD_COUNT]; /* raw JSON strings; empty if nobody said */
    uint64_t events;
    uint64_t lost; /* that do not prove themselves */
    uint64_t calls;
    uint64_t failed_calls;
    bool takes_back;  /* there is usage that takes back what was counted */
    int64_t first_us; /* the earliest and the latest time; 0: no event has one */
    int64_t last_us;
    struct spending spending;
    bool rests;            /* the agent has answered: event_rests() */
    struct open_set open;  /* at the end */
    uint64_t answered_seq; /* of the turn that ended in an answer and in nothing else: it is not
                              in open; 0: none */
};

annal_status summary_make(struct summary *summary, struct export *export, annal_error *err);
void summary_done(struct summary *summary);

/* "rolled back" or "abandoned" if this turn, raw, was taken back; NULL if it is live. */
const char *summary_taken_back(const struct summary *summary, annal_slice turn_id);

/* The field, raw; empty if nobody said. */
annal_slice summary_field(const struct summary *summary, enum session_field field);

#endif
