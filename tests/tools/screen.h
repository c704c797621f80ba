/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run the command on a terminal: keys, screen, settings of the terminal. As on a real terminal, a
 * shell leads the session; it reports when the command stops or ends.
 */
#pragma once

#include "tests/tools/cli.h"

#include <termios.h>

struct screen {
    pid_t shell;
    int terminal; /* the other side of the terminal */
    int tells;    /* from the shell: wait statuses, the first is the pid of the command */
    int goes_on;  /* to the shell: continue the stopped command */
    pid_t command;
    struct termios was; /* settings before the command started */
    char text[1 << 16];
    size_t len;
    size_t seen; /* end of the matched output */
};

/* Start the command on a terminal of 100 columns. */
#define SCREEN(screen, cli, ...) screen_start(screen, cli, (const char *[]){__VA_ARGS__, NULL})
void screen_start(struct screen *screen, const struct cli *cli, const char *const *words);

/* Wait until the screen shows this text, after the text of the previous call. */
void screen_expect(struct screen *screen, const char *text);

void screen_type(struct screen *screen, const char *keys);

/* Whether the terminal passes each key at once and does not echo it. */
bool screen_is_raw(const struct screen *screen);

/* Assert that the terminal has its original settings. */
void screen_assert_restored(const struct screen *screen);

/* Wait for the command to stop or end: returns its wait status. Its earlier output counts as
 * matched. */
int screen_wait(struct screen *screen);
void screen_continue(struct screen *screen);

void screen_done(struct screen *screen);
