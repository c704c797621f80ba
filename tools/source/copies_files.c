/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/source/copies_files.h"

#include "journal/base/alloc.h"
#include "journal/base/base64.h"
#include "journal/base/below.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "tools/cli/must.h"
#include "tools/source/copies_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD "{\"annal_files\":1}"

annal_status copies_files_head(struct copies_text *text, annal_error *err)
{
    return copies_text_add(text, ANNAL_SLICE(HEAD), err);
}

/* ---- Reading a directory ---- */

static void put_file(struct buf *line, const char *name, const struct stat *st, annal_slice bytes)
{
    bool is_text = annal__json_is_utf8(bytes);
    must_json(line, "?\t{\"mode\":#,\"mtime_ns\":#,\"#\":", annal_slice_of(name),
              JSON_U64((unsigned)st->st_mode & 07777), JSON_I64(copies_file_ns(st->st_mtim)),
              annal_slice_of(is_text ? "text" : "base64"));
    if (is_text) {
        must_quote(line, bytes);
    } else {
        must_append_text(line, "\"");
        must_status(annal__base64_put(line, bytes));
        must_append_text(line, "\"");
    }
    must_append_text(line, "}");
}

annal_status copies_files_add(struct copies_text *text, const char *path, const char *name,
                              annal_error *err)
{
    struct stat st, now;
    SCOPED_BUF bytes = {0}, line = {0};
    annal_status status = ANNAL_OK;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? ANNAL_OK : annal__fail_errno(err, "copy '%s'", path);
    if (fstat(fd, &st) < 0)
        status = annal__fail_errno(err, "copy '%s'", path);
    else if ((uint64_t)st.st_size > COPIES_FILE_MAX)
        status = annal__fail(err, ANNAL_ERR_LIMIT, "copy '%s': it is larger than %zu MiB", path,
                             COPIES_FILE_MAX >> 20);
    else if (!copies_file_is_quiet(&st))
        status = ANNAL_END;
    if (status == ANNAL_OK)
        must_reserve(&bytes, (size_t)st.st_size + 1);
    if (status == ANNAL_OK &&
        (copies_file_get(fd, bytes.ptr, (size_t)st.st_size, 0, NULL) < 0 || fstat(fd, &now) < 0 ||
         now.st_size != st.st_size || copies_file_ns(now.st_ctim) != copies_file_ns(st.st_ctim)))
        status = ANNAL_END;
    bytes.len = (size_t)st.st_size;
    if (status == ANNAL_OK) {
        put_file(&line, name, &st, annal__buf_slice(&bytes));
        status = copies_text_add(text, annal__buf_slice(&line), err);
    }
    close(fd);
    return status;
}

/* ---- Writing a directory ---- */

/* The last line of each file. */
struct list {
    struct line {
        char *name;
        off_t at;
    } * all;
    size_t count;
};

static annal_status fail_text(annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_CORRUPT,
                       "the copy is not valid: a line does not describe a file");
}

static annal_status note(struct list *list, const char *text, size_t len, off_t at,
                         annal_error *err)
{
    const char *tab = memchr(text, '\t', len);
    SCOPED_BUF scratch = {0};
    annal_slice name = {0}, raw = {text, tab != NULL ? (size_t)(tab - text) : 0};
    annal_status status = ANNAL_OK;
    if (raw.len < 2 || annal__json_check(raw, 1, NULL) != JSON_VALID || raw.ptr[0] != '"' ||
        annal__json_text(raw, &scratch, &name) < 0 || name.len == 0 ||
        memchr(name.ptr, '\0', name.len) != NULL ||
        annal__json_check((annal_slice){tab + 1, (size_t)(text + len - tab) - 1}, 2, NULL) !=
            JSON_VALID)
        status = fail_text(err);
    if (status == ANNAL_OK) {
        struct line *line = must_array_add(&list->all, &list->count, sizeof *line);
        *line = (struct line){must_strndup(name.ptr, name.len), at};
    }
    return status;
}

static int compare_lines(const void *a, const void *b)
{
    const struct line *one = a, *other = b;
    int order = strcmp(one->name, other->name);
    return order != 0 ? order : (one->at < other->at ? -1 : 1);
}

static annal_status list_files(FILE *text, struct list *list, annal_error *err)
{
    char *line = NULL;
    size_t room = 0;
    rewind(text);
    ssize_t len = getline(&line, &room, text);
    annal_status status = len == (ssize_t)sizeof HEAD && memcmp(line, HEAD "\n", sizeof HEAD) == 0
                              ? ANNAL_OK
                              : fail_text(err);
    for (off_t at = len; status == ANNAL_OK && (len = getline(&line, &room, text)) > 0; at += len)
        status = note(list, line, (size_t)len, at, err);
    free(line);
    if (list->count > 0)
        qsort(list->all, list->count, sizeof *list->all, compare_lines);
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (i + 1 == list->count || strcmp(list->all[i].name, list->all[i + 1].name) != 0)
            list->all[kept++] = list->all[i];
        else
            annal__free(list->all[i].name);
    list->count = kept;
    return status;
}

struct file {
    char *line;
    size_t room;
    struct buf scratch;
    annal_slice bytes;
    int64_t mtime_ns;
    unsigned mode;
};

static annal_status read_file(FILE *text, const struct line *line, struct file *out,
                              annal_error *err)
{
    ssize_t len =
        fseeko(text, line->at, SEEK_SET) == 0 ? getline(&out->line, &out->room, text) : -1;
    const char *tab = len > 0 ? memchr(out->line, '\t', (size_t)len) : NULL;
    if (tab == NULL)
        return fail_text(err);
    annal_slice json = {tab + 1, (size_t)(out->line + len - tab) - 1};
    annal_slice raw = annal__json_member(json, "text");
    annal_slice base64 = annal__json_inside(annal__json_member(json, "base64"));
    annal_slice mtime = annal__json_member(json, "mtime_ns");
    annal_slice mode = annal__json_member(json, "mode");
    annal__buf_clear(&out->scratch);
    if (mtime.len == 0 || mode.len == 0)
        return fail_text(err);
    out->mtime_ns = strtoll(mtime.ptr, NULL, 10); /* a comma or a brace follows */
    out->mode = (unsigned)strtoul(mode.ptr, NULL, 10) & 0777;
    if (raw.len > 0 && raw.ptr[0] == '"')
        return annal__json_text(raw, &out->scratch, &out->bytes) >= 0 ? ANNAL_OK : fail_text(err);
    if (!annal__base64_check(base64) || annal__base64_take(&out->scratch, base64) < 0)
        return fail_text(err);
    out->bytes = annal__buf_slice(&out->scratch);
    return ANNAL_OK;
}

static annal_status refuse_other(const struct below *below, const struct line *line,
                                 const struct file *file, annal_error *err)
{
    struct stat st;
    int fd = -1;
    annal_status status = annal__below_open_file(below, line->name, O_RDONLY, NULL, &fd, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    if (status == ANNAL_OK && fstat(fd, &st) == 0 &&
        ((uint64_t)st.st_size != file->bytes.len || copies_file_ns(st.st_mtim) != file->mtime_ns))
        status =
            annal__fail(err, ANNAL_ERR_CONFLICT,
                        "'%s/%s' exists, and was written %s than this copy of it; --to "
                        "DIRECTORY writes to another directory, --force replaces it",
                        below->root, line->name,
                        copies_file_ns(st.st_mtim) > file->mtime_ns ? "later" : "at another time");
    if (fd >= 0)
        close(fd);
    return status;
}

static annal_status write_file(const struct below *below, const struct line *line,
                               const struct file *file, annal_error *err)
{
    const struct below_mode mode = {.file = file->mode, .folder = 0700, .sync = true};
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_NOW},
        {.tv_sec = file->mtime_ns / 1000000000, .tv_nsec = file->mtime_ns % 1000000000}};
    int fd = -1;
    annal_status status = annal__below_replace(below, line->name, file->bytes, &mode, err);
    if (status == ANNAL_OK)
        status = annal__below_open_file(below, line->name, O_RDONLY, NULL, &fd, err);
    if (status == ANNAL_OK && (fchmod(fd, file->mode) < 0 || futimens(fd, times) < 0))
        status = annal__fail_errno(err, "write '%s/%s'", below->root, line->name);
    if (fd >= 0)
        close(fd);
    return status;
}

annal_status copies_files_restore(FILE *text, const char *root, bool force, uint64_t *out_files,
                                  annal_error *err)
{
    struct list list = {0};
    struct file file = {0};
    struct below below = {.fd = -1};
    annal_status status = annal__below_open(root, &below, err);
    if (status == ANNAL_OK)
        status = list_files(text, &list, err);
    for (int pass = force ? 1 : 0; pass < 2; pass++)
        for (size_t i = 0; i < list.count && status == ANNAL_OK; i++) {
            status = read_file(text, &list.all[i], &file, err);
            if (status == ANNAL_OK && pass == 0)
                status = refuse_other(&below, &list.all[i], &file, err);
            else if (status == ANNAL_OK)
                status = write_file(&below, &list.all[i], &file, err);
        }
    *out_files = list.count;
    for (size_t i = 0; i < list.count; i++)
        annal__free(list.all[i].name);
    annal__free(list.all);
    free(file.line);
    annal__buf_done(&file.scratch);
    annal__below_close(&below);
    return status;
}
