/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a lake in a bucket: Amazon S3, or a server with the same protocol. libcurl signs
 * requests (AWS Signature Version 4).
 *
 * (1) A name that only one process may create is a PUT with If-None-Match: *. A server that ignores
 *     this header would let two shippers overwrite each other, so it is tested once, by creating
 *     _log/_exists and then trying to create it again.
 * (2) The server copies ….tmp to its final name, and ….tmp is removed. A process that finds no
 *     ….tmp is late: another one has done it.
 * (3) A Parquet file is first written to an unnamed file in TMPDIR, so a killed shipper leaves no
 *     file. The file is reused for the next Parquet file.
 * (4) Failures that may be temporary (no connection, silence, 5xx, 429) are ANNAL_ERR_BUSY. The
 *     server may have executed the request nevertheless; the caller reads the log again.
 */
#include "tools/ship/lake.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/io.h"
#include "journal/base/sha256.h"
#include "tools/cli/must.h"
#include "tools/ship/curl_handle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { URL_BYTES = 3000, ANSWER_BYTES = 4096, REST_BYTES_MAX = 1 << 20 };

struct lake_files {
    CURL *curl;
    /* descriptor of the unnamed local file for DuckDB (rule 3); -1 if none was created yet */
    int local;
    char base[URL_BYTES]; /* URL of the bucket */
    char copy[URL_BYTES]; /* /bucket/prefix/store=<name>, %-escaped */
    char root[URL_BYTES]; /* /prefix/store=<name>, %-escaped */
    char signer[100];
    char place[2 * URL_BYTES + 300];
    const char *token; /* session token of AWS, or NULL */
    char why[CURL_ERROR_SIZE];
};

struct request {
    const char *method;
    const char *name;
    const char *header; /* additional header, or NULL */
    annal_slice body;
    piece_fn fn; /* receives the body of an answer with status 200 */
    void *arg;

    struct lake_files *files;
    long code;
    annal_status taken;        /* status that fn returned */
    char answer[ANSWER_BYTES]; /* first bytes of the body, if the status is not 200 or fn is NULL */
    size_t answer_len;
    size_t rest; /* number of further bytes, which are discarded */
};

/* ---- The address ---- */

static const char *from_environment(const char *first, const char *second)
{
    const char *value = getenv(first);
    if ((value == NULL || value[0] == '\0') && second != NULL)
        value = getenv(second);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Append text with % escapes for all characters but letters, digits and -._~, as the signature
 * requires; in a path, slashes are not escaped either. */
static void add_escaped(struct buf *out, const char *text, bool path)
{
    for (const char *c = text; *c != '\0'; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || strchr("-._~", *c) != NULL || (path && *c == '/');
        must_printf(out, plain ? "%c" : "%%%02X", (unsigned char)*c);
    }
}

bool lake_s3_names_bucket(const char *url)
{
    const char *name = url + strlen("s3://");
    size_t len = strcspn(name, "/");
    return len >= 3 && len <= 63 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-_ABCDEFGHIJKLMNOPQRSTUVWXYZ") >= len;
}

static annal_status keep(char out[URL_BYTES], struct buf *text)
{
    if (text->len >= URL_BYTES)
        return ANNAL_ERR_LIMIT;
    memcpy(out, must_cstr(text), text->len + 1);
    annal__buf_clear(text);
    return ANNAL_OK;
}

static annal_status find_base(struct lake_files *files, annal_slice bucket, struct buf *text)
{
    const char *region = from_environment("AWS_REGION", "AWS_DEFAULT_REGION");
    const char *endpoint = from_environment("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
    region = region != NULL ? region : "us-east-1";
    snprintf(files->signer, sizeof files->signer, "aws:amz:%.60s:s3", region);
    if (endpoint != NULL)
        must_printf(text, "%.*s/%.*s",
                    (int)(strlen(endpoint) - (endpoint[strlen(endpoint) - 1] == '/' ? 1 : 0)),
                    endpoint, ANNAL_FMT(bucket));
    /* the bucket is not a part of the host: the server's certificate covers only buckets without
     * dots */
    else if (memchr(bucket.ptr, '.', bucket.len) != NULL)
        must_printf(text, "https://s3.%s.amazonaws.com/%.*s", region, ANNAL_FMT(bucket));
    else
        must_printf(text, "https://%.*s.s3.%s.amazonaws.com", ANNAL_FMT(bucket), region);
    return keep(files->base, text);
}

/* Read bucket and prefix from s3://bucket/prefix; the prefix may be empty. */
static annal_status find_place(struct lake_files *files, const struct ship_where *where,
                               const char *directory, annal_error *err)
{
    SCOPED_BUF text = {0};
    const char *name = where->url + strlen("s3://");
    annal_slice bucket = {name, strcspn(name, "/")};
    char prefix[1000];
    snprintf(prefix, sizeof prefix, "%s", name + bucket.len);
    while (prefix[0] != '\0' && prefix[strlen(prefix) - 1] == '/')
        prefix[strlen(prefix) - 1] = '\0';
    annal_status status = find_base(files, bucket, &text);
    if (status >= 0) {
        add_escaped(&text, prefix, true);
        must_printf(&text, "/");
        add_escaped(&text, directory, false);
        status = keep(files->root, &text);
    }
    if (status >= 0 && strlen(name) < sizeof prefix)
        status = snprintf(files->copy, sizeof files->copy, "/%.*s%s", ANNAL_FMT(bucket),
                          files->root) < (int)sizeof files->copy
                     ? ANNAL_OK
                     : ANNAL_ERR_LIMIT;
    return status >= 0
               ? ANNAL_OK
               : annal__fail(err, ANNAL_ERR_INVALID, "ship: the address of the lake is too long");
}

/* ---- A request ---- */

static size_t take_answer(char *bytes, size_t one, size_t count, void *arg)
{
    struct request *request = arg;
    size_t len = one * count, room = sizeof request->answer - 1 - request->answer_len;
    curl_easy_getinfo(request->files->curl, CURLINFO_RESPONSE_CODE, &request->code);
    if (request->code == 200 && request->fn != NULL) {
        request->taken = request->fn(request->arg, bytes, len);
        return request->taken < 0 ? 0 : len;
    }
    memcpy(request->answer + request->answer_len, bytes, len < room ? len : room);
    request->answer_len += len < room ? len : room;
    request->rest += len < room ? 0 : len - room;
    return request->rest <= REST_BYTES_MAX ? len : 0;
}

static void text_of(const struct request *request, const char *tag, char *out, size_t room)
{
    char begin[20];
    snprintf(begin, sizeof begin, "<%s>", tag);
    const char *at = strstr(request->answer, begin);
    at = at != NULL ? at + strlen(begin) : "";
    snprintf(out, room, "%.*s", (int)strcspn(at, "<\n"), at);
}

static annal_status fail_answer(const struct request *request, annal_error *err)
{
    char code[60], message[250];
    bool passes = request->code >= 500 || request->code == 429 || request->code == 409 ||
                  request->code == 408;
    text_of(request, "Code", code, sizeof code);
    text_of(request, "Message", message, sizeof message);
    annal_status status = request->code == 404 && strcmp(code, "NoSuchBucket") != 0
                              ? ANNAL_ERR_NOTFOUND
                          : request->code == 412 ? ANNAL_ERR_CONFLICT
                          : passes               ? ANNAL_ERR_BUSY
                                                 : ANNAL_ERR_IO;
    return annal__fail(err, status, "ship to %s: HTTP status %ld %s%s%s", request->files->base,
                       request->code, code, message[0] != '\0' ? ": " : "", message);
}

static struct curl_slist *headers_of(const struct lake_files *files, const struct request *request)
{
    char line[URL_BYTES + 100], hex[SHA256_TEXT_BYTES];
    uint8_t sum[SHA256_BYTES];
    annal__sha256_of(request->body.ptr, request->body.len, sum);
    annal__sha256_text(sum, hex);
    /* All headers are signed. A header without a value would be signed but not sent. */
    struct curl_slist *list = curl_slist_append(NULL, "Content-Type: application/octet-stream");
    snprintf(line, sizeof line, "x-amz-content-sha256: %s", hex);
    list = curl_slist_append(list, line); /* the server refuses a body with another hash */
    if (files->token != NULL) {
        snprintf(line, sizeof line, "x-amz-security-token: %s", files->token);
        list = curl_slist_append(list, line);
    }
    return request->header != NULL ? curl_slist_append(list, request->header) : list;
}

static annal_status ask(struct lake_files *files, struct request *request, annal_error *err)
{
    char url[2 * URL_BYTES + 300], name[300] = "";
    SCOPED_BUF escaped = {0};
    request->files = files;
    add_escaped(&escaped, request->name, true);
    snprintf(name, sizeof name, "%s", must_cstr(&escaped));
    snprintf(url, sizeof url, "%s%s/%s", files->base, files->root, name);
    struct curl_slist *headers = headers_of(files, request);
    CURL *curl = files->curl;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    if (request->body.ptr != NULL) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body.ptr);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, request);
    files->why[0] = '\0';
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &request->code);
    curl_slist_free_all(headers);
    request->answer[request->answer_len] = '\0';
    if (request->taken < 0)
        return annal__fail(err, request->taken, "ship: save the data received from %s%s/%s: %s",
                           files->base, files->root, name,
                           request->taken == ANNAL_ERR_NOMEM ? "out of memory" : strerror(errno));
    if (request->rest > REST_BYTES_MAX)
        return annal__fail(err, ANNAL_ERR_BUSY,
                           "ship to %s: the answer with HTTP status %ld is longer than any valid "
                           "one",
                           files->base, request->code);
    if (code != CURLE_OK)
        return annal__fail(err,
                           code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL
                               ? ANNAL_ERR_INVALID
                               : ANNAL_ERR_BUSY,
                           "ship to %s: %s", files->base,
                           files->why[0] != '\0' ? files->why : curl_easy_strerror(code));
    return request->code / 100 == 2 ? ANNAL_OK : fail_answer(request, err);
}

/* ---- Opening ---- */

static void s3_close(struct lake_files *files)
{
    if (files == NULL)
        return;
    if (files->curl != NULL)
        curl_easy_cleanup(files->curl);
    if (files->local >= 0)
        close(files->local);
    annal__free(files);
}

static annal_status set_up(struct lake_files *files, uint32_t quiet_ms, annal_error *err)
{
    const char *key = from_environment("AWS_ACCESS_KEY_ID", NULL);
    const char *secret = from_environment("AWS_SECRET_ACCESS_KEY", NULL);
    if (key == NULL || secret == NULL)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "ship: a bucket needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in "
                           "the environment");
    files->token = from_environment("AWS_SESSION_TOKEN", NULL);
    annal_status status = curl_handle_open(files->why, quiet_ms, &files->curl, err);
    if (status < 0)
        return status;
    CURL *curl = files->curl;
    curl_easy_setopt(curl, CURLOPT_USERNAME, key);
    curl_easy_setopt(curl, CURLOPT_PASSWORD, secret);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_answer);
    CURLcode code = curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, files->signer);
    return code == CURLE_OK
               ? ANNAL_OK
               : annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                             "ship: the installed libcurl cannot sign requests for S3: %s",
                             curl_easy_strerror(code));
}

/* Test whether the server refuses to create a name that exists (rule 1). */
static annal_status try_condition(struct lake_files *files, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (int i = 0; i < 2 && status >= 0; i++)
        status = lake_s3.create(files, "_log/_exists", ANNAL_SLICE("{}\n"), err);
    if (status >= 0)
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                           "ship to %s: this server ignores If-None-Match, so two shippers could "
                           "overwrite each other; see 'A bucket' in docs/ship.md",
                           files->base);
    return status == ANNAL_ERR_CONFLICT ? ANNAL_OK : status;
}

static annal_status s3_open(const struct ship_where *where, const char *directory, bool to_write,
                            struct lake_files **out_files, annal_error *err)
{
    annal_status status = library_load(&library_curl, err);
    if (status < 0)
        return status;
    struct lake_files *files = must_zalloc(sizeof *files);
    files->local = -1;
    status = find_place(files, where, directory, err);
    if (status >= 0)
        status = set_up(files, where->quiet_ms, err);
    if (status >= 0 && to_write)
        status = try_condition(files, err);
    if (status < 0) {
        s3_close(files);
        return status;
    }
    *out_files = files;
    return ANNAL_OK;
}

/* ---- Files ---- */

static const char *s3_place(struct lake_files *files, const char *name)
{
    snprintf(files->place, sizeof files->place, "%s%s/%s", files->base, files->root, name);
    return files->place;
}

static annal_status s3_get(struct lake_files *files, const char *name, piece_fn fn, void *arg,
                           annal_error *err)
{
    struct request request = {.method = "GET", .name = name, .fn = fn, .arg = arg};
    return ask(files, &request, err);
}

static annal_status s3_read(struct lake_files *files, const char *name, struct buf *out,
                            annal_error *err)
{
    annal_status status = s3_get(files, name, lake_add_text, out, err);
    return status == ANNAL_ERR_LIMIT ? lake_refuse_long(s3_place(files, name), out->limit, err)
                                     : status;
}

static annal_status s3_create(struct lake_files *files, const char *name, annal_slice bytes,
                              annal_error *err)
{
    struct request request = {
        .method = "PUT", .name = name, .header = "If-None-Match: *", .body = bytes};
    return ask(files, &request, err);
}

static annal_status s3_local(struct lake_files *files, const char *name, int *out_fd,
                             annal_error *err)
{
    (void)name;
    annal_status status = ANNAL_OK;
    if (files->local < 0)
        status = lake_unnamed(&files->local, err);
    else if (ftruncate(files->local, 0) < 0)
        status = annal__fail_errno(
            err, "ship: cannot truncate the temporary file that holds the upload");
    *out_fd = files->local;
    return status;
}

static annal_status s3_stage(struct lake_files *files, const char *name, annal_error *err)
{
    char tmp[300];
    SCOPED_BUF bytes = {0};
    snprintf(tmp, sizeof tmp, "%s.tmp", name);
    annal_status status =
        lake_read_fd(files->local, name, OUTSIDE_BYTES_MAX, lake_add_text, &bytes, err);
    if (status >= 0) {
        struct request request = {.method = "PUT", .name = tmp, .body = annal__buf_slice(&bytes)};
        status = ask(files, &request, err);
    }
    return status;
}

static annal_status s3_remove(struct lake_files *files, const char *name, annal_error *err)
{
    struct request request = {.method = "DELETE", .name = name};
    return ask(files, &request, err);
}

/* Rename <name>.tmp by copying it (rule 2). A server may answer a copy with status 200 and an error
 * in the body. */
static annal_status s3_settle(struct lake_files *files, const char *name, annal_error *err)
{
    char tmp[300], header[URL_BYTES + 400];
    snprintf(tmp, sizeof tmp, "%s.tmp", name);
    SCOPED_BUF escaped = {0};
    add_escaped(&escaped, tmp, true);
    snprintf(header, sizeof header, "x-amz-copy-source: %s/%s", files->copy, must_cstr(&escaped));
    struct request request = {
        .method = "PUT", .name = name, .header = header, .body = ANNAL_SLICE("")};
    annal_status status = ask(files, &request, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    if (status >= 0 && strstr(request.answer, "<Error>") != NULL) {
        request.code = 500;
        status = fail_answer(&request, err);
    }
    return status < 0 ? status : s3_remove(files, tmp, err);
}

static void s3_drop(struct lake_files *files, const char *name)
{
    char tmp[300];
    snprintf(tmp, sizeof tmp, "%s.tmp", name);
    (void)s3_remove(files, tmp, NULL);
}

struct copy {
    int fd;
    uint64_t left; /* number of bytes that may still be written */
};

static annal_status add_to_copy(void *arg, const void *bytes, size_t len)
{
    struct copy *copy = arg;
    if (len > copy->left)
        return ANNAL_ERR_LIMIT;
    copy->left -= len;
    return annal__io_write_fd(copy->fd, (annal_slice){bytes, len}) ? ANNAL_OK : ANNAL_ERR_IO;
}

static annal_status s3_fetch(struct lake_files *files, const char *name, uint64_t most, int *out_fd,
                             annal_error *err)
{
    struct copy copy = {.fd = -1, .left = most};
    annal_status status = lake_unnamed(&copy.fd, err);
    if (status >= 0)
        status = s3_get(files, name, add_to_copy, &copy, err);
    if (status == ANNAL_ERR_LIMIT)
        status = lake_refuse_longer(s3_place(files, name), most, err);
    if (status < 0 && copy.fd >= 0)
        close(copy.fd);
    else
        *out_fd = copy.fd;
    return status;
}

const struct lake_files_kind lake_s3 = {.open = s3_open,
                                        .close = s3_close,
                                        .read = s3_read,
                                        .create = s3_create,
                                        .local = s3_local,
                                        .stage = s3_stage,
                                        .settle = s3_settle,
                                        .drop = s3_drop,
                                        .remove = s3_remove,
                                        .fetch = s3_fetch,
                                        .place = s3_place};
