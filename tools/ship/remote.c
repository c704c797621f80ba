/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ship/remote.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "tools/ship/curl_handle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { URL_BYTES = 2000, ANSWER_BYTES = 16 << 20 };

/* A server is silent while it builds or imports a bundle, for up to WORK_S seconds. TCP keepalive,
 * every ALIVE_S seconds, shows that its host is running. */
enum { WORK_S = 3600, ALIVE_S = 20 };

struct remote {
    CURL *curl;
    long quiet_s;
    char url[URL_BYTES]; /* address without a slash at the end */
    char bearer[600];    /* header with the token; "" without a token */
    char why[CURL_ERROR_SIZE];

    struct buf *answer; /* receives answers that are not files */
    /* file to which remote_fetch() writes the body of the answer; NULL in other requests */
    struct remote_body *file;
    const struct remote_body *part;
    uint64_t sent;
    char etag[80];
    int failed; /* errno of a failed write to the file, or 0 */
};

/* ---- Callbacks of libcurl ---- */

static size_t take_header(char *bytes, size_t one, size_t count, void *arg)
{
    struct remote *remote = arg;
    static const char name[] = "etag:";
    size_t len = one * count;
    if (len > sizeof name && strncasecmp(bytes, name, sizeof name - 1) == 0)
        snprintf(remote->etag, sizeof remote->etag, "%.*s",
                 (int)strcspn(bytes + sizeof name, "\r\n"), bytes + sizeof name);
    return len;
}

/* Write the file from its first byte, and discard what was downloaded earlier. */
static bool begin_file(struct remote *remote)
{
    struct remote_body *file = remote->file;
    ssize_t len = (ssize_t)strlen(remote->etag);
    file->from = 0;
    return ftruncate(file->tag_fd, 0) == 0 && ftruncate(file->fd, 0) == 0 &&
           pwrite(file->tag_fd, remote->etag, (size_t)len, 0) == len;
}

static bool take_piece(struct remote *remote, const char *bytes, size_t len, long code)
{
    struct remote_body *file = remote->file;
    if (code == 200 && file->bytes == 0 && !begin_file(remote))
        return false;
    if (len > file->most - file->bytes) {
        errno = ENOSPC;
        return false;
    }
    while (len > 0) {
        ssize_t written = pwrite(file->fd, bytes, len, (off_t)(file->from + file->bytes));
        if (written <= 0)
            return false;
        file->bytes += (uint64_t)written;
        bytes += written;
        len -= (size_t)written;
    }
    return true;
}

static size_t take_answer(char *bytes, size_t one, size_t count, void *arg)
{
    struct remote *remote = arg;
    long code = 0;
    size_t len = one * count;
    curl_easy_getinfo(remote->curl, CURLINFO_RESPONSE_CODE, &code);
    if (remote->file == NULL || code / 100 != 2)
        return annal__buf_append(remote->answer, bytes, len) < 0 ? 0 : len;
    if (take_piece(remote, bytes, len, code))
        return len;
    remote->failed = errno;
    return 0;
}

static size_t give_part(char *room, size_t one, size_t count, void *arg)
{
    struct remote *remote = arg;
    const struct remote_body *part = remote->part;
    size_t len = one * count;
    if (len > part->bytes - remote->sent)
        len = (size_t)(part->bytes - remote->sent);
    ssize_t got = pread(part->fd, room, len, (off_t)(part->from + remote->sent));
    if (got < 0 || (got == 0 && len > 0))
        return CURL_READFUNC_ABORT;
    remote->sent += (uint64_t)got;
    return (size_t)got;
}

/* ---- A request ---- */

/* Check that the answer is JSON; call this before a member is looked up. */
static bool is_json(const struct remote *remote)
{
    enum { DEPTH = 16 };
    return remote->answer->len > 0 &&
           annal__json_check(annal__buf_slice(remote->answer), DEPTH, NULL) == JSON_VALID;
}

/* Fail with the message of an answer {"error":{"code":…,"message":…}}. */
static annal_status fail_answer(const struct remote *remote, long code, annal_error *err)
{
    char said[300] = "";
    annal_slice message = {NULL, 0};
    if (is_json(remote))
        message = annal__json_member(annal__json_member(annal__buf_slice(remote->answer), "error"),
                                     "message");
    if (message.len > 2 && message.ptr[0] == '"')
        snprintf(said, sizeof said, ": %.*s", (int)message.len - 2, message.ptr + 1);
    annal_status status = code == 404                                 ? ANNAL_ERR_NOTFOUND
                          : code == 409                               ? ANNAL_ERR_CONFLICT
                          : code >= 500 || code == 429 || code == 408 ? ANNAL_ERR_BUSY
                                                                      : ANNAL_ERR_REFUSED;
    return annal__fail(
        err, status, "the server %s answered with HTTP status %ld%s%s", remote->url, code, said,
        code == 401 || code == 403 ? "; set the token with --token-file or ANNAL_TOKEN" : "");
}

static annal_status perform(struct remote *remote, const char *path, const char *const *lines,
                            annal_error *err)
{
    char url[URL_BYTES + 600];
    struct curl_slist *headers = NULL;
    CURL *curl = remote->curl;
    long code = 0;
    snprintf(url, sizeof url, "%s/api/v1/%s", remote->url, path);
    if (remote->bearer[0] != '\0')
        headers = curl_slist_append(headers, remote->bearer);
    for (; *lines != NULL; lines++)
        headers = curl_slist_append(headers, *lines);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    remote->why[0] = '\0';
    annal__buf_clear(remote->answer);
    CURLcode done = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    curl_slist_free_all(headers);
    if (remote->failed != 0) {
        errno = remote->failed;
        return annal__fail_errno(err, "cannot save the answer of the server %s", remote->url);
    }
    if (done != CURLE_OK)
        return annal__fail(err,
                           done == CURLE_URL_MALFORMAT || done == CURLE_UNSUPPORTED_PROTOCOL
                               ? ANNAL_ERR_INVALID
                               : ANNAL_ERR_BUSY,
                           "send a request to the server %s: %s", remote->url,
                           remote->why[0] != '\0' ? remote->why : curl_easy_strerror(done));
    if (code / 100 != 2)
        return fail_answer(remote, code, err);
    return remote->file != NULL || is_json(remote)
               ? ANNAL_OK
               : annal__fail(err, ANNAL_ERR_CORRUPT, "the answer of the server %s is not JSON",
                             remote->url);
}

annal_status remote_get(struct remote *remote, const char *path, struct buf *answer,
                        annal_error *err)
{
    static const char *const none[] = {NULL};
    remote->answer = answer;
    remote->file = NULL;
    curl_easy_setopt(remote->curl, CURLOPT_HTTPGET, 1L);
    return perform(remote, path, none, err);
}

annal_status remote_put(struct remote *remote, const char *path, const struct remote_body *part,
                        struct buf *answer, annal_error *err)
{
    char range[120];
    /* "Expect:" prevents libcurl from waiting for the server's permission to send the body */
    const char *const lines[] = {range, "Expect:", NULL};
    bool is_last = part->from + part->bytes == part->total;
    snprintf(range, sizeof range, "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
             part->from, part->from + part->bytes - 1, part->total);
    remote->answer = answer;
    remote->file = NULL;
    remote->part = part;
    remote->sent = 0;
    curl_easy_setopt(remote->curl, CURLOPT_LOW_SPEED_TIME,
                     is_last ? (long)WORK_S : remote->quiet_s);
    curl_easy_setopt(remote->curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(remote->curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)part->bytes);
    annal_status status = perform(remote, path, lines, err);
    curl_easy_setopt(remote->curl, CURLOPT_UPLOAD, 0L);
    return status;
}

annal_status remote_fetch(struct remote *remote, const char *path, struct remote_body *body,
                          const char *same, annal_error *err)
{
    char range[60], condition[120];
    SCOPED_BUF answer = {.limit = ANSWER_BYTES};
    const char *const lines[] = {range, condition, NULL};
    static const char *const none[] = {NULL};
    snprintf(range, sizeof range, "Range: bytes=%" PRIu64 "-", body->from);
    snprintf(condition, sizeof condition, "If-Range: %s", same);
    remote->answer = &answer;
    remote->file = body;
    remote->failed = 0;
    remote->etag[0] = '\0';
    body->bytes = 0;
    curl_easy_setopt(remote->curl, CURLOPT_LOW_SPEED_TIME, (long)WORK_S);
    curl_easy_setopt(remote->curl, CURLOPT_HTTPGET, 1L);
    return perform(remote, path, body->from > 0 ? lines : none, err);
}

/* ---- Opening ---- */

annal_status remote_open(const struct remote_where *where, struct remote **out_remote,
                         annal_error *err)
{
    const char *url = where->url;
    annal_status status = library_load(&library_curl, err);
    if (status < 0)
        return status;
    struct remote *remote = annal__zalloc(sizeof *remote);
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/')
        len--;
    if (remote == NULL || len >= sizeof remote->url) {
        annal__free(remote);
        return annal__fail(
            err, ANNAL_ERR_NOMEM,
            "the address of the server is too long, or the process is out of memory");
    }
    memcpy(remote->url, url, len);
    if (where->token[0] != '\0')
        snprintf(remote->bearer, sizeof remote->bearer, "Authorization: Bearer %s", where->token);
    remote->quiet_s = (long)(where->quiet_ms / 1000);
    status = curl_handle_open(remote->why, where->quiet_ms, &remote->curl, err);
    if (status < 0) {
        annal__free(remote);
        return status;
    }
    CURL *curl = remote->curl;
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, (long)ALIVE_S);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, (long)ALIVE_S);
    if (where->ca != NULL)
        curl_easy_setopt(curl, CURLOPT_CAINFO, where->ca);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, remote);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, remote);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, give_part);
    curl_easy_setopt(curl, CURLOPT_READDATA, remote);
    *out_remote = remote;
    return ANNAL_OK;
}

void remote_close(struct remote *remote)
{
    if (remote == NULL)
        return;
    curl_easy_cleanup(remote->curl);
    annal__free(remote);
}
