/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/child.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/io.h"
#include "tools/cli/command.h"
#include "tools/cli/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SELF             "/proc/self/exe"
#define PARENT           "ANNAL_PARENT"
#define ERRORS_BYTES_MAX ((size_t)64 << 10)

extern char **environ;

struct child {
    pid_t pid;
    int ends[3][2]; /* pipes: standard output, standard error, standard input */
    /* whether it was killed because its time limit was over (late), or because its client
     * disconnected (unwanted) */
    bool late, unwanted;
};

/* Copy the environment of this process, and add a variable. Returns NULL if memory ran out. */
static char **environment_with(const char *variable)
{
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    char **all = annal__zalloc((count + 2) * sizeof *all);
    if (all == NULL)
        return NULL;
    memcpy(all, environ, count * sizeof *all);
    all[count] = (char *)(uintptr_t)variable;
    return all;
}

/* Start the process with these descriptors as standard input, output and error. */
static annal_status spawn(const char *store, const char *const *words, const int fds[3],
                          char **environment, pid_t *out_pid, annal_error *err)
{
    const char *argv[CHILD_WORDS_MAX + 4] = {"annal", "--store", store};
    posix_spawn_file_actions_t actions;
    for (size_t i = 0; words[i] != NULL && i < CHILD_WORDS_MAX; i++)
        argv[3 + i] = words[i];
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_adddup2(&actions, fds[i], i);
    errno = spawn_start(out_pid, SELF, &actions, argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    return errno == 0 ? ANNAL_OK
                      : annal__fail_errno(err, "cannot start the program '%s'", words[0]);
}

static void close_ends(struct child *child, int side)
{
    for (int i = 0; i < 3; i++) {
        if (child->ends[i][side] >= 0)
            close(child->ends[i][side]);
        child->ends[i][side] = -1;
    }
}

/* Read available output once, and append it to out. Bytes beyond out's limit are read and
 * discarded, so that the child does not block. Returns false at the end of the output. */
static bool read_some(int fd, struct buf *out)
{
    char piece[16384];
    ssize_t got;
    do
        got = read(fd, piece, sizeof piece);
    while (got < 0 && errno == EINTR);
    if (got > 0)
        (void)annal__buf_append(out, piece, (size_t)got);
    return got > 0;
}

/* Write the input. This cannot block forever, because the child reads its whole input before it
 * writes; if the child has ended, the rest of the input is discarded. */
static void write_input(struct child *child, annal_slice input)
{
    (void)annal__io_write_fd(child->ends[2][1], input);
    close(child->ends[2][1]);
    child->ends[2][1] = -1;
}

static void read_all(struct child *child, const struct child_options *options, int64_t due_us,
                     struct buf *out, struct buf *errors)
{
    struct pollfd ends[3] = {
        {.fd = child->ends[0][0], .events = POLLIN},
        {.fd = child->ends[1][0], .events = POLLIN},
        {.fd = options->socket == 0 ? -1 : options->socket, .events = POLLRDHUP}};
    if (options->is_unwanted != NULL)
        ends[2] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        int64_t left_us = due_us == 0 ? 0 : due_us - annal__clock_monotonic_us();
        int ready = poll(ends, 3, due_us == 0 ? -1 : left_us > 0 ? (int)(left_us / 1000) + 1 : 0);
        if (ready < 0 && errno != EINTR)
            return;
        child->late |= ready == 0;
        if (ready > 0 && ends[2].revents != 0) {
            int answer = options->is_unwanted == NULL ? 1 : options->is_unwanted(options->arg);
            child->unwanted |= answer > 0;
            ends[2].fd = answer < 0 ? -1 : ends[2].fd;
        }
        if (child->late || child->unwanted) {
            due_us = 0;
            ends[2].fd = -1;
            (void)kill(child->pid, SIGKILL);
        }
        for (int i = 0; i < 2; i++) {
            if (ready > 0 && ends[i].fd >= 0 && ends[i].revents != 0 &&
                !read_some(ends[i].fd, i == 0 ? out : errors))
                ends[i].fd = -1;
        }
    }
}

static annal_status end(const struct child *child, struct buf *errors, annal_error *err)
{
    static const char prefix[] = "annal: ";
    int how = 0;
    while (waitpid(child->pid, &how, 0) < 0 && errno == EINTR)
        ;
    if (child->unwanted)
        return annal__fail(
            err, ANNAL_ERR_CLOSED,
            "the process that answered a request was stopped: the client disconnected");
    if (child->late)
        return annal__fail(
            err, ANNAL_ERR_LIMIT,
            "the process that answered a request was stopped: the time limit was exceeded");
    if (WIFEXITED(how) && WEXITSTATUS(how) == EXIT_DONE)
        return ANNAL_OK;
    while (errors->len > 0 && errors->ptr[errors->len - 1] == '\n')
        errors->len--;
    const char *text = annal__buf_cstr(errors);
    const char *line = text == NULL ? NULL : strrchr(text, '\n');
    line = line != NULL                    ? line + 1
           : text == NULL || *text == '\0' ? "the process exited without an answer"
                                           : text;
    if (strncmp(line, prefix, sizeof prefix - 1) == 0)
        line += sizeof prefix - 1;
    bool refused = WIFEXITED(how) && WEXITSTATUS(how) == EXIT_REFUSED;
    return annal__fail(err, refused ? ANNAL_ERR_REFUSED : ANNAL_ERR_IO, "%.480s", line);
}

annal_status child_run(const char *store, const char *const *words,
                       const struct child_options *options, struct buf *out, annal_error *err)
{
    static const struct child_options defaults;
    struct child child = {.ends = {{-1, -1}, {-1, -1}, {-1, -1}}};
    SCOPED_BUF errors = {.limit = ERRORS_BYTES_MAX};
    annal_status status = ANNAL_OK;
    if (options == NULL)
        options = &defaults;
    int64_t due_us =
        options->most_ms == 0 ? 0 : annal__clock_monotonic_us() + options->most_ms * INT64_C(1000);
    char **environment = options->variable == NULL ? environ : environment_with(options->variable);
    if (environment == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "start the program '%s': out of memory", words[0]);
    for (int i = 0; status >= 0 && i < 3; i++) {
        if (pipe2(child.ends[i], O_CLOEXEC) != 0)
            status = annal__fail_errno(err, "cannot start the program '%s'", words[0]);
    }
    const int fds[3] = {child.ends[2][0], child.ends[0][1], child.ends[1][1]};
    if (status >= 0)
        status = spawn(store, words, fds, environment, &child.pid, err);
    if (environment != environ)
        annal__free(environment);
    if (status >= 0) {
        close(child.ends[0][1]);
        close(child.ends[1][1]);
        close(child.ends[2][0]);
        child.ends[0][1] = child.ends[1][1] = child.ends[2][0] = -1;
        write_input(&child, options->input);
        read_all(&child, options, due_us, out, &errors);
        status = end(&child, &errors, err);
    }
    close_ends(&child, 0);
    close_ends(&child, 1);
    return status;
}

annal_status child_start(const char *store, const char *const *words, const int fds[3],
                         pid_t *out_pid, annal_error *err)
{
    char variable[sizeof PARENT + 24];
    snprintf(variable, sizeof variable, PARENT "=%ld", (long)getpid());
    char **environment = environment_with(variable);
    if (environment == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "start the program '%s': out of memory", words[0]);
    annal_status status = spawn(store, words, fds, environment, out_pid, err);
    annal__free(environment);
    return status;
}

void child_end_with_parent(void)
{
    const char *parent = getenv(PARENT);
    if (parent == NULL)
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (strtol(parent, NULL, 10) != (long)getppid())
        raise(SIGTERM); /* it ended before this call */
}
