/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `annal` of test files: have test_commands.c run the command with the words, environment,
 * directory, standard streams and limits of this process, and end as it ends. It is small and not
 * instrumented, so that it starts in a millisecond.
 */
#include "tests/commands/request.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int answers[2];

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "tests/commands/annal: %s: %s\n", what, strerror(errno));
    exit(REQUEST_FAILED);
}

static void pass_on(int number)
{
    const char byte = (char)number;
    if (write(answers[0], &byte, 1) < 0)
        _exit(REQUEST_FAILED);
}

static size_t add_words(char *to, size_t len, char **words)
{
    for (; *words != NULL; words++) {
        size_t bytes = strlen(*words) + 1;
        if (len + bytes >= REQUEST_BYTES)
            fail("a long command line");
        memcpy(to + len, *words, bytes);
        len += bytes;
    }
    return len;
}

static void request(int to, char **argv)
{
    static char bytes[REQUEST_BYTES];
    char control[CMSG_SPACE(REQUEST_FILES * sizeof(int))] = "";
    struct request_head *head = (struct request_head *)bytes;
    for (head->words = 0; argv[head->words] != NULL;)
        head->words++;
    umask(head->umask = umask(0));
    getrlimit(RLIMIT_FSIZE, &head->file_bytes);
    size_t len = add_words(bytes, add_words(bytes, sizeof *head, argv), environ);
    const int files[REQUEST_FILES] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO,
                                      open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), answers[1]};
    struct iovec part = {bytes, len};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *sent = CMSG_FIRSTHDR(&message);
    *sent = (struct cmsghdr){CMSG_LEN(sizeof files), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(sent), files, sizeof files);
    if (sendmsg(to, &message, MSG_NOSIGNAL) < 0)
        fail("no test_commands");
}

int main(int argc, char **argv)
{
    (void)argc;
    const char *to = getenv(REQUEST_VARIABLE);
    int status = 0;
    if (to == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, answers) != 0)
        fail("no test_commands");
    request(atoi(to), argv);
    close(answers[1]);
    signal(SIGINT, pass_on);
    signal(SIGTERM, pass_on);
    signal(SIGHUP, pass_on);
    while (read(answers[0], &status, sizeof status) != sizeof status)
        if (errno != EINTR)
            fail("test_commands ended");
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    return REQUEST_FAILED;
}
