/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of packs belong to a session: what their `-- forget` sections would delete. */
#ifndef INDEX_SYS_PACK_ROWS_H
#define INDEX_SYS_PACK_ROWS_H

#include <annal/index.h>

#include <stddef.h>

/*
 * A statement of `-- forget`: the table that it deletes from, and its condition, in which the
 * session is the column "of session". NULL: it has none, so these are not rows of a session.
 */
struct annal__forgotten {
    char *table;
    char *condition;
};

struct annal__pack_rows {
    const char *pack;
    const char *database; /* its name in SQL */
    const char *why;      /* not NULL: it cannot be told, and this is the reason */
    const struct annal__forgotten *forgotten;
    size_t count;
};

/* Valid until it returns. Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal__pack_rows_fn)(void *arg, const struct annal__pack_rows *rows);

/* Call fn for each pack that is on and can be run. Any thread. */
ANNAL_MUST_CHECK annal_status annal__pack_rows_each(annal_index *index, annal__pack_rows_fn fn,
                                                    void *arg, annal_error *err);

#endif
