/* SPDX-License-Identifier: Apache-2.0 */
/* What the suites that ship to PostgreSQL share: a server, and an empty database for each test. */
#pragma once

#include "tests/ship/pg.h"
#include "tests/tools/cli.h"

#include <check.h>

extern struct pg pg;       /* of the suite; its directory is "" where there is no PostgreSQL */
extern const char *url;    /* of the database; NULL without a server */
extern const char *second; /* the path of a second store, which does not exist yet */

/* Unchecked: once for the suite. */
void fleet_start(void);
void fleet_stop(void);

/* Checked: with cli_setup() and cli_teardown(). */
void fleet_setup(void);
void fleet_teardown(void);

/* Skip the test; pg_start() said why. */
#define NEEDS_SERVER()                                                                             \
    do {                                                                                           \
        if (pg.dir[0] == '\0')                                                                     \
            return;                                                                                \
    } while (0)

/* The answer of the database is this text. */
#define ASK(sql, ...) ck_text(fleet_ask(sql), __VA_ARGS__)

char *fleet_ask(const char *sql); /* to free */
void fleet_do(const char *sql);

/* Run the command without waiting; its exit status, or -1 if it was killed. */
pid_t fleet_spawn(const char *const *words);
int fleet_join(pid_t pid);

/* The journals of a session are the same in both stores. */
void fleet_same_journals(const char *session);

/* The same question has the same answer here and there, where search_path is annal. */
void fleet_same(const char *sql);

/* The answer becomes this text within 10 s. */
void fleet_wait_for(const char *sql, const char *want);

/* rows.c: tests of the suite ship. */
void ship_add_row_tests(TCase *cases);
