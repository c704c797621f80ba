/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read the keys of a terminal, one at a time, and restore the terminal afterwards.
 *
 * (1) Keys are read without Enter and are not echoed; signals of the keyboard stay signals. Signals
 *     that end or stop a process are blocked and read from a descriptor: no code runs in a handler.
 * (2) However it ends (q, the end, or a signal), the terminal is restored: a signal that ends the
 *     process is KEY_SIGNAL, and terminal_close() then raises it.
 * (3) A stop (Ctrl-Z) restores the terminal before, and takes it over again afterwards.
 */
#ifndef TOOLS_CLI_TERMINAL_H
#define TOOLS_CLI_TERMINAL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

enum key {
    KEY_NONE = 0, /* time is over, or a key without a meaning */
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
    KEY_DRAW,  /* the screen must be redrawn */
    KEY_SIGNAL /* a signal that ends the process */
};

struct terminal {
    bool open;
    int signals; /* descriptor of signalfd(2) */
    int signal;  /* number of the signal, after KEY_SIGNAL */
    sigset_t before;
    struct termios was;
    unsigned char keys[32]; /* read, but not processed yet */
    size_t count;
};

/* Open the terminal. False, and nothing changed, if standard input and output are not both
 * terminals. */
bool terminal_open(struct terminal *terminal);

/*
 * Read the next key, for at most timeout_ms. With a terminal that is not open it only waits, and
 * returns KEY_QUIT if the reader of standard output is gone.
 */
enum key terminal_key(struct terminal *terminal, int timeout_ms);

/*
 * Ask for a line on the last line of the screen. False: Escape or a signal ended it; terminal_key()
 * returns it next.
 */
bool terminal_line(struct terminal *terminal, const char *prompt, char *text, size_t room);

/* Restore the terminal. Does not return after KEY_SIGNAL. */
void terminal_close(struct terminal *terminal);

#endif
