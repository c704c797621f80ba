/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP: connections, requests and answers; the only user of libmicrohttpd.
 *
 * (1) One thread and one epoll serve all connections of a listener. Nothing in this thread may
 *     wait: it parses requests, collects bodies up to their limit, and writes what is ready.
 * (2) An admitted request is passed to the program, and its connection is suspended until
 *     http_answered() is called. The answer may take any time and may be produced in any thread.
 * (3) An answer is a text or a flow: bytes that are produced while they are sent. At most about
 *     FLOW_BYTES of a flow wait for a client; while none wait, its connection is suspended, too,
 *     and uses no processor time.
 * (4) A suspended connection does not notice that its client has disconnected, so an idle flow must
 *     send something from time to time (streams.h does).
 */
#ifndef TOOLS_SERVE_HTTP_H
#define TOOLS_SERVE_HTTP_H

#include "journal/base/buf.h"

#include <annal/base.h>

#define FLOW_BYTES ((size_t)64 << 10)
#define HEAD_S     60u /* for the head of a request, and between two requests */
#define REQUEST_S  600u

struct MHD_Connection;
struct http;
struct flow;
struct route;

struct request {
    struct http *http;
    struct MHD_Connection *connection;
    const char *method;
    char *path;
    struct buf body;
    int body_fd;       /* file for the body, instead of `body`; closed at the end; -1 if unused */
    size_t body_limit; /* set by admit(); a longer body is refused */
    unsigned body_refused;      /* status for a refused body, or 0 */
    bool too_long;              /* the address is too long: its parameters were not read */
    int64_t begun_us, whole_us; /* arrival of the head, and of the whole body */
    /* time limit from the head to the end of the answer; 0 for none (REQUEST_S) */
    _Atomic unsigned most_s;

    /* For the program, which sets them in admit(). */
    void *program;
    const struct route *route;
    annal_slice id;    /* the session, a part of path */
    annal_slice item;  /* the part of path after it */
    const char *right; /* right of the token: "read", "write", or "" */
    int token;         /* index of the token, or -1 */

    /* The answer. */
    unsigned status; /* 0 while unset */
    const char *type;
    struct buf answer;
    struct flow *flow;  /* instead of answer; owned */
    struct buf headers; /* "Name: value\n" */
    /* instead of answer: fd_bytes of this file from fd_from on; closed at the end; -1 if unused */
    int fd;
    uint64_t fd_from, fd_bytes;
    annal_slice constant; /* instead of answer: bytes that live as long as the program */

    /* For the transport. */
    size_t body_counted;
    uint64_t body_bytes; /* number of bytes received */
    bool begun;          /* sending has started */
    struct request *previous, *next;
};

struct http_program {
    void *arg;
    /* Called when the head of the request is complete. If this sets a status, the request is
     * answered at once. */
    void (*admit)(void *arg, struct request *request);
    /* Called when the request is complete. Returns true with the answer set, or false if
     * http_answered() will be called later. */
    bool (*run)(void *arg, struct request *request);
    /* Called at the end of the request; bytes is the number of bytes sent, if known. */
    void (*done)(void *arg, const struct request *request, uint64_t bytes);
};

struct http_options {
    int fd; /* listening socket; closed by http_close() */
    unsigned connections_max;
    unsigned of_one_max;           /* maximum from one address; 0 for no limit */
    unsigned idle_s;               /* limit for a connection that neither sends nor receives */
    const char *certificate, *key; /* PEM; NULL without TLS */
};

annal_status http_open(const struct http_options *options, const struct http_program *program,
                       struct http **out_http, annal_error *err);

/* Accept no new requests, and end all flows. Call http_close() when no thread can call
 * http_answered() any more. */
void http_quiesce(struct http *http);
void http_close(struct http *http);

/* Return the socket of the request, for poll(2) while it is being answered: POLLRDHUP means that
 * the client has closed it, or its sending side, and will not read the answer. http_client_left()
 * checks this now. */
int http_socket(const struct request *request);
bool http_client_left(const struct request *request);

/* Send the answer, which is set. Any thread. */
void http_answered(struct request *request);

/* Return a parameter of the query, or a header; NULL if it is missing. Valid as long as the
 * request. */
const char *http_query(const struct request *request, const char *name);
const char *http_header(const struct request *request, const char *name);

/* Check whether a proxy in front of the server may have read the request differently: two host
 * names, two lengths of the body, or a transfer coding other than "chunked" (RFC 9112, sections
 * 3.2, 6.1 and 6.3). */
bool http_is_ambiguous(const struct request *request);

/* Call fn for each parameter of the query with this name, until it returns anything but 0. */
typedef int (*http_value_fn)(void *arg, const char *value);
int http_query_each(const struct request *request, const char *name, http_value_fn fn, void *arg);

/* Call fn for each parameter of any name. */
typedef int (*http_param_fn)(void *arg, const char *name, const char *value);
int http_query_all(const struct request *request, http_param_fn fn, void *arg);

/* End connections whose request does not arrive in time, or whose client does not receive the
 * answer in time, even if single bytes are transferred. Call it every few seconds. */
void http_end_overdue(struct http *http);

unsigned http_connections(const struct http *http);

/* ---- Reading before a request exists ---- */

/* Decode %xx in a path or parameter, in place. An encoded NUL is not decoded, because it would end
 * the text. */
size_t http_unescape(char *text);

/* Check whether the parameters of an address take too much memory; if so, merge them into one. */
bool http_limit_parameters(char *target);

/* ---- Flows ---- */

struct flow_source {
    void *arg;
    /* Called when the client has received everything and more bytes are needed. Runs in the thread
     * of the connection; must not wait. */
    void (*want)(void *arg);
    void (*free)(void *arg); /* called when the flow is no longer used */
};

/* Create a flow, with a reference each for its request and for the code that fills it; both drop
 * it. Returns NULL without memory. */
struct flow *http_flow_new(struct request *request, const struct flow_source *source);
void http_flow_drop(struct flow *flow);
void http_flow_keep(struct flow *flow); /* adds a reference */

/* Append bytes, and wake the connection if it is waiting. Returns false if the client has
 * disconnected, or without memory. A large piece is kept as a whole, beyond FLOW_BYTES: check
 * http_flow_is_full() first. */
bool http_flow_put(struct flow *flow, annal_slice bytes);
bool http_flow_is_full(struct flow *flow);
bool http_flow_is_gone(struct flow *flow);

/* End the flow, after its last bytes; failed: the client must be able to see that something is
 * missing. While one thread puts bytes, want() may be called in another, so that thread must not
 * use its own data afterwards. */
void http_flow_end(struct flow *flow, bool failed);
void http_flow_put_last(struct flow *flow, annal_slice bytes, bool failed);

#endif
