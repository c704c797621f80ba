/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/serve/access.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hex.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOKENS_MAX     256u
#define TOKEN_LEAST    16u
#define FILE_BYTES_MAX (1u << 20)
#define RANDOM_BYTES   32
#define LINE_BYTES_MAX 511

/* ---- Tokens ---- */

static annal_status add_token(struct access *access, const char *text, enum right right,
                              const char *path, annal_error *err)
{
    size_t len = strlen(text);
    if (len < TOKEN_LEAST)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "token file '%s': a token must have at least %u characters", path,
                           TOKEN_LEAST);
    if (access->token_count == TOKENS_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT, "token file '%s' has more than %u tokens", path,
                           TOKENS_MAX);
    struct access_token *token =
        annal__array_add(&access->tokens, &access->token_count, sizeof *token);
    if (token == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read token file '%s': out of memory", path);
    annal__sha256_of(text, len, token->sha256);
    token->right = right;
    if (right == RIGHT_WRITE && access->first[0] == '\0' && len < sizeof access->first)
        memcpy(access->first, text, len);
    return ANNAL_OK;
}

static annal_status read_line(struct access *access, char *line, unsigned number, const char *path,
                              annal_error *err)
{
    char *rest = NULL;
    line[strcspn(line, "#\r\n")] = '\0';
    const char *first = strtok_r(line, " \t", &rest);
    const char *second = first == NULL ? NULL : strtok_r(NULL, " \t", &rest);
    bool is_more = second != NULL && strtok_r(NULL, " \t", &rest) != NULL;
    if (first == NULL)
        return ANNAL_OK;
    if (second == NULL)
        return add_token(access, first, RIGHT_WRITE, path, err);
    if (!is_more && (strcmp(first, "read") == 0 || strcmp(first, "write") == 0))
        return add_token(access, second, *first == 'r' ? RIGHT_READ : RIGHT_WRITE, path, err);
    return annal__fail(err, ANNAL_ERR_INVALID,
                       "token file '%s', line %u: expected TOKEN, 'read TOKEN' or 'write TOKEN'",
                       path, number);
}

/* Read the tokens, a line at a time. A line that is too long is refused as a whole, so that its end
 * cannot become a token. */
annal_status access_read(struct access *access, FILE *file, const char *path, annal_error *err)
{
    char *line = NULL;
    size_t room = 0;
    annal_status status = ANNAL_OK;
    ssize_t len;
    for (unsigned number = 1; status >= 0 && (len = getline(&line, &room, file)) >= 0; number++) {
        if (len > LINE_BYTES_MAX)
            status = annal__fail(err, ANNAL_ERR_LIMIT,
                                 "token file '%s', line %u is longer than %d bytes", path, number,
                                 LINE_BYTES_MAX);
        else if (memchr(line, '\0', (size_t)len) != NULL)
            status = annal__fail(err, ANNAL_ERR_INVALID,
                                 "token file '%s', line %u contains a zero byte", path, number);
        else
            status = read_line(access, line, number, path, err);
    }
    if (status >= 0 && ferror(file))
        status = annal__fail_errno(err, "cannot read token file '%s'", path);
    free(line);
    return status;
}

static annal_status read_tokens(struct access *access, FILE *file, const char *path,
                                annal_error *err)
{
    struct stat info;
    if (fstat(fileno(file), &info) != 0)
        return annal__fail_errno(err, "cannot read token file '%s'", path);
    if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode))
        return annal__fail(err, ANNAL_ERR_INVALID, "token file '%s' is not a regular file", path);
    if ((info.st_mode & 077) != 0)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "token file '%s' can be read by other users: run chmod 600 on the file",
                           path);
    if (info.st_size > FILE_BYTES_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT, "token file '%s' is longer than %u bytes", path,
                           FILE_BYTES_MAX);
    annal_status status = access_read(access, file, path, err);
    if (status >= 0 && access->token_count == 0)
        status = annal__fail(err, ANNAL_ERR_INVALID, "token file '%s' contains no token", path);
    return status;
}

annal_status access_token_in_memory(struct access *access, annal_error *err)
{
    uint8_t random[RANDOM_BYTES];
    char text[2 * RANDOM_BYTES + 1];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return annal__fail_errno(err, "cannot create a token from random bytes");
    annal__hex_text(random, sizeof random, text);
    annal_status status = add_token(access, text, RIGHT_READ, "a token in memory", err);
    if (status >= 0)
        snprintf(access->first, sizeof access->first, "%s", text);
    return status;
}

static annal_status make_tokens(const char *path, annal_error *err)
{
    uint8_t random[RANDOM_BYTES];
    char text[2 * RANDOM_BYTES + 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return annal__fail_errno(err, "cannot create a token from random bytes");
    annal__hex_text(random, sizeof random, text);
    text[2 * RANDOM_BYTES] = '\n';
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno == EEXIST ? ANNAL_OK
                               : annal__fail_errno(err, "cannot create token file '%s'", path);
    bool good = write(fd, text, 2 * RANDOM_BYTES + 1) == 2 * RANDOM_BYTES + 1 && fsync(fd) == 0;
    if (!good)
        annal__fail_errno(err, "cannot write token file '%s'", path);
    close(fd);
    return good ? ANNAL_OK : ANNAL_ERR_IO;
}

/* Open the token file; NULL with errno on failure. A named pipe without a writer is read as empty,
 * instead of blocking. */
static FILE *open_tokens(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        (void)fcntl(fd, F_SETFL, 0);
    return fd >= 0 ? fdopen(fd, "r") : NULL;
}

annal_status access_tokens(struct access *access, const char *path, annal_error *err)
{
    FILE *file = open_tokens(path);
    annal_status status = ANNAL_OK;
    if (file == NULL && errno == ENOENT) {
        status = make_tokens(path, err);
        file = status < 0 ? NULL : open_tokens(path);
    }
    if (status < 0)
        return status;
    if (file == NULL)
        return annal__fail_errno(err, "cannot read token file '%s'", path);
    status = read_tokens(access, file, path, err);
    fclose(file);
    return status;
}

enum right access_right(const struct access *access, const char *token, int *out_index)
{
    uint8_t hash[SHA256_BYTES];
    int found = -1;
    if (token == NULL)
        return RIGHT_NONE;
    annal__sha256_of(token, strlen(token), hash);
    for (size_t i = 0; i < access->token_count; i++) {
        uint8_t differs = 0;
        for (size_t b = 0; b < sizeof hash; b++)
            differs |= (uint8_t)(hash[b] ^ access->tokens[i].sha256[b]);
        found = differs == 0 ? (int)i : found;
    }
    *out_index = found;
    return found < 0 ? RIGHT_NONE : access->tokens[found].right;
}

/* ---- Host and Origin ---- */

annal_status access_host(struct access *access, const char *host, unsigned port, annal_error *err)
{
    char text[300];
    const char *colon = strrchr(host, ':');
    bool has_port = colon != NULL && strchr(colon, ']') == NULL;
    int len = has_port ? snprintf(text, sizeof text, "%s", host)
                       : snprintf(text, sizeof text, "%s:%u", host, port);
    if (len < 0 || (size_t)len >= sizeof text)
        return annal__fail(err, ANNAL_ERR_LIMIT, "--host: the name is too long");
    for (char *c = text; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    char **slot = annal__array_add(&access->hosts, &access->host_count, sizeof *slot);
    if (slot != NULL)
        *slot = annal__strndup(text, (size_t)len);
    return slot == NULL || *slot == NULL ? annal__fail(err, ANNAL_ERR_NOMEM, "serve: out of memory")
                                         : ANNAL_OK;
}

/* Return whether a Host header names the server. A header without a port has the usual port of its
 * scheme. */
static bool is_host(const char *ours, const char *host, const char *usual_port)
{
    size_t len = strlen(host);
    if (strncasecmp(ours, host, len) != 0)
        return false;
    return ours[len] == '\0' || (ours[len] == ':' && strcmp(ours + len + 1, usual_port) == 0);
}

/* Return whether a host name means this host itself, with any port: ssh -L forwards another port to
 * the server's port. No foreign name resolves to these names, so they need no list. */
static bool is_local(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t len = strlen(names[i]);
        if (strncasecmp(host, names[i], len) == 0 &&
            (host[len] == '\0' ||
             (host[len] == ':' && strspn(host + len + 1, "0123456789") == strlen(host + len + 1))))
            return true;
    }
    return false;
}

bool access_host_is_ours(const struct access *access, const char *host)
{
    if (access->is_local && host != NULL && is_local(host))
        return true;
    for (size_t i = 0; host != NULL && i < access->host_count; i++) {
        if (is_host(access->hosts[i], host, "80") || is_host(access->hosts[i], host, "443"))
            return true;
    }
    return access->trusts_all;
}

bool access_origin_is_ours(const struct access *access, const char *origin, const char *host)
{
    static const char http[] = "http://", https[] = "https://";
    if (origin == NULL)
        return true;
    if (access->is_local && host != NULL && is_local(host) &&
        strncasecmp(origin, http, sizeof http - 1) == 0 &&
        strcasecmp(origin + sizeof http - 1, host) == 0)
        return true;
    for (size_t i = 0; i < access->host_count; i++) {
        if ((strncasecmp(origin, http, sizeof http - 1) == 0 &&
             is_host(access->hosts[i], origin + sizeof http - 1, "80")) ||
            (strncasecmp(origin, https, sizeof https - 1) == 0 &&
             is_host(access->hosts[i], origin + sizeof https - 1, "443")))
            return true;
    }
    return false;
}

void access_done(struct access *access)
{
    for (size_t i = 0; i < access->host_count; i++)
        annal__free(access->hosts[i]);
    annal__free(access->hosts);
    annal__free(access->tokens);
    *access = (struct access){0};
}
