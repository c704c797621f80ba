/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     test_commands [--accept] [--only TEXT] FILE…
 *
 * Run run.py with these arguments and, for each `annal` that its shells start (annal.c), the
 * command in a child of this process: under sanitizers a program takes long to start, and test
 * files start it thousands of times.
 */
#include "tests/commands/request.h"
#include "tools/cli/command.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

extern char **environ;

enum { JOBS_MAX = 64, WORDS_MAX = 2000, NOBODY = 65534 };

/* A running child; jobs[0] is Python, which has no client. */
static struct job {
    pid_t pid;
    int pidfd;
    int client; /* -1: none */
} jobs[JOBS_MAX];
static int job_count;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "test_commands: %s: %s\n", what, strerror(errno));
    exit(REQUEST_FAILED);
}

static void add_job(pid_t pid, int client)
{
    int pidfd = pidfd_open(pid, 0);
    if (pid < 0 || pidfd < 0 || job_count == JOBS_MAX)
        fail("start a process");
    jobs[job_count++] = (struct job){pid, pidfd, client};
}

static _Noreturn void become_command(char *bytes, size_t len, const int *files)
{
    static char *words[WORDS_MAX];
    const struct request_head *head = (const struct request_head *)bytes;
    int count = 0;
    for (size_t at = sizeof *head; at < len && count < WORDS_MAX - 2;
         at += strlen(bytes + at) + 1) {
        count += count == head->words; /* NULL between the words and the environment */
        words[count++] = bytes + at;
    }
    if (fchdir(files[3]) != 0)
        fail("enter a directory");
    for (int i = 0; i <= STDERR_FILENO; i++)
        dup2(files[i], i);
    closefrom(STDERR_FILENO + 1);
    umask(head->umask);
    setrlimit(RLIMIT_FSIZE, &head->file_bytes);
    environ = words + head->words + 1;
    if (getenv("AS_NOBODY") != NULL && geteuid() == 0 &&
        (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        fail("become another user");
    int exit_status = command_main(head->words, words);
#ifdef __SANITIZE_ADDRESS__
    if (getenv("ANNAL_TEST_FULL") != NULL && __lsan_do_recoverable_leak_check() != 0)
        exit_status = 125; /* a status that no verb returns */
#endif
    _exit(exit_status);
}

static void serve_request(int from)
{
    static char bytes[REQUEST_BYTES];
    int files[REQUEST_FILES];
    char control[CMSG_SPACE(sizeof files)];
    struct iovec part = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t len = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
    if (len == 0) /* Python ends */
        return;
    struct cmsghdr *got = len > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (got == NULL || got->cmsg_len != CMSG_LEN(sizeof files))
        fail("receive a request");
    memcpy(files, CMSG_DATA(got), sizeof files);
    pid_t pid = fork();
    if (pid == 0)
        become_command(bytes, (size_t)len, files);
    add_job(pid, files[4]);
    for (int i = 0; i < 4; i++)
        close(files[i]);
}

static void serve_client(const struct job *job)
{
    char number;
    kill(job->pid, read(job->client, &number, 1) == 1 ? number : SIGKILL);
}

/* Tell the client how its job ended. */
static void end_job(int i)
{
    int status = 0;
    struct job *job = &jobs[i];
    if (waitpid(job->pid, &status, 0) != job->pid)
        fail("wait for a process");
    if (i == 0)
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : REQUEST_FAILED);
    (void)!send(job->client, &status, sizeof status, MSG_NOSIGNAL);
    close(job->client);
    close(job->pidfd);
    *job = jobs[--job_count];
}

static void serve(int requests)
{
    struct pollfd fds[1 + 2 * JOBS_MAX] = {{.fd = requests, .events = POLLIN}};
    for (int i = 0; i < job_count; i++) {
        fds[1 + 2 * i] = (struct pollfd){.fd = jobs[i].pidfd, .events = POLLIN};
        fds[2 + 2 * i] = (struct pollfd){.fd = jobs[i].client, .events = POLLIN};
    }
    int count = job_count;
    if (poll(fds, (nfds_t)(1 + 2 * count), -1) < 0)
        fail("wait");
    for (int i = count - 1; i >= 0; i--) { /* the last job takes the place of an ended one */
        if (fds[1 + 2 * i].revents != 0)
            end_job(i);
        else if (fds[2 + 2 * i].revents != 0)
            serve_client(&jobs[i]);
    }
    if (fds[0].revents != 0)
        serve_request(requests);
}

int main(int argc, char **argv)
{
    int pair[2];
    char text[16];
    signal(SIGXFSZ, SIG_IGN); /* a write beyond a limit fails */
    char **words = calloc((size_t)argc + 4, sizeof *words);
    if (words == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
        fail("start");
    snprintf(text, sizeof text, "%d", pair[1]);
    setenv(REQUEST_VARIABLE, text, 1);
    pid_t pid = fork();
    if (pid == 0) {
        static char *const first[] = {"python3", "-S", RUN_PY, BIN};
        close(pair[0]);
        memcpy(words, first, sizeof first);
        memcpy(words + 4, argv + 1, (size_t)argc * sizeof *argv);
        execvp(words[0], words);
        fail("python3");
    }
    close(pair[1]);
    add_job(pid, -1);
    for (;;)
        serve(pair[0]);
}
