/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Find the kind of a log, and read it as lines. An importer knows only lines: a log of another kind
 * is converted to a temporary file of lines, so that memory does not grow with the log, and the log
 * is held open only while it is read. A damaged log yields the lines before the damage.
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

/* The names "lines", "document", "directory", "sqlite", "text", which importers find in source. */
const char *source_container_name(enum container container);

/* A log as lines. */
struct lines {
    enum container container;
    int fd;          /* at the first line */
    bool is_log;     /* it is the log itself: bytes appended to it can be read */
    bool whole;      /* a document is one complete JSON value */
    bool unknown;    /* a document has none of the arrays that its importer reads */
    uint64_t judged; /* bytes of the log by which it was judged */
    bool damaged;    /* the lines end where the log is not readable */
    annal_error damage;
};

struct container_options {
    size_t
        rows; /* most rows of a database, or items of a document; a run is then its file; 0: all */
    /* wait for a document, or a file of a directory, that is half written, and for a file that is
     * still empty */
    bool only_whole;
    const annal_limits *limits; /* limits of a database's SQL; NULL: limits_usual */
};

/*
 * Open a log in the form that this importer reads: itself, or as a private temporary file. zstd is
 * decompressed first. options may be NULL.
 *
 * ANNAL_END          with only_whole: it is empty or half written
 * ANNAL_ERR_BUSY     another program keeps a database locked
 * ANNAL_ERR_CORRUPT  nothing of it is readable
 */
annal_status source_container_open(const struct importer *importer, const char *path,
                                   const struct container_options *options, struct lines *out,
                                   annal_error *err);

#endif
