/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/terminal.h"

#include "tools/cli/out.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int ENDING[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static void watched_signals(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < sizeof ENDING / sizeof *ENDING; i++)
        sigaddset(set, ENDING[i]);
    sigaddset(set, SIGTSTP);
    sigaddset(set, SIGWINCH);
}

static void take(const struct terminal *terminal)
{
    struct termios raw = terminal->was;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

static void give_back(const struct terminal *terminal)
{
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->was);
}

bool terminal_open(struct terminal *terminal)
{
    sigset_t watched;
    *terminal = (struct terminal){.signals = -1};
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
        tcgetattr(STDIN_FILENO, &terminal->was) != 0)
        return false;
    watched_signals(&watched);
    if (sigprocmask(SIG_BLOCK, &watched, &terminal->before) != 0)
        return false;
    terminal->signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (terminal->signals < 0) {
        (void)sigprocmask(SIG_SETMASK, &terminal->before, NULL);
        return false;
    }
    take(terminal);
    terminal->open = true;
    return true;
}

/* Let the signal have its default action, which may end or stop this process. */
static void let_happen(int signal)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    (void)raise(signal);
    (void)sigprocmask(SIG_UNBLOCK, &one, NULL);
}

void terminal_close(struct terminal *terminal)
{
    if (!terminal->open)
        return;
    terminal->open = false;
    give_back(terminal);
    close(terminal->signals);
    if (terminal->signal != 0)
        let_happen(terminal->signal);
    (void)sigprocmask(SIG_SETMASK, &terminal->before, NULL);
}

/* Restore the terminal and stop the process, as Ctrl-Z demands; when it continues, set the terminal
 * up again. */
static void stop(const struct terminal *terminal)
{
    sigset_t watched;
    give_back(terminal);
    let_happen(SIGTSTP);
    watched_signals(&watched);
    (void)sigprocmask(SIG_BLOCK, &watched, NULL);
    take(terminal);
}

static enum key read_signal(struct terminal *terminal)
{
    struct signalfd_siginfo info;
    if (read(terminal->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return KEY_NONE;
    if (info.ssi_signo == SIGTSTP)
        stop(terminal);
    if (info.ssi_signo == SIGTSTP || info.ssi_signo == SIGWINCH)
        return KEY_DRAW;
    terminal->signal = (int)info.ssi_signo;
    return KEY_SIGNAL;
}

static enum key key_of(unsigned char c)
{
    static const struct {
        char c;
        enum key key;
    } keys[] = {{' ', KEY_SPACE},   {'\n', KEY_NEXT},  {'\r', KEY_NEXT},  {'p', KEY_BACK},
                {'+', KEY_FASTER},  {'=', KEY_FASTER}, {'-', KEY_SLOWER}, {'q', KEY_QUIT},
                {4, KEY_QUIT}, /* Ctrl-D */
                {'?', KEY_HELP},    {'/', KEY_SEARCH}, {'n', KEY_TURN},   {'N', KEY_TURN_BACK},
                {'f', KEY_FAILURE}, {'t', KEY_TYPES},  {'g', KEY_GOTO}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if ((unsigned char)keys[i].c == c)
            return keys[i].key;
    }
    return KEY_NONE;
}

static void drop_keys(struct terminal *terminal, size_t count)
{
    terminal->count -= count;
    memmove(terminal->keys, terminal->keys + count, terminal->count);
}

static enum key take_key(struct terminal *terminal)
{
    const unsigned char *keys = terminal->keys;
    if (keys[0] == 27 && terminal->count >= 3 && (keys[1] == '[' || keys[1] == 'O')) {
        unsigned char c = keys[2];
        drop_keys(terminal, 3);
        return c == 'C' || c == 'B' ? KEY_NEXT : c == 'D' || c == 'A' ? KEY_BACK : KEY_NONE;
    }
    enum key key = key_of(keys[0]);
    drop_keys(terminal, 1);
    return key;
}

static enum key wait_without_keys(int timeout_ms)
{
    struct pollfd reader = {.fd = STDOUT_FILENO};
    if (poll(&reader, 1, timeout_ms) > 0 && (reader.revents & (POLLERR | POLLHUP)) != 0)
        return KEY_QUIT;
    return KEY_NONE;
}

enum key terminal_key(struct terminal *terminal, int timeout_ms)
{
    struct pollfd ready[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = terminal->signals, .events = POLLIN}};
    if (!terminal->open)
        return wait_without_keys(timeout_ms);
    if (terminal->signal != 0)
        return KEY_SIGNAL;
    if (terminal->count > 0)
        return take_key(terminal);
    if (poll(ready, 2, timeout_ms) <= 0)
        return KEY_NONE;
    if (ready[1].revents != 0)
        return read_signal(terminal);
    ssize_t got = read(STDIN_FILENO, terminal->keys, sizeof terminal->keys);
    if (got <= 0)
        return KEY_QUIT; /* the terminal was closed */
    terminal->count = (size_t)got;
    return take_key(terminal);
}

/* Return the next byte of input; 0 if a signal ends the process or the terminal was closed. */
static unsigned char read_byte(struct terminal *terminal)
{
    struct pollfd ready[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = terminal->signals, .events = POLLIN}};
    while (terminal->count == 0) {
        if (poll(ready, 2, -1) <= 0)
            continue;
        if (ready[1].revents != 0 && read_signal(terminal) == KEY_SIGNAL)
            return 0;
        if (ready[0].revents == 0)
            continue;
        ssize_t got = read(STDIN_FILENO, terminal->keys, sizeof terminal->keys);
        if (got <= 0)
            return 0;
        terminal->count = (size_t)got;
    }
    unsigned char c = terminal->keys[0];
    drop_keys(terminal, 1);
    return c;
}

bool terminal_line(struct terminal *terminal, const char *prompt, char *text, size_t room)
{
    size_t len = 0;
    for (;;) {
        text[len] = '\0';
        out_control(stdout, CLEAR_LINE);
        printf("%s%s", prompt, text);
        fflush(stdout);
        unsigned char c = read_byte(terminal);
        if (c == '\r' || c == '\n' || c == 27 || c == 0) {
            out_control(stdout, CLEAR_LINE);
            if (c == 27 && terminal->count >= 2 && terminal->keys[0] == '[')
                drop_keys(terminal, 2); /* the remaining bytes of an arrow key */
            return c == '\r' || c == '\n';
        }
        if (c == 127 || c == 8) {
            while (len > 0 && ((unsigned char)text[--len] & 0xc0) == 0x80)
                ;
        } else if (c >= ' ' && len + 1 < room) {
            text[len++] = (char)c;
        }
    }
}
