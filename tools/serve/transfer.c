/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bundles: exports and imports of sessions (tools/export/bundle.h), through the verbs export and
 * import.
 *
 * (1) The same sessions give the same bytes, so an interrupted download can be continued. The
 *     entity tag is the SHA-256 of the bundle. A request with Range, and this tag in If-Range, is
 *     answered from a bundle that is built again.
 * (2) An interrupted upload can be continued if it has a name: PUT bundle?upload=NAME with
 *     Content-Range, whose first byte must follow the part that the server has; GET reports the
 *     size of that part. Uploads that are still incomplete after a day are removed.
 */
#include "journal/base/below.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "tools/cli/child.h"
#include "tools/cli/outside.h"
#include "tools/cli/store_open.h"
#include "tools/cli/temporary.h"
#include "tools/export/bundle.h"
#include "tools/serve/serve.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define UPLOADS    "serve.uploads"
#define UPLOAD_S   86400
#define REPORT_MAX ((size_t)16 << 20)

/* ---- Downloads ---- */

static annal_status open_bundle(const char *path, struct request *request,
                                char etag[SHA256_TEXT_BYTES], annal_error *err)
{
    struct stat info;
    request->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (request->fd < 0 || fstat(request->fd, &info) != 0)
        return annal__fail_errno(err, "cannot read the temporary file of the bundle");
    request->fd_bytes = (uint64_t)info.st_size;
    return bundle_hash_file(request->fd, path, request->fd_bytes, etag, err);
}

static annal_status make_bundle(struct serve *serve, struct request *request,
                                char etag[SHA256_TEXT_BYTES], annal_error *err)
{
    char place[PATH_MAX], path[PATH_MAX + 16], session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    SCOPED_BUF ignored = {.limit = 4096};
    snprintf(session, sizeof session, "%.*s", ANNAL_FMT(request->id));
    if (!temporary_directory("serve", place))
        return annal__fail_errno(err, "cannot create a temporary directory for a bundle");
    snprintf(path, sizeof path, "%s/bundle", place);
    const char *const words[] = {"export", "--format", "bundle", "--to", path, "--", session, NULL};
    annal_status status =
        child_run(annal_store_path(serve->store), words,
                  &(struct child_options){.socket = http_socket(request)}, &ignored, err);
    if (status >= 0)
        status = open_bundle(path, request, etag, err);
    temporary_directory_remove(place); /* an export that was killed left a file of another name */
    return status;
}

/* Read "bytes=A-B", "bytes=A-" or "bytes=-N". Returns false for any other text, which the caller
 * ignores. */
static bool read_range(const char *text, uint64_t bytes, uint64_t *out_from, uint64_t *out_to)
{
    uint64_t from = 0, to = bytes;
    struct outside range = {.at = text != NULL ? text : ""};
    outside_skip(&range, "bytes=");
    if (outside_has(&range, "-")) {
        uint64_t last = outside_number(&range, OUTSIDE_BYTES_MAX);
        from = last < bytes ? bytes - last : 0;
        range.is_bad = range.is_bad || last == 0;
    } else {
        from = outside_number(&range, OUTSIDE_BYTES_MAX);
        outside_skip(&range, "-");
        to = outside_end(&range) ? bytes : outside_number(&range, OUTSIDE_BYTES_MAX) + 1;
    }
    if (!outside_end(&range))
        return false;
    *out_from = from;
    *out_to = to > bytes ? bytes : to;
    return true;
}

void transfer_get(struct serve *serve, struct request *request)
{
    char etag[SHA256_TEXT_BYTES];
    annal_error err = {0};
    annal_session_info info;
    if (annal_session_info_get(serve->store, request->id, &info, &err) < 0 ||
        make_bundle(serve, request, etag, &err) < 0) {
        answer_failure(request, &err);
        return;
    }
    uint64_t from = 0, to = request->fd_bytes, bytes = request->fd_bytes;
    const char *same = http_header(request, "If-Range");
    bool part = (same == NULL || strstr(same, etag) != NULL) &&
                read_range(http_header(request, "Range"), bytes, &from, &to);
    if (part && from >= to) {
        close(request->fd);
        request->fd = -1;
        request->fd_bytes = 0;
        (void)annal__buf_printf(&request->headers, "Content-Range: bytes */%" PRIu64 "\n", bytes);
        answer_error(request, 416, "range", "the bundle has %" PRIu64 " bytes", bytes);
        return;
    }
    request->status = part ? 206 : 200;
    request->type = "application/x-tar";
    request->most_s = 0;
    request->fd_from = from;
    request->fd_bytes = to - from;
    if (part)
        (void)annal__buf_printf(&request->headers,
                                "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\n", from,
                                to - 1, bytes);
    (void)annal__buf_printf(&request->headers,
                            "ETag: \"%s\"\nAccept-Ranges: bytes\nContent-Disposition: attachment; "
                            "filename=\"%.*s.bundle\"\n",
                            etag, ANNAL_FMT(request->id));
}

/* ---- Uploads ---- */

static const struct below_mode OWN = {.file = 0600, .folder = 0700};

/* Open the directory of uploads without following links. Returns -1 if the directory is missing and
 * to_write is false, or if it cannot be opened. */
static int open_uploads(const struct serve *serve, bool to_write)
{
    int fd = -1;
    struct below store = {0};
    if (annal__below_open(annal_store_path(serve->store), &store, NULL) < 0)
        return -1;
    (void)annal__below_folder(&store, UPLOADS, to_write ? &OWN : NULL, &fd, NULL);
    annal__below_close(&store);
    return fd;
}

static void remove_old(const struct serve *serve, const char *done)
{
    struct stat info;
    const struct dirent *entry;
    int fd = open_uploads(serve, false), uploads = fd >= 0 ? dup(fd) : -1;
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (done != NULL && uploads >= 0)
        (void)unlinkat(uploads, done, 0);
    while (directory != NULL && uploads >= 0 && (entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.' &&
            fstatat(uploads, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            info.st_mtime + UPLOAD_S < time(NULL))
            (void)unlinkat(uploads, entry->d_name, 0);
    if (directory != NULL)
        closedir(directory);
    else if (fd >= 0)
        close(fd);
    if (uploads >= 0)
        close(uploads);
    if ((fd = open(annal_store_path(serve->store), O_DIRECTORY | O_CLOEXEC)) < 0)
        return;
    /* removes the directory of uploads if it is empty now; otherwise the call fails */
    (void)unlinkat(fd, UPLOADS, AT_REMOVEDIR);
    close(fd);
}

/* Read the header Content-Range: "bytes A-B/TOTAL". Answers the request and returns false if it is
 * invalid; both values are 0 if it is missing. */
static bool read_part(struct request *request, uint64_t *out_from, uint64_t *out_total)
{
    const char *text = http_header(request, "Content-Range");
    struct outside part = {.at = text != NULL ? text : ""};
    if (text == NULL) {
        *out_from = 0;
        *out_total = 0;
        return true;
    }
    outside_skip(&part, "bytes ");
    *out_from = outside_number(&part, OUTSIDE_BYTES_MAX);
    outside_skip(&part, "-");
    uint64_t to = outside_number(&part, OUTSIDE_BYTES_MAX);
    outside_skip(&part, "/");
    *out_total = outside_number(&part, OUTSIDE_BYTES_MAX);
    if (outside_end(&part) && *out_from <= to && to < *out_total)
        return true;
    return answer_error(request, 400, "invalid", "Content-Range must be bytes FIRST-LAST/TOTAL");
}

/* Open the file that receives the body. For an upload with a name, that is the part that the server
 * has, which must end at `from`. Returns -1 on failure. */
static int open_upload(struct serve *serve, struct request *request, const char *name,
                       uint64_t from)
{
    struct stat info = {0};
    int uploads = open_uploads(serve, true);
    if (uploads < 0)
        return -1;
    int fd = openat(uploads, name,
                    O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    close(uploads);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        answer_error(request, 409, "busy",
                     "another request is sending this upload: try again later");
    else if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || (uint64_t)info.st_size != from)
        answer_error(request, 409, "conflict", "the server has %" PRIu64 " bytes of this upload",
                     (uint64_t)info.st_size);
    return fd;
}

/* Open the file for the body; an admit() of http.h, so it runs in the connection thread and must
 * not wait. */
void transfer_admit(struct serve *serve, struct request *request)
{
    const char *name = http_query(request, "upload");
    uint64_t from, total;
    annal_error err = {0};
    if (!read_part(request, &from, &total))
        return;
    if (name != NULL && annal_session_id_check(annal_slice_of(name), &err) < 0) {
        answer_error(request, 400, "invalid",
                     "upload must be a name of 1 to 200 characters from A-Z a-z 0-9 . _ -");
        return;
    }
    request->body_fd = name != NULL ? open_upload(serve, request, name, from)
                                    : temporary_file(annal_store_path(serve->store));
    if (request->body_fd < 0)
        answer_error(request, 507, "io", "the store cannot save the upload: %s", strerror(errno));
    else if (request->status == 0 && total > from && total - from > store_free_bytes(serve->store))
        answer_error(request, 507, "io", "the store has no space for %" PRIu64 " more bytes",
                     total - from);
}

/* Print the lines, each of which is JSON, as {"imported":[…]}. */
static annal_status put_report(struct buf *out, annal_slice lines)
{
    annal_status status = annal__buf_append(out, "{\"imported\":[", 13);
    bool first = true;
    for (size_t at = 0; status >= 0 && at < lines.len;) {
        const char *newline = memchr(lines.ptr + at, '\n', lines.len - at);
        size_t len = newline == NULL ? lines.len - at : (size_t)(newline - lines.ptr) - at;
        if (len > 0 && !first)
            status = annal__buf_append(out, ",", 1);
        status = annal__buf_append(out, lines.ptr + at, len);
        first = first && len == 0;
        at += len + 1;
    }
    return annal__buf_append(out, "]}", 2);
}

static void replace(char *text, const char *what, const char *with)
{
    size_t len = strlen(what), new_len = strlen(with);
    for (char *at = text; new_len <= len && (at = strstr(at, what)) != NULL; at += new_len) {
        memcpy(at, with, new_len);
        memmove(at + new_len, at + len, strlen(at + len) + 1);
    }
}

/* Replace the server's paths in a message by words, because clients need not know them. */
static void hide_paths(const struct serve *serve, const char *bundle, char *message)
{
    replace(message, bundle, "bundle");
    replace(message, annal_store_path(serve->store), "store");
}

void transfer_put(struct serve *serve, struct request *request)
{
    char path[PATH_BYTES];
    const char *name = http_query(request, "upload");
    uint64_t from, total;
    struct stat info = {0};
    SCOPED_BUF report = {.limit = REPORT_MAX};
    annal_error err = {0};
    if (!read_part(request, &from, &total))
        return;
    if (fstat(request->body_fd, &info) == 0 && (uint64_t)info.st_size < total) {
        annal_status status = annal__buf_printf(&request->answer, "{\"received\":%" PRIu64 "}",
                                                (uint64_t)info.st_size);
        answer_json(request, status, NULL);
        request->status = status < 0 ? request->status : 202;
        return;
    }
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), request->body_fd);
    const char *const words[] = {"import", "bundle", path, "--json", NULL};
    annal_status status = child_run(annal_store_path(serve->store), words, NULL, &report, &err);
    if (status >= 0)
        status = put_report(&request->answer, annal__buf_slice(&report));
    else
        hide_paths(serve, path, err.message);
    remove_old(serve, name);
    answer_json(request, status, &err);
}

void transfer_received(struct serve *serve, struct request *request)
{
    struct stat info = {0};
    const char *name = http_query(request, "upload");
    if (name == NULL || annal_session_id_check(annal_slice_of(name), NULL) < 0) {
        answer_error(request, 400, "invalid", "the parameter upload must be the name of an upload");
        return;
    }
    int uploads = open_uploads(serve, false);
    if (uploads >= 0)
        (void)fstatat(uploads, name, &info, AT_SYMLINK_NOFOLLOW);
    if (uploads >= 0)
        close(uploads);
    answer_json(
        request,
        annal__buf_printf(&request->answer, "{\"received\":%" PRIu64 "}", (uint64_t)info.st_size),
        NULL);
}
