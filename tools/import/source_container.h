/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the form of a log and reads the log as lines, because importers read only lines. A log of
 * another form is converted to a temporary file of lines, so that memory does not grow with the
 * log, and the log is open only while it is read. If a log is damaged, the lines before the damage
 * are read.
 */
#pragma once

#include "tools/import/importers.h"

#include <annal/base.h>
#include <annal/query.h>

#include <stdint.h>

enum container {
    CONTAINER_LINES,     /* text of lines */
    CONTAINER_DOCUMENT,  /* one JSON value (document.h) */
    CONTAINER_DIRECTORY, /* directory of files (directory.h) */
    CONTAINER_SQLITE,    /* SQLite database (annal__import_rows()) */
    /* text that belongs to a log: lines of {"type", "of", "file", "part", "text"} */
    CONTAINER_TEXT,
    CONTAINER_ARCHIVE, /* zip archive (archive.h) */
    CONTAINER_LAST = CONTAINER_ARCHIVE
};

/* Return the name of a form, which importers can read: "lines", "document", "directory", "sqlite",
 * "text" or "archive". */
const char *source_container_name(enum container container);

/* a log as lines */
struct lines {
    enum container container;
    int fd;      /* descriptor of the lines, positioned at the first line */
    bool is_log; /* whether fd is the log itself, so that bytes appended to it can be read */
    bool whole;  /* whether a document is a complete JSON value, an archive complete */
    /*
     * whether the log is a document without any of the arrays that the importer's "-- split:" names
     */
    bool unknown;
    uint64_t judged; /* size of the log when its form was judged, in bytes */
    bool damaged;    /* whether the lines end where the log cannot be read; damage says why */
    annal_error damage;
};

struct container_options {
    size_t
        /* maximum rows of a database or items of a document, 0: all; if set, a branch of a run is
         * read as a plain JSON file */
        rows;
    /* whether to return ANNAL_END for a document or a file of a directory that is incomplete, and
     * for an empty file */
    bool only_whole;
    const annal_limits *limits; /* limits for the SQL that reads a database; NULL: limits_usual */
};

/*
 * Open a log as lines for the importer: the log itself, or a private temporary file with its lines.
 * zstd is decompressed first. options may be NULL.
 *
 * ANNAL_END          with only_whole: the log is empty or incomplete
 * ANNAL_ERR_BUSY     another program keeps a database locked
 * ANNAL_ERR_CORRUPT  no part of the log is readable
 */
annal_status source_container_open(const struct importer *importer, const char *path,
                                   const struct container_options *options, struct lines *out,
                                   annal_error *err);
