#include "tools/serve/server.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "tools/cli/fields.h"
#include "tools/cli/open.h"
#include "tools/cli/out.h"
#include "tools/serve/listen.h"
#include "tools/serve/serve.h"
#include "tools/serve/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define LISTEN_USUAL    "127.0.0.1:7117"
#define PLACES_MAX      8u
#define CONNECTIONS_MAX 12000u
#define SPARE_FILES     256u /* of the store, and of what runs */
#define IDLE_S          60u

struct listener_of {
    struct place place;
    struct serve serve; /* with its own access */
    struct http *http;
};

struct server {
    const struct args *args;
    struct serve serve;
    struct listener_of listeners[PLACES_MAX];
    size_t count;
    char *token_path;
};

extern char **environ;

/* ---- Who may come ---- */

static int read_access(struct server *server)
{
    const struct args *args = server->args;
    annal_error err = {0};
    struct buf path = {0};
    const char *given = args_get(args, "token-file");
    annal_status status = given != NULL ? annal__buf_printf(&path, "%s", given)
                                        : annal__buf_printf(&path, "%s/serve.token",
                                                            annal_store_path(server->serve.store));
    if (status < 0 || annal__buf_cstr(&path) == NULL)
        return fail_storage("serve: out of memory");
    server->token_path = path.ptr;
    return access_tokens(&server->serve.access, server->token_path, &err) < 0 ? fail_error(&err)
                                                                              : 0;
}

static int name_hosts(struct server *server, const struct place *place)
{
    static const char *const local[] = {"127.0.0.1", "localhost", "[::1]"};
    const char *host;
    annal_error err = {0};
    int at = 0;
    annal_status status = access_host(&server->serve.access, place->host, place->port, &err);
    for (size_t i = 0; status >= 0 && i < sizeof local / sizeof *local; i++)
        status = access_host(&server->serve.access, local[i], place->port, &err);
    while (status >= 0 && (host = args_next(server->args, "host", &at)) != NULL)
        status = access_host(&server->serve.access, host, place->port, &err);
    return status < 0 ? fail_error(&err) : 0;
}

/* ---- Listening ---- */

static int listen_all(struct server *server)
{
    annal_error err = {0};
    int at = 0, exit_status = 0;
    const char *where = args_next(server->args, "listen", &at);
    if (where == NULL)
        where = LISTEN_USUAL;
    for (; exit_status == 0 && where != NULL; where = args_next(server->args, "listen", &at)) {
        struct place *place = &server->listeners[server->count].place;
        if (server->count == PLACES_MAX)
            return fail_usage("--listen can be given at most %u times", PLACES_MAX);
        if (listen_at(where, place, &err) < 0)
            return err.status == ANNAL_ERR_INVALID ? fail_usage("%s", err.message)
                                                   : fail_error(&err);
        server->count++;
        exit_status = place->is_unix ? 0 : name_hosts(server, place);
    }
    return exit_status;
}

/* As many descriptors as the system gives; a connection that streams needs up to three. */
static unsigned connections_max(void)
{
    struct rlimit limit = {0};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur < 2 * SPARE_FILES)
        return 64;
    return limit.rlim_cur - SPARE_FILES < CONNECTIONS_MAX ? (unsigned)limit.rlim_cur - SPARE_FILES
                                                          : CONNECTIONS_MAX;
}

static int start_all(struct server *server)
{
    annal_error err = {0};
    unsigned most = connections_max();
    for (size_t i = 0; i < server->count; i++) {
        struct listener_of *listener = &server->listeners[i];
        listener->serve = server->serve;
        listener->serve.access.trusts_all = listener->place.is_unix;
        const struct http_program program = {
            .arg = &listener->serve, .admit = serve_admit, .run = serve_run, .done = serve_done};
        const struct http_options options = {
            .fd = listener->place.fd, .connections_max = most, .idle_s = IDLE_S};
        if (http_open(&options, &program, &listener->http, &err) < 0)
            return fail_error(&err);
    }
    return 0;
}

/* ---- Saying where ---- */

static void open_page(const char *url)
{
    char *const words[] = {(char *)(uintptr_t) "xdg-open", (char *)(uintptr_t)url, NULL};
    pid_t child;
    if (posix_spawnp(&child, words[0], NULL, NULL, words, environ) != 0)
        say("serve: xdg-open could not be started: open the address yourself");
    else
        (void)waitpid(child, NULL, 0);
}

/* The token is shown on a terminal only: what else is written may be read by others. */
static void say_where(struct server *server)
{
    char url[400];
    const char *token = server->serve.access.first;
    for (size_t i = 0; i < server->count; i++) {
        const struct place *place = &server->listeners[i].place;
        if (place->is_unix) {
            printf("serving %s at unix:%s\n", annal_store_path(server->serve.store), place->host);
            continue;
        }
        snprintf(url, sizeof url, "http://%s:%u/", place->host, place->port);
        printf("serving %s at %s%s%s\n", annal_store_path(server->serve.store), url,
               isatty(STDOUT_FILENO) && token[0] != '\0' ? "#token=" : "",
               isatty(STDOUT_FILENO) ? token : "");
        if (i == 0 && args_has(server->args, "open")) {
            snprintf(url + strlen(url), sizeof url - strlen(url), "#token=%s", token);
            open_page(url);
        }
    }
    (void)out_flush();
}

/* ---- The life ---- */

static int open_log(struct server *server)
{
    const char *path = args_get(server->args, "log");
    server->serve.log_fd = -1;
    if (path == NULL)
        return 0;
    server->serve.log_fd = strcmp(path, "-") == 0
                               ? STDERR_FILENO
                               : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return server->serve.log_fd < 0 ? fail_storage("serve: open '%s': %s", path, strerror(errno))
                                    : 0;
}

static int open_rest(struct server *server)
{
    static const int threads[LANES] = {[LANE_QUICK] = 8, [LANE_SLOW] = 2};
    struct serve *serve = &server->serve;
    annal_error err = {0};
    const annal_index_options options = {.follow = !serve->read_only, .wait_ms = 2000};
    store_wait_each(serve->store);
    serve->begun_us = annal__monotonic_us();
    serve->pool = pool_new(threads);
    if (serve->pool == NULL)
        return fail_storage("serve: its threads do not start");
    if (annal_index_open(serve->store, &options, &serve->index, &err) < 0 ||
        streams_new(serve, &serve->streams, &err) < 0)
        return fail_error(&err);
    return 0;
}

static void close_all(struct server *server)
{
    for (size_t i = 0; i < server->count; i++) {
        if (server->listeners[i].http != NULL)
            http_quiesce(server->listeners[i].http);
    }
    streams_stop(server->serve.streams);
    pool_stop(server->serve.pool);
    for (size_t i = 0; i < server->count; i++) {
        const struct place *place = &server->listeners[i].place;
        if (server->listeners[i].http != NULL)
            http_close(server->listeners[i].http);
        else
            close(place->fd);
        if (place->is_unix)
            (void)unlink(place->host);
    }
    pool_free(server->serve.pool);
    streams_free(server->serve.streams);
    access_done(&server->serve.access);
    annal_index_close(server->serve.index);
    annal__free(server->token_path);
}

/* The signals that end it; blocked before any thread is there, so that this one gets them. */
static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int server_run(const struct args *args)
{
    struct server server = {
        .args = args, .serve.read_only = args_has(args, "read-only"), .serve.log_fd = -1};
    sigset_t ends;
    int signal_number;
    block_signals(&ends);
    int exit_status =
        store_open(args, server.serve.read_only ? OPEN_READ : OPEN_CREATE, 0, &server.serve.store);
    if (exit_status == 0)
        exit_status = read_access(&server);
    if (exit_status == 0)
        exit_status = listen_all(&server);
    if (exit_status == 0)
        exit_status = open_log(&server);
    if (exit_status == 0)
        exit_status = open_rest(&server);
    if (exit_status == 0)
        exit_status = start_all(&server);
    if (exit_status == 0) {
        say_where(&server);
        (void)sigwait(&ends, &signal_number);
    }
    if (server.serve.store != NULL)
        close_all(&server);
    return store_close(server.serve.store, exit_status);
}
