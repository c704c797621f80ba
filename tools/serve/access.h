/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets in.
 *
 * (1) Over TCP every request of the API needs a token, on loopback too: other users of the host
 *     could otherwise read what the 0700 of the store keeps from them. Over a Unix socket none is
 *     needed: its directory says who may.
 * (2) A token has the right to read, or to write as well. The file of tokens has one a line: TOKEN,
 *     or "read TOKEN" or "write TOKEN"; # begins a comment. If it is missing it is made, 0600, with
 *     one token that may write. A file that others may read is refused.
 * (3) Tokens are compared by their SHA-256, in constant time, and all of them whatever the first
 *     says.
 * (4) Host must be one of the names that the server is known by, and Origin, if there is one, must
 *     be that of the server itself: a foreign page whose name was made to resolve to this host (DNS
 *     rebinding) has another Host, one that sends requests here another Origin.
 */
#ifndef TOOLS_SERVE_ACCESS_H
#define TOOLS_SERVE_ACCESS_H

#include "journal/base/sha256.h"

#include <annal/base.h>

#include <stdio.h>

enum right { RIGHT_NONE, RIGHT_READ, RIGHT_WRITE };

#define TOKEN_TEXT_BYTES 65

struct access_token {
    uint8_t sha256[SHA256_BYTES];
    enum right right;
};

struct access {
    struct access_token *tokens;
    size_t token_count;
    /* The first that may write, for --open; "": it is longer, or there is none. */
    char first[TOKEN_TEXT_BYTES];
    char **hosts; /* "127.0.0.1:7117", in small letters */
    size_t host_count;
    bool is_local;   /* it listens on this host alone: its names may have any port */
    bool trusts_all; /* a Unix socket: nobody needs a token, and Host says nothing */
};

/* Read the file of tokens; make it if it is not there. */
annal_status access_tokens(struct access *access, const char *path, annal_error *err);

/* The same of an open file, whose path is for messages. */
annal_status access_read(struct access *access, FILE *file, const char *path, annal_error *err);

/* Where no file can be made: a token that may read, for as long as the server runs. */
annal_status access_token_in_memory(struct access *access, annal_error *err);

/* A name by which the server is known; port is added if it has none. */
annal_status access_host(struct access *access, const char *host, unsigned port, annal_error *err);

/* The right that a token gives, and which one it is. */
enum right access_right(const struct access *access, const char *token, int *out_index);

/* Whether the two headers are as they should be; NULL: the request has none. */
bool access_host_is_ours(const struct access *access, const char *host);
bool access_origin_is_ours(const struct access *access, const char *origin, const char *host);

void access_done(struct access *access);

#endif
