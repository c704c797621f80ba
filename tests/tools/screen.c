/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tools/screen.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 300000 };

/* In the child: start the command in the foreground, and report its wait statuses. */
static _Noreturn void be_shell(const struct cli *command, const char *const *words, int tell,
                               int go)
{
    char byte;
    int status = 0;
    signal(SIGTTOU, SIG_IGN);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        tcsetpgrp(STDIN_FILENO, getpid());
        signal(SIGTTOU, SIG_DFL);
        setenv("TERM", "xterm", 1);
        cli_exec(command, words);
    }
    (void)!write(tell, &pid, sizeof pid);
    while (waitpid(pid, &status, WUNTRACED) == pid) {
        (void)!write(tell, &status, sizeof status);
        if (!WIFSTOPPED(status))
            break;
        if (read(go, &byte, 1) != 1)
            break;
        kill(-pid, SIGCONT);
    }
    (void)!read(go, &byte, 1); /* the terminal stays until the test has looked at it */
    _exit(0);
}

void screen_start(struct screen *screen, const struct cli *command, const char *const *words)
{
    int tells[2], goes[2];
    struct winsize size = {.ws_row = 30, .ws_col = 100};
    memset(screen, 0, sizeof *screen);
    ck_assert_int_eq(pipe2(tells, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(goes, O_CLOEXEC), 0);
    screen->shell = forkpty(&screen->terminal, NULL, NULL, &size);
    ck_assert_int_ge(screen->shell, 0);
    if (screen->shell == 0) {
        char byte;
        close(tells[0]);
        close(goes[1]);
        (void)!read(goes[0], &byte, 1);
        be_shell(command, words, tells[1], goes[0]);
    }
    close(tells[1]);
    close(goes[0]);
    screen->tells = tells[0];
    screen->goes_on = goes[1];
    ck_assert_int_eq(tcgetattr(screen->terminal, &screen->was), 0);
    screen_continue(screen);
    ck_assert_int_eq(read(screen->tells, &screen->command, sizeof screen->command),
                     sizeof screen->command);
}

/* Read the available output, within a time limit. False: no output, or the terminal is closed. */
static bool read_more(struct screen *screen, int timeout_ms)
{
    struct pollfd ready = {.fd = screen->terminal, .events = POLLIN};
    if (screen->len >= sizeof screen->text - 1 || poll(&ready, 1, timeout_ms) <= 0)
        return false;
    ssize_t got =
        read(screen->terminal, screen->text + screen->len, sizeof screen->text - 1 - screen->len);
    if (got <= 0)
        return false;
    screen->len += (size_t)got;
    screen->text[screen->len] = '\0';
    return true;
}

void screen_expect(struct screen *screen, const char *text)
{
    const char *found;
    while ((found = strstr(screen->text + screen->seen, text)) == NULL) {
        bool more = read_more(screen, PATIENCE_MS);
        ck_assert_msg(more, "no '%s' behind '%.*s' on the screen, but: %s", text, (int)screen->seen,
                      screen->text, screen->text + screen->seen);
    }
    screen->seen = (size_t)(found - screen->text) + strlen(text);
}

void screen_type(struct screen *screen, const char *keys)
{
    ck_assert_int_eq(write(screen->terminal, keys, strlen(keys)), (ssize_t)strlen(keys));
}

static struct termios settings(const struct screen *screen)
{
    struct termios now;
    ck_assert_int_eq(tcgetattr(screen->terminal, &now), 0);
    return now;
}

bool screen_is_raw(const struct screen *screen)
{
    struct termios now = settings(screen);
    return (now.c_lflag & (tcflag_t)(ICANON | ECHO)) == 0;
}

void screen_assert_restored(const struct screen *screen)
{
    struct termios now = settings(screen);
    ck_assert_uint_eq(now.c_lflag, screen->was.c_lflag);
    ck_assert_uint_eq(now.c_iflag, screen->was.c_iflag);
    ck_assert_uint_eq(now.c_oflag, screen->was.c_oflag);
    ck_assert_mem_eq(now.c_cc, screen->was.c_cc, sizeof now.c_cc);
}

int screen_wait(struct screen *screen)
{
    int status = 0;
    struct pollfd told = {.fd = screen->tells, .events = POLLIN};
    int rounds = 0;
    while (poll(&told, 1, 10) == 0 && rounds++ < PATIENCE_MS / 10)
        (void)read_more(screen, 0); /* it may wait for room on the screen */
    ck_assert_int_eq(read(screen->tells, &status, sizeof status), sizeof status);
    while (read_more(screen, 0))
        ;
    screen->seen = screen->len;
    return status;
}

void screen_continue(struct screen *screen)
{
    ck_assert_int_eq(write(screen->goes_on, "g", 1), 1);
}

void screen_done(struct screen *screen)
{
    close(screen->goes_on);
    close(screen->tells);
    close(screen->terminal);
    ck_assert_int_eq(waitpid(screen->shell, NULL, 0), screen->shell);
}
