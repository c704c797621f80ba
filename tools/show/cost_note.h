/* What the signs in a column of costs mean, below a table that people read. */
#ifndef TOOLS_SHOW_COST_NOTE_H
#define TOOLS_SHOW_COST_NOTE_H

#include <annal/query.h>

/* What a table has shown. */
struct cost_signs {
    bool computed; /* "~" */
    bool part;     /* "of 27%" */
    bool unknown;  /* "-" */
};

/* Print it, with the models that have no price; nothing without signs. sessions: a JSON array of
 * those that are meant; empty: all. */
annal_status cost_note_print(annal_index *index, const struct cost_signs *signs,
                             annal_slice sessions, annal_error *err);

#endif
