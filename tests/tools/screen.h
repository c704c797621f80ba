/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command on a terminal: keys in, screen out, and how the terminal is set. A small shell stands
 * between, as on a real one: it leads the session, and tells when the command stops or ends.
 */
#ifndef TESTS_TOOLS_SCREEN_H
#define TESTS_TOOLS_SCREEN_H

#include "tests/tools/cli.h"

#include <termios.h>

struct screen {
    pid_t shell;
    int terminal; /* the other side of it */
    int tells;    /* from the shell: wait statuses, the first is the pid of the command */
    int goes_on;  /* to the shell: continue what has stopped */
    pid_t command;
    struct termios was; /* before the command began */
    char text[1 << 16];
    size_t len;
    size_t seen; /* up to here expectations were met */
};

/* Start the command on a terminal of 100 columns. */
#define SCREEN(screen, cli, ...) screen_start(screen, cli, (const char *[]){__VA_ARGS__, NULL})
void screen_start(struct screen *screen, const struct cli *cli, const char *const *words);

/* Wait until this stands on the screen, behind what was expected before. */
void screen_expect(struct screen *screen, const char *text);

void screen_type(struct screen *screen, const char *keys);

/* Whether keys come without Enter and unseen. */
bool screen_is_raw(const struct screen *screen);

/* Assert that the terminal is set as it was before. */
void screen_assert_restored(const struct screen *screen);

/* Wait for the command to stop or end: its wait status. All that stands there counts as
 * expected. */
int screen_wait(struct screen *screen);
void screen_continue(struct screen *screen);

void screen_done(struct screen *screen);

#endif
