/* SPDX-License-Identifier: Apache-2.0 */
/* A store with events, and short forms of queries for the tests of this folder. */
#pragma once

#include "tests/support/text.h"
#include "tests/support/tmpdir.h"

#include <annal/journal.h>
#include <annal/pack.h>

#include <check.h>

struct fixture {
    struct tmpdir dir;
    const char *path; /* of the store */
    annal_store *store;
    annal_index *index;
};

/* A new store without a keeper, and its index. */
void fixture_init(struct fixture *fixture);
void fixture_done(struct fixture *fixture);

/* Fixture of the running test: suite_case(suite, name, fixture_setup, fixture_teardown). */
extern struct fixture f;
void fixture_setup(void);
void fixture_teardown(void);

/* Open a closed store and its index. */
void fixture_open(struct fixture *fixture);

/* Close the index and open it again. */
void fixture_reopen(struct fixture *fixture, const annal_index_options *options);

/* Append one event; ts_us 0 is now. */
void fixture_append(struct fixture *fixture, const char *session, const char *type,
                    const char *data);
void fixture_append_at(struct fixture *fixture, const char *session, const char *type,
                       const char *data, int64_t ts_us);

/* Append count events of the types a.one, a.two and b.one in turn, a second apart from ts_us on. */
void fixture_append_many(struct fixture *fixture, const char *session, unsigned count,
                         int64_t ts_us);

/* Append a small session of 8 events, as an agent does: created, two turns with tokens, ended. */
void fixture_append_session(struct fixture *fixture, const char *session);

/*
 * Run a SELECT through annal_index_sql() and return its rows: columns separated by |, rows by
 * newlines. A failure fails the test. free() it.
 */
char *fixture_sql(struct fixture *fixture, const char *sql);

/* Assert that fixture_sql(sql) gives rows. */
#define ck_sql(f, sql, rows)                                                                       \
    do {                                                                                           \
        char *got_ = fixture_sql(f, sql);                                                          \
        ck_assert_str_eq(got_, rows);                                                              \
        free(got_);                                                                                \
    } while (0)

/* Dump every row of the tables of the index that describe journals, in order. free() it. */
char *fixture_dump(struct fixture *fixture);

int text_row(void *arg, const annal_row *row); /* an annal_row_fn */
