/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PostgreSQL server of the tests, in a directory of its own, on a Unix socket: run by a user who
 * is not root, and killed when the process that started it ends.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct pg {
    char dir[64]; /* "": no server */
    pid_t pid;
    const char *clock; /* of libfaketime, "+1h"; NULL: the system's */
};

/* In the environment of this process: programs that it starts have this clock. NULL: no more. */
void clock_set(const char *offset);

/* From now on servers use a small file system that no other process sees and that ends with this
 * process. False if this user may not create a file system. */
bool pg_make_small_disk(void);

/* Start a server in a new directory in $ANNAL_TEST_SERVERS, or in /tmp. False if this machine has
 * no PostgreSQL; prints what is missing. */
bool pg_start(struct pg *pg);

/* A hot standby of it, in a directory of its own. */
void pg_start_standby(const struct pg *primary, struct pg *standby);

/* A standby accepts writes. */
void pg_promote(const struct pg *standby);

/* Kill it, and wait until it is gone; and start it again in the same directory. */
void pg_kill(struct pg *pg, int with_signal);
void pg_restart(struct pg *pg);

/* Kill it, and remove its directory. */
void pg_stop(struct pg *pg);

/* Of a database, for role (NULL: the superuser); valid until the next call. */
const char *pg_url(const struct pg *pg, const char *database, const char *role);

/* Run statements; the first value of the last one as a text, which the caller frees; "" for none. A
 * statement that fails fails the test. */
char *pg_ask(const struct pg *pg, const char *database, const char *sql);
void pg_do(const struct pg *pg, const char *database, const char *sql);

/* pgbouncer, which gives out a connection for one transaction, on port 6432. The caller kills
 * it. */
pid_t pg_start_pooler(const struct pg *pg);

/* Run one of PostgreSQL's programs; its output goes to out, or nowhere. */
void pg_program(const struct pg *pg, const char *program, const char *const *words,
                const char *out);
