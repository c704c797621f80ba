/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/runs.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "tools/cli/must.h"
#include "tools/import/directory.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct branch {
    char *name;
    struct timespec changed;
};

/* a run, or one branch file, that is converted to lines */
struct run {
    /* path of the run's directory or of one branch file, without a slash at the end */
    const char *path;
    const char *name; /* last part of the path, without ".json" */
    bool only_whole;
    FILE *lines;
    struct branch *branches; /* JSON files in branches/, the least recently changed first */
    size_t count;
};

bool runs_is_importer(const struct importer *importer)
{
    return strcmp(importer->kind, "lionagi") == 0;
}

bool run_is_here(const char *path)
{
    SCOPED_BUF manifest = {0};
    struct stat info;
    must_printf(&manifest, "%s/run.json", path);
    return stat(manifest.ptr, &info) == 0 && S_ISREG(info.st_mode);
}

/* ---- Lines ---- */

static void put_seconds(struct buf *out, struct timespec time)
{
    must_printf(out, "%lld.%06ld", (long long)time.tv_sec, time.tv_nsec / 1000);
}

/* Write the beginning of the run's line, up to the content of run.json. artifacts is the path of
 * the directory artifacts/, or NULL if it does not exist. */
static void run_head(const struct run *run, const struct stat *info, const char *artifacts,
                     struct buf *out)
{
    must_json(out, "{\"run\":{\"id\":?,\"ctime\":", annal_slice_of(run->name));
    put_seconds(out, info->st_ctim);
    must_append_text(out, ",\"mtime\":");
    put_seconds(out, info->st_mtim);
    if (artifacts != NULL)
        must_json(out, ",\"artifacts\":?", annal_slice_of(artifacts));
    must_append_text(out, "},\"manifest\":");
}

/*
 * Write the line of a run: its times and the content of run.json, or null if that file is missing.
 */
static annal_status write_run(const struct run *run, const struct stat *info, annal_error *err)
{
    SCOPED_BUF manifest = {0}, artifacts = {0}, head = {0};
    struct stat there;
    bool has_manifest = false;
    annal_status status = ANNAL_OK;
    must_printf(&manifest, "%s/run.json", run->path);
    must_printf(&artifacts, "%s/artifacts", run->path);
    run_head(run, info, stat(artifacts.ptr, &there) == 0 ? artifacts.ptr : NULL, &head);
    if (run_is_here(run->path))
        status = directory_write_file(manifest.ptr, annal__buf_slice(&head), run->only_whole,
                                      run->lines, &has_manifest, err);
    if (status >= 0 && !has_manifest)
        fprintf(run->lines, "%.*snull}\n", (int)head.len, head.ptr);
    return status;
}

/* Write the beginning of a branch file's line, up to the content of the file. */
static void branch_head(const char *path, struct timespec changed, struct buf *out)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    annal_slice stem = {name, strlen(name) - strlen(".json")};
    must_json(out, "{\"file\":{\"stem\":?,\"mtime\":", stem);
    put_seconds(out, changed);
    must_append_text(out, "},\"branch\":");
}

/* Write the line of a branch file. The file may have been removed after its name was read. */
static annal_status write_branch(const struct run *run, const char *path, struct timespec changed,
                                 annal_error *err)
{
    SCOPED_BUF head = {0};
    branch_head(path, changed, &head);
    return directory_write_file(path, annal__buf_slice(&head), run->only_whole, run->lines, NULL,
                                err);
}

/* ---- A run ---- */

static int by_age(const void *a, const void *b)
{
    const struct branch *left = a, *right = b;
    if (left->changed.tv_sec != right->changed.tv_sec)
        return left->changed.tv_sec < right->changed.tv_sec ? -1 : 1;
    if (left->changed.tv_nsec != right->changed.tv_nsec)
        return left->changed.tv_nsec < right->changed.tv_nsec ? -1 : 1;
    return strcmp(left->name, right->name);
}

static annal_status add_branch(struct run *run, const char *path, annal_error *err)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return annal__fail_errno(err, "read the branch '%s' of a run", path);
    struct branch *branch = must_array_add(&run->branches, &run->count, sizeof *branch);
    *branch = (struct branch){must_strndup(path, strlen(path)), info.st_mtim};
    return ANNAL_OK;
}

static annal_status find_branches(struct run *run, annal_error *err)
{
    SCOPED_BUF path = {0};
    annal_status status = ANNAL_OK;
    must_printf(&path, "%s/branches", run->path);
    DIR *directory = opendir(path.ptr);
    if (directory == NULL && errno != ENOENT)
        status = annal__fail_errno(err, "read the directory '%s' of a run", path.ptr);
    for (struct dirent *entry; directory != NULL && status >= 0 && (entry = readdir(directory));) {
        size_t len = strlen(entry->d_name);
        if (len <= 5 || strcmp(entry->d_name + len - 5, ".json") != 0)
            continue;
        annal__buf_clear(&path);
        must_printf(&path, "%s/branches/%s", run->path, entry->d_name);
        status = add_branch(run, path.ptr, err);
    }
    if (directory != NULL)
        closedir(directory);
    if (run->count > 1)
        qsort(run->branches, run->count, sizeof *run->branches, by_age);
    return status;
}

static annal_status write_lines(struct run *run, bool is_directory, annal_error *err)
{
    struct stat info;
    annal_status status = ANNAL_OK;
    if (stat(run->path, &info) < 0)
        return annal__fail_errno(err, "read the run '%s'", run->path);
    status = is_directory ? find_branches(run, err) : add_branch(run, run->path, err);
    if (status >= 0)
        status = write_run(run, &info, err);
    for (size_t i = 0; status == ANNAL_OK && i < run->count; i++)
        status = write_branch(run, run->branches[i].name, run->branches[i].changed, err);
    return status;
}

annal_status run_write_lines(const char *path, bool only_whole, FILE *lines, annal_error *err)
{
    size_t len = strlen(path);
    bool is_file = len > 5 && strcmp(path + len - 5, ".json") == 0;
    const char *slash = strrchr(path, '/');
    const char *last = slash == NULL ? path : slash + 1;
    char *name = must_strndup(last, strlen(last) - (is_file ? strlen(".json") : 0));
    struct run run = {.path = path, .name = name, .only_whole = only_whole, .lines = lines};
    annal_status status = write_lines(&run, !is_file, err);
    for (size_t i = 0; i < run.count; i++)
        annal__free(run.branches[i].name);
    annal__free(run.branches);
    annal__free(name);
    return status;
}
