/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the keys of a terminal, one at a time, and restores the terminal afterwards.
 *
 * (1) Keys are read without Enter and are not echoed; the signals of the keyboard, such as Ctrl-C,
 *     still work. Signals that end or stop a process are blocked and read from a descriptor, so no
 *     code runs in a handler.
 * (2) The terminal is restored however its use ends: by q, at the end of the text, or by a signal.
 *     A signal that ends the process is read as KEY_SIGNAL, and terminal_close() raises it after
 *     restoring.
 * (3) Before a stop (Ctrl-Z) the terminal is restored, and after it set up again.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

enum key {
    KEY_NONE = 0, /* no key within the timeout, or a key without a meaning */
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
    int signals; /* descriptor of signalfd(2) for the blocked signals */
    int signal;  /* number of the signal that ends the process, or 0 */
    sigset_t before;
    struct termios was;
    unsigned char keys[32]; /* bytes that were read but not handled yet */
    size_t count;
};

/* Set up the terminal. Returns false, and changes nothing, if standard input and output are not
 * both terminals. */
bool terminal_open(struct terminal *terminal);

/*
 * Return the next key, or KEY_NONE after timeout_ms. If the terminal is not open, only wait, and
 * return KEY_QUIT if the reader of standard output is gone.
 */
enum key terminal_key(struct terminal *terminal, int timeout_ms);

/*
 * Read a line, with a prompt, on the last line of the screen. Returns false if Escape or a signal
 * ended it; terminal_key() returns the signal next.
 */
bool terminal_line(struct terminal *terminal, const char *prompt, char *text, size_t room);

/* Restore the terminal. After KEY_SIGNAL this raises the signal, which ends the process. */
void terminal_close(struct terminal *terminal);
