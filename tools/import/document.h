/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads logs that are one JSON value, which their programs rewrite each time. The importer names
 * in a directive the arrays whose items become lines:
 *
 *   -- split: $.messages $.info.history        ($: the value itself is the array)
 *
 * (1) The first line is {"at":"$","value":…}, the value with these arrays empty; if the value
 *     contains nothing else, this line is left out. A line for each item follows, array after
 *     array in the order of the directive: {"at":"$.messages","index":0,"value":…}. Values are
 *     copied byte for byte, except that line breaks between tokens become spaces.
 * (2) A file is a document if it is one JSON value over several lines, or one value on a single
 *     line that contains one of the arrays. If the first or second line of a file is a JSON value,
 *     the file consists of lines, whatever follows.
 * (3) In an incomplete or damaged file, the text before the first array is closed and becomes a
 *     line {"at":"$",…}. The items before the first error become lines as in rule 1. All other
 *     bytes of the file become lines unchanged; no importer can read them, so they are kept as
 *     unreadable.
 */
#pragma once

#include "tools/import/importers.h"

#include <stdio.h>

struct document {
    const struct importer *importer;
    bool split; /* whether the file is a document, which must be split into lines */
    bool whole; /* whether the text is valid JSON */
    /* whether the document contains an array of "-- split:"; also true if the document is
     * incomplete */
    bool known;
    annal_slice text;
    /* number of bytes of the text before its first error; the size of the text if it is valid */
    size_t sound;
    void *map; /* private copy of the file, which no process can truncate */
    size_t map_bytes;
};

/* Read a file. Zero the struct before. Call document_close() even after a failure. */
annal_status document_open(struct document *document, const struct importer *importer, int fd,
                           annal_error *err);
void document_close(struct document *document);

/* Write a document as lines: the items of its split arrays, and the value without them (rule 1).
 * items_max is the maximum number of items; 0: all. */
annal_status document_write_lines(const struct document *document, size_t items_max, FILE *lines,
                                  annal_error *err);

/* Write JSON on one line: replace line breaks by spaces. Valid JSON contains them only between
 * tokens. */
void document_put_on_one_line(annal_slice json, FILE *lines);
