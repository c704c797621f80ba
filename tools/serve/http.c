/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/serve/http.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/io.h"

#include <errno.h>
#include <loaded/mhd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* memory of a connection: request line, headers and output buffer, in bytes */
#define CONNECTION_BYTES ((size_t)16 << 10)
/* part of CONNECTION_BYTES for path, query and parameters */
#define TARGET_BYTES_MAX ((size_t)10 << 10)
/* memory that the library needs for each parameter and each header */
#define PARAMETER_BYTES ((size_t)80)
/* part of CONNECTION_BYTES for the request; the rest is for the head of the answer */
#define HEAD_BYTES_MAX ((size_t)14 << 10)
/* maximum size of all request bodies in memory together */
#define BODIES_BYTES_MAX ((size_t)256 << 20)
/* size above which the buffer of an empty flow is freed */
#define KEEP_BYTES ((size_t)64 << 10)

/* A connection. The lock of struct http guards it. */
struct peer {
    int fd;
    int64_t idle_us; /* time since which the connection has no request */
    struct request *request;
    struct peer *previous, *next;
};

struct http {
    struct MHD_Daemon *daemon;
    struct http_program program;
    int fd;
    bool is_tls;
    pthread_mutex_t lock;
    struct request *requests; /* list of all requests */
    struct peer *peers;
    _Atomic unsigned peer_count;
    _Atomic size_t body_bytes; /* size of all request bodies in memory together */
};

struct flow {
    pthread_mutex_t lock;
    struct MHD_Connection *connection;
    struct flow_source source;
    struct buf out;
    size_t taken; /* number of bytes of `out` that the connection has sent */
    uint64_t bytes;
    bool suspended;
    bool ended;
    bool failed;
    bool gone;
    int users;
};

/* its address marks a request with too many parameters (see_target()) */
static const char too_many;

/* ---- Flows ---- */

struct flow *http_flow_new(struct request *request, const struct flow_source *source)
{
    struct flow *flow = annal__zalloc(sizeof *flow);
    if (flow == NULL)
        return NULL;
    flow->connection = request->connection;
    flow->source = *source;
    flow->users = 2;
    pthread_mutex_init(&flow->lock, NULL);
    pthread_mutex_lock(&request->http->lock);
    request->flow = flow;
    pthread_mutex_unlock(&request->http->lock);
    return flow;
}

void http_flow_keep(struct flow *flow)
{
    pthread_mutex_lock(&flow->lock);
    flow->users++;
    pthread_mutex_unlock(&flow->lock);
}

void http_flow_drop(struct flow *flow)
{
    if (flow == NULL)
        return;
    pthread_mutex_lock(&flow->lock);
    int users = --flow->users;
    pthread_mutex_unlock(&flow->lock);
    if (users > 0)
        return;
    if (flow->source.free != NULL)
        flow->source.free(flow->source.arg);
    annal__buf_done(&flow->out);
    pthread_mutex_destroy(&flow->lock);
    annal__free(flow);
}

/* Resume the connection if it waits, so that MHD calls flow_read() again. Call with the lock. */
static void wake(struct flow *flow)
{
    if (!flow->suspended || flow->gone)
        return;
    flow->suspended = false;
    MHD_resume_connection(flow->connection);
}

/* Append bytes, and return whether that was possible. Call with the lock. */
static bool put(struct flow *flow, annal_slice bytes)
{
    if (flow->gone || flow->ended)
        return false;
    if (flow->taken == flow->out.len || flow->out.len + bytes.len > flow->out.cap) {
        annal__buf_consume(&flow->out, flow->taken);
        flow->taken = 0;
    }
    /* Reserve exactly the memory that a large piece needs, not the next power of two. */
    flow->out.limit = bytes.len > FLOW_BYTES ? flow->out.len + bytes.len : 0;
    if (annal__buf_append_slice(&flow->out, bytes) == ANNAL_OK)
        return true;
    flow->ended = flow->failed = true;
    return false;
}

bool http_flow_put(struct flow *flow, annal_slice bytes)
{
    pthread_mutex_lock(&flow->lock);
    bool good = put(flow, bytes);
    wake(flow);
    pthread_mutex_unlock(&flow->lock);
    return good;
}

bool http_flow_is_full(struct flow *flow)
{
    pthread_mutex_lock(&flow->lock);
    bool full = flow->out.len - flow->taken >= FLOW_BYTES;
    pthread_mutex_unlock(&flow->lock);
    return full;
}

bool http_flow_is_gone(struct flow *flow)
{
    pthread_mutex_lock(&flow->lock);
    bool gone = flow->gone;
    pthread_mutex_unlock(&flow->lock);
    return gone;
}

void http_flow_put_last(struct flow *flow, annal_slice bytes, bool failed)
{
    pthread_mutex_lock(&flow->lock);
    (void)put(flow, bytes);
    flow->ended = true;
    flow->failed = flow->failed || failed;
    wake(flow);
    pthread_mutex_unlock(&flow->lock);
}

static ssize_t take(struct flow *flow, char *to, size_t most)
{
    size_t left = flow->out.len - flow->taken;
    size_t len = left < most ? left : most;
    memcpy(to, flow->out.ptr + flow->taken, len);
    flow->taken += len;
    flow->bytes += len;
    if (flow->taken == flow->out.len && flow->out.cap > KEEP_BYTES) {
        annal__buf_done(&flow->out);
        flow->taken = 0;
    }
    return (ssize_t)len;
}

/* Give MHD the next bytes of an answer, or suspend the connection if none are available. */
static ssize_t flow_read(void *arg, uint64_t at, char *to, size_t most)
{
    struct flow *flow = arg;
    ssize_t len = 0;
    bool wants = false;
    (void)at;
    pthread_mutex_lock(&flow->lock);
    if (flow->taken < flow->out.len)
        len = take(flow, to, most);
    else if (flow->ended)
        len = flow->failed ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    else {
        annal__buf_done(&flow->out); /* free the flow's buffer while no bytes are left to send */
        flow->taken = 0;
        flow->suspended = wants = true;
        MHD_suspend_connection(flow->connection);
    }
    pthread_mutex_unlock(&flow->lock);
    if (wants)
        flow->source.want(flow->source.arg);
    return len;
}

/* ---- Connections ---- */

static void peer_came(struct http *http, struct MHD_Connection *connection, void **context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct peer *peer = annal__zalloc(sizeof *peer);
    *context = peer;
    if (peer == NULL)
        return;
    *peer = (struct peer){.fd = info == NULL ? -1 : info->connect_fd,
                          .idle_us = annal__clock_monotonic_us(),
                          .next = http->peers};
    if (http->peers != NULL)
        http->peers->previous = peer;
    http->peers = peer;
    atomic_fetch_add(&http->peer_count, 1);
}

static void peer_went(struct http *http, struct peer *peer)
{
    if (peer == NULL)
        return;
    if (peer->previous != NULL)
        peer->previous->next = peer->next;
    else
        http->peers = peer->next;
    if (peer->next != NULL)
        peer->next->previous = peer->previous;
    atomic_fetch_sub(&http->peer_count, 1);
    annal__free(peer);
}

static void connected(void *arg, struct MHD_Connection *connection, void **context,
                      enum MHD_ConnectionNotificationCode what)
{
    struct http *http = arg;
    pthread_mutex_lock(&http->lock);
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        peer_came(http, connection, context);
    else
        peer_went(http, *context);
    pthread_mutex_unlock(&http->lock);
}

static struct peer *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

static bool is_late(const struct peer *peer, int64_t now_us)
{
    const struct request *request = peer->request;
    if (request == NULL)
        return now_us - peer->idle_us > HEAD_S * INT64_C(1000000);
    return request->most_s > 0 && now_us - request->begun_us > request->most_s * INT64_C(1000000);
}

/* Shutting the socket down is enough: MHD notices it, and closes the connection. */
void http_end_overdue(struct http *http)
{
    int64_t now_us = annal__clock_monotonic_us();
    pthread_mutex_lock(&http->lock);
    for (const struct peer *peer = http->peers; peer != NULL; peer = peer->next) {
        if (is_late(peer, now_us))
            (void)shutdown(peer->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&http->lock);
}

/* ---- Requests ---- */

static void link_request(struct http *http, struct request *request)
{
    struct peer *peer = peer_of(request->connection);
    pthread_mutex_lock(&http->lock);
    if (peer != NULL)
        peer->request = request;
    request->next = http->requests;
    if (http->requests != NULL)
        http->requests->previous = request;
    http->requests = request;
    pthread_mutex_unlock(&http->lock);
}

static void unlink_request(struct http *http, struct request *request)
{
    struct peer *peer = peer_of(request->connection);
    pthread_mutex_lock(&http->lock);
    if (peer != NULL) {
        peer->request = NULL;
        peer->idle_us = annal__clock_monotonic_us();
    }
    if (request->previous != NULL)
        request->previous->next = request->next;
    else
        http->requests = request->next;
    if (request->next != NULL)
        request->next->previous = request->previous;
    pthread_mutex_unlock(&http->lock);
}

static void free_request(struct request *request)
{
    atomic_fetch_sub(&request->http->body_bytes, request->body_counted);
    if (request->fd >= 0)
        close(request->fd);
    if (request->body_fd >= 0)
        close(request->body_fd);
    annal__buf_done(&request->body);
    annal__buf_done(&request->answer);
    annal__buf_done(&request->headers);
    annal__free(request->path);
    annal__free(request);
}

static struct request *new_request(struct http *http, struct MHD_Connection *connection,
                                   const char *path, const char *method)
{
    struct request *request = annal__zalloc(sizeof *request);
    if (request == NULL)
        return NULL;
    request->http = http;
    request->connection = connection;
    request->method = method;
    request->begun_us = annal__clock_monotonic_us();
    request->most_s = REQUEST_S;
    request->right = "";
    request->fd = request->body_fd = -1;
    request->token = -1;
    request->path = annal__strndup(path, strlen(path));
    if (request->path == NULL) {
        annal__free(request);
        return NULL;
    }
    link_request(http, request);
    return request;
}

static void completed(void *arg, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode why)
{
    struct http *http = arg;
    struct request *request = *state;
    (void)connection;
    (void)why;
    if (request == NULL || *state == &too_many)
        return;
    uint64_t bytes = request->answer.len + request->constant.len + request->fd_bytes;
    if (request->flow != NULL) {
        pthread_mutex_lock(&request->flow->lock);
        request->flow->gone = true;
        bytes = request->flow->bytes;
        pthread_mutex_unlock(&request->flow->lock);
        /* call want(), so that the code that fills the flow notices that the flow has ended */
        request->flow->source.want(request->flow->source.arg);
    }
    http->program.done(http->program.arg, request, bytes);
    unlink_request(http, request);
    http_flow_drop(request->flow);
    free_request(request);
    *state = NULL;
}

static struct MHD_Response *response_of(struct request *request)
{
    if (request->flow != NULL)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4 << 10, flow_read,
                                                 request->flow, NULL);
    if (request->fd >= 0) {
        int fd = request->fd;
        request->fd = -1; /* the response owns the descriptor and closes it */
        return MHD_create_response_from_fd_at_offset64(request->fd_bytes, fd, request->fd_from);
    }
    if (request->constant.ptr != NULL)
        return MHD_create_response_from_buffer(request->constant.len,
                                               (void *)(uintptr_t)request->constant.ptr,
                                               MHD_RESPMEM_PERSISTENT);
    /* The text lives as long as the request, which lives until the response is sent. */
    return MHD_create_response_from_buffer(request->answer.len, request->answer.ptr,
                                           MHD_RESPMEM_PERSISTENT);
}

static void add_headers(struct MHD_Response *response, struct buf *headers)
{
    char *line = headers->len == 0 ? NULL : (char *)(uintptr_t)annal__buf_cstr(headers);
    while (line != NULL && *line != '\0') {
        char *end = strchr(line, '\n');
        char *colon = strstr(line, ": ");
        if (end == NULL || colon == NULL || colon > end)
            return;
        *end = *colon = '\0';
        (void)MHD_add_response_header(response, line, colon + 2);
        line = end + 1;
    }
}

static enum MHD_Result send_answer(struct request *request)
{
    struct MHD_Response *response = response_of(request);
    if (response == NULL)
        return MHD_NO;
    if (request->type != NULL)
        (void)MHD_add_response_header(response, "Content-Type", request->type);
    add_headers(response, &request->headers);
    request->begun = true;
    enum MHD_Result queued = MHD_queue_response(request->connection, request->status, response);
    MHD_destroy_response(response);
    return queued;
}

/* Append received bytes to the body. All of them are consumed, because MHD would pass the others
 * again. */
static enum MHD_Result take_body(struct request *request, const char *bytes, size_t *len)
{
    size_t count = *len;
    request->body_bytes += count;
    *len = 0;
    /* The body was refused, but a client that is still sending does not read the answer: read and
     * discard more of the body, until it is twice as long as the limit. */
    if (request->body_refused != 0)
        return request->body_bytes / 2 <= request->body_limit ? MHD_YES : MHD_NO;
    if (request->body_bytes > request->body_limit) {
        request->body_refused = 413;
    } else if (request->body_fd >= 0) {
        request->body_refused =
            annal__io_write_fd(request->body_fd, (annal_slice){bytes, count}) ? 0 : 507;
    } else {
        size_t of_all = atomic_fetch_add(&request->http->body_bytes, count) + count;
        request->body_counted += count;
        if (of_all > BODIES_BYTES_MAX || annal__buf_append(&request->body, bytes, count) < 0)
            request->body_refused = 503;
    }
    return MHD_YES;
}

static enum MHD_Result run_request(struct http *http, struct request *request)
{
    MHD_suspend_connection(request->connection);
    request->whole_us = annal__clock_monotonic_us();
    if (http->program.run(http->program.arg, request))
        http_answered(request);
    return MHD_YES;
}

/* The library keeps each parameter of the query in the memory of the connection, and sends no
 * answer if that memory is too small. So a query with too many parameters is merged into one
 * parameter before the library reads it, and handle() refuses the request. */
bool http_limit_parameters(char *target)
{
    char *query = strchr(target, '?');
    size_t bytes = strlen(target);
    for (const char *at = query; at != NULL; at = strchr(at + 1, '&'))
        bytes += PARAMETER_BYTES;
    if (bytes <= TARGET_BYTES_MAX)
        return false;
    for (char *at = query; at != NULL && (at = strchr(at, '&')) != NULL;)
        *at = '_';
    return true;
}

/* A head that does not fit in CONNECTION_BYTES is answered by the library itself, with a page of
 * HTML. The library calls no function of this file before it does so, and has no option for the
 * text. More memory would only move the limit, and every connection could use it. */

/* Write an answer directly to the socket, because the library has no memory left for the head of an
 * answer and would send none. The library then finds the socket closed. */
static void answer_for_it(const struct http *http, struct MHD_Connection *connection,
                          const char *status, const char *what)
{
    char text[400], body[120];
    const struct peer *peer = peer_of(connection);
    if (peer == NULL || http->is_tls)
        return;
    snprintf(body, sizeof body, "{\"error\":{\"code\":\"limit\",\"message\":\"%s\"}}\n", what);
    snprintf(text, sizeof text,
             "HTTP/1.1 %s\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
             "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
             status, strlen(body), body);
    (void)!send(peer->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(peer->fd, SHUT_WR);
}

static void *see_target(void *arg, const char *target, struct MHD_Connection *connection)
{
    const struct http *http = arg;
    if (strlen(target) > HEAD_BYTES_MAX)
        answer_for_it(http, connection, "414 URI Too Long", "the address is too long");
    return http_limit_parameters((char *)(uintptr_t)target) ? (void *)(uintptr_t)&too_many : NULL;
}

static enum MHD_Result add_bytes(void *arg, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    size_t *bytes = arg;
    (void)kind;
    *bytes += strlen(name) + (value == NULL ? 0 : strlen(value)) + PARAMETER_BYTES;
    return MHD_YES;
}

static bool fits_head(struct MHD_Connection *connection, const char *path)
{
    size_t bytes = strlen(path);
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, add_bytes, &bytes);
    (void)MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_bytes, &bytes);
    return bytes <= HEAD_BYTES_MAX;
}

/* Return whether the request has a body. A request that is refused before its body is read is
 * answered at once, and its connection is closed. */
static bool has_body(const struct request *request)
{
    const char *length = http_header(request, "Content-Length");
    return (length != NULL && strcmp(length, "0") != 0) ||
           http_header(request, "Transfer-Encoding") != NULL;
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *bytes,
                              size_t *len, void **state)
{
    struct http *http = arg;
    struct request *request = *state;
    (void)version;
    if (request == NULL || *state == &too_many) {
        bool refused = *state == &too_many;
        if (!fits_head(connection, path)) {
            answer_for_it(http, connection, "431 Request Header Fields Too Large",
                          "the head of the request is too long, or has too many fields");
            *state = NULL;
            return MHD_NO;
        }
        request = new_request(http, connection, path, method);
        *state = request;
        if (request == NULL)
            return MHD_NO;
        request->too_long = refused;
        http->program.admit(http->program.arg, request);
        return request->status != 0 && has_body(request) ? send_answer(request) : MHD_YES;
    }
    if (request->begun)
        return MHD_YES; /* an answer is already being sent: ignore the rest of the body */
    if (*len > 0)
        return take_body(request, bytes, len);
    return request->status != 0 ? send_answer(request) : run_request(http, request);
}

int http_socket(const struct request *request)
{
    const struct peer *peer = peer_of(request->connection);
    return peer == NULL ? -1 : peer->fd;
}

bool http_client_left(const struct request *request)
{
    struct pollfd end = {.fd = http_socket(request), .events = POLLRDHUP};
    return poll(&end, 1, 0) > 0;
}

void http_answered(struct request *request)
{
    MHD_resume_connection(request->connection);
}

const char *http_query(const struct request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_header(const struct request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *http_scheme(const struct request *request)
{
    return request->http->is_tls ? "https" : "http";
}

struct framing {
    unsigned hosts, lengths, codings;
};

static enum MHD_Result count_framing(void *arg, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    struct framing *framing = arg;
    (void)kind;
    (void)value;
    framing->hosts += strcasecmp(name, "Host") == 0;
    framing->lengths += strcasecmp(name, "Content-Length") == 0;
    if (strcasecmp(name, "Transfer-Encoding") == 0)
        framing->codings += value != NULL && strcasecmp(value, "chunked") == 0 ? 1 : 2;
    return MHD_YES;
}

bool http_is_ambiguous(const struct request *request)
{
    struct framing framing = {0};
    (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, count_framing, &framing);
    return framing.hosts > 1 || framing.lengths + framing.codings > 1;
}

struct all {
    http_param_fn fn;
    void *arg;
    int answer;
};

static enum MHD_Result visit_all(void *arg, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    struct all *all = arg;
    (void)kind;
    all->answer = all->fn(all->arg, name, value == NULL ? "" : value);
    return all->answer == 0 ? MHD_YES : MHD_NO;
}

int http_query_all(const struct request *request, http_param_fn fn, void *arg)
{
    struct all all = {.fn = fn, .arg = arg};
    (void)MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, visit_all, &all);
    return all.answer;
}

struct each {
    const char *name;
    http_value_fn fn;
    void *arg;
};

static int visit(void *arg, const char *name, const char *value)
{
    const struct each *each = arg;
    return strcmp(name, each->name) == 0 ? each->fn(each->arg, value) : 0;
}

int http_query_each(const struct request *request, const char *name, http_value_fn fn, void *arg)
{
    return http_query_all(request, visit, &(struct each){name, fn, arg});
}

/* ---- The listener ---- */

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t http_unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0';) {
        int high = *at == '%' ? hex_of(at[1]) : -1;
        int low = high < 0 ? -1 : hex_of(at[2]);
        if (low >= 0 && high + low > 0) {
            *to++ = (char)(16 * high + low);
            at += 3;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
    return (size_t)(to - text);
}

static size_t unescape(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg;
    (void)connection;
    return http_unescape(text);
}

static struct MHD_Daemon *start(struct http *http, const struct http_options *options)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->key},
        {MHD_OPTION_END, 0, NULL}};
    if (options->certificate != NULL)
        flags |= MHD_USE_TLS;
    else
        tls[0] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    return MHD_start_daemon(
        flags, 0, NULL, NULL, handle, http, MHD_OPTION_LISTEN_SOCKET, options->fd,
        MHD_OPTION_NOTIFY_COMPLETED, completed, http, MHD_OPTION_NOTIFY_CONNECTION, connected, http,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, options->of_one_max, MHD_OPTION_CONNECTION_LIMIT,
        options->connections_max, MHD_OPTION_CONNECTION_TIMEOUT, options->idle_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES, MHD_OPTION_URI_LOG_CALLBACK,
        see_target, http, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_ARRAY, tls,
        MHD_OPTION_END);
}

annal_status http_open(const struct http_options *options, const struct http_program *program,
                       struct http **out_http, annal_error *err)
{
    annal_status status = library_load(&library_mhd, err);
    if (status < 0)
        return status;
    struct http *http = annal__zalloc(sizeof *http);
    if (http == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "serve: out of memory");
    http->program = *program;
    http->fd = options->fd;
    http->is_tls = options->certificate != NULL;
    pthread_mutex_init(&http->lock, NULL);
    http->daemon = start(http, options);
    if (http->daemon == NULL) {
        pthread_mutex_destroy(&http->lock);
        annal__free(http);
        return annal__fail(err, ANNAL_ERR_IO, "serve: cannot start the HTTP server%s",
                           options->certificate != NULL
                               ? ": check that --cert and --key are PEM files of one pair"
                               : "");
    }
    *out_http = http;
    return ANNAL_OK;
}

unsigned http_connections(const struct http *http)
{
    return atomic_load(&http->peer_count);
}

void http_quiesce(struct http *http)
{
    (void)MHD_quiesce_daemon(http->daemon);
    pthread_mutex_lock(&http->lock);
    for (struct request *request = http->requests; request != NULL; request = request->next) {
        if (request->flow != NULL)
            http_flow_put_last(request->flow, (annal_slice){0}, false);
    }
    pthread_mutex_unlock(&http->lock);
}

void http_close(struct http *http)
{
    if (http == NULL)
        return;
    MHD_stop_daemon(http->daemon);
    close(http->fd);
    pthread_mutex_destroy(&http->lock);
    annal__free(http);
}
