/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command, run as a user runs it: in a directory of its own, with what it printed and its exit
 * status kept until the next run. The process is its own, but it runs the command_main() of the
 * test's program where it can: under sanitizers it takes 0.3 s to start a program, and tests do
 * that thousands of times.
 *
 *     CLI(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
 *     ck_assert_str_eq(cli.out, "{\"seq\":1}\n");
 *
 * Each test has its own: suite_case(suite, name, cli_setup, cli_teardown).
 *
 * The store is DIR/store, through $ANNAL_STORE; it is not there before something makes it.
 */
#ifndef TESTS_TOOLS_CLI_H
#define TESTS_TOOLS_CLI_H

#include "tests/support/tmpdir.h"

#include <stdbool.h>
#include <sys/types.h>

struct cli {
    struct tmpdir dir;
    const char *store;
    const char *as_home; /* instead of $ANNAL_STORE, $HOME is this; NULL: as said above */
    const char *columns; /* $COLUMNS */
    bool as_nobody;      /* run without the rights of root */
    bool own_program;    /* run the built program, which a sanitizer also searches for leaks */
    int exit_status;     /* -1: killed by a signal */
    char *out, *err;     /* NUL-terminated */
    size_t out_len, err_len;
};

extern struct cli cli;

void cli_setup(void);
void cli_teardown(void);

/* Run the command; input NULL is an empty one. The words follow. */
#define CLI(cli, input, ...) cli_run(cli, input, (const char *[]){__VA_ARGS__, NULL})
void cli_run(struct cli *cli, const char *input, const char *const *words);
void cli_run_bytes(struct cli *cli, const void *input, size_t len, const char *const *words);

/* The same, without waiting: pipes to its standard input and from its standard output. */
pid_t cli_start(struct cli *cli, const char *const *words, int *out_input, int *out_output);

/* In a child process: become the command. */
_Noreturn void cli_exec(const struct cli *cli, const char *const *words);

/* Assert that the last run ended so, and said one sentence on stderr, which holds what. */
void cli_assert_refused(const struct cli *cli, int exit_status, const char *what);

/* Assert that it succeeded and said nothing on stderr. */
void cli_assert_done(const struct cli *cli);

/* Run the command, and assert that it did; DONE() with an empty input. */
#define DONE_WITH(cli, input, ...)                                                                 \
    do {                                                                                           \
        CLI(cli, input, __VA_ARGS__);                                                              \
        cli_assert_done(cli);                                                                      \
    } while (0)
#define DONE(cli, ...) DONE_WITH(cli, NULL, __VA_ARGS__)

/* Run SQL that changes a database of the store, as Annal itself would write it. */
void cli_change_database(struct cli *cli, const char *name, const char *sql);

/* How many journals there are; 0 also when there is no store. */
int cli_journals(const struct cli *cli);

/* The bytes of a session's journal; free() them. */
char *cli_journal(struct cli *cli, const char *session, size_t *out_len);
void cli_journal_write(struct cli *cli, const char *session, const void *bytes, size_t len);

#endif
