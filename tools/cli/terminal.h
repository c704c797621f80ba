/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a terminal, one at a time, and restoring the terminal afterwards.
 *
 * (1) Keys come without Enter and are not echoed; signals of the keyboard stay signals. Those that
 *     end or stop a process are blocked and read from a descriptor: nothing happens in a handler.
 * (2) Whatever ends it (q, the end, or a signal), the terminal is restored: a signal that ends the
 *     process is KEY_SIGNAL, and terminal_close() lets it do so.
 * (3) A stop (Ctrl-Z) restores the terminal before, and takes it again after.
 */
#ifndef TOOLS_CLI_TERMINAL_H
#define TOOLS_CLI_TERMINAL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

enum key {
    KEY_NONE = 0, /* the time is over, or a key without a meaning */
    KEY_SPACE,
    KEY_NEXT, /* right, down, Enter */
    KEY_BACK, /* left, up, p */
    KEY_FASTER,
    KEY_SLOWER,
    KEY_HELP,      /* ? */
    KEY_SEARCH,    /* / */
    KEY_TURN,      /* n */
    KEY_TURN_BACK, /* N */
    KEY_FAILURE,   /* f */
    KEY_TYPES,     /* t */
    KEY_GOTO,      /* g */
    KEY_QUIT,
    KEY_DRAW,  /* the screen may show something else now */
    KEY_SIGNAL /* one that ends the process */
};

struct terminal {
    bool open;
    int signals; /* signalfd */
    int signal;  /* after KEY_SIGNAL: which */
    sigset_t before;
    struct termios was;
    unsigned char keys[32]; /* read, not taken yet */
    size_t count;
};

/* False, and nothing changed, if standard input and output are not both terminals. */
bool terminal_open(struct terminal *terminal);

/*
 * The next key, after at most timeout_ms. With a terminal that is not open it only waits, and
 * returns KEY_QUIT if nobody reads standard output any more.
 */
enum key terminal_key(struct terminal *terminal, int timeout_ms);

/*
 * Ask for a line on the last line of the screen. False: Escape or a signal, which terminal_key()
 * returns next, ended it.
 */
bool terminal_line(struct terminal *terminal, const char *prompt, char *text, size_t room);

/* Restore it. Does not return after KEY_SIGNAL. */
void terminal_close(struct terminal *terminal);

#endif
