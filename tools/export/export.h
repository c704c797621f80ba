/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports a session as text on stdout.
 *
 * A session is read with its complete history, including the events that a fork shares with its
 * ancestors. The last event is chosen when the export begins, even if more events are appended.
 * Memory is bounded by the largest event.
 */
#pragma once

#include "index/sys/sql_functions.h"
#include "tools/cli/progress.h"

#include <annal/journal.h>
#include <annal/query.h>

struct export
{
    annal_store *store;
    annal_slice session;
    uint64_t last_seq;  /* seq of the last event to export */
    bool many;          /* whether several sessions are exported */
    bool full;          /* whether nothing is cut */
    bool tree;          /* whether the sub-agents are exported with a session */
    const char *format; /* name of the format, or path of its file, for messages */
    const char *sql;    /* SELECT of the format, for select_export() */
    annal_index *index; /* opened by select_export(); the caller closes it */
    bool damaged;       /* whether something unreadable was skipped and reported */
    struct progress *progress;
    /* number of bytes exported of all sessions; only the last pass over a session counts */
    uint64_t *bytes_done;
};

/* Export a session in the format that the function's name begins with. Returns 0, or an exit status
 * after one line on stderr. */
int jsonl_export(struct export *export);
int markdown_export(struct export *export);
int otlp_export(struct export *export);
int select_export(struct export *export);

/* the functions that these SELECTs may call */
extern const annal__sql_function select_functions[];

/* ---- Reading, for the formats ---- */

struct export_reader {
    struct export *export;
    annal_cursor *cursor;
    struct buf data;
    bool counts;       /* whether reading adds to bytes_done and shows progress */
    bool says_damage;  /* whether damage is reported on stderr */
    uint64_t next_seq; /* seq that the next event must have */
};

annal_status export_reader_open(struct export_reader *reader, struct export *export, bool last_pass,
                                annal_error *err);
void export_reader_close(struct export_reader *reader);

/*
 * Read the next event with its complete data, which is valid until the next call. ANNAL_DAMAGE:
 * something unreadable was skipped; annal_cursor_damage() describes it. ANNAL_END: there are no
 * more events.
 */
annal_status export_reader_next(struct export_reader *reader, annal_event *out_event,
                                annal_error *err);

/* As export_reader_next(), but data that is not in memory is not read; event_print_data() prints it
 * in pieces. */
annal_status export_reader_next_head(struct export_reader *reader, annal_event *out_event,
                                     uint64_t *out_data_bytes, annal_error *err);
