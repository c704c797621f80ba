/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves long strings into artifacts if a line or an event is longer than the store accepts.
 *
 * (1) A JSON string that is a value and is longer than LONG_STRING_BYTES is replaced by a
 *     reference, {"sha256","bytes","media_type"}, as in annal/artifact.h, but without a path,
 *     because the session of the line is not known yet. The string waits in a temporary file, so
 *     that memory does not grow.
 * (2) A string without a backslash is stored as its text (text/plain). A string with a backslash,
 *     and a string that ends at a line break, is stored as its JSON, byte for byte
 *     (application/json).
 * (3) The string becomes an artifact of each session with an event that contains its hash, before
 *     the event is appended.
 */
#pragma once

#include "journal/base/buf.h"
#include "journal/base/sha256.h"

#include <annal/store.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define LONG_STRING_BYTES ((size_t)1 << 20)

struct long_strings {
    /* temporary file of the strings that were moved out of the line; NULL: there are none */
    FILE *file;
    struct long_string {
        uint64_t at, bytes; /* offset and length of the string in file, in bytes */
        char sha256[SHA256_TEXT_BYTES];
    } * all;
    size_t count;
    size_t scanned; /* number of bytes of the text that were searched for strings */
    bool open;      /* whether the last string has not ended yet */
    bool escaped;   /* whether the last byte is a backslash that escapes the next byte */
    bool escapes;   /* whether the string contains a backslash, so that it is stored as JSON */
    size_t place;   /* position in the text of the space for the reference */
};

/* Move the long strings out of text, which is a line or the beginning of a line. In a beginning,
 * the last string may stay open. */
annal_status long_strings_move(struct long_strings *strings, struct buf *text, annal_error *err);

/* Move the next part of an open string out of text, whose new bytes begin at byte `from`. */
annal_status long_strings_more(struct long_strings *strings, struct buf *text, size_t from,
                               annal_error *err);

/* Store the strings whose hash data contains as artifacts of the session. */
annal_status long_strings_store(struct long_strings *strings, annal_store *store,
                                annal_slice session, annal_slice data, annal_error *err);

/* Forget the strings that were moved out of a line, after the line was imported. */
void long_strings_done(struct long_strings *strings);
