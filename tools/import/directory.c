/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/directory.h"

#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "tools/cli/must.h"

#include <annal/event.h>
#include <annal/import.h>

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Find the files in path that match a pattern, sorted by name. The caller must call globfree(),
 * even after a failure. */
static annal_status find_files(const char *path, annal_slice pattern, glob_t *out, annal_error *err)
{
    SCOPED_BUF text = {0};
    for (const char *c = path; *c != '\0'; c++) {
        must_append_text(&text, strchr("*?[\\", *c) != NULL ? "\\" : "");
        must_append(&text, c, 1);
    }
    must_printf(&text, "/%.*s", ANNAL_FMT(pattern));
    int rc = glob(text.ptr, 0, NULL, out);
    must_true(rc != GLOB_NOSPACE);
    return rc == GLOB_ABORTED
               ? annal__fail_errno(err, "list the files in the directory '%s' of a log", path)
               : ANNAL_OK;
}

bool directory_is_log(const struct importer *importer, const char *path)
{
    size_t at = 0;
    bool found = false;
    for (annal_slice word; !found && (word = importer_word(importer, "directory", &at)).len > 0;) {
        glob_t files = {0};
        found = find_files(path, word, &files, NULL) >= 0 && files.gl_pathc > 0;
        globfree(&files);
    }
    return found;
}

/* Read a file into out. ANNAL_ERR_LIMIT: it is larger than out->limit. */
static annal_status read_whole(FILE *file, struct buf *out)
{
    annal_status status = ANNAL_OK;
    annal__buf_clear(out);
    while (status >= 0 && !feof(file) && !ferror(file)) {
        status = annal__buf_reserve(out, 65536);
        if (status >= 0)
            out->len += fread(out->ptr + out->len, 1, 65536, file);
    }
    return status;
}

static void copy_text(FILE *file, FILE *lines)
{
    char bytes[65536];
    char last = '\n';
    rewind(file);
    for (size_t got; (got = fread(bytes, 1, sizeof bytes, file)) > 0; last = bytes[got - 1])
        fwrite(bytes, 1, got, lines);
    if (last != '\n')
        fputc('\n', lines);
}

/* Replace line breaks by spaces. Valid JSON contains them only between tokens. */
static void make_one_line(struct buf *text)
{
    for (size_t i = 0; i < text->len; i++)
        if (text->ptr[i] == '\n' || text->ptr[i] == '\r')
            text->ptr[i] = ' ';
}

/* Write a file that is too large to be checked as one line. The importer then stores its long
 * strings as artifacts, or keeps the line in pieces. */
static void write_unchecked(FILE *file, annal_slice head, struct buf *text, FILE *lines)
{
    rewind(file);
    fwrite(head.ptr, 1, head.len, lines);
    for (annal__buf_clear(text); (text->len = fread(text->ptr, 1, 65536, file)) > 0;) {
        make_one_line(text);
        fwrite(text->ptr, 1, text->len, lines);
    }
    fputs("}\n", lines);
}

static annal_status write_value(FILE *file, const char *path, annal_slice head, bool only_whole,
                                FILE *lines, annal_error *err)
{
    SCOPED_BUF text = {.limit = ANNAL_IMPORT_LINE_BYTES_MAX};
    annal_status status = read_whole(file, &text);
    bool too_large = status == ANNAL_ERR_LIMIT;
    bool valid = status >= 0 && annal__json_check(annal__buf_slice(&text), ANNAL_DATA_DEPTH_MAX - 8,
                                                  NULL) == JSON_VALID;
    if (ferror(file))
        status = annal__fail_errno(err, "read the file '%s' of the log", path);
    else if (status == ANNAL_ERR_NOMEM)
        must_status(status);
    else
        status = !valid && only_whole ? ANNAL_END : ANNAL_OK;
    if (status == ANNAL_OK && too_large) {
        write_unchecked(file, head, &text, lines);
    } else if (status == ANNAL_OK) {
        if (valid)
            make_one_line(&text);
        fwrite(head.ptr, 1, head.len, lines);
        fwrite(valid ? text.ptr : "null", 1, valid ? text.len : 4, lines);
        fputs("}\n", lines);
        if (!valid)
            copy_text(file, lines);
    }
    return status;
}

annal_status directory_write_file(const char *path, annal_slice head, bool only_whole, FILE *lines,
                                  bool *out_there, annal_error *err)
{
    annal_status status = ANNAL_OK;
    FILE *file = fopen(path, "re");
    if (file == NULL && errno != ENOENT)
        return annal__fail_errno(err, "read the file '%s' of the log", path);
    if (out_there != NULL)
        *out_there = file != NULL;
    if (file != NULL) {
        status = write_value(file, path, head, only_whole, lines, err);
        fclose(file);
    }
    return status;
}

/* Write a file as a line. The file may have been removed after its name was read. */
static annal_status write_file(const char *path, const char *name, bool only_whole, FILE *lines,
                               annal_error *err)
{
    SCOPED_BUF head = {0};
    must_json(&head, "{\"file\":?,\"value\":", annal_slice_of(name));
    return directory_write_file(path, annal__buf_slice(&head), only_whole, lines, NULL, err);
}

annal_status directory_each_file(const struct importer *importer, const char *directive,
                                 const char *path, directory_fn fn, void *arg, annal_error *err)
{
    annal_status status = ANNAL_OK;
    size_t at = 0, skip = strlen(path) + 1;
    for (annal_slice word;
         status == ANNAL_OK && (word = importer_word(importer, directive, &at)).len > 0;) {
        glob_t files = {0};
        status = find_files(path, word, &files, err);
        for (size_t i = 0; status == ANNAL_OK && i < files.gl_pathc; i++) {
            struct stat st;
            if (stat(files.gl_pathv[i], &st) == 0 && S_ISREG(st.st_mode))
                status = fn(arg, files.gl_pathv[i], files.gl_pathv[i] + skip, &st, err);
        }
        globfree(&files);
    }
    return status;
}

struct writing {
    bool only_whole;
    FILE *lines;
};

static annal_status write_line(void *arg, const char *path, const char *name, const struct stat *st,
                               annal_error *err)
{
    const struct writing *writing = arg;
    (void)st;
    return write_file(path, name, writing->only_whole, writing->lines, err);
}

annal_status directory_write_lines(const struct importer *importer, const char *path,
                                   bool only_whole, FILE *lines, annal_error *err)
{
    struct writing writing = {only_whole, lines};
    return directory_each_file(importer, "directory", path, write_line, &writing, err);
}
