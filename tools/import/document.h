/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs that are one JSON value, which their programs rewrite each time. The importer's directive
 * names the arrays whose items become lines:
 *
 *   -- split: $.messages $.info.history        ($: the value itself is the array)
 *
 * (1) The first line is {"at":"$","value":…}, the value with those arrays empty, unless nothing
 *     else is left. A line for each item follows, array after array in the order of the directive:
 *     {"at":"$.messages","index":0,"value":…}. Values are copied byte for byte, except for line
 *     breaks between tokens, which become spaces.
 * (2) A file is a document if it is one JSON value over several lines, or one value on a single
 *     line that contains one of the arrays. A file whose first or second line is a value consists
 *     of lines, whatever follows.
 * (3) For an incomplete or damaged file, the text before the first array becomes a line, closed, as
 *     {"at":"$",…}, and so do the items before the fault; all other bytes of the file become lines
 *     unchanged, which no importer can read and which are kept as unreadable.
 */
#ifndef TOOLS_IMPORT_DOCUMENT_H
#define TOOLS_IMPORT_DOCUMENT_H

#include "tools/import/importers.h"

#include <stdio.h>

struct document {
    const struct importer *importer;
    bool split; /* it is a document, and must be split into lines */
    bool whole; /* it is valid */
    bool known; /* it has one of the arrays, or is incomplete, so that this is unknown */
    annal_slice text;
    size_t sound; /* number of bytes before the fault */
    void *map;    /* private copy, which no process can truncate */
    size_t map_bytes;
};

/* Read a file. Zero the struct before; call document_close() in either case. */
annal_status document_open(struct document *document, const struct importer *importer, int fd,
                           annal_error *err);
void document_close(struct document *document);

/* Write at most items_max items, 0: all, and the rest of a document that must be split. */
annal_status document_write_lines(const struct document *document, size_t items_max, FILE *lines,
                                  annal_error *err);

/* Replace line breaks in JSON by spaces: JSON has line breaks only between tokens. */
void document_put_on_one_line(annal_slice json, FILE *lines);

#endif
