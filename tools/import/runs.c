#include "tools/import/runs.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"

#include <annal/event.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct branch {
    char *name;
    struct timespec changed;
};

/* A run on its way into lines. */
struct run {
    const char *path; /* of its directory, without a slash at the end */
    const char *name; /* the last part of it */
    bool only_whole;
    FILE *lines;
    struct branch *branches; /* files in branches/, the oldest first */
    size_t count;
};

bool importer_is_of_runs(const struct importer *importer)
{
    return strcmp(importer->kind, "lionagi") == 0;
}

bool run_is_here(const char *path)
{
    struct buf manifest = {0};
    struct stat info;
    bool here = annal__buf_printf(&manifest, "%s/run.json", path) >= 0 &&
                annal__buf_cstr(&manifest) != NULL && stat(manifest.ptr, &info) == 0 &&
                S_ISREG(info.st_mode);
    annal__buf_done(&manifest);
    return here;
}

/* ---- Files ---- */

static annal_status read_whole(const char *path, struct buf *out, annal_error *err)
{
    annal__buf_clear(out);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return annal__fail_errno(err, "'%s'", path);
    annal_status status = ANNAL_OK;
    while (status >= 0 && !feof(file) && !ferror(file)) {
        status = annal__buf_reserve(out, 65536);
        if (status >= 0)
            out->len += fread(out->ptr + out->len, 1, 65536, file);
    }
    if (status < 0)
        status = annal__fail(err, status, "'%s' is too large for one event", path);
    else if (ferror(file))
        status = annal__fail_errno(err, "'%s'", path);
    fclose(file);
    return status;
}

/* Between the words of JSON a line break is a space; elsewhere JSON has none. */
static void make_one_line(struct buf *text)
{
    for (size_t i = 0; i < text->len; i++)
        if (text->ptr[i] == '\n' || text->ptr[i] == '\r')
            text->ptr[i] = ' ';
}

static void print_seconds(FILE *out, struct timespec time)
{
    fprintf(out, "%lld.%06ld", (long long)time.tv_sec, time.tv_nsec / 1000);
}

static annal_status print_quoted(FILE *out, const char *text, annal_error *err)
{
    struct buf json = {0};
    annal_status status = annal__json_quote(&json, annal_slice_of(text));
    if (status < 0)
        status = annal__fail(err, status, "import: out of memory");
    else
        fwrite(json.ptr, 1, json.len, out);
    annal__buf_done(&json);
    return status;
}

/* ---- Lines ---- */

/* A file that is no JSON is a line of its own, so that it is kept and said to be unreadable. */
static annal_status print_file(const struct run *run, const char *member, const struct buf *text)
{
    bool valid =
        annal__json_check(annal__buf_slice(text), ANNAL_DATA_DEPTH_MAX - 8, NULL) == JSON_VALID;
    fprintf(run->lines, "\"%s\":%.*s}\n", member, valid ? (int)text->len : 4,
            valid ? text->ptr : "null");
    if (!valid && text->len > 0)
        fprintf(run->lines, "%.*s\n", (int)text->len, text->ptr);
    return valid || !run->only_whole || text->len == 0 ? ANNAL_OK : ANNAL_END;
}

static annal_status print_run(const struct run *run, const struct stat *info, annal_error *err)
{
    struct buf path = {0}, text = {.limit = ANNAL_DATA_BYTES_MAX};
    struct stat artifacts;
    annal_status status = ANNAL_OK;
    fprintf(run->lines, "{\"run\":{\"id\":");
    status = print_quoted(run->lines, run->name, err);
    fprintf(run->lines, ",\"ctime\":");
    print_seconds(run->lines, info->st_ctim);
    fprintf(run->lines, ",\"mtime\":");
    print_seconds(run->lines, info->st_mtim);
    if (status >= 0 && annal__buf_printf(&path, "%s/artifacts", run->path) >= 0 &&
        annal__buf_cstr(&path) != NULL && stat(path.ptr, &artifacts) == 0) {
        fprintf(run->lines, ",\"artifacts\":");
        status = print_quoted(run->lines, path.ptr, err);
    }
    fprintf(run->lines, "},");
    annal__buf_clear(&path);
    if (status >= 0 &&
        (annal__buf_printf(&path, "%s/run.json", run->path) < 0 || annal__buf_cstr(&path) == NULL))
        status = annal__fail(err, ANNAL_ERR_NOMEM, "'%s'", run->path);
    if (status >= 0 && run_is_here(run->path))
        status = read_whole(path.ptr, &text, err);
    make_one_line(&text);
    if (status >= 0)
        status = print_file(run, "manifest", &text);
    annal__buf_done(&text);
    annal__buf_done(&path);
    return status;
}

static annal_status print_branch(const struct run *run, const char *path, struct timespec changed,
                                 annal_error *err)
{
    struct buf text = {.limit = ANNAL_DATA_BYTES_MAX};
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    char *stem = annal__strndup(name, strlen(name) - strlen(".json"));
    annal_status status = stem == NULL ? annal__fail(err, ANNAL_ERR_NOMEM, "'%s'", path)
                                       : read_whole(path, &text, err);
    if (status < 0)
        goto done;
    make_one_line(&text);
    fprintf(run->lines, "{\"file\":{\"stem\":");
    status = print_quoted(run->lines, stem, err);
    fprintf(run->lines, ",\"mtime\":");
    print_seconds(run->lines, changed);
    fprintf(run->lines, "},");
    status = print_file(run, "branch", &text);

done:
    annal__free(stem);
    annal__buf_done(&text);
    return status;
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
        return annal__fail_errno(err, "'%s'", path);
    struct branch *grown = annal__realloc_array(run->branches, run->count + 1, sizeof *grown);
    if (grown == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "'%s'", path);
    run->branches = grown;
    grown[run->count] = (struct branch){annal__strndup(path, strlen(path)), info.st_mtim};
    if (grown[run->count].name == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "'%s'", path);
    run->count++;
    return ANNAL_OK;
}

static annal_status find_branches(struct run *run, annal_error *err)
{
    struct buf path = {0};
    annal_status status = annal__buf_printf(&path, "%s/branches", run->path);
    if (status < 0 || annal__buf_cstr(&path) == NULL) {
        annal__buf_done(&path);
        return annal__fail(err, ANNAL_ERR_NOMEM, "'%s'", run->path);
    }
    DIR *directory = opendir(path.ptr);
    if (directory == NULL && errno != ENOENT)
        status = annal__fail_errno(err, "'%s'", path.ptr);
    for (struct dirent *entry; directory != NULL && status >= 0 && (entry = readdir(directory));) {
        size_t len = strlen(entry->d_name);
        if (len <= 5 || strcmp(entry->d_name + len - 5, ".json") != 0)
            continue;
        annal__buf_clear(&path);
        status = annal__buf_printf(&path, "%s/branches/%s", run->path, entry->d_name);
        const char *name = status < 0 ? NULL : annal__buf_cstr(&path);
        status = name == NULL ? annal__fail(err, ANNAL_ERR_NOMEM, "'%s'", run->path)
                              : add_branch(run, name, err);
    }
    if (directory != NULL)
        closedir(directory);
    annal__buf_done(&path);
    if (run->count > 1)
        qsort(run->branches, run->count, sizeof *run->branches, by_age);
    return status;
}

static annal_status write_lines(struct run *run, bool is_directory, annal_error *err)
{
    struct stat info;
    annal_status status = ANNAL_OK;
    if (stat(run->path, &info) < 0)
        return annal__fail_errno(err, "'%s'", run->path);
    status = is_directory ? find_branches(run, err) : add_branch(run, run->path, err);
    if (status >= 0)
        status = print_run(run, &info, err);
    for (size_t i = 0; status == ANNAL_OK && i < run->count; i++)
        status = print_branch(run, run->branches[i].name, run->branches[i].changed, err);
    return status;
}

annal_status run_write_lines(const char *path, bool only_whole, FILE *lines, annal_error *err)
{
    size_t len = strlen(path);
    bool is_file = len > 5 && strcmp(path + len - 5, ".json") == 0;
    const char *slash = strrchr(path, '/');
    const char *last = slash == NULL ? path : slash + 1;
    char *name = annal__strndup(last, strlen(last) - (is_file ? strlen(".json") : 0));
    struct run run = {.path = path, .name = name, .only_whole = only_whole, .lines = lines};
    annal_status status = name == NULL ? annal__fail(err, ANNAL_ERR_NOMEM, "out of memory")
                                       : write_lines(&run, !is_file, err);
    for (size_t i = 0; i < run.count; i++)
        annal__free(run.branches[i].name);
    annal__free(run.branches);
    annal__free(name);
    return status;
}
