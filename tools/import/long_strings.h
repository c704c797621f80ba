/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings that make a line, or an event, longer than the store takes: they become artifacts.
 *
 * (1) A JSON string of more than LONG_STRING_BYTES that is a value gives its place to a reference,
 *     {"sha256","bytes","media_type"}, as annal/artifact.h has it, without a path: which session
 *     the line belongs to is not known yet. It waits in a temporary file. Memory does not grow.
 * (2) Without a backslash it is kept as its text (text/plain), else as its JSON, byte for byte
 *     (application/json), and so is one that a line break ends.
 * (3) It becomes an artifact of each session that gets an event with its hash, before that event.
 */
#ifndef TOOLS_IMPORT_LONG_STRINGS_H
#define TOOLS_IMPORT_LONG_STRINGS_H

#include "journal/base/buf.h"
#include "journal/base/sha256.h"

#include <annal/store.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define LONG_STRING_BYTES ((size_t)1 << 20)

struct long_strings {
    FILE *file; /* NULL: none waits */
    struct long_string {
        uint64_t at, bytes; /* in file */
        char sha256[SHA256_TEXT_BYTES];
    } * all;
    size_t count;
    size_t scanned; /* so many bytes of the text have no further one */
    bool open;      /* the last one has not ended yet, and */
    bool escaped;   /* its last byte is a backslash that escapes what follows */
    bool escapes;   /* it has a backslash */
    size_t place;   /* of its reference in the text */
};

/* Move the long strings out of text, which begins a line or is one. The last one may stay open. */
annal_status long_strings_move(struct long_strings *strings, struct buf *text, annal_error *err);

/*
 * One is open, and text has got more from byte `from` on: move what belongs to it out.
 */
annal_status long_strings_more(struct long_strings *strings, struct buf *text, size_t from,
                               annal_error *err);

/* Rule 3. */
annal_status long_strings_store(struct long_strings *strings, annal_store *store,
                                annal_slice session, annal_slice data, annal_error *err);

/* The line is imported: none waits any longer. */
void long_strings_done(struct long_strings *strings);

#endif
