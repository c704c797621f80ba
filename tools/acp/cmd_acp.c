/* SPDX-License-Identifier: Apache-2.0 */
/* annal acp: starts an agent, and passes on what the editor and the agent write. */
#include "tools/acp/acp.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/spawn.h"
#include "tools/cli/store_open.h"

#include "journal/base/error.h"
#include "journal/base/io.h"
#include "journal/base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t)65536)

extern char **environ;

struct acp;

/* One direction: what `from` writes to in, the other side reads from out. */
struct direction {
    struct acp *acp;
    struct direction *other;
    const char *from;
    int in, out;
    pthread_mutex_t out_lock; /* the thread of the other direction writes answers to out, too */
    pthread_t thread;
    struct buf read;   /* bytes that are not recorded yet */
    struct buf onward; /* bytes to pass on */
    struct buf back;   /* answers to what was read */
    size_t scanned;    /* bytes of read without a line break */
    bool skips;        /* whether the rest of a line that is too long is passed on */
    bool drains;       /* whether what was written before the stop is passed on */
};

struct acp {
    struct acp_record record;
    struct direction client, agent;
    pid_t pid;
    int stop;    /* eventfd: no more input */
    int signals; /* signalfd */
};

/* ---- A direction ---- */

/* Wait for bytes, and read them. *out_more is false at the end, or when the agent has ended. */
static annal_status read_more(struct direction *direction, bool *out_more, annal_error *err)
{
    struct pollfd fds[2] = {{.fd = direction->in, .events = POLLIN},
                            {.fd = direction->acp->stop, .events = POLLIN}};
    ssize_t got = -1;
    while (poll(fds, 2, -1) < 0 && errno == EINTR)
        ;
    *out_more = false;
    if (fds[1].revents != 0 && (!direction->drains || fds[0].revents == 0))
        return ANNAL_OK;
    if (annal__buf_reserve(&direction->read, PIECE_BYTES) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "acp: read a message of the %s: out of memory",
                           direction->from);
    do
        got = read(direction->in, direction->read.ptr + direction->read.len, PIECE_BYTES);
    while (got < 0 && errno == EINTR);
    direction->read.len += got > 0 ? (size_t)got : 0;
    *out_more = got > 0;
    return ANNAL_OK;
}

/* Record the lines that were read, the last one without a line break if at_end is set, and move
 * them to what is passed on. */
static annal_status record_lines(struct direction *direction, bool at_end, annal_error *err)
{
    struct acp_record *record = &direction->acp->record;
    struct acp_out out = {.onward = &direction->onward, .back = &direction->back};
    annal_slice left = annal__buf_slice(&direction->read);
    annal_status status = ANNAL_OK;
    while (status >= 0 && left.len > 0) {
        const char *end =
            left.len > direction->scanned
                ? memchr(left.ptr + direction->scanned, '\n', left.len - direction->scanned)
                : NULL;
        annal_slice line = {left.ptr, end == NULL ? left.len : (size_t)(end - left.ptr) + 1};
        bool is_long = !direction->skips && line.len > ACP_LINE_BYTES;
        if (end == NULL && !at_end && !direction->skips && !is_long) {
            direction->scanned = left.len;
            break;
        }
        if (is_long) {
            say("acp: a message of the %s is longer than 8 MiB: its beginning is recorded",
                direction->from);
            status = acp_record_head(record, direction->from,
                                     (annal_slice){line.ptr, ACP_HEAD_BYTES}, err);
        }
        if (is_long || direction->skips)
            status = status < 0 ? status : annal__buf_append_slice(&direction->onward, line);
        else
            status = acp_record_line(record, direction->from, line, &out, err);
        direction->skips = (is_long || direction->skips) && end == NULL;
        direction->scanned = 0;
        left = (annal_slice){left.ptr + line.len, left.len - line.len};
    }
    annal__buf_consume(&direction->read, direction->read.len - left.len);
    return status < 0 ? status : annal_store_sync(record->store, err);
}

static bool pass_on(struct direction *direction, struct buf *bytes)
{
    if (bytes->len == 0) /* do not wait for a thread that writes to a slow reader */
        return true;
    pthread_mutex_lock(&direction->out_lock);
    bool good = annal__io_write_fd(direction->out, annal__buf_slice(bytes));
    pthread_mutex_unlock(&direction->out_lock);
    annal__buf_clear(bytes);
    return good;
}

/* Let a standard stream be /dev/null, so that its number is not used again; close another one. */
static void let_go(int fd)
{
    int null = fd <= STDOUT_FILENO ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
    if (null >= 0)
        (void)dup2(null, fd);
    close(null >= 0 ? null : fd);
}

static void *run_direction(void *arg)
{
    struct direction *direction = arg;
    annal_error err = {0};
    bool more = true, good = true;
    annal_status status = ANNAL_OK;
    while (more && good) {
        status = read_more(direction, &more, &err);
        if (status >= 0)
            status = record_lines(direction, !more, &err);
        if (status < 0 && status != ANNAL_ERR_CLOSED)
            (void)fail_error(&err);
        /* The answers first: what is passed on may be the request whose answer ends them. */
        good = status >= 0 && pass_on(direction->other, &direction->back) &&
               pass_on(direction, &direction->onward);
    }
    if (status < 0) {
        pthread_mutex_lock(&direction->acp->record.lock);
        direction->acp->record.ended = true;
        pthread_mutex_unlock(&direction->acp->record.lock);
        (void)kill(getpid(), SIGTERM); /* which the main thread passes on, if the agent runs */
    }
    let_go(direction->in);
    pthread_mutex_lock(&direction->out_lock);
    let_go(direction->out);
    pthread_mutex_unlock(&direction->out_lock);
    return NULL;
}

/* ---- The agent ---- */

static int spawn(struct acp *acp, const char *const *words)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    posix_spawn_file_actions_t actions;
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return fail_storage("acp: create a pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    int failed = spawn_start(&acp->pid, words[0], &actions, words, NULL);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    acp->client.out = in[1];
    acp->agent.in = out[0];
    return failed == 0 ? 0 : fail_refused("acp: start '%s': %s", words[0], strerror(failed));
}

static int receive_signals(void)
{
    static const int passed[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
                                 SIGUSR1, SIGUSR2, SIGCONT, SIGCHLD};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
        sigaddset(&set, passed[i]);
    return sigprocmask(SIG_BLOCK, &set, NULL) == 0 ? signalfd(-1, &set, SFD_CLOEXEC) : -1;
}

/* Pass signals on until the agent has ended; return its exit status, as a shell does. A signal of
 * the terminal has reached the agent, too. */
static int wait_for_agent(const struct acp *acp)
{
    struct signalfd_siginfo info;
    int how = 0;
    while (waitpid(acp->pid, &how, WNOHANG) != acp->pid) {
        if (read(acp->signals, &info, sizeof info) == (ssize_t)sizeof info &&
            info.ssi_signo != SIGCHLD && info.ssi_code != SI_KERNEL)
            (void)kill(acp->pid, (int)info.ssi_signo);
    }
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

/* ---- The verb ---- */

static void direction_init(struct direction *direction, struct acp *acp, const char *from)
{
    direction->acp = acp;
    direction->other = direction == &acp->client ? &acp->agent : &acp->client;
    direction->from = from;
    direction->drains = direction == &acp->agent;
    pthread_mutex_init(&direction->out_lock, NULL);
}

static void direction_done(struct direction *direction)
{
    pthread_mutex_destroy(&direction->out_lock);
    annal__buf_done(&direction->read);
    annal__buf_done(&direction->onward);
    annal__buf_done(&direction->back);
}

static int pass_all(struct acp *acp)
{
    struct direction *const both[] = {&acp->client, &acp->agent};
    const uint64_t one = 1;
    annal_error err = {0};
    int started = 0;
    while (started < 2 &&
           annal__thread_start(&both[started]->thread, run_direction, both[started]) == 0)
        started++;
    if (started < 2)
        (void)kill(acp->pid, SIGTERM);
    int exit_status = wait_for_agent(acp);
    (void)!write(acp->stop, &one, sizeof one);
    for (int i = 0; i < started; i++)
        pthread_join(both[i]->thread, NULL);
    if (started < 2)
        return fail_storage("acp: cannot start a thread");
    if (acp->record.ended)
        return EXIT_STORAGE;
    if (acp_record_end(&acp->record, exit_status, &err) < 0 ||
        annal_store_sync(acp->record.store, &err) < 0)
        return fail_error(&err);
    return exit_status;
}

static int run(const struct args *args)
{
    struct acp acp = {.client = {.in = STDIN_FILENO}, .agent = {.out = STDOUT_FILENO}};
    const char *const *words = args->operands;
    const char *name = strrchr(words[0], '/');
    struct timespec now;
    int exit_status = store_open(args, OPEN_CREATE, 0, &acp.record.store);
    if (exit_status != 0)
        return exit_status;
    store_wait_each(acp.record.store);
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(acp.record.file, sizeof acp.record.file, "%llx-%lx-%x", (unsigned long long)now.tv_sec,
             (unsigned long)now.tv_nsec, (unsigned)getpid());
    acp.record.agent = name == NULL ? words[0] : name + 1;
    pthread_mutex_init(&acp.record.lock, NULL);
    direction_init(&acp.client, &acp, "client");
    direction_init(&acp.agent, &acp, "agent");
    acp.stop = eventfd(0, EFD_CLOEXEC);
    acp.signals = receive_signals();
    exit_status = acp.stop < 0 || acp.signals < 0
                      ? fail_storage("acp: receive signals: %s", strerror(errno))
                      : spawn(&acp, words);
    if (exit_status == 0)
        exit_status = pass_all(&acp);
    direction_done(&acp.client);
    direction_done(&acp.agent);
    acp_record_done(&acp.record);
    close(acp.stop);
    close(acp.signals);
    return store_close(acp.record.store, exit_status);
}

static const struct field fields[] = {
    OPERAND("AGENT", FIELD_LIST, NULL, "the agent's command, and its arguments after it"),
    CREATE_OPTION, FIELDS_END};

const struct command cmd_acp = {
    COMMAND("acp", "record an agent between it and an editor (ACP)", acp, fields, run)};
