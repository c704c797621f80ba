/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies sessions to and from a server as bundles; transfer.c in tools/serve describes the
 * requests.
 *
 * (1) The same sessions give the same bundle, so an upload is identified by the SHA-256 of its
 *     bytes, and continues at the end that the server reports.
 * (2) A download continues if the server still has the same bundle, according to the entity tag.
 *     The part that was downloaded before is in the directory that an import would use (staging.h).
 */
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/json_walk.h"
#include "journal/base/number.h"
#include "journal/base/slice.h"
#include "journal/sys/seam.h"
#include "tools/cli/command.h"
#include "tools/cli/out.h"
#include "tools/cli/progress.h"
#include "tools/cli/store_open.h"
#include "tools/cli/target.h"
#include "tools/cli/temporary.h"
#include "tools/export/staging.h"
#include "tools/ship/remote.h"
#include "tools/ship/ship.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_BYTES   ((uint64_t)8 << 20)
#define ANSWER_BYTES ((size_t)16 << 20)

struct push {
    struct remote *remote;
    annal_session_info info;
    char upload[80]; /* bundle?upload=… */
    struct remote_body part;
    uint64_t sent;
    struct progress progress;
    struct buf answer;
};

/* ---- Push ---- */

/* Write the bundle of the session to an unnamed file. Returns 0 or an exit status. */
static int make_bundle(annal_store *store, struct push *push, annal_error *err)
{
    char path[PATH_MAX + 16], hash[SHA256_TEXT_BYTES];
    struct session_name name = {.bytes = push->info.bytes};
    const struct session_list list = {.names = &name, .count = 1, .bytes = name.bytes};
    struct target target;
    struct stat file;
    memcpy(name.id, push->info.session, sizeof name.id);
    if (!temporary_directory("push", path))
        return fail_storage("push: create a temporary directory: %s", strerror(errno));
    char *end = path + strlen(path);
    snprintf(end, 10, "/bundle");
    int exit_status = target_begin(&target, path);
    if (exit_status == EXIT_DONE) {
        exit_status = bundle_export(store, &list);
        int at_end = target_end(&target, exit_status == EXIT_DONE);
        exit_status = exit_status == EXIT_DONE ? at_end : exit_status;
    }
    push->part.fd = exit_status == EXIT_DONE ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (exit_status == EXIT_DONE &&
        (push->part.fd < 0 || fstat(push->part.fd, &file) != 0 ||
         bundle_hash_file(push->part.fd, path, (uint64_t)file.st_size, hash, err) < 0))
        exit_status = fail_storage("push: cannot read the temporary bundle %s", path);
    *end = '\0';
    temporary_directory_remove(path);
    if (exit_status == EXIT_DONE) {
        push->part.total = (uint64_t)file.st_size;
        snprintf(push->upload, sizeof push->upload, "bundle?upload=push-%.32s", hash);
    }
    return exit_status;
}

/* Find out whether the server has the session up to its last local event, by the hash of that
 * event. */
static annal_status has_session(struct push *push, bool *out_has, annal_error *err)
{
    char path[300], h[20];
    snprintf(path, sizeof path, "sessions/%s/events/%" PRIu64 "/proof", push->info.session,
             push->info.last_seq);
    snprintf(h, sizeof h, "\"%016" PRIx64 "\"", push->info.last_h);
    annal_status status = remote_get(push->remote, path, &push->answer, err);
    *out_has = status >= 0 &&
               annal__slice_same(annal__json_member(annal__buf_slice(&push->answer), "hash"),
                                 annal_slice_of(h));
    return status == ANNAL_ERR_NOTFOUND ? ANNAL_OK : status;
}

static annal_status find_received(struct push *push, annal_error *err)
{
    annal_status status = remote_get(push->remote, push->upload, &push->answer, err);
    if (status < 0)
        return status;
    annal_slice received = annal__json_member(annal__buf_slice(&push->answer), "received");
    struct number number = {.kind = NUMBER_OTHER};
    if (received.len > 0)
        number = annal__number_read(received);
    push->part.from = number.uint;
    if (number.kind != NUMBER_UINT || number.uint > push->part.total)
        return annal__fail(
            err, ANNAL_ERR_CORRUPT,
            "push: the server did not report how many bytes of the bundle were received");
    return push->part.from < push->part.total
               ? ANNAL_OK
               : annal__fail(err, ANNAL_ERR_BUSY,
                             "push: a second request is already sending this bundle to the server; "
                             "try again later");
}

static annal_status send_parts(struct push *push, annal_error *err)
{
    struct remote_body *part = &push->part;
    annal_status status = find_received(push, err);
    while (status >= 0 && part->from < part->total) {
        uint64_t left = part->total - part->from;
        part->bytes = left < PART_BYTES ? left : PART_BYTES;
        status = remote_put(push->remote, push->upload, part, &push->answer, err);
        if (status < 0)
            break;
        part->from += part->bytes;
        push->sent += part->bytes;
        progress_set(&push->progress, part->from, push->info.session);
    }
    return status;
}

static void print_pushed(const struct push *push, const struct remote_where *where, bool json,
                         bool is_pushed)
{
    char bytes[HUMAN_BYTES];
    const annal_session_info *info = &push->info;
    if (json)
        printf("{\"session_id\":\"%s\",\"seq\":%" PRIu64 ",\"h\":\"%016" PRIx64
               "\",\"bytes\":%" PRIu64 ",\"sent\":%" PRIu64 ",\"already_there\":%s}\n",
               info->session, info->last_seq, info->last_h, push->part.total, push->sent,
               is_pushed ? "true" : "false");
    else if (is_pushed)
        printf("%s already has session '%s', up to event %" PRIu64 "\n", where->url, info->session,
               info->last_seq);
    else
        printf("pushed session '%s' to %s, up to event %" PRIu64 " (%016" PRIx64
               "): %s bytes sent\n",
               info->session, where->url, info->last_seq, info->last_h,
               human_count(bytes, push->sent));
}

static int push_session(annal_store *store, struct push *push, const struct args *args,
                        const struct remote_where *where)
{
    annal_error err = {0};
    bool is_pushed = false, has = false;
    const char *session = args_get(args, "SESSION");
    annal_status status = annal__unapplied_settle(store, &err);
    if (status >= 0)
        status = annal_session_info_get(store, annal_slice_of(session), &push->info, &err);
    if (status >= 0)
        status = remote_open(where, &push->remote, &err);
    if (status >= 0)
        status = has_session(push, &is_pushed, &err);
    if (status >= 0 && !is_pushed) {
        int exit_status = make_bundle(store, push, &err);
        if (exit_status != EXIT_DONE)
            return exit_status;
        progress_begin(&push->progress, "push", push->part.total);
        status = send_parts(push, &err);
        if (status >= 0)
            status = has_session(push, &has, &err);
        if (status >= 0 && !has)
            status = annal__fail(&err, ANNAL_ERR_CORRUPT,
                                 "the server accepted the bundle, but does not have session '%s' "
                                 "up to event %" PRIu64,
                                 push->info.session, push->info.last_seq);
        progress_hide(&push->progress);
    }
    if (status < 0)
        return ship_fail_target(&err);
    print_pushed(push, where, args->json, is_pushed);
    return EXIT_DONE;
}

int push_run(const struct args *args, const struct remote_where *where)
{
    annal_store *store = NULL;
    struct push push = {.part = {.fd = -1}, .answer = {.limit = ANSWER_BYTES}};
    int exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == EXIT_DONE)
        exit_status = sessions_resolve(store, args);
    if (exit_status == EXIT_DONE)
        exit_status = push_session(store, &push, args, where);
    if (push.part.fd >= 0)
        close(push.part.fd);
    remote_close(push.remote);
    annal__buf_done(&push.answer);
    return store_close(store, out_finish(exit_status));
}

/* ---- Pull ---- */

/* Download the bundle, and continue an earlier download (rule 2); its entity tag is in a file
 * beside it. If all bytes were downloaded before, the last byte is requested again, because a
 * server refuses a request for no bytes. */
static annal_status download(struct staging *staging, struct remote *remote, const char *session,
                             int *out_fd)
{
    char tag[80] = "", within[300];
    struct stat file = {0};
    struct remote_body body = {.fd = -1, .tag_fd = -1, .most = store_free_bytes(staging->store)};
    snprintf(within, sizeof within, "sessions/%s/bundle", session);
    annal_status status = staging_open_file(staging, "bundle", O_RDWR | O_CREAT, &body.fd);
    if (status >= 0)
        status = staging_open_file(staging, "bundle.tag", O_RDWR | O_CREAT, &body.tag_fd);
    if (status >= 0 && (fstat(body.fd, &file) < 0 || read(body.tag_fd, tag, sizeof tag - 1) < 0))
        status = annal__fail_errno(staging->err, "pull: cannot read the files in the directory %s",
                                   staging->stage.ptr);
    body.from = tag[0] != '\0' && file.st_size > 0 ? (uint64_t)file.st_size - 1 : 0;
    if (status >= 0)
        status = remote_fetch(remote, within, &body, tag, staging->err);
    if (body.tag_fd >= 0)
        close(body.tag_fd);
    *out_fd = body.fd;
    return status;
}

int push_pull_remote(const struct args *args, const struct remote_where *where)
{
    const char *session = args_get(args, "SESSION");
    struct remote *remote = NULL;
    annal_error err = {0};
    struct staging staging = {.from = where->url, .stage_lock = -1, .err = &err};
    char path[40];
    int fd = -1, exit_status = store_open(args, OPEN_CREATE, 0, &staging.store);
    if (exit_status != EXIT_DONE)
        return store_close(staging.store, exit_status);
    uint64_t key = annal__hash(where->url, strlen(where->url), 2);
    annal_status status = remote_open(where, &remote, &err);
    if (status >= 0)
        status = staging_begin(&staging, annal__hash(session, strlen(session), key) | 1);
    if (status >= 0)
        status = download(&staging, remote, session, &fd);
    remote_close(remote);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd); /* the name of the file may have changed */
    exit_status =
        status < 0 ? ship_fail_target(&err) : bundle_import(args, path, where->url, session);
    if (fd >= 0)
        close(fd);
    if (status == ANNAL_ERR_BUSY)
        staging_keep(&staging);
    else
        staging_done(&staging);
    return store_close(staging.store, exit_status);
}
