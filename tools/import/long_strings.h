/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Move strings that make a line, or an event, longer than the store accepts into artifacts.
 *
 * (1) A JSON string of more than LONG_STRING_BYTES that is a value is replaced by a reference,
 *     {"sha256","bytes","media_type"}, as in annal/artifact.h, without a path: the session of the
 *     line is not known yet. The string waits in a temporary file. Memory does not grow.
 * (2) A string without a backslash is stored as its text (text/plain), any other as its JSON, byte
 *     for byte (application/json), and so is a string that ends at a line break.
 * (3) It becomes an artifact of each session with an event that contains its hash, before that
 *     event.
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
    FILE *file; /* NULL: no string is waiting */
    struct long_string {
        uint64_t at, bytes; /* position and length in file */
        char sha256[SHA256_TEXT_BYTES];
    } * all;
    size_t count;
    size_t scanned; /* bytes of the text without a further string */
    bool open;      /* the last string has not ended yet */
    bool escaped;   /* its last byte is a backslash that escapes the next byte */
    bool escapes;   /* it contains a backslash */
    size_t place;   /* position of its reference in the text */
};

/* Move the long strings out of text, which begins a line or is a line. The last string may stay
 * open. */
annal_status long_strings_move(struct long_strings *strings, struct buf *text, annal_error *err);

/* Move the rest of an open string out of text, which has new bytes from byte `from` on. */
annal_status long_strings_more(struct long_strings *strings, struct buf *text, size_t from,
                               annal_error *err);

/* Store the artifacts: rule 3. */
annal_status long_strings_store(struct long_strings *strings, annal_store *store,
                                annal_slice session, annal_slice data, annal_error *err);

/* Drop the waiting strings, once the line is imported. */
void long_strings_done(struct long_strings *strings);

#endif
