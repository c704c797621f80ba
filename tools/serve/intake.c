/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/serve/intake.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/lock_holder.h"
#include "journal/base/number.h"
#include "tools/cli/child.h"
#include "tools/cli/command.h"
#include "tools/cli/out.h"
#include "tools/cli/temporary.h"
#include "tools/import/watcher.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGAIN_US       INT64_C(60000000)
#define END_US         INT64_C(10000000)
#define FIND_MS        30000u
#define LINE_BYTES_MAX ((size_t)1 << 20)
#define MESSAGE_BYTES  400

struct intake {
    const char *store;
    bool watches;
    bool says_other; /* whether it was said that another process watches */
    pid_t watch;     /* 0: not running */
    int64_t again_us;

    pthread_mutex_t lock; /* for the members below */
    pid_t import;         /* 0: not running */
    int out, errors;      /* output of the import, in temporary files; -1 before the first */
    struct buf line;      /* output that has no line break yet */
    int64_t offset;
    uint64_t logs, of, events;
    int exit_status;
    char message[MESSAGE_BYTES]; /* last line of standard error */
};

struct intake *intake_new(const char *store, bool watches)
{
    struct intake *intake = annal__zalloc(sizeof *intake);
    if (intake == NULL)
        return NULL;
    intake->store = store;
    intake->watches = watches;
    intake->out = intake->errors = -1;
    intake->line.limit = LINE_BYTES_MAX;
    pthread_mutex_init(&intake->lock, NULL);
    return intake;
}

/* ---- Processes ---- */

/* Return whether the process ended; then *pid is 0. */
static bool has_ended(pid_t *pid, int *out_exit_status)
{
    int how = 0;
    if (waitpid(*pid, &how, WNOHANG) != *pid)
        return false;
    *pid = 0;
    *out_exit_status = WIFEXITED(how) ? WEXITSTATUS(how) : EXIT_STORAGE;
    return true;
}

static void end(pid_t *pid)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    int64_t due_us = annal__clock_monotonic_us() + END_US;
    int exit_status;
    if (*pid == 0)
        return;
    (void)kill(*pid, SIGTERM);
    while (!has_ended(pid, &exit_status)) {
        if (annal__clock_monotonic_us() > due_us)
            (void)kill(*pid, SIGKILL);
        nanosleep(&nap, NULL);
    }
}

/* Start the watch, unless another process watches. */
static void start_watch(struct intake *intake)
{
    static const char *const words[] = {"watch", NULL};
    struct watcher other;
    char name[HOLDER_BYTES];
    annal_error err = {0};
    intake->again_us = annal__clock_monotonic_us() + AGAIN_US;
    if (watcher_find(intake->store, &other)) {
        if (!intake->says_other)
            say("serve: %s watches the logs of agents for this store; --watch begins when it ends",
                annal__lock_holder_name(other.pid, name));
        intake->says_other = true;
        intake->again_us = 0;
        return;
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int fds[3] = {null, null, STDERR_FILENO};
    if (child_start(intake->store, words, fds, &intake->watch, &err) < 0) {
        intake->watch = 0;
        say("serve: %s", err.message);
    }
    intake->says_other = false;
    if (null >= 0)
        close(null);
}

void intake_tend(struct intake *intake)
{
    int exit_status = 0;
    if (intake->watch != 0 && has_ended(&intake->watch, &exit_status))
        say("serve: the watch ended with exit status %d and is started again", exit_status);
    if (intake->watches && intake->watch == 0 && annal__clock_monotonic_us() >= intake->again_us)
        start_watch(intake);
}

void intake_free(struct intake *intake)
{
    if (intake == NULL)
        return;
    end(&intake->watch);
    end(&intake->import);
    if (intake->out >= 0)
        close(intake->out);
    if (intake->errors >= 0)
        close(intake->errors);
    annal__buf_done(&intake->line);
    pthread_mutex_destroy(&intake->lock);
    annal__free(intake);
}

/* ---- The import ---- */

static uint64_t count_of(annal_slice line, const char *name)
{
    annal_slice raw = annal__json_member(line, name);
    struct number number = raw.len == 0 ? (struct number){0} : annal__number_read(raw);
    return number.kind == NUMBER_UINT ? number.uint : 0;
}

/* Count a line of `annal import --json`: a place and the number of its logs, or a log and the
 * number of its events. */
static void read_line(struct intake *intake)
{
    annal_slice line = annal__buf_slice(&intake->line);
    if (annal__json_check(line, ANNAL_DATA_DEPTH_MAX, NULL) == JSON_VALID) {
        bool is_place = annal__json_member(line, "place").len > 0;
        intake->of += is_place ? count_of(line, "logs") : 0;
        intake->logs += !is_place;
        intake->events += is_place ? 0 : count_of(line, "events");
    }
    annal__buf_clear(&intake->line);
}

/* Read what the import has printed since the last call. */
static void read_progress(struct intake *intake)
{
    char piece[16384];
    ssize_t got;
    while ((got = pread(intake->out, piece, sizeof piece, intake->offset)) > 0) {
        intake->offset += got;
        for (const char *at = piece, *stop = piece + got; at < stop;) {
            const char *newline = memchr(at, '\n', (size_t)(stop - at));
            (void)annal__buf_append(&intake->line, at,
                                    (size_t)((newline != NULL ? newline : stop) - at));
            if (newline != NULL)
                read_line(intake);
            at = newline != NULL ? newline + 1 : stop;
        }
    }
}

/* Keep the last line of standard error, in which a failed import says why. */
static void read_message(struct intake *intake)
{
    char text[MESSAGE_BYTES] = "";
    int64_t bytes = lseek(intake->errors, 0, SEEK_END);
    int64_t from = bytes < MESSAGE_BYTES ? 0 : bytes - MESSAGE_BYTES + 1;
    ssize_t got = pread(intake->errors, text, sizeof text - 1, from);
    while (got > 0 && text[got - 1] == '\n')
        text[--got] = '\0';
    const char *line = strrchr(text, '\n');
    snprintf(intake->message, sizeof intake->message, "%s", line != NULL ? line + 1 : text);
}

static void look(struct intake *intake)
{
    if (intake->import == 0)
        return;
    bool ended = has_ended(&intake->import, &intake->exit_status);
    read_progress(intake);
    if (ended)
        read_message(intake);
}

static annal_status renew(int *fd, annal_error *err)
{
    if (*fd >= 0)
        close(*fd);
    *fd = temporary_file(NULL);
    return *fd < 0 ? annal__fail_errno(err, "import: cannot create a temporary file") : ANNAL_OK;
}

static annal_status start_import(struct intake *intake, annal_error *err)
{
    static const char *const words[] = {"--json", "import", NULL};
    look(intake);
    if (intake->import != 0)
        return annal__fail(err, ANNAL_ERR_CONFLICT, "an import runs already");
    annal_status status = renew(&intake->out, err);
    if (status >= 0)
        status = renew(&intake->errors, err);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (status >= 0) {
        const int fds[3] = {null, intake->out, intake->errors};
        status = child_start(intake->store, words, fds, &intake->import, err);
    }
    if (null >= 0)
        close(null);
    if (status < 0)
        intake->import = 0;
    annal__buf_clear(&intake->line);
    intake->offset = 0;
    intake->logs = intake->of = intake->events = 0;
    intake->message[0] = '\0';
    return status;
}

static annal_status put_state(struct intake *intake, struct buf *out)
{
    const char *state = intake->import != 0                   ? "running"
                        : intake->out < 0                     ? "none"
                        : intake->exit_status <= EXIT_REFUSED ? "done"
                                                              : "failed";
    return annal__json_put(out, "{\"state\":\"#\",\"logs\":#,\"of\":#,\"events\":#,\"message\":?}",
                           annal_slice_of(state), JSON_U64(intake->logs), JSON_U64(intake->of),
                           JSON_U64(intake->events), annal_slice_of(intake->message));
}

/* ---- Routes ---- */

bool intake_is_near(const struct serve *serve, const struct request *request)
{
    static const char *const local[] = {"127.0.0.1", "localhost", "[::1]"};
    static const char *const relayed[] = {"Forwarded", "X-Forwarded-For", "X-Forwarded-Host",
                                          "X-Real-IP", "Via"};
    const char *host = http_header(request, "Host");
    bool named = serve->access.trusts_all, near = serve->is_near;
    for (size_t i = 0; host != NULL && i < sizeof local / sizeof *local; i++) {
        size_t len = strlen(local[i]);
        named |= strncmp(host, local[i], len) == 0 && (host[len] == ':' || host[len] == '\0');
    }
    for (size_t i = 0; i < sizeof relayed / sizeof *relayed; i++)
        near &= http_header(request, relayed[i]) == NULL;
    return near && named;
}

static bool may(struct serve *serve, struct request *request)
{
    bool near = intake_is_near(serve, request);
    if (!near)
        answer_error(request, 403, "remote",
                     "logs of this machine are found and imported only for a client on it: run "
                     "'annal import' or 'annal watch' there");
    return near;
}

/* Answer with the places that have logs, as `annal import --dry-run` finds them. */
void intake_logs(struct serve *serve, struct request *request)
{
    static const char *const words[] = {"--json", "import", "--dry-run", NULL};
    const struct child_options options = {.most_ms = FIND_MS, .socket = http_socket(request)};
    SCOPED_BUF out = {0};
    struct buf *answer = &request->answer;
    annal_error err = {0};
    if (!may(serve, request))
        return;
    annal_status status = child_run(annal_store_path(serve->store), words, &options, &out, &err);
    if (status == ANNAL_ERR_REFUSED) {
        annal__buf_clear(&out); /* no agent has logs */
        status = ANNAL_OK;
    }
    if (status >= 0)
        status = annal__buf_append(answer, "{\"places\":[", 11);
    for (size_t at = 0; status >= 0 && at < out.len;) {
        const char *newline = memchr(out.ptr + at, '\n', out.len - at);
        size_t len = newline != NULL ? (size_t)(newline - out.ptr) - at : out.len - at;
        status = annal__buf_printf(answer, "%s%.*s", at > 0 ? ",\n" : "", (int)len, out.ptr + at);
        at += len + 1;
    }
    if (status >= 0)
        status = annal__buf_append(answer, "]}", 2);
    answer_json(request, status, &err);
}

static void answer_state(struct serve *serve, struct request *request, bool starts)
{
    struct intake *intake = serve->intake;
    annal_error err = {0};
    if (!may(serve, request))
        return;
    pthread_mutex_lock(&intake->lock);
    annal_status status = starts ? start_import(intake, &err) : ANNAL_OK;
    look(intake);
    if (status >= 0)
        status = put_state(intake, &request->answer);
    pthread_mutex_unlock(&intake->lock);
    answer_json(request, status, &err);
}

void intake_state(struct serve *serve, struct request *request)
{
    answer_state(serve, request, false);
}

void intake_import(struct serve *serve, struct request *request)
{
    answer_state(serve, request, true);
}
