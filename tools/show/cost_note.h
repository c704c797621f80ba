/* SPDX-License-Identifier: Apache-2.0 */
/* Prints costs for people, and a note below a table that explains their signs. */
#pragma once

#include "tools/show/session_rows.h"

/* The signs that a table of costs contains. */
struct cost_signs {
    bool computed; /* whether "~" occurs: a cost was computed from prices */
    bool part;     /* whether "of 27%" occurs: the cost covers only a part of the tokens */
    bool unknown;  /* whether "-" occurs: a cost is unknown */
};

/* The cost of a session, from usage_by_session, and the number of its tokens. */
struct cost {
    const annal_value *usd, *computed_usd, *costed_tokens;
    int64_t tokens;
};

/* Return a share as a percentage, such as 27 for 0.279: rounded down, so that 100 means all, but at
 * least 1 if the share is not 0. */
int cost_percent(double share);

/*
 * Write a cost to text, and return it: "$10.72"; "~$10.72" if some of it was computed from prices;
 * "$10.72 of 27%" if it covers only 27% of the tokens; "<$0.01"; "-" if it is unknown. Adds the
 * signs in the text to signs.
 */
#define COST_TEXT_BYTES 64
const char *cost_text(char text[COST_TEXT_BYTES], const struct cost *cost,
                      struct cost_signs *signs);

/* The sessions and times whose models without a price the note names; an empty member is no
 * limit. */
struct cost_scope {
    annal_slice sessions;     /* ids as a JSON array */
    annal_slice since, until; /* ISO 8601 */
};

/* SQL conditions that are true for a session and a time within a cost_scope. The statement's
 * parameters ?1 to ?3 are its members, or NULL for no limit. */
#define SCOPE_HAS(id)    "(?1 IS NULL OR " id " IN (SELECT value FROM json_each(?1)))"
#define SCOPE_TIME(time) "(?2 IS NULL OR " time " >= ?2) AND (?3 IS NULL OR " time " < ?3)"

/* Print what the signs mean, and which models have no known price. Without signs, print nothing. */
annal_status cost_note_print(annal_index *index, const struct cost_signs *signs,
                             const struct cost_scope *scope, annal_error *err);
