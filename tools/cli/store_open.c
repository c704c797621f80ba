/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/store_open.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/default_store.h"
#include "journal/base/error.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"
#include "tools/cli/out.h"
#include "tools/cli/sessions.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* time in ms until the permanent thread syncs events of a verb that syncs them itself */
#define FILL_MS 500

char *store_path(const struct args *args)
{
    SCOPED_BUF path = {0};
    char *copy = NULL;
    if (annal__default_store_place(args->store, getenv("XDG_DATA_HOME"), getenv("HOME"), &path) ==
        ANNAL_OK)
        copy = annal__strndup(path.ptr, path.len);
    return copy;
}

bool store_is_there(const struct args *args)
{
    SCOPED_BUF path = {0};
    struct stat info;
    char *store = store_path(args);
    bool missing = store != NULL && annal__buf_printf(&path, "%s/events", store) == ANNAL_OK &&
                   annal__buf_cstr(&path) != NULL && stat(path.ptr, &info) != 0 && errno == ENOENT;
    annal__free(store);
    return !missing;
}

/* Create the directories above the store, so that the default path can be used on a new machine. */
static annal_status make_parents(char *path, annal_error *err)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        int why = errno;
        *slash = '/';
        errno = why;
        if (failed)
            return annal__fail_errno(err, "cannot create the store '%s'", path);
    }
    return ANNAL_OK;
}

/* Return whether a new store may be created in a directory with a file of this name: lost+found is
 * in the root of a disk, and packs/ is created by the user for the new store. */
static bool belongs_to_a_new_store(const char *name)
{
    static const char *const names[] = {".", "..", "lost+found", "packs"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

/* Return whether a directory that is not a store contains other files. */
static bool has_other_files(const char *path)
{
    const struct dirent *entry;
    bool found = false;
    DIR *directory = opendir(path);
    while (!found && directory != NULL && (entry = readdir(directory)) != NULL)
        found = !belongs_to_a_new_store(entry->d_name);
    if (directory != NULL)
        closedir(directory);
    return found;
}

/* Refuse to create a store in a directory with other files, because the path may be mistyped. */
static annal_status check_new_place(const struct args *args, char *path, annal_error *err)
{
    if (store_is_there(args))
        return ANNAL_OK;
    if (args->store == NULL)
        return make_parents(path, err);
    /* Check again whether a store exists: another process may be creating it, and creates events/
     * first. */
    if (args_has(args, "create") || !has_other_files(path) || store_is_there(args))
        return ANNAL_OK;
    return annal__fail(err, ANNAL_ERR_REFUSED,
                       "directory '%s' is not a store and contains other files: --create creates a "
                       "store in the directory",
                       path);
}

static bool is_read_only_media(const annal_error *err)
{
    return err->os_errno == EROFS || err->os_errno == EACCES || err->os_errno == EPERM;
}

/* This part of --wait, in ms, but at most a tenth of it, is left for the work between the waits. */
#define WORK_MS 100

static uint32_t to_wait(const struct args *args)
{
    return args->wait_ms - (args->wait_ms / 10 < WORK_MS ? args->wait_ms / 10 : WORK_MS);
}

void store_wait_anew(const struct args *args, annal_store *store)
{
    annal__store_limit_waits(store, to_wait(args));
}

void store_wait_each(annal_store *store)
{
    annal__store_limit_waits(store, UINT32_MAX);
}

void store_wait_within(const struct args *args, annal_store *store, int64_t begun_us)
{
    int64_t took_us = annal__clock_monotonic_us() - begun_us;
    int64_t left_us = (int64_t)to_wait(args) * 1000 - took_us;
    left_us = annal__store_may_wait(store, left_us < 0 ? 0 : left_us);
    annal__store_limit_waits(store, (uint32_t)(left_us / 1000));
}

/* Limit further waits to the rest of --wait, because opening the store may have waited, too. */
static void limit_waits(const struct args *args, annal_store *store)
{
    int64_t waited_ms = annal__store_waited_us(store) / 1000;
    uint32_t most_ms = to_wait(args);
    annal__store_limit_waits(store, waited_ms < most_ms ? most_ms - (uint32_t)waited_ms : 0);
}

static int exit_status_of(annal_status status, enum open_mode mode)
{
    if (status == ANNAL_ERR_NOTFOUND && mode < OPEN_CREATE)
        return EXIT_STORAGE;
    return error_exit(status);
}

int store_try(const struct args *args, enum open_mode mode, uint32_t wait_ms,
              annal_store **out_store, annal_error *err)
{
    annal_store_options options = {
        .create = mode >= OPEN_CREATE,
        .no_keeper = mode < OPEN_CREATE,
        .wait_ms = wait_ms != 0 && wait_ms < args->wait_ms ? wait_ms : args->wait_ms,
        .batch_ms = mode == OPEN_FILL ? FILL_MS : 0,
        .keep_free_bytes = args->keep_free_bytes,
        .unsafe_filesystem = args_has(args, "unsafe-filesystem"),
        .log = say_log};
    if (mode >= OPEN_CREATE && args_has(args, "format"))
        fields_journal_format(args, &options.format);
    char *path = store_path(args);
    if (path == NULL) {
        annal__fail(err, ANNAL_ERR_INVALID,
                    "$HOME is not set, so the default store is unknown: give --store DIR");
        return EXIT_USAGE;
    }
    annal_status status = mode >= OPEN_CREATE ? check_new_place(args, path, err) : ANNAL_OK;
    if (status >= 0)
        status = annal_store_open(path, &options, out_store, err);
    if (mode == OPEN_READ && (status == ANNAL_ERR_UNSUPPORTED ||
                              (annal__error_is_io(status) && is_read_only_media(err)))) {
        options.read_only = true;
        status = annal_store_open(path, &options, out_store, err);
    }
    if (status == ANNAL_ERR_NOTFOUND && mode < OPEN_CREATE)
        annal__fail(
            err, status,
            "no store at '%s': append, import or pack enable create one, or use --store DIR", path);
    annal__free(path);
    if (status < 0)
        return exit_status_of(status, mode);
    limit_waits(args, *out_store);
    return 0;
}

int store_open(const struct args *args, enum open_mode mode, uint32_t wait_ms,
               annal_store **out_store)
{
    annal_error err = {0};
    int exit_status = store_try(args, mode, wait_ms, out_store, &err);
    if (exit_status != 0)
        say("%s", err.message);
    else
        exit_status = sessions_resolve(*out_store, args);
    return exit_status;
}

uint64_t store_free_bytes(const annal_store *store)
{
    struct statvfs space;
    uint64_t kept = annal__store_keep_free(store);
    if (statvfs(annal_store_path(store), &space) < 0)
        return UINT64_MAX;
    uint64_t bytes = (uint64_t)space.f_bavail * space.f_frsize;
    return bytes > kept ? bytes - kept : 0;
}

int store_close(annal_store *store, int exit_status)
{
    annal_error err = {0};
    if (exit_status == EXIT_DONE && store != NULL &&
        (annal__stray_was_denied(store) || annal__store_damages_said(store) > 0))
        exit_status = EXIT_REFUSED; /* damage was reported, so the answer may be incomplete */
    if (annal_store_close(store, &err) < 0) {
        int failed = fail_error(&err);
        return exit_status == EXIT_DONE ? failed : exit_status;
    }
    return exit_status;
}

int store_with_index(const struct args *args, enum open_mode mode,
                     int (*fn)(const struct args *args, annal_index *))
{
    annal_error err = {0};
    annal_store *store = NULL;
    annal_index *index = NULL;
    int exit_status = store_open(args, mode, 0, &store);
    if (exit_status == 0 && annal_index_open(store, NULL, &index, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0)
        exit_status = fn(args, index);
    annal_index_close(index);
    return store_close(store, exit_status);
}
