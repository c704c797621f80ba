/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/source/copies.h"

#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "tools/source/copies_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct walk {
    annal_store *store;
    int directory;
    annal_slice session, log; /* log: files of only this log; empty: of all logs */
    bool all;
    copies_fn fn;
    copies_fault_fn fault;
    void *arg;
    annal_error *err;
};

/* Return whether the file `text`, named as an older generation, is a hard link to the newest one. A
 * process that was killed while it began a generation leaves this link. */
static bool is_second_name(const struct walk *walk, const char *text, const struct stat *st)
{
    char newest[SOURCES_NAME_BYTES];
    struct stat other;
    snprintf(newest, sizeof newest, "%.*s", (int)(strrchr(text, '.') - text), text);
    return fstatat(walk->directory, newest, &other, AT_SYMLINK_NOFOLLOW) == 0 &&
           other.st_ino == st->st_ino && other.st_dev == st->st_dev;
}

static uint64_t bytes_at_first_mark(const struct copies_file *file)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < file->count && file->records[i].kind != COPIES_MARK; i++)
        bytes += file->records[i].bytes;
    return bytes;
}

static int call(struct walk *walk, const char *text, const annal__source_name *name,
                const struct copies_file *file, const struct stat *st)
{
    return walk->fn(walk->arg, &(struct copy){.name = text,
                                              .session = name->session,
                                              .log = name->log,
                                              .generation = file->generation,
                                              .newest = name->generation == 0,
                                              .bytes = file->marked_bytes,
                                              .began = bytes_at_first_mark(file),
                                              .stored = file->size,
                                              .mode = (mode_t)file->mark.mode,
                                              .mtime_ns = file->mark.mtime_ns,
                                              .copied_us = file->mark.copied_us,
                                              .current_ns = copies_file_ns(st->st_mtim),
                                              .torn = file->size - file->marked_end,
                                              .info = annal__buf_slice(&file->info)});
}

/* Read the name of the log's first session from the file OTHER.LOG of another session (sources.h,
 * rule 2). Returns false if fd is not such a file. */
static bool read_other(int fd, char out[SOURCES_NAME_BYTES])
{
    static const size_t mark = sizeof SOURCES_OTHER - 1;
    char line[SOURCES_NAME_BYTES] = "";
    ssize_t got = pread(fd, line, sizeof line - 1, 0);
    if (got <= 0 || strncmp(line, SOURCES_OTHER, mark) != 0)
        return false;
    snprintf(out, SOURCES_NAME_BYTES, "%.*s", (int)strcspn(line + mark, "\n"), line + mark);
    return annal_session_id_check(annal_slice_of(out), NULL) == ANNAL_OK;
}

static int walk_one(void *arg, const char *text, const annal__source_name *name)
{
    struct walk *walk = arg;
    struct copies_file file = {0};
    struct stat st;
    annal_error why = {0};
    char first[SOURCES_NAME_BYTES];
    int result = 0;
    if ((!walk->all && name->generation > 0) ||
        (walk->log.len > 0 && !annal__slice_same(walk->log, name->log)))
        return 0;
    int fd = openat(walk->directory, text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    annal_status status = fd < 0 || fstat(fd, &st) < 0
                              ? annal__fail_errno(&why, "open the copy sources/%s of a log", text)
                              : copies_file_read(fd, &file, &why);
    if (status == ANNAL_OK && file.marked_count > 0) {
        if (name->generation == 0 || !is_second_name(walk, text, &st))
            result = call(walk, text, name, &file, &st);
    } else if (status >= 0 && read_other(fd, first)) {
        struct walk others = *walk;
        others.log = name->log;
        if (walk->session.len > 0 && walk->log.len == 0)
            result = annal__sources_each(walk->store, annal_slice_of(first), walk_one, &others,
                                         walk->err);
    } else if (walk->fault != NULL && why.os_errno != ENOENT) {
        if (status >= 0)
            annal__fail(&why, ANNAL_ERR_CORRUPT,
                        "sources/%s: the file contains no complete copy of a log", text);
        walk->fault(walk->arg, text, &why);
    }
    if (fd >= 0)
        close(fd);
    copies_file_done(&file);
    return result;
}

annal_status copies_each(annal_store *store, annal_slice session, bool all, copies_fn fn,
                         copies_fault_fn fault, void *arg, annal_error *err)
{
    struct walk walk = {.store = store,
                        .directory = -1,
                        .session = session,
                        .all = all,
                        .fn = fn,
                        .fault = fault,
                        .arg = arg,
                        .err = err};
    annal_status status = annal__sources_open(store, LOCK_SH, &walk.directory, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    /* unlock STORE/sources, so that a process that copies logs need not wait for fn */
    if (status == ANNAL_OK) {
        (void)flock(walk.directory, LOCK_UN);
        status = annal__sources_each(store, session, walk_one, &walk, err);
    }
    if (walk.directory >= 0)
        close(walk.directory);
    return status;
}

void copies_one(annal_store *store, const char *name, copies_fn fn, void *arg)
{
    struct walk walk = {.store = store, .directory = -1, .all = true, .fn = fn, .arg = arg};
    annal__source_name parts;
    if (annal__sources_open(store, LOCK_SH, &walk.directory, NULL) == ANNAL_OK &&
        annal__sources_read_name(name, &parts))
        (void)walk_one(&walk, name, &parts);
    if (walk.directory >= 0)
        close(walk.directory);
}
