/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP: connections, requests and answers; the only user of libmicrohttpd.
 *
 * (1) One thread and one epoll for all connections of a listener. Nothing that waits may run in it:
 *     it parses requests, collects bodies up to their limit, and writes what is ready.
 * (2) A request that was admitted is handed to the program, and its connection is suspended until
 *     http_answered(): whoever answers may take as long as it likes, in any thread.
 * (3) An answer is a text, or a flow: bytes that are produced while they are sent. Of a flow at
 *     most about FLOW_BYTES wait for a client; while none do, its connection is suspended, too, and
 *     costs no time.
 * (4) A suspended connection does not notice that its client went away, so a flow that has nothing
 *     to say for long must say something now and then (streams.h does).
 */
#ifndef TOOLS_SERVE_HTTP_H
#define TOOLS_SERVE_HTTP_H

#include "journal/base/buf.h"

#include <annal/base.h>

#define FLOW_BYTES ((size_t)64 << 10)
#define HEAD_S     60u /* for the head of a request, and between two */
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
    int body_fd;       /* the body goes to this file, not to body; closed at the end; -1: none */
    size_t body_limit; /* set by admit(); a longer body is refused */
    unsigned body_refused;      /* the status for a body that was not taken; 0: it was */
    bool too_long;              /* its address: the parameters were not read */
    int64_t begun_us, whole_us; /* its head came; its body, too */
    _Atomic unsigned most_s; /* from its head to the end of the answer; 0: no limit (REQUEST_S) */

    /* For the program, which sets them in admit(). */
    void *program;
    const struct route *route;
    annal_slice id;    /* of the session, a part of path, */
    annal_slice item;  /* as what comes after it is */
    const char *right; /* of the token: "read", "write", or "" */
    int token;         /* which one; -1: none */

    /* The answer. */
    unsigned status; /* 0: there is none yet */
    const char *type;
    struct buf answer;
    struct flow *flow;  /* in the place of answer; owned */
    struct buf headers; /* "Name: value\n" */
    int fd; /* in the place of answer: fd_bytes of this file from fd_from on; closed; -1: none */
    uint64_t fd_from, fd_bytes;
    annal_slice still; /* in the place of answer: bytes that live as long as the program */

    /* Of the transport. */
    size_t body_counted;
    uint64_t body_bytes; /* that arrived */
    bool begun;          /* the answer is being sent */
    struct request *previous, *next;
};

struct http_program {
    void *arg;
    /* The request has come up to its body. If this sets a status it is answered with that at
     * once. */
    void (*admit)(void *arg, struct request *request);
    /* It has come whole. Sets the answer and returns true; or false: somebody calls
     * http_answered() later. */
    bool (*run)(void *arg, struct request *request);
    /* It is over; bytes were sent, as far as that is known. */
    void (*done)(void *arg, const struct request *request, uint64_t bytes);
};

struct http_options {
    int fd; /* a socket that listens; closed by http_close() */
    unsigned connections_max;
    unsigned of_one_max;           /* from one address; 0: no limit */
    unsigned idle_s;               /* of a connection that neither sends nor takes anything */
    const char *certificate, *key; /* PEM; NULL: no TLS */
};

annal_status http_open(const struct http_options *options, const struct http_program *program,
                       struct http **out_http, annal_error *err);

/* No new requests; flows end. Then close it, when nobody is left who would call http_answered(). */
void http_quiesce(struct http *http);
void http_close(struct http *http);

/*
 * Its socket, for poll(2) while it is answered: POLLRDHUP says that the client closed it, or its
 * side of it, and so will not take the answer. Whether it says so now.
 */
int http_socket(const struct request *request);
bool http_is_left(const struct request *request);

/* The answer is set: send it. Any thread. */
void http_answered(struct request *request);

/* A parameter of the query, or a header; NULL: it is not there. Valid as long as the request. */
const char *http_query(const struct request *request, const char *name);
const char *http_header(const struct request *request, const char *name);

/*
 * Whether a proxy in front may have read it in another way: two names of the host, two lengths of
 * the body, or a coding that is not "chunked" (RFC 9112, sections 3.2, 6.1 and 6.3).
 */
bool http_is_ambiguous(const struct request *request);

/* Call fn for each parameter of the query of this name, until it returns anything but 0. */
typedef int (*http_value_fn)(void *arg, const char *value);
int http_query_each(const struct request *request, const char *name, http_value_fn fn, void *arg);

/* The same for each parameter, whatever its name. */
typedef int (*http_param_fn)(void *arg, const char *name, const char *value);
int http_query_all(const struct request *request, http_param_fn fn, void *arg);

/*
 * To be called every few seconds: ends connections whose request does not come, or whose answer is
 * not taken, in its time, though a byte comes or goes now and then.
 */
void http_sweep(struct http *http);

unsigned http_connections(const struct http *http);

/* ---- What is read before there is a request ---- */

/* %xx in a path or parameter, in place; a NUL stays as it was written, for it would cut the text
 * short. */
size_t http_unescape(char *text);

/* Whether the parameters of an address take too much memory; then they are made one. */
bool http_crowds(char *target);

/* ---- Flows ---- */

struct flow_source {
    void *arg;
    /* The client has taken everything: more is wanted. In the thread of the connection; must not
     * wait. */
    void (*want)(void *arg);
    void (*free)(void *arg); /* nobody uses the flow any more */
};

/* Held by its request and by whoever fills it: both drop it. NULL: no memory. */
struct flow *flow_new(struct request *request, const struct flow_source *source);
void flow_drop(struct flow *flow);
void flow_keep(struct flow *flow); /* for one more, who drops it */

/*
 * Append, and wake the connection if it waits. False: the client is gone, or there is no memory for
 * it. The bytes of a large piece are kept whole, whatever FLOW_BYTES says: ask flow_is_full()
 * before.
 */
bool flow_put(struct flow *flow, annal_slice bytes);
bool flow_is_full(struct flow *flow);
bool flow_is_gone(struct flow *flow);

/*
 * Nothing follows, or nothing after these bytes; failed: the client must see that something is
 * missing. While bytes are put in one thread, want() may be called in another: what puts them
 * touches nothing of its own after that.
 */
void flow_end(struct flow *flow, bool failed);
void flow_put_last(struct flow *flow, annal_slice bytes, bool failed);

#endif
