/* SPDX-License-Identifier: Apache-2.0 */
/* The names that SQL of users, packs and extended schemas may use; see allowed.c. */
#pragma once

#include <stdbool.h>

bool annal__allowed_function(const char *name);

/* Return whether PRAGMA name, and the table pragma_name, are allowed. */
bool annal__allowed_pragma(const char *name);

/* The restrictions of one statement that only reads, from its compilation to its end. */
struct allowed {
    /* SQL functions that the statement may call besides those that allowed.c lists, each ended by
     * \0, with another \0 after the last; or NULL */
    const char *functions;
    bool refused;
    /* whether the statement reads event_index or _counts, which leave out damaged events */
    bool counts;
    char what[120]; /* kind and name of what was refused; empty: a write was refused */
};

/*
 * Check an action while the statement is compiled and runs: sqlite3_set_authorizer(db,
 * annal__allowed_select, allowed).
 */
int annal__allowed_select(void *allowed, int action, const char *first, const char *second,
                          const char *database, const char *trigger);
