/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/layout.h"

#include "journal/base/error.h"
#include "journal/store.h"
#include "journal/sys/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const directories[] = {"events", "commit", "locks"};

/* Directories that are created when they are needed. */
static const char *const later[] = {"artifacts", "cursors",   "leases",
                                    "packs",     "snapshots", "sources"};

/*
 * Create the store's directory, but not its parent: a path whose parent is missing is probably
 * mistyped. An existing directory is accepted, even through a link.
 */
static annal_status make_directory(const annal_store *store, annal_error *err)
{
    const struct io *io = store->context.io;
    struct stat found;
    if (io->stat(io->arg, store->context.path, &found) == 0)
        return ANNAL_OK;
    char *slash = strrchr(store->context.path, '/');
    bool parent_missing = false;
    if (slash > store->context.path) {
        *slash = '\0';
        parent_missing = io->stat(io->arg, store->context.path, &found) < 0 && errno == ENOENT;
        *slash = '/';
    }
    if (parent_missing)
        return annal__fail(err, ANNAL_ERR_NOTFOUND,
                           "create store %.200s: directory %.*s does not exist; create it first",
                           store->context.path, (int)(slash - store->context.path),
                           store->context.path);
    return annal__io_make_private_dir(io, store->context.path, err);
}

/* Refuse a store one of whose directories is a symbolic link: files outside the store would be
 * written and deleted. */
static annal_status refuse_links(const annal_store *store, annal_error *err)
{
    SCOPED_BUF path = {0};
    struct stat found;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status == ANNAL_OK && i < sizeof later / sizeof *later; i++) {
        status = annal__context_path(&store->context, &path, later[i], "", err);
        if (status == ANNAL_OK &&
            store->context.io->stat(store->context.io->arg, path.ptr, &found) == 0)
            status = annal__io_check_dir(store->context.io, path.ptr, EEXIST, err);
    }
    return status;
}

annal_status annal__layout_make(const annal_store *store, annal_error *err)
{
    SCOPED_BUF path = {0};
    const struct io *io = store->context.io;
    bool made = false;
    annal_status status = make_directory(store, err);
    for (size_t i = 0; status == ANNAL_OK && i < sizeof directories / sizeof *directories; i++) {
        status = annal__context_path(&store->context, &path, directories[i], "", err);
        if (status == ANNAL_OK && io->mkdir(io->arg, path.ptr, 0770) == 0)
            made = true;
        else if (status == ANNAL_OK)
            status = annal__io_check_dir(io, path.ptr, errno, err);
    }
    if (status == ANNAL_OK && made)
        status = annal__io_sync_dir(io, store->context.path, err);
    return status != ANNAL_OK ? status : refuse_links(store, err);
}

annal_status annal__layout_find(const annal_store *store, annal_error *err)
{
    SCOPED_BUF path = {0};
    struct stat found = {0};
    annal_status status = annal__context_path(&store->context, &path, "events", "", err);
    int failed =
        status == ANNAL_OK ? store->context.io->stat(store->context.io->arg, path.ptr, &found) : 0;
    if (failed < 0 && errno != ENOENT && errno != ENOTDIR)
        status = annal__fail_errno(err, "cannot open store %s", store->context.path);
    else if (status == ANNAL_OK && !S_ISDIR(found.st_mode))
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "no store at %s", store->context.path);
    return status;
}

annal_status annal__layout_check_filesystem(annal_store *store, annal_error *err)
{
    struct io_space space;
    if (store->context.io->space(store->context.io->arg, store->events.fd, &space) < 0)
        return annal__fail_errno(err, "cannot examine the filesystem of %s", store->context.path);
    if (store->events.keep_free_bytes == 0) {
        uint64_t part = space.total_bytes / FREE_RESERVE_PART;
        store->events.keep_free_bytes =
            part > 0 && part < FREE_RESERVE_BYTES ? part : FREE_RESERVE_BYTES;
    }
    if (store->context.read_only || store->unsafe_filesystem)
        return ANNAL_OK;
    const char *shared = annal__io_shared_filesystem(space.fs_type);
    if (shared != NULL)
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                           "store %s is on %s, where locks and syncs cannot be trusted: the store "
                           "can be read there. To write, put the store on a local disk (for a "
                           "container: in a named volume), or give --unsafe-filesystem, which "
                           "promises nothing after a crash or beside another process",
                           store->context.path, shared);
    return ANNAL_OK;
}

/* Create locks/version. It is never synced: a store whose locks/version is missing or empty has
 * version 1, which is ours. */
static annal_status write_version(const annal_store *store, const char *path, annal_error *err)
{
    char text[16];
    int length = snprintf(text, sizeof text, "%d\n", STORE_VERSION);
    int fd = store->context.io->open(store->context.io->arg, path, O_WRONLY | O_CREAT, 0660);
    if (fd < 0 || annal__io_write_all(store->context.io, fd, text, (size_t)length, 0) < 0) {
        annal_status status = annal__fail_errno(err, "cannot write %s", path);
        if (fd >= 0)
            store->context.io->close(store->context.io->arg, fd);
        return status;
    }
    store->context.io->close(store->context.io->arg, fd);
    return ANNAL_OK;
}

/* Check the number in locks/version against STORE_VERSION. */
annal_status annal__layout_check_version(annal_store *store, annal_error *err)
{
    SCOPED_BUF path = {0};
    char text[16] = {0};
    int fd = -1;
    annal_status status = annal__context_path(&store->context, &path, "locks", "version", err);
    if (status < 0)
        goto done;
    fd = store->context.io->open(store->context.io->arg, path.ptr, O_RDONLY, 0);
    if (fd < 0 && errno == ENOENT) {
        if (!store->context.read_only)
            status = write_version(store, path.ptr, err);
        goto done;
    }
    if (fd < 0 || annal__io_read_full(store->context.io, fd, text, sizeof text - 1, 0) < 0) {
        status = annal__fail_errno(err, "cannot read %s", path.ptr);
        goto done;
    }
    long version = strtol(text, NULL, 10);
    if (version > STORE_VERSION && store->context.read_only)
        annal__say(store, ANNAL_LOG_WARNING,
                   "store %s has format version %ld, but this library supports version %d: this "
                   "library reads only the parts that it understands",
                   store->context.path, version, STORE_VERSION);
    else if (version > STORE_VERSION)
        status = annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                             "store %s has format version %ld, but this library writes version %d: "
                             "the store can be opened for reading only",
                             store->context.path, version, STORE_VERSION);

done:
    if (fd >= 0)
        store->context.io->close(store->context.io->arg, fd);
    return status;
}

annal_status annal__layout_open_events(annal_store *store, annal_error *err)
{
    SCOPED_BUF path = {0};
    annal_status status = annal__context_path(&store->context, &path, "events", "", err);
    if (status == ANNAL_OK) {
        store->events.fd =
            store->context.io->open(store->context.io->arg, path.ptr, O_RDONLY | O_DIRECTORY, 0);
        if (store->events.fd < 0)
            status = annal__fail_errno(err, "cannot open %s", path.ptr);
    }
    return status;
}
