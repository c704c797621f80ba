/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints spans of OTLP JSON on stdout:
 * {"traceId":…,"spanId":…,"name":…,"attributes":[…],"status":{…}}.
 *
 * Ids are hashes, so a session has the same spans in every export. The trace id is the first 16
 * bytes of SHA-256("annal trace\0" session). A span id is the first 8 bytes of SHA-256("annal
 * span\0" session "\0" seq in decimal), where seq is the seq of the event that the span represents,
 * or 0 for the root.
 */
#pragma once

#include <annal/base.h>

#define TRACE_ID_BYTES 33
#define SPAN_ID_BYTES  17

struct span {
    uint64_t seq;             /* 0 in the root */
    uint64_t parent_seq;      /* seq of the parent span's event; 0 if the parent is the root */
    int64_t start_us, end_us; /* in us; the end is not before the start */
    int attributes;           /* number of attributes written so far */
};

/* Write the id of a trace (a session), or of a span (an event), in hex to text. */
void span_trace_id(annal_slice session, char text[TRACE_ID_BYTES]);
void span_id(annal_slice session, uint64_t seq, char text[SPAN_ID_BYTES]);

/* Print the beginning of a span of a session. Its name is "what", or "what which" if which (raw
 * JSON) is not empty. */
void span_begin(const struct span *span, annal_slice session, const char *what, annal_slice which);

/* Print an attribute; nothing if the value is empty. */
void span_text(struct span *span, const char *key, annal_slice text);
void span_raw(struct span *span, const char *key,
              annal_slice raw); /* prints a string as its text, another value as JSON */
void span_number(struct span *span, const char *key, int64_t number);
void span_real(struct span *span, const char *key, double number);
void span_true(struct span *span, const char *key);
/* Print an attribute that is a list of one word, which must not need quoting. */
void span_word(struct span *span, const char *key, const char *word);

/* End the attributes, and print the status: ERROR with a message (raw JSON, may be empty) if
 * failed. span_end() also ends the span. */
void span_status(bool failed, annal_slice message);
void span_end(bool failed, annal_slice message);

/* Print a raw JSON string with U+FFFD in place of half a surrogate pair, which protocol buffers
 * refuse. */
void span_put_raw_string(annal_slice raw);
