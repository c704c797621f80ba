/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access control.
 *
 * (1) Over TCP every request of the API needs a token, also on the loopback interface: otherwise
 *     other users of the host could read what mode 0700 of the store keeps from them. Over a Unix
 *     socket no token is needed: the permissions of its directory decide.
 * (2) A token has the right to read, or to read and write. The token file has a token on each line:
 *     TOKEN, "read TOKEN" or "write TOKEN"; # starts a comment. A missing file is created with mode
 *     0600 and one token that may write. A file that other users can read is refused.
 * (3) Tokens are compared by their SHA-256, in constant time, and always with all tokens.
 * (4) Host must be one of the server's known names, and Origin, if present, must be the origin of
 *     the server itself. A foreign page whose name resolves to this host (DNS rebinding) has a
 *     different Host; a page that sends requests to this server has a different Origin.
 */
#pragma once

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
    /* first token in the file that may write, for --open; "" if no token may write or the token is
     * too long */
    char first[TOKEN_TEXT_BYTES];
    char **hosts; /* names of the server with ports, such as "127.0.0.1:7117" */
    size_t host_count;
    /* whether the server listens on this host only: then a local name is accepted with any port */
    bool is_local;
    /* whether every request is accepted without a token, and Host is ignored: over a Unix socket */
    bool trusts_all;
};

/* Read the token file; create it if it is missing. */
annal_status access_tokens(struct access *access, const char *path, annal_error *err);

/* Read the tokens from an open file; path is its name in messages. */
annal_status access_read(struct access *access, FILE *file, const char *path, annal_error *err);

/* Create a token that may read and that exists only as long as the server runs. For a server that
 * cannot create a token file. */
annal_status access_token_in_memory(struct access *access, annal_error *err);

/* Add a name under which the server is reached; if the name has no port, port is appended. */
annal_status access_host(struct access *access, const char *host, unsigned port, annal_error *err);

/* Return the right of a token; RIGHT_NONE if it is unknown or NULL. *out_index is the index of the
 * token, or -1 if it is unknown; unchanged for NULL. */
enum right access_right(const struct access *access, const char *token, int *out_index);

/* Return whether a header of a request names this server, so that the request is accepted (rule 4):
 * Host, or Origin. Pass NULL if the request lacks the header. */
bool access_host_is_ours(const struct access *access, const char *host);
bool access_origin_is_ours(const struct access *access, const char *origin, const char *host);

void access_done(struct access *access);
