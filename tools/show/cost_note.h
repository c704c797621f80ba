/* SPDX-License-Identifier: Apache-2.0 */
/* Print costs for people, and a note below a table that explains their signs. */
#ifndef TOOLS_SHOW_COST_NOTE_H
#define TOOLS_SHOW_COST_NOTE_H

#include "tools/show/session_rows.h"

/* Signs that a table contains. */
struct cost_signs {
    bool computed; /* "~" */
    bool part;     /* "of 27%" */
    bool unknown;  /* "-" */
};

/* The cost of a session, from usage_by_session, and its tokens. */
struct cost {
    const annal_value *usd, *computed_usd, *costed_tokens;
    int64_t tokens;
};

/* Compute a percentage, such as 27 from 0.279: rounded down, so that 100 means all, but at least 1
 * for any part. */
int cost_percent(double share);

/*
 * Write "$10.72"; "~$10.72" if some of it was computed; "$10.72 of 27%" if the other tokens have no
 * price; "<$0.01"; "-" if it is unknown. Adds the signs it uses to signs.
 */
#define COST_TEXT_BYTES 64
const char *cost_text(char text[COST_TEXT_BYTES], const struct cost *cost,
                      struct cost_signs *signs);

/* The scope of the note's models without a price; an empty member does not limit it. */
struct cost_scope {
    annal_slice sessions;     /* a JSON array */
    annal_slice since, until; /* ISO 8601 */
};

/* Such a scope in SQL, with its members as ?1 to ?3, or NULL: sessions with this id, this time. */
#define SCOPE_HAS(id)    "(?1 IS NULL OR " id " IN (SELECT value FROM json_each(?1)))"
#define SCOPE_TIME(time) "(?2 IS NULL OR " time " >= ?2) AND (?3 IS NULL OR " time " < ?3)"

/* Print what the signs mean, with the models without a price; nothing without signs. */
annal_status cost_note_print(annal_index *index, const struct cost_signs *signs,
                             const struct cost_scope *scope, annal_error *err);

#endif
