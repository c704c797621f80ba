/* SPDX-License-Identifier: Apache-2.0 */
/* A running import, shared by import.c and import_append.c. */
#ifndef TOOLS_IMPORT_IMPORT_JOB_H
#define TOOLS_IMPORT_IMPORT_JOB_H

#include "journal/base/buf.h"
#include "tools/import/import.h"
#include "tools/import/long_strings.h"
#include "tools/import/places.h"

#include <annal/journal.h>

#define APPEND_EVENTS 512
#define RECALLS_MAX   8

/* This many bytes at the beginning and end of what was read show whether the file was replaced
 * later. */
#define SEEN_BYTES ((size_t)256)

/* An event that waits to be appended, as offsets into pending.bytes. */
struct waiting {
    size_t type, type_len;
    size_t id, id_len;
    size_t cause, cause_len;
    size_t data, data_len;
    int64_t ts_us;
    const char *time_from; /* NULL: its line has a time */
};

/* The events of the next append, all of one session. */
struct pending {
    struct buf bytes;
    struct waiting events[APPEND_EVENTS];
    size_t count;
    size_t session;    /* index in report->sessions */
    uint64_t unsynced; /* bytes appended since the last annal_sync() */
};

/* What the directives of the importer say about a kind of records. */
struct record_kind {
    char name[IMPORT_KIND_BYTES];
    bool is_any;   /* records: every kind may occur */
    bool is_named; /* records, or for such an importer map, names it */
    bool is_read;  /* reads names it */
};

struct import_job {
    annal_store *store;
    annal_import *import;
    const char *sql; /* text of the importer */
    const char *kind;
    annal_slice text; /* sql, with its length */
    char *path;
    const struct import_options *options;
    annal_slice recalls[RECALLS_MAX]; /* types of the events that the importer's end reads */
    size_t recall_count;
    struct import_report report;
    size_t batch_lines;
    annal_level level;
    bool failed;

    int fd;
    bool is_text;    /* it is a text beside a log */
    bool is_whole;   /* it is a complete document or database */
    bool is_log;     /* fd is the log itself, not a file of lines made from it */
    uint64_t judged; /* bytes by which the kind was judged: with more, it may be a document */
    uint64_t offset; /* bytes read from it */
    char head[SEEN_BYTES], tail[SEEN_BYTES]; /* the first and the last of these bytes */
    struct buf read;                         /* read, but not split into lines yet */
    struct long_strings strings;             /* of the line that begins there */
    size_t scanned;                          /* bytes without a line break */
    bool at_end;
    uint64_t own_line;                   /* last line that was counted as own */
    uint64_t number;                     /* number of the line before read.ptr */
    uint32_t parts;                      /* imported pieces of that line */
    int64_t last_us;                     /* time of the newest event that has a time; 0: none */
    struct record_kind record_kinds[16]; /* a cache: record_kind_count % 16 is the next */
    size_t record_kind_count;
    annal_import_line *lines;
    size_t line_count;
    size_t line_bytes;

    struct places places; /* index of report.sessions by id */
    struct pending pending;
};

/* Accept an event from the importer: append it, with others, if the store does not have it. */
annal_status import_take_event(void *job, const annal_import_event *event, annal_error *err);

/* At the end, append to sessions of an unknown layout an event that says so. */
annal_status import_note_unknown(struct import_job *job, annal_error *err);

/* Append the waiting events. */
annal_status import_flush(struct import_job *job, annal_error *err);

#endif
