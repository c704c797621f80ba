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
#pragma once

#include "journal/base/buf.h"

#include <annal/event.h>

#define FLOW_BYTES ((size_t)64 << 10)
/* time limit in s for the head of a request, and for a pause between two requests */
#define HEAD_S    60u
#define REQUEST_S 600u

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
    /* descriptor of the file that receives the body, instead of `body`; closed at the end of the
     * request; -1 if unused */
    int body_fd;
    size_t body_limit;     /* maximum size of the body, set by admit(); a longer body is refused */
    unsigned body_refused; /* HTTP status with which the body was refused, or 0 */
    /* whether the address was too long, so that its parameters were not read */
    bool too_long;
    /* times at which the head of the request (begun_us) and its whole body (whole_us) had arrived,
     * in us */
    int64_t begun_us, whole_us;
    /* time limit in s from the head to the end of the answer; 0 for none; REQUEST_S by default */
    _Atomic unsigned most_s;

    /* Members that the program sets in the callback admit(). */
    void *program;
    const struct route *route;
    annal_slice id;    /* session id, a part of path; empty if the route names no session */
    annal_slice item;  /* part of path that matched a second {} of the route */
    const char *right; /* right of the request's token: "read", "write", or "" */
    int token;         /* index of the token, or -1 without a token */
    /* Called after the route, instead of sending the answer: the request waits until resume() is
     * called, in any thread, which runs the route again. NULL: the request is answered. */
    void (*park)(struct request *request);
    void (*resume)(struct request *request);
    struct {
        uint64_t offset, seen; /* as in durable.h */
        int64_t until_us;      /* 0: the request has not waited yet */
    } poll;                    /* a request that waits for messages of a stream */
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* text of id, if it is not a part of path */

    /* The answer. */
    unsigned status; /* HTTP status; 0 until it is set */
    const char *type;
    struct buf answer;
    /* bytes produced while they are sent, instead of answer; owned by the request, or NULL */
    struct flow *flow;
    struct buf headers; /* lines "Name: value\n" to add to the answer */
    /* instead of answer: descriptor of a file, of which fd_bytes bytes from fd_from on are sent;
     * closed at the end; -1 if unused */
    int fd;
    uint64_t fd_from, fd_bytes;
    annal_slice
        /* bytes to send instead of `answer`; they must stay valid as long as the process */
        constant;

    /* Used by http.c only. */
    size_t body_counted;
    uint64_t body_bytes; /* number of received bytes of the body */
    bool begun;          /* whether the answer is being sent */
    struct request *previous, *next;
};

struct http_program {
    void *arg;
    /* Called when the head of a request is complete. If this function sets request->status, the
     * request is answered without its body. */
    void (*admit)(void *arg, struct request *request);
    /* Called when a request is complete. Returns true if the answer is set, or false if
     * http_answered() will be called later. */
    bool (*run)(void *arg, struct request *request);
    /* Called at the end of a request. bytes is the number of bytes sent, if known. */
    void (*done)(void *arg, const struct request *request, uint64_t bytes);
};

struct http_options {
    int fd; /* listening socket; closed by http_close() */
    unsigned connections_max;
    /* maximum number of connections from one address; 0 for no limit */
    unsigned of_one_max;
    /* time in s after which a connection that neither sends nor receives is closed */
    unsigned idle_s;
    const char *certificate, *key; /* texts in PEM; NULL without TLS */
};

annal_status http_open(const struct http_options *options, const struct http_program *program,
                       struct http **out_http, annal_error *err);

/* http_quiesce() accepts no new requests and ends all flows. Call http_close() afterwards, when no
 * thread can call http_answered() any more. */
void http_quiesce(struct http *http);
void http_close(struct http *http);

/* http_socket() returns the socket of a request's connection, for poll(2) while the request is
 * being answered. POLLRDHUP means that the client has closed the connection or its sending side,
 * and will not read the answer. http_client_left() checks now whether it has. -1 without a
 * socket. */
int http_socket(const struct request *request);
bool http_client_left(const struct request *request);

/* Send the answer of a suspended request, which must be complete. Any thread may call it. */
void http_answered(struct request *request);

/* Return a parameter of the query (http_query()) or a header (http_header()); NULL if the request
 * lacks it. The text exists as long as the request. */
const char *http_query(const struct request *request, const char *name);
const char *http_header(const struct request *request, const char *name);

/* Return the scheme of the address of a request: "http" or "https". */
const char *http_scheme(const struct request *request);

/* Return whether a proxy in front of the server may have read the request differently: two host
 * names, two lengths of the body, or a transfer coding other than "chunked" (RFC 9112, sections
 * 3.2, 6.1 and 6.3). */
bool http_is_ambiguous(const struct request *request);

/* Call fn with each value of the query parameter `name`, until fn returns something other than 0;
 * return that. */
typedef int (*http_value_fn)(void *arg, const char *value);
int http_query_each(const struct request *request, const char *name, http_value_fn fn, void *arg);

/* Call fn for each parameter of the query, until fn returns something other than 0; return that. */
typedef int (*http_param_fn)(void *arg, const char *name, const char *value);
int http_query_all(const struct request *request, http_param_fn fn, void *arg);

/* Close connections whose request does not arrive in time, or whose client does not receive the
 * answer in time, even if single bytes are transferred now and then. Call it every few seconds. */
void http_end_overdue(struct http *http);

unsigned http_connections(const struct http *http);

/* ---- Reading before a request exists ---- */

/* Decode %xx in a path or parameter, in place, and return the new length. %00 is not decoded,
 * because it would end the text. */
size_t http_unescape(char *text);

/* Return whether the parameters of an address need too much memory; if so, merge them into one
 * parameter. */
bool http_limit_parameters(char *target);

/* ---- Flows ---- */

struct flow_source {
    void *arg;
    /* Called when the client has received all bytes and needs more. It runs in the thread of
     * the connection, so it must not wait. */
    void (*want)(void *arg);
    void (*free)(void *arg); /* frees arg when the flow is no longer used */
};

/* Create a flow with two references: one for its request, one for the code that fills the flow.
 * Each calls http_flow_drop(). Returns NULL if memory ran out. */
struct flow *http_flow_new(struct request *request, const struct flow_source *source);
void http_flow_drop(struct flow *flow);
void http_flow_keep(struct flow *flow); /* adds a reference */

/* Append bytes, and resume the connection if it waits for them. Returns false if the client has
 * disconnected or memory ran out. A piece larger than FLOW_BYTES is appended as a whole: check
 * http_flow_is_full() first. */
bool http_flow_put(struct flow *flow, annal_slice bytes);
bool http_flow_is_full(struct flow *flow);
bool http_flow_is_gone(struct flow *flow);

/* Append the last bytes, and end the flow. failed: something is missing, and the connection is
 * closed so that the client can see it. While one thread appends bytes, another may call want(); so
 * after its last bytes, a thread must not use the data of source->arg. */
void http_flow_put_last(struct flow *flow, annal_slice bytes, bool failed);
