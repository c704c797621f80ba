#include "tools/serve/child.h"

#include "journal/base/error.h"
#include "tools/cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SELF             "/proc/self/exe"
#define ERRORS_BYTES_MAX ((size_t)64 << 10)

extern char **environ;

struct child {
    pid_t pid;
    int ends[2][2]; /* of the pipes: standard output, standard error */
};

static annal_status spawn(struct child *child, const char *store, const char *const *words,
                          annal_error *err)
{
    char *argv[CHILD_WORDS_MAX + 4] = {(char *)(uintptr_t) "annal", (char *)(uintptr_t) "--store",
                                       (char *)(uintptr_t)store};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, piped;
    for (size_t i = 0; words[i] != NULL && i < CHILD_WORDS_MAX; i++)
        argv[3 + i] = (char *)(uintptr_t)words[i];
    sigemptyset(&none);
    sigemptyset(&piped);
    sigaddset(&piped, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, child->ends[0][1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, child->ends[1][1], STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &piped);
    errno = posix_spawn(&child->pid, SELF, &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return errno == 0 ? ANNAL_OK : annal__fail_errno(err, "start '%s'", words[0]);
}

static void close_ends(struct child *child, int side)
{
    for (int i = 0; i < 2; i++) {
        if (child->ends[i][side] >= 0)
            close(child->ends[i][side]);
        child->ends[i][side] = -1;
    }
}

/* What does not fit is read all the same, so that the child does not wait. False: its end. */
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

static void read_all(struct child *child, struct buf *out, struct buf *errors)
{
    struct pollfd ends[2] = {{.fd = child->ends[0][0], .events = POLLIN},
                             {.fd = child->ends[1][0], .events = POLLIN}};
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        if (poll(ends, 2, -1) < 0 && errno != EINTR)
            return;
        for (int i = 0; i < 2; i++) {
            if (ends[i].fd >= 0 && ends[i].revents != 0 &&
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
    if (WIFEXITED(how) && WEXITSTATUS(how) == EXIT_DONE)
        return ANNAL_OK;
    while (errors->len > 0 && errors->ptr[errors->len - 1] == '\n')
        errors->len--;
    const char *text = annal__buf_cstr(errors);
    const char *line = text == NULL ? NULL : strrchr(text, '\n');
    line = line != NULL                    ? line + 1
           : text == NULL || *text == '\0' ? "it ended without a word"
                                           : text;
    if (strncmp(line, prefix, sizeof prefix - 1) == 0)
        line += sizeof prefix - 1;
    bool refused = WIFEXITED(how) && WEXITSTATUS(how) == EXIT_REFUSED;
    return annal__fail(err, refused ? ANNAL_ERR_REFUSED : ANNAL_ERR_IO, "%.480s", line);
}

annal_status child_run(const char *store, const char *const *words, struct buf *out,
                       annal_error *err)
{
    struct child child = {.ends = {{-1, -1}, {-1, -1}}};
    struct buf errors = {.limit = ERRORS_BYTES_MAX};
    annal_status status = ANNAL_OK;
    if (pipe2(child.ends[0], O_CLOEXEC) != 0 || pipe2(child.ends[1], O_CLOEXEC) != 0)
        status = annal__fail_errno(err, "start '%s'", words[0]);
    if (status >= 0)
        status = spawn(&child, store, words, err);
    close_ends(&child, 1);
    if (status >= 0) {
        read_all(&child, out, &errors);
        status = end(&child, &errors, err);
    }
    close_ends(&child, 0);
    annal__buf_done(&errors);
    return status;
}
