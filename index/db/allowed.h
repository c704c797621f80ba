/* SPDX-License-Identifier: Apache-2.0 */
/* What SQL that is not ours may use; see allowed.c. */
#ifndef INDEX_DB_ALLOWED_H
#define INDEX_DB_ALLOWED_H

#include <stdbool.h>

bool annal__allowed_function(const char *name);

/* Of PRAGMA name, and of the table pragma_name. */
bool annal__allowed_pragma(const char *name);

/* For one statement that only reads, from its compilation to its end. */
struct allowed {
    /* further functions, each ended by \0, and the list by another; NULL: none */
    const char *functions;
    bool refused;
    bool counts; /* it reads the rows or the number of indexed events, without the table events */
    char what[120]; /* was refused, if there is a name for it; empty: writing was */
};

/* While it is compiled and runs: sqlite3_set_authorizer(db, annal__allowed_select, allowed). */
int annal__allowed_select(void *allowed, int action, const char *first, const char *second,
                          const char *database, const char *trigger);

#endif
