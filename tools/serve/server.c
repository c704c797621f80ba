/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/serve/server.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "tools/cli/decider.h"
#include "tools/cli/out.h"
#include "tools/cli/spawn.h"
#include "tools/cli/store_open.h"
#include "tools/cli/whole_file.h"
#include "tools/serve/durable.h"
#include "tools/serve/intake.h"
#include "tools/serve/listen.h"
#include "tools/serve/serve.h"
#include "tools/serve/serve_otlp.h"
#include "tools/serve/waits.h"
#include "tools/show/past.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define LISTEN_USUAL    "127.0.0.1:7117"
#define PLACES_MAX      8u
#define CONNECTIONS_MAX 12000u
/* number of descriptors reserved for the store and for running requests */
#define SPARE_FILES 256u
#define IDLE_S      60u
#define OVERDUE_S   5

struct listener_of {
    struct place place;
    struct serve serve; /* copy of server.serve, with the access rights of this listener */
    struct http *http;
};

struct server {
    const struct args *args;
    struct serve serve;
    const annal_decider *decider;
    char *certificate, *key; /* texts in PEM; NULL without TLS */
    struct listener_of listeners[PLACES_MAX];
    size_t count;
    char *token_path;
    /* whether the token exists only in memory, because the token file cannot be created */
    bool token_in_memory;
    pid_t opener;        /* id of the process that starts the browser; 0 if none is running */
    char open_page[400]; /* path of the file that the browser opens, or "" */
};

extern char **environ;

/* ---- Access ---- */

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
    status = access_tokens(&server->serve.access, server->token_path, &err);
    if (status < 0 && server->serve.read_only && given == NULL &&
        (err.os_errno == EROFS || err.os_errno == EACCES)) {
        say("serve: %s: the token is kept in memory, and the next start creates a new one",
            err.message);
        server->token_in_memory = true;
        status = access_token_in_memory(&server->serve.access, &err);
    }
    return status < 0 ? fail_error(&err) : 0;
}

static int name_hosts(struct server *server, const struct place *place)
{
    static const char *const local[] = {"127.0.0.1", "localhost", "[::1]"};
    const char *host;
    annal_error err = {0};
    int at = 0;
    annal_status status = access_host(&server->serve.access, place->host, place->port, &err);
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        server->serve.access.is_local |= strcmp(place->host, local[i]) == 0;
    for (size_t i = 0; status >= 0 && i < sizeof local / sizeof *local; i++)
        status = access_host(&server->serve.access, local[i], place->port, &err);
    while (status >= 0 && (host = args_next(server->args, "host", &at)) != NULL)
        status = access_host(&server->serve.access, host, place->port, &err);
    return status < 0 ? fail_error(&err) : 0;
}

/* ---- Listening ---- */

#define PEM_BYTES_MAX  ((size_t)1 << 20)
#define GIVEN_FD_FIRST 3 /* the first descriptor that systemd passes (sd_listen_fds(3)) */

static int read_pem(const char *path, char **out)
{
    struct buf text = {0};
    if (path == NULL)
        return 0;
    bool good = whole_file_read(path, PEM_BYTES_MAX, &text) && annal__buf_cstr(&text) != NULL;
    int exit_status =
        good ? 0 : fail_storage("serve: read the PEM file '%s': %s", path, strerror(errno));
    if (good)
        *out = text.ptr;
    else
        annal__buf_done(&text);
    return exit_status;
}

static int read_pair(struct server *server)
{
    int exit_status = read_pem(args_get(server->args, "cert"), &server->certificate);
    return exit_status == 0 ? read_pem(args_get(server->args, "key"), &server->key) : exit_status;
}

/* Return the number of sockets that systemd passed to this process. */
static unsigned given_sockets(void)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    if (pid == NULL || count == NULL || strtol(pid, NULL, 10) != getpid())
        return 0;
    return (unsigned)strtoul(count, NULL, 10);
}

static int take_given(struct server *server, unsigned count)
{
    annal_error err = {0};
    int exit_status = 0;
    for (unsigned i = 0; exit_status == 0 && i < count && server->count < PLACES_MAX; i++) {
        struct place *place = &server->listeners[server->count].place;
        if (listen_given(GIVEN_FD_FIRST + (int)i, place, &err) < 0)
            return fail_error(&err);
        place->is_given = true;
        server->count++;
        exit_status = place->is_unix ? 0 : name_hosts(server, place);
    }
    return exit_status;
}

static int listen_all(struct server *server)
{
    annal_error err = {0};
    int at = 0;
    const char *where = args_next(server->args, "listen", &at);
    unsigned given = given_sockets();
    int exit_status = take_given(server, given);
    if (where == NULL && given == 0)
        where = LISTEN_USUAL;
    for (; exit_status == 0 && where != NULL; where = args_next(server->args, "listen", &at)) {
        struct place *place = &server->listeners[server->count].place;
        if (server->count == PLACES_MAX)
            return fail_usage("--listen may be given at most %u times", PLACES_MAX);
        if (listen_at(where, place, &err) < 0)
            return err.status == ANNAL_ERR_INVALID ? fail_usage("%s", err.message)
                                                   : fail_error(&err);
        server->count++;
        exit_status = place->is_unix ? 0 : name_hosts(server, place);
    }
    return exit_status;
}

/* Compute the maximum number of connections from the limit of open files; a connection with a
 * stream needs up to three. */
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
        listener->serve.is_near = listener->place.is_unix || listener->place.is_loopback;
        const struct http_program program = {
            .arg = &listener->serve, .admit = routes_admit, .run = routes_run, .done = routes_done};
        const struct http_options options = {
            .fd = listener->place.fd,
            .connections_max = most,
            .of_one_max = listener->place.is_loopback || listener->place.is_unix ? 0 : most / 2,
            .idle_s = IDLE_S,
            .certificate = listener->place.is_unix ? NULL : server->certificate,
            .key = server->key};
        if (http_open(&options, &program, &listener->http, &err) < 0)
            return fail_error(&err);
    }
    return 0;
}

/* ---- Printing the address ---- */

/* Write a file with mode 0600 that redirects the browser to the page with the token. The token is
 * not an argument of the browser, because other users can read the arguments of a process. */
static bool write_open_page(struct server *server, const char *url)
{
    const char *directory = getenv("XDG_RUNTIME_DIR");
    char *path = server->open_page;
    int len = snprintf(path, sizeof server->open_page, "%s/annal-XXXXXX.html",
                       directory != NULL && directory[0] == '/' ? directory : "/tmp");
    int fd = (size_t)len < sizeof server->open_page ? mkostemps(path, 5, O_CLOEXEC) : -1;
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (file == NULL) {
        say("serve: create the temporary page '%s': %s: open the address in a browser yourself",
            path, strerror(errno));
        path[0] = '\0';
        return false;
    }
    fprintf(file,
            "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Annal</title>\n"
            "<meta http-equiv=\"refresh\" content=\"0; url=%s#token=",
            url);
    for (const char *c = server->serve.access.first; *c != '\0'; c++)
        fprintf(file, isalnum((unsigned char)*c) ? "%c" : "%%%02X", (unsigned char)*c);
    fputs("\">\n", file);
    return fclose(file) == 0;
}

/* Start the browser, with default signal handling. The process may run as long as the browser. */
static void start_browser(struct server *server, const char *url)
{
    const char *const words[] = {"xdg-open", url, NULL};
    if (spawn_start(&server->opener, words[0], NULL, words, NULL) != 0) {
        server->opener = 0;
        say("serve: cannot start xdg-open: open the address in a browser yourself");
    }
}

/* Print the addresses of the server. The token is printed to a terminal, or if it is not in a file;
 * not to other outputs, which other users may be able to read. */
static void say_where(struct server *server)
{
    char url[400];
    const char *token = server->serve.access.first;
    bool shows = isatty(STDOUT_FILENO) || server->token_in_memory;
    for (size_t i = 0; i < server->count; i++) {
        const struct place *place = &server->listeners[i].place;
        if (place->is_unix) {
            printf("serving %s at unix:%s\n", annal_store_path(server->serve.store), place->host);
            continue;
        }
        snprintf(url, sizeof url, "http%s://%s:%u/", server->certificate == NULL ? "" : "s",
                 place->host, place->port);
        printf("serving %s at %s%s%s\n", annal_store_path(server->serve.store), url,
               shows && token[0] != '\0' ? "#token=" : "", shows ? token : "");
        if (i > 0 || !args_has(server->args, "open"))
            continue;
        if (token[0] == '\0')
            start_browser(server, url);
        else if (write_open_page(server, url))
            start_browser(server, server->open_page);
    }
    if (!shows && token[0] != '\0')
        printf("the token is in %s\n", server->token_path);
    (void)out_flush();
}

/* ---- Start and end ---- */

static int open_log(struct server *server)
{
    const char *path = args_get(server->args, "log");
    server->serve.log_fd = -1;
    if (path == NULL)
        return 0;
    server->serve.log_fd = strcmp(path, "-") == 0
                               ? STDERR_FILENO
                               : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return server->serve.log_fd < 0
               ? fail_storage("serve: open the log of requests '%s': %s", path, strerror(errno))
               : 0;
}

static int open_rest(struct server *server)
{
    static const int threads[QUEUES] = {[QUEUE_QUICK] = 8, [QUEUE_SLOW] = 2, [QUEUE_SQL] = 2};
    struct serve *serve = &server->serve;
    annal_error err = {0};
    server->decider = decider_new(serve->store);
    const annal_index_options options = {
        .follow = !serve->read_only, .wait_ms = 2000, .decider = server->decider};
    store_wait_each(serve->store);
    serve->begun_us = annal__clock_monotonic_us();
    serve->pool = pool_new(threads);
    serve->otlp = serve_otlp_new(serve->store);
    serve->intake = intake_new(annal_store_path(serve->store), args_has(server->args, "watch"));
    if (serve->pool == NULL || serve->otlp == NULL || serve->intake == NULL)
        return fail_storage("serve: cannot start threads");
    if (annal_index_open(serve->store, &options, &serve->index, &err) < 0 ||
        waits_new(&serve->waits, &err) < 0)
        return fail_error(&err);
    if (args_has(server->args, "streams") && (serve->durable = durable_state_new()) == NULL)
        return fail_storage("serve: out of memory");
    if (filler_new(serve->store, serve->index, &serve->filler, &err) < 0)
        return fail_error(&err);
    serve->past = past_new(serve->store, serve->index);
    return serve->past == NULL ? fail_storage("serve: out of memory") : 0;
}

static void close_all(struct server *server)
{
    for (size_t i = 0; i < server->count; i++) {
        if (server->listeners[i].http != NULL)
            http_quiesce(server->listeners[i].http);
    }
    waits_stop(server->serve.waits);
    pool_stop(server->serve.pool);
    intake_free(server->serve.intake);
    for (size_t i = 0; i < server->count; i++) {
        const struct place *place = &server->listeners[i].place;
        if (server->listeners[i].http != NULL)
            http_close(server->listeners[i].http);
        else
            close(place->fd);
        if (place->is_unix && !place->is_given)
            (void)unlink(place->host);
    }
    pool_free(server->serve.pool);
    serve_otlp_free(server->serve.otlp);
    past_free(server->serve.past);
    waits_free(server->serve.waits);
    durable_state_free(server->serve.durable);
    filler_free(server->serve.filler);
    access_done(&server->serve.access);
    if (server->open_page[0] != '\0')
        (void)unlink(server->open_page);
    annal_index_close(server->serve.index);
    decider_free(server->decider);
    annal__free(server->token_path);
    annal__free(server->certificate);
    annal__free(server->key);
}

/* Block the signals that end the server before any thread starts, so that this thread receives
 * them. */
static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void wait_for_end(struct server *server, const sigset_t *ends)
{
    const struct timespec round = {.tv_sec = OVERDUE_S};
    intake_tend(server->serve.intake);
    while (sigtimedwait(ends, NULL, &round) < 0) {
        intake_tend(server->serve.intake);
        if (server->opener > 0 && waitpid(server->opener, NULL, WNOHANG) == server->opener)
            server->opener = 0;
        for (size_t i = 0; i < server->count; i++)
            http_end_overdue(server->listeners[i].http);
    }
}

int server_run(const struct args *args)
{
    struct server server = {
        .args = args, .serve.read_only = args_has(args, "read-only"), .serve.log_fd = -1};
    sigset_t ends;
    block_signals(&ends);
    int exit_status =
        store_open(args, server.serve.read_only ? OPEN_READ : OPEN_CREATE, 0, &server.serve.store);
    if (exit_status == 0)
        exit_status = read_access(&server);
    if (exit_status == 0)
        exit_status = read_pair(&server);
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
        wait_for_end(&server, &ends);
    }
    if (server.serve.store != NULL)
        close_all(&server);
    return store_close(server.serve.store, exit_status);
}
