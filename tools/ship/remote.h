/* SPDX-License-Identifier: Apache-2.0 */
/* A server of another store (annal serve), asked by libcurl. */
#ifndef TOOLS_SHIP_REMOTE_H
#define TOOLS_SHIP_REMOTE_H

#include "journal/base/buf.h"
#include "tools/cli/args.h"

#include <annal/base.h>

struct remote;

/* Where in a file the body of a request is, or where that of the answer goes. */
struct remote_body {
    int fd;         /* -1: none */
    int tag_fd;     /* of an answer: its entity tag goes there, before the first byte */
    uint64_t from;  /* bytes: what is sent */
    uint64_t bytes; /* of an answer: as many as came, also when it broke off */
    uint64_t total; /* of the file, as the sender or the server says */
    uint64_t most;  /* of an answer: there is no room for more */
};

struct remote_where {
    const char *url; /* http(s)://host[:port] */
    char token[512]; /* "": none */
    const char *ca;  /* a file with certificates to trust; NULL: those of the system */
    uint32_t quiet_ms;
};

annal_status remote_open(const struct remote_where *where, struct remote **out_remote,
                         annal_error *err);
void remote_close(struct remote *remote); /* NULL is accepted */

/*
 * Ask for a path below /api/v1/; the answer is JSON and replaces answer.
 *
 * ANNAL_ERR_BUSY      the server is away, or asks to try again
 * ANNAL_ERR_NOTFOUND  it has none
 * ANNAL_ERR_CONFLICT  HTTP status 409; any other failure is ANNAL_ERR_REFUSED
 */
annal_status remote_get(struct remote *remote, const char *path, struct buf *answer,
                        annal_error *err);

/* Send a part of a file. */
annal_status remote_put(struct remote *remote, const char *path, const struct remote_body *part,
                        struct buf *answer, annal_error *err);

/*
 * Write the answer to body->fd, from body->from on. same: the entity tag of what is there already.
 * If from is 0, or if the server has something else by now, the file and its tag begin again.
 */
annal_status remote_fetch(struct remote *remote, const char *path, struct remote_body *body,
                          const char *same, annal_error *err);

/* ---- The verbs; an exit status ---- */

bool remote_is_url(const char *url);

/* annal push, and annal pull from a server. */
int push_run(const struct args *args, const struct remote_where *where);
int pull_remote(const struct args *args, const struct remote_where *where);

/* The token of --token-file, else of ANNAL_TOKEN; --ca, --timeout. 0 or an exit status. */
int remote_where_read(const struct args *args, const char *url, struct remote_where *out);

#define REMOTE_OPTIONS                                                                             \
    OPTION("token-file", "FILE", FIELD_TEXT, NULL, "the token of the server (ANNAL_TOKEN)"),       \
        OPTION("ca", "FILE", FIELD_TEXT, NULL, "certificates to trust (those of the system)"),     \
        OPTION_WITH("timeout", "SECONDS", FIELD_COUNT, NULL,                                       \
                    "what is silent for so long is away (30)", .least = 1, .most = 3600)

#endif
