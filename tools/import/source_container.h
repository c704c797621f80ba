/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind of a log, and its lines. An importer knows only lines: a log of another kind becomes a
 * temporary file of lines, so that memory does not grow with the log, and the log is not held for
 * longer than it takes to read it. A damaged log yields the lines before the damage.
 */
#ifndef TOOLS_IMPORT_SOURCE_CONTAINER_H
#define TOOLS_IMPORT_SOURCE_CONTAINER_H

#include "tools/import/importers.h"

#include <annal/base.h>
#include <annal/query.h>

#include <stdint.h>

enum container {
    CONTAINER_LINES,     /* a text of lines */
    CONTAINER_DOCUMENT,  /* one JSON value: document.h */
    CONTAINER_DIRECTORY, /* a directory of files: directory.h */
    CONTAINER_SQLITE,    /* a SQLite database: annal__import_rows() */
    CONTAINER_TEXT       /* a text beside a log: lines of {"type", "of", "file", "part", "text"} */
};

/* "lines", "document", "directory", "sqlite", "text": what importers find in source. */
const char *container_name(enum container container);

/* A log as lines. */
struct lines {
    enum container container;
    int fd;          /* at their beginning */
    bool is_log;     /* it is the log itself: what is appended there can be read on */
    bool whole;      /* of a document: it is one JSON value, and not cut off */
    bool unknown;    /* of a document: it has none of the arrays that its importer reads */
    uint64_t judged; /* how many bytes of the log were there to judge it by */
    bool damaged;    /* they end where the log could not be read any further */
    annal_error damage;
};

struct container_options {
    size_t rows; /* at most so many of a database, and of a run the file as it is; 0: all */
    /* wait for a document, or a file of a directory, that is half written, and for a file that is
     * still empty */
    bool only_whole;
    const annal_limits *limits; /* of a database's SQL; NULL: those of limits_usual */
};

/*
 * Open a log as this importer reads it: itself, or as a temporary file that nobody else sees. zstd
 * is decompressed first. options may be NULL.
 *
 * ANNAL_END          with only_whole: it is empty or half written
 * ANNAL_ERR_BUSY     another program keeps a database locked
 * ANNAL_ERR_CORRUPT  nothing of it can be read
 */
annal_status container_open(const struct importer *importer, const char *path,
                            const struct container_options *options, struct lines *out,
                            annal_error *err);

#endif
