/* SPDX-License-Identifier: Apache-2.0 */
/* A client for the server of another store (annal serve), on libcurl. */
#pragma once

#include "journal/base/buf.h"
#include "tools/cli/args.h"

#include <annal/base.h>

struct remote;

/* A part of a file: the body of a request, or the file that receives the body of an answer. */
struct remote_body {
    int fd; /* descriptor of the file; -1 if unused */
    /* for an answer: descriptor of the file for the entity tag, written before the first byte of
     * the body */
    int tag_fd;
    uint64_t from; /* offset of the part's first byte in the file */
    /* for a request: number of bytes to send; for an answer: number of bytes received, also if the
     * connection broke off */
    uint64_t bytes;
    uint64_t total; /* size of the whole file, as the sender or the server reports it */
    uint64_t most;  /* maximum size of an answer that is accepted, in bytes */
};

struct remote_where {
    const char *url; /* http(s)://host[:port] */
    char token[512]; /* token for the server; "" for none */
    const char *ca;  /* file with certificates to trust; NULL for the system's */
    uint32_t quiet_ms;
};

annal_status remote_open(const struct remote_where *where, struct remote **out_remote,
                         annal_error *err);
void remote_close(struct remote *remote); /* accepts NULL */

/*
 * Get a path below /api/v1/; the JSON of the answer replaces `answer`.
 *
 *     ANNAL_ERR_BUSY      the server is unreachable or asks for a retry
 *     ANNAL_ERR_NOTFOUND  the path does not exist
 *     ANNAL_ERR_CONFLICT  HTTP status 409; any other failure is ANNAL_ERR_REFUSED
 */
annal_status remote_get(struct remote *remote, const char *path, struct buf *answer,
                        annal_error *err);

/* Upload a part of a file; the JSON of the answer replaces `answer`. */
annal_status remote_put(struct remote *remote, const char *path, const struct remote_body *part,
                        struct buf *answer, annal_error *err);

/* Download to body->fd, starting at body->from. `same` is the entity tag of the part that was
 * downloaded before. If from is 0, or if the content at the server has changed, the file and its
 * tag are written from the beginning. */
annal_status remote_fetch(struct remote *remote, const char *path, struct remote_body *body,
                          const char *same, annal_error *err);

/* ---- The verbs, which return an exit status ---- */

bool push_is_url(const char *url);

/* push_run() runs annal push, push_pull_remote() annal pull from a server. */
int push_run(const struct args *args, const struct remote_where *where);
int push_pull_remote(const struct args *args, const struct remote_where *where);

/* Read the token (from --token-file, otherwise ANNAL_TOKEN), --ca and --timeout. Returns 0 or an
 * exit status. */
int push_where_read(const struct args *args, const char *url, struct remote_where *out);

#define REMOTE_OPTIONS                                                                             \
    OPTION("token-file", "FILE", FIELD_TEXT, NULL, "file with the server's token (ANNAL_TOKEN)"),  \
        OPTION("ca", "FILE", FIELD_TEXT, NULL,                                                     \
               "file with certificates to trust (default: the system's)"),                         \
        OPTION_WITH("timeout", "SECONDS", FIELD_COUNT, NULL,                                       \
                    "limit for an answer of the server (30)", .least = 1, .most = 3600)
