#include "tools/import/container.h"

#include "journal/base/error.h"
#include "tools/import/directory.h"
#include "tools/import/document.h"
#include "tools/import/unzst.h"

#include <annal/import.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *container_name(enum container container)
{
    static const char *const names[] = {"lines", "document", "directory", "sqlite"};
    return names[container];
}

/* ---- Lines in a temporary file ---- */

static annal_status begin_lines(FILE **out, annal_error *err)
{
    *out = tmpfile();
    return *out != NULL ? ANNAL_OK : annal__fail_errno(err, "make a temporary file");
}

/* Close the file, and hand on a descriptor of it if all is well. */
static annal_status end_lines(FILE *lines, annal_status status, int *out_fd, annal_error *err)
{
    if (status >= 0 && (fflush(lines) != 0 || ferror(lines)))
        status = annal__fail_errno(err, "write a temporary file");
    int fd = status >= 0 ? fcntl(fileno(lines), F_DUPFD_CLOEXEC, 0) : -1;
    if (status >= 0 && (fd < 0 || lseek(fd, 0, SEEK_SET) < 0))
        status = annal__fail_errno(err, "use a temporary file");
    fclose(lines);
    if (status >= 0)
        *out_fd = fd;
    else if (fd >= 0)
        close(fd);
    return status;
}

/* ---- Each container ---- */

/* A database's rows on their way. */
struct rows {
    FILE *lines;
    size_t left; /* so many more at most */
};

/* Between the words of JSON a line break is a space; elsewhere JSON has none. */
static annal_status put_row(void *arg, annal_slice json, annal_error *err)
{
    struct rows *rows = arg;
    FILE *lines = rows->lines;
    for (size_t i = 0; i < json.len; i++)
        putc(json.ptr[i] == '\n' || json.ptr[i] == '\r' ? ' ' : json.ptr[i], lines);
    putc('\n', lines);
    if (ferror(lines))
        return annal__fail_errno(err, "write a temporary file");
    return --rows->left > 0 ? ANNAL_OK : ANNAL_END;
}

static annal_status open_database(const struct importer *importer, const char *path, size_t most,
                                  int *out_fd, annal_error *err)
{
    struct rows rows = {.left = most};
    annal_status status = begin_lines(&rows.lines, err);
    if (status < 0)
        return status;
    return end_lines(rows.lines, annal_import_rows(importer->sql, path, put_row, &rows, err),
                     out_fd, err);
}

static annal_status open_directory(const struct importer *importer, const char *path, int *out_fd,
                                   annal_error *err)
{
    FILE *lines = NULL;
    annal_status status = begin_lines(&lines, err);
    if (status < 0)
        return status;
    return end_lines(lines, directory_write_lines(importer, path, lines, err), out_fd, err);
}

/* Lines, or a document, whose lines then take the place of *inout_fd. */
static annal_status open_text(const struct importer *importer, int *inout_fd,
                              enum container *out_container, annal_error *err)
{
    struct document document = {0};
    FILE *lines = NULL;
    int fd = -1;
    *out_container = CONTAINER_LINES;
    annal_status status = document_open(&document, importer, *inout_fd, err);
    if (status >= 0 && document.split) {
        status = begin_lines(&lines, err);
        if (status >= 0)
            status = end_lines(lines, document_write_lines(&document, lines, err), &fd, err);
        if (status >= 0) {
            close(*inout_fd);
            *inout_fd = fd;
            *out_container = CONTAINER_DOCUMENT;
        }
    }
    document_close(&document);
    if (status >= 0 && lseek(*inout_fd, 0, SEEK_SET) < 0 && errno != ESPIPE)
        status = annal__fail_errno(err, "cannot be read");
    return status;
}

/* ---- Which it is ---- */

static bool has_magic(int fd, const char *magic, size_t len)
{
    char head[16];
    return pread(fd, head, len, 0) == (ssize_t)len && memcmp(head, magic, len) == 0;
}

static annal_status undo_zstd(int *inout_fd, annal_error *err)
{
    FILE *whole = NULL;
    int fd = -1;
    annal_status status = begin_lines(&whole, err);
    if (status >= 0)
        status = end_lines(whole, unzst(*inout_fd, whole, err), &fd, err);
    if (status >= 0) {
        close(*inout_fd);
        *inout_fd = fd;
    }
    return status;
}

annal_status container_open(const struct importer *importer, const char *path,
                            enum container *out_container, int *out_fd, annal_error *err)
{
    return container_open_begin(importer, path, SIZE_MAX, out_container, out_fd, err);
}

annal_status container_open_begin(const struct importer *importer, const char *path, size_t rows,
                                  enum container *out_container, int *out_fd, annal_error *err)
{
    static const char zstd_magic[] = "\x28\xB5\x2F\xFD", sqlite_magic[] = "SQLite format 3";
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        annal_status status = annal__fail_errno(err, "cannot be opened");
        if (fd >= 0)
            close(fd);
        return status;
    }
    annal_status status = ANNAL_OK;
    int lines = -1;
    if (S_ISDIR(st.st_mode)) {
        *out_container = CONTAINER_DIRECTORY;
        status = open_directory(importer, path, &lines, err);
    } else if (has_magic(fd, sqlite_magic, sizeof sqlite_magic)) {
        *out_container = CONTAINER_SQLITE;
        status = open_database(importer, path, rows, &lines, err);
    } else {
        if (has_magic(fd, zstd_magic, 4))
            status = undo_zstd(&fd, err);
        if (status >= 0)
            status = open_text(importer, &fd, out_container, err);
        if (status >= 0) {
            *out_fd = fd;
            return status;
        }
    }
    close(fd);
    if (status >= 0)
        *out_fd = lines;
    return status;
}
