/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs that are one JSON value, which their programs rewrite each time. The importer's directive
 * names the arrays whose items become lines:
 *
 *   -- split: $.messages $.info.history        ($: the value itself is the array)
 *
 * (1) The first line is {"at":"$","value":…}, the value with those arrays empty, unless it has
 *     nothing else. Then comes a line for each item, array after array in the order of the
 *     directive: {"at":"$.messages","index":0,"value":…}. Values are copied as they are written,
 *     except for line breaks between tokens, which become spaces.
 * (2) A file is a document if it is one JSON value over several lines, or one on a single line that
 *     contains one of the arrays. A file whose first or second line is a value is one of lines,
 *     whatever follows.
 * (3) Of a file that is incomplete or damaged, what comes before the first array is a line, closed,
 *     as {"at":"$",…}, and so are the items before the fault; all other bytes of the file are lines
 *     as they are, which no importer can read and which are kept as such.
 */
#ifndef TOOLS_IMPORT_DOCUMENT_H
#define TOOLS_IMPORT_DOCUMENT_H

#include "tools/import/importers.h"

#include <stdio.h>

struct document {
    const struct importer *importer;
    bool split; /* it is a document, and must be split into lines */
    bool whole; /* it is valid */
    bool known; /* it has one of the arrays, or it is not known, because it is not whole */
    annal_slice text;
    size_t sound; /* the number of bytes before the fault */
    void *map;    /* of a private copy: nobody can truncate it */
    size_t map_bytes;
};

/* Look at a file. Zero the struct before; call document_close() in either case. */
annal_status document_open(struct document *document, const struct importer *importer, int fd,
                           annal_error *err);
void document_close(struct document *document);

/* Only for a document that is to be split. */
annal_status document_write_lines(const struct document *document, FILE *lines, annal_error *err);

/* JSON without its line breaks: between tokens they become spaces, and elsewhere JSON has none. */
void document_put_on_one_line(annal_slice json, FILE *lines);

#endif
