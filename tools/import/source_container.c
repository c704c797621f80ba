/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/source_container.h"

#include "index/sys/import.h"
#include "tools/cli/fields.h"

#include "journal/base/base64.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "tools/cli/must.h"
#include "tools/cli/temporary.h"
#include "tools/import/archive.h"
#include "tools/import/directory.h"
#include "tools/import/document.h"
#include "tools/import/runs.h"
#include "tools/import/unzst.h"

#include <annal/import.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *source_container_name(enum container container)
{
    static const char *const names[] = {"lines",  "document", "directory",
                                        "sqlite", "text",     "archive"};
    return names[container];
}

/* ---- Lines in a temporary file ---- */

static annal_status begin_lines(FILE **out, annal_error *err)
{
    *out = temporary_stream(NULL);
    return *out != NULL
               ? ANNAL_OK
               : annal__fail_errno(err, "create a temporary file for the lines of the log");
}

/* Close the temporary file of lines. If it was written completely, set *out_fd to a descriptor that
 * reads it from its first line. */
static annal_status end_lines(FILE *lines, annal_status status, int *out_fd, annal_error *err)
{
    if (status >= 0 && (fflush(lines) != 0 || ferror(lines)))
        status = annal__fail_errno(err, "write the lines of the log to a temporary file");
    int fd = status >= 0 ? fcntl(fileno(lines), F_DUPFD_CLOEXEC, 0) : -1;
    if (status >= 0 && (fd < 0 || lseek(fd, 0, SEEK_SET) < 0))
        status = annal__fail_errno(err, "open the temporary file with the lines of the log again");
    fclose(lines);
    if (status >= 0)
        *out_fd = fd;
    else if (fd >= 0)
        close(fd);
    return status;
}

/* ---- Each container ---- */

/* state while the rows of a SQLite database are read */
struct rows {
    FILE *lines;
    uint64_t given;
    size_t left; /* maximum number of rows to read from here on */
};

static annal_status put_row(void *arg, annal_slice json, annal_error *err)
{
    struct rows *rows = arg;
    FILE *lines = rows->lines;
    document_put_on_one_line(json, lines);
    putc('\n', lines);
    rows->given++;
    if (ferror(lines))
        return annal__fail_errno(err, "write the lines of the log to a temporary file");
    return --rows->left > 0 ? ANNAL_OK : ANNAL_END;
}

/* If rows were read before the log turned out to be damaged (`some`), keep these rows, and store
 * the reason in out->damage. Otherwise return the failure. */
static annal_status keep_damage(struct lines *out, annal_status status, bool some,
                                const annal_error *why, annal_error *err)
{
    if (status == ANNAL_ERR_CORRUPT && some) {
        out->damaged = true;
        out->damage = *why;
        return ANNAL_OK;
    }
    if (status < 0 && err != NULL)
        *err = *why;
    return status;
}

static annal_status open_database(const struct importer *importer, const char *path,
                                  const struct container_options *options, struct lines *out,
                                  annal_error *err)
{
    struct rows rows = {.left = options->rows > 0 ? options->rows : SIZE_MAX};
    const annal_limits *limits = options->limits != NULL ? options->limits : &limits_usual;
    annal_error why = {0};
    annal_status status = begin_lines(&rows.lines, err);
    if (status < 0)
        return status;
    status = annal__import_rows(importer->sql, path, limits, put_row, &rows, &why);
    if (status == ANNAL_END) /* enough rows were read */
        status = ANNAL_OK;
    fields_limits_hint(&why);
    status = keep_damage(out, status, rows.given > 0, &why, err);
    return end_lines(rows.lines, status, &out->fd, err);
}

static annal_status open_directory(const struct importer *importer, const char *path,
                                   bool only_whole, int *out_fd, annal_error *err)
{
    FILE *lines = NULL;
    annal_status status = begin_lines(&lines, err);
    if (status < 0)
        return status;
    status = runs_is_importer(importer)
                 ? run_write_lines(path, only_whole, lines, err)
                 : directory_write_lines(importer, path, only_whole, lines, err);
    return end_lines(lines, status, out_fd, err);
}

static annal_status open_archive(const struct importer *importer, int fd,
                                 const struct container_options *options, struct lines *out,
                                 annal_error *err)
{
    FILE *lines = NULL;
    annal_error why = {0};
    annal_status status = begin_lines(&lines, err);
    if (status < 0)
        return status;
    out->container = CONTAINER_ARCHIVE;
    status = archive_write_lines(importer, fd, options->rows, lines, &why);
    if (status == ANNAL_ERR_CORRUPT && options->only_whole)
        status = ANNAL_END;
    status = keep_damage(out, status, ftello(lines) > 0, &why, err);
    out->whole = !out->damaged;
    return end_lines(lines, status, &out->fd, err);
}

/* ---- A text beside a log ---- */

/* Return a part of the path DIRECTORY/NAME/FILE, counted from the end: 0 is FILE. */
static annal_slice part_of_path(const char *path, int back)
{
    const char *end = path + strlen(path), *begin = end;
    for (;; end = begin - 1, back--) {
        for (begin = end; begin > path && begin[-1] != '/';)
            begin--;
        if (back == 0 || begin == path)
            return (annal_slice){begin, back == 0 ? (size_t)(end - begin) : 0};
    }
}

static void put_text(struct buf *line, const char *path, uint64_t part, annal_slice text)
{
    static const char *const names[] = {"file", "type", "of"};
    annal__buf_clear(line);
    for (int i = 0; i < 3; i++)
        must_json(line, "#\"#\":?", annal_slice_of(i > 0 ? "," : "{"), annal_slice_of(names[i]),
                  part_of_path(path, i));
    must_printf(line, ",\"part\":%" PRIu64 ",\"%s\":", part,
                annal__json_is_utf8(text) ? "text" : "base64");
    if (annal__json_is_utf8(text)) {
        must_quote(line, text);
    } else {
        must_append_text(line, "\"");
        must_status(annal__base64_put(line, text));
        must_append_text(line, "\"");
    }
    must_append_text(line, "}\n");
}

/* Return the length of a piece that does not end inside a UTF-8 character. */
static size_t piece_of_text(const char *bytes, size_t len)
{
    size_t most = len;
    for (int i = 0; i < 4 && len > 0 && ((unsigned char)bytes[len - 1] & 0xC0) == 0x80; i++)
        len--;
    return len > 1 && ((unsigned char)bytes[len - 1] & 0x80) != 0 ? len - 1 : most;
}

static annal_status write_text(int fd, const char *path, FILE *lines, annal_error *err)
{
    SCOPED_BUF line = {0}, text = {0};
    uint64_t part = 0;
    ssize_t got = 1;
    annal_status status = ANNAL_OK;
    while (status >= 0 && (got > 0 || text.len > 0)) {
        must_reserve(&text, ANNAL_IMPORT_PIECE_BYTES);
        got = read(fd, text.ptr + text.len, ANNAL_IMPORT_PIECE_BYTES);
        text.len += got > 0 ? (size_t)got : 0;
        if (got < 0)
            status = annal__fail_errno(err, "cannot read the log");
        if (status < 0 || (got > 0 && text.len < ANNAL_IMPORT_PIECE_BYTES))
            continue;
        size_t len = got > 0 ? piece_of_text(text.ptr, text.len) : text.len;
        if (len > 0) {
            put_text(&line, path, ++part, (annal_slice){text.ptr, len});
            fwrite(line.ptr, 1, line.len, lines);
        }
        annal__buf_consume(&text, len);
    }
    return status;
}

static annal_status open_beside(int fd, const char *path, struct lines *out, annal_error *err)
{
    FILE *lines = NULL;
    annal_status status = begin_lines(&lines, err);
    out->container = CONTAINER_TEXT;
    return status < 0 ? status : end_lines(lines, write_text(fd, path, lines, err), &out->fd, err);
}

/* Open a text: a text of lines is read from out->fd; for a document, out->fd is replaced by a file
 * of its lines. */
static annal_status open_text(const struct importer *importer,
                              const struct container_options *options, struct lines *out,
                              annal_error *err)
{
    struct document document = {0};
    FILE *lines = NULL;
    struct stat st;
    int fd = -1;
    out->container = CONTAINER_LINES;
    if (fstat(out->fd, &st) < 0)
        return annal__fail_errno(err, "cannot read the log");
    out->judged = (uint64_t)st.st_size;
    annal_status status = document_open(&document, importer, out->fd, err);
    if (status >= 0 && options->only_whole &&
        (st.st_size == 0 || (document.split && !document.whole)))
        status = ANNAL_END;
    if (status == ANNAL_OK && document.split) {
        status = begin_lines(&lines, err);
        if (status >= 0)
            status = end_lines(lines, document_write_lines(&document, options->rows, lines, err),
                               &fd, err);
        if (status >= 0) {
            close(out->fd);
            out->fd = fd;
            out->container = CONTAINER_DOCUMENT;
            out->whole = document.whole;
            out->unknown = !document.known;
            out->is_log = false;
        }
    }
    document_close(&document);
    if (status == ANNAL_OK && lseek(out->fd, 0, SEEK_SET) < 0)
        status = annal__fail_errno(err, "cannot read the log");
    return status;
}

/* ---- The kind ---- */

static bool has_magic(int fd, const char *magic, size_t len)
{
    char head[16];
    return pread(fd, head, len, 0) == (ssize_t)len && memcmp(head, magic, len) == 0;
}

static annal_status undo_zstd(bool only_whole, struct lines *out, annal_error *err)
{
    FILE *whole = NULL;
    annal_error why = {0};
    int fd = -1;
    annal_status status = begin_lines(&whole, err);
    if (status < 0)
        return status;
    status = unzst(out->fd, whole, &why);
    if (status == ANNAL_ERR_CORRUPT && only_whole)
        status = ANNAL_END;
    status = keep_damage(out, status, ftello(whole) > 0, &why, err);
    status = end_lines(whole, status, &fd, err);
    if (status >= 0) {
        close(out->fd);
        out->fd = fd;
        out->is_log = false;
    }
    return status;
}

static annal_status open_file(const struct importer *importer,
                              const struct container_options *options, struct lines *out,
                              annal_error *err)
{
    static const char zstd_magic[] = "\x28\xB5\x2F\xFD";
    annal_status status = ANNAL_OK;
    out->is_log = true;
    if (has_magic(out->fd, zstd_magic, 4))
        status = undo_zstd(options->only_whole, out, err);
    return status != ANNAL_OK ? status : open_text(importer, options, out, err);
}

/* Open the path without waiting: it may have been replaced by a FIFO. */
static annal_status open_path(const char *path, int *out_fd, struct stat *out_st, annal_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    annal_status status = ANNAL_OK;
    if (fd < 0 || fstat(fd, out_st) < 0)
        status = annal__fail_errno(err, "cannot open the log");
    else if (!S_ISREG(out_st->st_mode) && !S_ISDIR(out_st->st_mode))
        status = annal__fail(err, ANNAL_ERR_INVALID, "the path is neither a file nor a directory");
    if (status < 0 && fd >= 0)
        close(fd);
    else
        *out_fd = fd;
    return status;
}

annal_status source_container_open(const struct importer *importer, const char *path,
                                   const struct container_options *options, struct lines *out,
                                   annal_error *err)
{
    static const char sqlite_magic[] = "SQLite format 3";
    static const struct container_options defaults = {0};
    struct stat st;
    *out = (struct lines){.fd = -1};
    options = options != NULL ? options : &defaults;
    size_t at = 0;
    int fd = -1;
    annal_status status = open_path(path, &fd, &st, err);
    if (status < 0)
        return status;
    if (S_ISDIR(st.st_mode) || (runs_is_importer(importer) && options->rows == 0)) {
        out->container = CONTAINER_DIRECTORY;
        status = open_directory(importer, path, options->only_whole, &out->fd, err);
    } else if (importer_wants_text(importer, path)) {
        status = open_beside(fd, path, out, err);
    } else if (has_magic(fd, sqlite_magic, sizeof sqlite_magic)) {
        out->container = CONTAINER_SQLITE;
        status = open_database(importer, path, options, out, err);
    } else if (has_magic(fd, "PK\3\4", 4) && importer_word(importer, "archive", &at).len > 0) {
        status = open_archive(importer, fd, options, out, err);
    } else {
        out->fd = fd;
        fd = -1;
        status = open_file(importer, options, out, err);
    }
    if (fd >= 0)
        close(fd);
    if (status != ANNAL_OK && out->fd >= 0) {
        close(out->fd);
        out->fd = -1;
    }
    return status;
}
