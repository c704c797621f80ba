/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of packs belong to a session: the rows that `-- forget` sections would delete. */
#pragma once

#include <annal/index.h>

#include <stddef.h>

/*
 * A statement of a `-- forget` section: the table from which it deletes, and its condition, in
 * which the session is the column "of session". condition is NULL if the statement has none; its
 * rows then belong to no session.
 */
struct annal__forgotten {
    char *table;
    char *condition;
};

struct annal__pack_rows {
    const char *pack;
    const char *database; /* name of the pack's database in SQL */
    /* reason why it is unknown which rows belong to the session; NULL if it is known */
    const char *why;
    const struct annal__forgotten *forgotten;
    size_t count;
};

/*
 * A function that is called for each pack. It returns 0 to continue; any other value ends the
 * calls, and is returned to the caller. rows is valid until it returns.
 */
typedef int (*annal__pack_rows_fn)(void *arg, const struct annal__pack_rows *rows);

/* Call fn for each pack that is enabled and can be run. Any thread. */
ANNAL_MUST_CHECK annal_status annal__pack_rows_each(annal_index *index, annal__pack_rows_fn fn,
                                                    void *arg, annal_error *err);
