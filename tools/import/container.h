/*
 * What a log is, and its lines. An importer knows only lines: what is none of lines becomes a
 * temporary file of them, so that memory does not grow with the log, and the log is not held for
 * longer than it takes to read it.
 */
#ifndef TOOLS_IMPORT_CONTAINER_H
#define TOOLS_IMPORT_CONTAINER_H

#include "tools/import/importers.h"

enum container {
    CONTAINER_LINES,     /* a text of lines */
    CONTAINER_DOCUMENT,  /* one JSON value: document.h */
    CONTAINER_DIRECTORY, /* a directory of files: directory.h */
    CONTAINER_SQLITE     /* a SQLite database: annal_import_rows() */
};

/* "lines", "document", "directory", "sqlite": what importers find in source. */
const char *container_name(enum container container);

/*
 * Open a log as this importer reads it. *out_fd stands at the begin of its lines: that of the log
 * itself, or of a temporary file that nobody else sees. zstd is undone first.
 *
 * ANNAL_ERR_CORRUPT  a database or a zstd stream is damaged
 * ANNAL_ERR_BUSY     a database is kept locked
 */
annal_status container_open(const struct importer *importer, const char *path,
                            enum container *out_container, int *out_fd, annal_error *err);

/* The same of a log's begin: of a database so many rows. */
annal_status container_open_begin(const struct importer *importer, const char *path, size_t rows,
                                  enum container *out_container, int *out_fd, annal_error *err);

#endif
