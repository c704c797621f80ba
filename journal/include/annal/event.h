/* SPDX-License-Identifier: Apache-2.0 */
/* An event: one fact of a session. A draft: an event before it has a seq. */
#ifndef ANNAL_EVENT_H
#define ANNAL_EVENT_H

#include <annal/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The limits of an event. docs/limits.md lists them with all other limits. */
#define ANNAL_SESSION_ID_BYTES_MAX 200         /* [A-Za-z0-9._-], not starting with . or - */
#define ANNAL_TYPE_BYTES_MAX       64          /* [a-z0-9_.-] */
#define ANNAL_ID_BYTES_MAX         200         /* UTF-8 without control characters, " and \ */
#define ANNAL_CAUSE_BYTES_MAX      221         /* session id, ':', seq */
#define ANNAL_DATA_BYTES_MAX       (64u << 20) /* 64 MiB */
#define ANNAL_DATA_DEPTH_MAX       512         /* nested arrays and objects */
#define ANNAL_APPEND_EVENTS_MAX    65536       /* drafts in one append */
/* maximum size of one append in bytes, with the envelopes of its events */
#define ANNAL_APPEND_BYTES_MAX (80u << 20)
/* maximum number of ancestors of a fork, including ancestors of its ancestors */
#define ANNAL_ANCESTORS_MAX 1024

/* The two formats of a journal, and of data: docs/format.md. */
typedef enum annal_format {
    /* the format that the writer, or else the store, was opened with; otherwise JSON */
    ANNAL_FORMAT_DEFAULT = 0,
    ANNAL_FORMAT_JSON = 1,   /* JSON lines, <session>.jsonl */
    ANNAL_FORMAT_MSGPACK = 2 /* msgpack, <session>.mpk */
} annal_format;

typedef struct annal_event {
    uint64_t seq; /* 1, 2, 3, … without gaps */
    /* time, microseconds since 1970, UTC; events are ordered by seq, not by time */
    int64_t ts_us;
    annal_slice type;  /* dotted lower case, "tool.called" */
    annal_slice id;    /* the caller's name for this event; may be empty */
    annal_slice cause; /* "session:seq" of the event that led to this event; may be empty */
    /* One JSON value: byte for byte as appended, or converted from the journal's msgpack. */
    annal_slice data;
    annal_slice msgpack; /* the data in a msgpack journal, byte for byte; else empty */
    annal_format format; /* format of the journal */
    uint64_t h;          /* chain hash of this event; see docs/format.md */
    uint64_t offset;     /* offset in the journal, in bytes */
    /* size in the journal, in bytes: of the line with its newline, or of the msgpack array */
    uint64_t length;
} annal_event;

/* The ts_us of a draft for a time that may be 0, which is 1970-01-01T00:00:00Z. */
#define ANNAL_TS(time_us) ((time_us) == 0 ? ANNAL_TS_ZERO : (time_us))
/* stands for the time 0 in a draft, in which 0 means now */
#define ANNAL_TS_ZERO (INT64_MIN + 1)

typedef struct annal_draft {
    annal_slice type; /* required */
    /* required: one JSON value, RFC 8259, valid UTF-8, no line break outside strings; or one
     * msgpack value */
    annal_slice data;
    annal_slice id;    /* optional: makes the append exactly-once; see annal_writer_append() */
    annal_slice cause; /* optional: "session:seq" */
    /* time of the event; 0: the present time, but never before the session's last event. Imports
     * set it, with ANNAL_TS() */
    int64_t ts_us;
    /* format of data, whatever the format of the journal; default: JSON */
    annal_format data_format;
} annal_draft;

/*
 * Check whether a draft may become an event: its type, id and cause, and its data within the
 * limits, as JSON or as msgpack that JSON can express. ANNAL_ERR_INVALID or ANNAL_ERR_LIMIT with
 * the reason if not. annal_writer_append() checks this itself. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_draft_check(const annal_draft *draft,
                                                          annal_error *err);

/* Check whether session may be the id of a session. ANNAL_ERR_INVALID with the reason if not. The
 * id becomes a file name, so an id that is a path is not accepted. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_session_id_check(annal_slice session,
                                                               annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
