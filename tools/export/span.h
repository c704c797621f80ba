/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Print spans of OTLP JSON on stdout:
 * {"traceId":…,"spanId":…,"name":…,"attributes":[…],"status":{…}}.
 *
 * Ids are hashes, so a session has the same spans in every export: the trace id is the first 16
 * bytes of SHA-256("annal trace\0" session), a span id the first 8 of SHA-256("annal span\0"
 * session "\0" seq in decimal), where seq is the seq of the event that the span represents, 0 for
 * the root.
 */
#ifndef TOOLS_EXPORT_SPAN_H
#define TOOLS_EXPORT_SPAN_H

#include <annal/base.h>

#define TRACE_ID_BYTES 33
#define SPAN_ID_BYTES  17

enum span_kind { SPAN_INTERNAL = 1, SPAN_CLIENT = 3 };

struct span {
    annal_slice session;
    uint64_t seq;
    bool is_root;
    uint64_t parent_seq; /* 0: the root, which itself has no parent */
    enum span_kind kind;
    int64_t start_us;
    int64_t end_us; /* raised to the start if it is earlier */
    int attributes; /* attributes written so far */
};

/* Write an id in hex, as a C string. False: no memory. */
bool span_trace_id(annal_slice session, char text[TRACE_ID_BYTES]);
bool span_id(annal_slice session, uint64_t seq, char text[SPAN_ID_BYTES]);

/* Begin a span. Its name is "what", or "what which" if which (raw JSON) is not empty. */
bool span_begin(struct span *span, const char *what, annal_slice which);

/* Write attributes; an empty value writes none. */
void span_text(struct span *span, const char *key, annal_slice text);
void span_raw(struct span *span, const char *key,
              annal_slice raw); /* a string as its text; others as JSON text */
void span_number(struct span *span, const char *key, int64_t number);
void span_real(struct span *span, const char *key, double number);
void span_true(struct span *span, const char *key);
/* Write a list of one word, which needs no quoting. */
void span_word(struct span *span, const char *key, const char *word);

/* End the attributes and write the status: if failed, ERROR, with a message (raw, or empty). */
void span_status(const struct span *span, bool failed, annal_slice message);

/* Do the same, and end the span. */
void span_end(const struct span *span, bool failed, annal_slice message);

/* Write a raw JSON string with U+FFFD for half a surrogate pair, which protocol buffers refuse. */
void span_put_raw_string(annal_slice raw);

#endif
