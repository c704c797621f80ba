/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run the command as a user does, in a directory of its own. Its output and exit status are valid
 * until the next run. It runs in a child process, which calls the command_main() of the test's
 * program where possible: under sanitizers a program takes 0.3 s to start, and tests run thousands.
 *
 *     CLI(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
 *     ck_assert_str_eq(cli.out, "{\"seq\":1}\n");
 *
 * Each test has its own directory: suite_case(suite, name, cli_setup, cli_teardown).
 *
 * The store is DIR/store, through $ANNAL_STORE; it is missing until a test creates it.
 */
#pragma once

#include "tests/support/tmpdir.h"

#include <stdbool.h>
#include <sys/types.h>

struct cli {
    struct tmpdir dir;
    const char *store;
    const char *as_home; /* $HOME, with $ANNAL_STORE unset; NULL: $ANNAL_STORE is set */
    const char *columns; /* $COLUMNS */
    bool as_nobody;      /* run without the rights of root */
    bool own_program;    /* run the built program, so that a sanitizer also searches for leaks */
    int exit_status;     /* -1: killed by a signal */
    char *out, *err;     /* NUL-terminated */
    size_t out_len, err_len;
};

extern struct cli cli;

void cli_setup(void);
void cli_teardown(void);

/* Run the command with these words; input NULL: empty input. */
#define CLI(cli, input, ...) cli_run(cli, input, (const char *[]){__VA_ARGS__, NULL})
void cli_run(struct cli *cli, const char *input, const char *const *words);
void cli_run_bytes(struct cli *cli, const void *input, size_t len, const char *const *words);

/* Start it without waiting: sets pipes to its standard input and from its standard output. */
pid_t cli_start(struct cli *cli, const char *const *words, int *out_input, int *out_output);

/* In a child process: become the command. */
_Noreturn void cli_exec(const struct cli *cli, const char *const *words);

/* Assert that the last run ended with this status and one sentence on stderr that contains what. */
void cli_assert_refused(const struct cli *cli, int exit_status, const char *what);

/* Assert that it succeeded and printed nothing on stderr. */
void cli_assert_done(const struct cli *cli);

/* Run the command and assert that it succeeded; DONE() with an empty input. */
#define DONE_WITH(cli, input, ...)                                                                 \
    do {                                                                                           \
        CLI(cli, input, __VA_ARGS__);                                                              \
        cli_assert_done(cli);                                                                      \
    } while (0)
#define DONE(cli, ...) DONE_WITH(cli, NULL, __VA_ARGS__)

/* Run SQL that changes a database of the store, as Annal itself would write it. */
void cli_change_database(struct cli *cli, const char *name, const char *sql);

/* Count the journals; 0 also without a store. */
int cli_journals(const struct cli *cli);

/* Read a session's journal; free() the bytes. */
char *cli_journal(struct cli *cli, const char *session, size_t *out_len);
void cli_journal_write(struct cli *cli, const char *session, const void *bytes, size_t len);
