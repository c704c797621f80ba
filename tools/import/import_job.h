/* SPDX-License-Identifier: Apache-2.0 */
/* An import that runs, as import.c and import_append.c share it. */
#ifndef TOOLS_IMPORT_IMPORT_JOB_H
#define TOOLS_IMPORT_IMPORT_JOB_H

#include "journal/base/buf.h"
#include "tools/import/import.h"
#include "tools/import/long_strings.h"
#include "tools/import/places.h"

#include <annal/journal.h>

#define APPEND_EVENTS 512

/* This many bytes at the beginning and end of what was read show whether the file was replaced
 * since. */
#define SEEN_BYTES ((size_t)256)

/* An event that waits to be appended, as offsets into pending.bytes. */
struct waiting {
    size_t type, type_len;
    size_t id, id_len;
    size_t cause, cause_len;
    size_t data, data_len;
    int64_t ts_us;
    const char *time_from; /* NULL: its line says it */
};

/* The events that go into the next append, all of one session. */
struct pending {
    struct buf bytes;
    struct waiting events[APPEND_EVENTS];
    size_t count;
    size_t session;    /* in report->sessions */
    uint64_t unsynced; /* bytes that were appended since the last annal_sync() */
};

struct import_job {
    annal_store *store;
    annal_import *import;
    const char *sql; /* of the importer */
    const char *kind;
    annal_slice text; /* sql, with its length */
    char *path;
    const struct import_options *options;
    struct import_report report;
    size_t batch_lines;
    annal_level level;
    bool failed;

    int fd;
    bool is_text;    /* it is a text beside a log */
    bool is_log;     /* fd is the log itself, not a file of lines made from it */
    uint64_t judged; /* what is a log by its first so many bytes may be a document by more */
    uint64_t offset; /* so many bytes of it were read */
    char head[SEEN_BYTES], tail[SEEN_BYTES]; /* the first and the last of them */
    struct buf read;                         /* what was read and not yet made into lines */
    struct long_strings strings;             /* of the line that begins there */
    size_t scanned;                          /* so many bytes of it contain no line break */
    bool at_end;
    uint64_t own_line; /* the last that was counted as own */
    uint64_t number;   /* of the line that begins at read.ptr, less one */
    uint32_t parts;    /* pieces of that line that were already imported */
    int64_t last_us;   /* of the newest event that has a time; 0: none has */
    annal_import_line *lines;
    size_t line_count;
    size_t line_bytes;

    struct places places; /* of report.sessions by their ids */
    struct pending pending;
};

/* The importer returned an event: append it, with others, if the store does not have it. */
annal_status import_take_event(void *job, const annal_import_event *event, annal_error *err);

/* At the end: sessions of a layout that the importer does not know get an event that says so. */
annal_status import_note_unknown(struct import_job *job, annal_error *err);

/* Append what waits. */
annal_status import_flush(struct import_job *job, annal_error *err);

#endif
