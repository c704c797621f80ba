/* SPDX-License-Identifier: Apache-2.0 */
/* Costs as people read them, and below a table what their signs mean. */
#ifndef TOOLS_SHOW_COST_NOTE_H
#define TOOLS_SHOW_COST_NOTE_H

#include "tools/show/session_rows.h"

/* What a table has shown. */
struct cost_signs {
    bool computed; /* "~" */
    bool part;     /* "of 27%" */
    bool unknown;  /* "-" */
};

/* What a session cost, as usage_by_session has it, and of all its tokens. */
struct cost {
    const annal_value *usd, *computed_usd, *costed_tokens;
    int64_t tokens;
};

/* 27 of 0.279: rounded down, so that 100 means all, but to 1 at least if there is any. */
int cost_percent(double share);

/*
 * "$10.72"; "~$10.72" if some of it was computed; "$10.72 of 27%" if the other tokens have no
 * price; "<$0.01"; "-" if it is not known. Adds to signs what it shows.
 */
#define COST_TEXT_BYTES 64
const char *cost_text(char text[COST_TEXT_BYTES], const struct cost *cost,
                      struct cost_signs *signs);

/* Of what the note names models without a price; what is empty does not limit it. */
struct cost_scope {
    annal_slice sessions;     /* a JSON array */
    annal_slice since, until; /* ISO 8601 */
};

/* Such a scope in SQL, with ?1 to ?3 its members, or NULL: the sessions with this id, this time. */
#define SCOPE_HAS(id)    "(?1 IS NULL OR " id " IN (SELECT value FROM json_each(?1)))"
#define SCOPE_TIME(time) "(?2 IS NULL OR " time " >= ?2) AND (?3 IS NULL OR " time " < ?3)"

/* Print what the signs mean, with the models that have no price; nothing without signs. */
annal_status cost_note_print(annal_index *index, const struct cost_signs *signs,
                             const struct cost_scope *scope, annal_error *err);

#endif
