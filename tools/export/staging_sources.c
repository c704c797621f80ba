/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/export/staging_sources.h"

#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/source/copies_file.h"
#include "tools/source/copies_read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define INFO_DEPTH 3

static annal_status refuse(struct staging *staging, const char *name, const char *what)
{
    return annal__fail(staging->err, ANNAL_ERR_CORRUPT, "%s: the copy of a log sources/%s %s",
                       staging->from, name, what);
}

static int open_directory(const struct staging *staging)
{
    return openat(staging->stage_lock, "sources", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- Proving (rule 1) ---- */

static const struct bundle_session *find(const struct staging *staging, annal_slice id)
{
    for (size_t i = 0; i < staging->bundle.session_count; i++)
        if (annal__slice_is(id, staging->bundle.sessions[i].session))
            return &staging->bundle.sessions[i];
    return NULL;
}

static bool has_sessions(const struct staging *staging, annal_slice info, annal_slice first)
{
    struct json_walk walk;
    annal_slice raw;
    size_t count = 0;
    bool all = annal__json_walk_array(&walk, annal__json_member(info, "sessions"));
    for (; all && annal__json_walk_item(&walk, &raw); count++) {
        annal_slice id = annal__json_inside(raw);
        all = raw.ptr[0] == '"' && find(staging, id) != NULL &&
              (count > 0 || annal__slice_same(id, first));
    }
    return all && count > 0;
}

/* The name of a copy has a hash of the log's path. */
static bool fits_path(annal_slice info, annal_slice log)
{
    char text[SOURCES_LOG_DIGITS + 1];
    SCOPED_BUF scratch = {0};
    annal_slice path = {0}, raw = annal__json_member(info, "path");
    bool fits = raw.len > 2 && raw.ptr[0] == '"' && annal__json_text(raw, &scratch, &path) >= 0 &&
                path.len > 0 && path.ptr[0] == '/' && memchr(path.ptr, '\0', path.len) == NULL;
    snprintf(text, sizeof text, "%016" PRIx64, fits ? annal__hash(path.ptr, path.len, 0) : 0);
    return fits && annal__slice_is(log, text);
}

static annal_status prove(struct staging *staging, int directory, const char *text)
{
    struct copies_file file = {0};
    annal__source_name name = {0};
    int fd = openat(directory, text, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    annal_status status = fd < 0 ? annal__fail_errno(staging->err, "open sources/%s", text)
                                 : copies_file_read(fd, &file, staging->err);
    annal_slice info = annal__buf_slice(&file.info);
    (void)annal__sources_read_name(text, &name);
    if (status >= 0 &&
        (status == ANNAL_END || file.marked_count == 0 || file.marked_end != file.size ||
         annal__json_check(info, INFO_DEPTH, NULL) != JSON_VALID || info.ptr[0] != '{' ||
         (name.generation > 0 && file.generation != name.generation) ||
         !fits_path(info, name.log) || !has_sessions(staging, info, name.session)))
        status = refuse(staging, text, "does not fit its name or the bundle");
    if (status >= 0 && file.marked_bytes > staging->sources_max)
        status = annal__fail(staging->err, ANNAL_ERR_LIMIT,
                             "%s: its copies of logs unpack to more than %d GiB and %d times its "
                             "size",
                             staging->from, UNPACK_GIB, UNPACK_SOURCES_RATIO);
    if (status >= 0)
        staging->sources_max -= file.marked_bytes;
    if (fd >= 0)
        close(fd);
    copies_file_done(&file);
    return status < 0 ? status : ANNAL_OK;
}

annal_status staging_sources_prove(struct staging *staging)
{
    const struct bundle *bundle = &staging->bundle;
    annal_error why = {0};
    int directory = open_directory(staging);
    annal_status status =
        directory < 0 ? annal__fail_errno(staging->err, "open sources/") : ANNAL_OK;
    /* the sizes of all files before any of them is unpacked, because they refer to each other */
    for (size_t i = 0; i < bundle->source_count && status == ANNAL_OK; i++)
        status = prove(staging, directory, bundle->sources[i].name);
    for (size_t i = 0; i < bundle->source_count && status == ANNAL_OK; i++)
        if (copies_read_file(directory, bundle->sources[i].name, COPIES_DEEP, NULL, NULL, &why) !=
            ANNAL_OK)
            status = refuse(staging, bundle->sources[i].name, "is damaged");
    if (directory >= 0)
        close(directory);
    return status;
}

/* ---- Moving (rules 2 and 3) ---- */

static annal_status mark_foreign(struct staging *staging, int fd)
{
    static const char mark[] = ",\"foreign\":true}";
    struct copies_file file = {0};
    annal_status status = copies_file_read(fd, &file, staging->err);
    struct buf *info = &file.info;
    if (status == ANNAL_OK && annal__json_member(annal__buf_slice(info), "foreign").len == 0) {
        const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                          {.tv_sec = file.mark.mtime_ns / 1000000000,
                                           .tv_nsec = file.mark.mtime_ns % 1000000000}};
        struct copies_mark last = file.mark;
        while (info->len > 0 && info->ptr[info->len - 1] != '}')
            info->len--;
        info->len -= info->len > 0;
        status = annal__buf_append(info, mark, sizeof mark - 1);
        if (status >= 0)
            status =
                copies_file_append(fd, &file, COPIES_INFO, info->ptr, info->len, 0,
                                   annal__hash(info->ptr, info->len, file.chain), staging->err);
        if (status >= 0)
            status = copies_file_append_mark(fd, &file, &last, staging->err);
        if (status >= 0)
            (void)futimens(fd, times);
    }
    if (status >= 0 && fdatasync(fd) < 0)
        status = annal__fail_errno(staging->err, "sync a copy of a log");
    copies_file_done(&file);
    return status < 0 ? status : ANNAL_OK;
}

/* Write the files that name the first session of the log: journal/sys/sources.h, rule (2). */
static annal_status write_others(struct staging *staging, int store, annal_slice info,
                                 const annal__source_name *name)
{
    char other[SOURCES_NAME_BYTES], line[SOURCES_NAME_BYTES];
    struct json_walk walk;
    annal_slice raw;
    annal_status status = ANNAL_OK;
    int len = snprintf(line, sizeof line, SOURCES_OTHER "%.*s\n", ANNAL_FMT(name->session));
    (void)annal__json_walk_array(&walk, annal__json_member(info, "sessions"));
    while (status == ANNAL_OK && annal__json_walk_item(&walk, &raw)) {
        annal_slice id = annal__json_inside(raw);
        if (annal__slice_same(id, name->session))
            continue;
        snprintf(other, sizeof other, "%.*s.%.*s", ANNAL_FMT(id), ANNAL_FMT(name->log));
        int fd = openat(store, other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0660);
        if (fd < 0 && errno == EEXIST)
            continue;
        if (fd < 0 || write(fd, line, (size_t)len) != len || fdatasync(fd) < 0)
            status = annal__fail_errno(staging->err, "write sources/%s", other);
        if (fd >= 0)
            close(fd);
    }
    return status;
}

static annal_status move_file(struct staging *staging, int stage, int store, const char *text)
{
    struct copies_file file = {0};
    annal__source_name name = {0};
    (void)annal__sources_read_name(text, &name);
    int fd = openat(stage, text, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    annal_status status = fd < 0 ? annal__fail_errno(staging->err, "open sources/%s", text)
                                 : mark_foreign(staging, fd);
    if (status == ANNAL_OK)
        status = copies_file_read(fd, &file, staging->err);
    if (status == ANNAL_OK)
        status = write_others(staging, store, annal__buf_slice(&file.info), &name);
    if (status == ANNAL_OK && renameat(stage, text, store, text) < 0)
        status = annal__fail_errno(staging->err, "rename sources/%s", text);
    if (fd >= 0)
        close(fd);
    copies_file_done(&file);
    return status < 0 ? status : ANNAL_OK;
}

/* Return whether the store still has the session that was imported. */
static bool is_there(const struct staging *staging, annal_slice id)
{
    const struct bundle_session *session = find(staging, id);
    annal_session_info info;
    return session != NULL && annal_session_info_get(staging->store, id, &info, NULL) >= 0 &&
           (strcmp(info.file, session->file) == 0 || strcmp(info.replaces, session->file) == 0);
}

/* Move the files of a log, which are `count` from the first one on: its newest generation. */
static annal_status move_log(struct staging *staging, int stage, int store, size_t first,
                             size_t count)
{
    const struct bundle_source *sources = staging->bundle.sources + first;
    annal__source_name name = {0};
    annal_status status = ANNAL_OK;
    (void)annal__sources_read_name(sources[0].name, &name);
    if (!is_there(staging, name.session) ||
        faccessat(store, sources[0].name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        staging->sources_kept += count;
        return ANNAL_OK;
    }
    for (size_t i = 1; i < count && status == ANNAL_OK; i++)
        status = move_file(staging, stage, store, sources[i].name);
    return status == ANNAL_OK ? move_file(staging, stage, store, sources[0].name) : status;
}

annal_status staging_sources_move(struct staging *staging)
{
    const struct bundle *bundle = &staging->bundle;
    int stage = open_directory(staging), store = -1;
    annal_status status = stage < 0
                              ? annal__fail_errno(staging->err, "open sources/")
                              : annal__sources_open(staging->store, LOCK_EX, &store, staging->err);
    for (size_t i = 0, count = 0; i < bundle->source_count && status == ANNAL_OK; i += count) {
        const char *newest = bundle->sources[i].name;
        size_t len = strlen(newest);
        for (count = 1; i + count < bundle->source_count &&
                        strncmp(bundle->sources[i + count].name, newest, len) == 0;)
            count++;
        status = move_log(staging, stage, store, i, count);
    }
    if (status == ANNAL_OK && fsync(store) < 0)
        status = annal__fail_errno(staging->err, "sync sources/");
    if (stage >= 0)
        close(stage);
    if (store >= 0)
        close(store);
    return status;
}
