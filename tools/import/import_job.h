/* SPDX-License-Identifier: Apache-2.0 */
/* State of a running import, for import.c and import_append.c. */
#pragma once

#include "journal/base/buf.h"
#include "tools/cli/places.h"
#include "tools/import/ahead.h"
#include "tools/import/import.h"
#include "tools/import/log_session.h"
#include "tools/import/long_strings.h"

#include <annal/journal.h>

#define APPEND_EVENTS 512
#define RECALLS_MAX   8

/* Number of bytes kept from the beginning and the end of the read part, to find whether the file
 * was replaced. */
#define SEEN_BYTES ((size_t)256)

/*
 * an event that waits to be appended; the first number of each pair is an offset in pending.bytes
 */
struct waiting {
    size_t type, type_len;
    size_t id, id_len;
    size_t cause, cause_len;
    size_t data, data_len;
    int64_t ts_us;
    /* name of the source of ts_us, for the event's data; NULL: the event's own line */
    const char *time_from;
};

/* events of the next append, all of the same session */
struct pending {
    struct buf bytes;
    struct waiting events[APPEND_EVENTS];
    size_t count;
    size_t session;    /* index in report->sessions */
    uint64_t unsynced; /* bytes appended since the last annal_store_sync() */
};

/* what the importer's directives say about a kind of records */
struct record_kind {
    char name[IMPORT_KIND_BYTES];
    bool is_any; /* whether "-- records:" permits every kind */
    /* whether "-- records:" names the kind; if it permits every kind, whether "-- map:" contains
     * the name session */
    bool is_named;
    bool is_read; /* whether "-- reads:" names the kind */
};

struct import_job {
    annal_store *store;
    annal_import *import;
    const char *sql; /* text of the importer, ends with NUL */
    const char *kind;
    annal_slice text; /* the same text as a slice */
    char *path;
    const struct import_options *options;
    /* types of the events that the importer's section for the end of a log reads */
    annal_slice recalls[RECALLS_MAX];
    size_t recall_count;
    struct import_report report;
    size_t batch_lines;
    annal_level level;
    bool failed;
    struct ahead *ahead; /* what was read before the turn of the log; NULL: the log has its turn */
    annal_status turn_status; /* < 0: import_begin_turn() failed, with turn_err */
    annal_error turn_err;
    bool guessed_wrong; /* whether a guess before the turn was wrong: read the log again */

    int fd;
    /* whether the file is a text that an agent stores beside its log (importers.h:
     * importer_wants_text()) */
    bool is_text;
    bool is_whole; /* whether the file is a complete document or database */
    bool is_log;   /* whether fd is the log itself, not a temporary file with its lines */
    /* size of the log in bytes when it was decided that its form is lines; if it grows, it may turn
     * out to be a document */
    uint64_t judged;
    uint64_t offset;                         /* number of bytes read from fd */
    char head[SEEN_BYTES], tail[SEEN_BYTES]; /* first and last bytes that were read */
    struct buf read;                         /* bytes that are not split into lines yet */
    /* long strings of the line at the beginning of `read` */
    struct long_strings strings;
    /* number of bytes of `read` that contain no line break */
    size_t scanned;
    bool at_end;
    uint64_t own_line; /* number of the last line counted in report.own */
    uint64_t number;   /* number of lines before `read` */
    /* number of imported pieces of the line at the beginning of `read` */
    uint32_t parts;
    /* time of the last event with a time, in us; 0: no event has a time */
    int64_t last_us;
    /*
     * cache of the kinds that were looked up; record_kind_count % 16 is the next entry to replace
     */
    struct record_kind record_kinds[16];
    size_t record_kind_count;
    annal_import_line *lines;
    size_t line_count;
    size_t line_bytes;

    struct log_sessions log_sessions;
    struct places places; /* hash table of report.sessions, by id */
    struct pending pending;
};

/* Take an event that the importer produced, and keep it for the next append unless the store
 * contains it. `job` is a struct import_job. */
annal_status import_take_event(void *job, const annal_import_event *event, annal_error *err);

/* At the end of a log with an unknown layout, append an event import.unknown to its sessions. */
annal_status import_note_unknown(struct import_job *job, annal_error *err);

/* At the end of a document that is whole and has no unreadable lines, append an event
 * import.recovered to the sessions in which an earlier import of it, then incomplete, left lines
 * that it could not read. */
annal_status import_note_recovered(struct import_job *job, annal_error *err);

/* Before the journal of this session is read: sync the group if it has events of the session. */
annal_status import_settle(struct import_job *job, annal_slice session, annal_error *err);

/* Append the events of `pending`, and empty it. */
annal_status import_flush(struct import_job *job, annal_error *err);
