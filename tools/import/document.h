/*
 * Logs that are one JSON value, which their programs write anew each time. The importer's directive
 * names the arrays whose items become lines:
 *
 *   -- split: $.messages $.info.history        ($: the value itself is the array)
 *
 * (1) The first line is {"at":"$","value":…}, the value with those arrays empty. Then comes a line
 *     for each item, array after array in the order of the directive:
 *     {"at":"$.messages","index":0,"value":…}. Values are copied as they are written, but for line
 *     breaks between words, which become spaces.
 * (2) A file is a document when it is one JSON value over several lines, or one on a single line in
 *     which one of the arrays stands. A file whose first or second line is a value is one of lines,
 *     whatever follows.
 * (3) What breaks off or is damaged gives what stands before the first array, closed, as
 *     {"at":"$",…}, and the items before the fault; all other bytes of the file are lines as they
 *     stand, which no importer can read and which are kept as such.
 */
#ifndef TOOLS_IMPORT_DOCUMENT_H
#define TOOLS_IMPORT_DOCUMENT_H

#include "tools/import/importers.h"

#include <stdio.h>

struct document {
    const struct importer *importer;
    bool split; /* it is a document, and has to be split into lines */
    bool whole; /* it is valid */
    annal_slice text;
    size_t sound; /* so many bytes of it are before the fault */
    void *map;    /* of a private copy: nobody can cut it short */
    size_t map_bytes;
};

/* Look at a file. Zero it before; document_close() it in either case. */
annal_status document_open(struct document *document, const struct importer *importer, int fd,
                           annal_error *err);
void document_close(struct document *document);

/* Only of what is to be split. */
annal_status document_write_lines(const struct document *document, FILE *lines, annal_error *err);

/* JSON without its line breaks: between words they become spaces, and elsewhere JSON has none. */
void document_put_on_one_line(annal_slice json, FILE *lines);

#endif
