/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Export: a session as text on stdout.
 *
 * A session is read as one history, with the shared events of a fork. The last event is fixed when
 * the export begins, even if more events are appended. Memory is bounded by the largest event.
 */
#ifndef TOOLS_EXPORT_EXPORT_H
#define TOOLS_EXPORT_EXPORT_H

#include "journal/base/buf.h"
#include "tools/cli/progress.h"

#include <annal/journal.h>

struct export
{
    annal_store *store;
    annal_slice session;
    uint64_t last_seq; /* the last event that is exported */
    bool many;         /* whether several sessions are exported */
    bool full;         /* nothing is cut */
    bool damaged;      /* set if something was skipped and reported */
    struct progress *progress;
    uint64_t *bytes_done; /* bytes of all sessions; counted in the last pass over each session */
};

/* Export a session. 0 or an exit status, after one line on stderr. */
int jsonl_export(struct export *export);
int markdown_export(struct export *export);
int otlp_export(struct export *export);

/* ---- Reading, for the formats ---- */

struct export_reader {
    struct export *export;
    annal_cursor *cursor;
    struct buf data;
    bool counts;       /* counts for the progress */
    bool says_damage;  /* reports damage on stderr */
    uint64_t next_seq; /* expected seq */
};

annal_status export_reader_open(struct export_reader *reader, struct export *export, bool last_pass,
                                annal_error *err);
void export_reader_close(struct export_reader *reader);

/*
 * Read the next event with all of its data, which is valid until the next call. ANNAL_DAMAGE:
 * something was skipped; annal_cursor_damage() describes it. ANNAL_END: no more events.
 */
annal_status export_reader_next(struct export_reader *reader, annal_event *out_event,
                                annal_error *err);

/* Do the same, but data may be left out: event_print_data() prints it in pieces. */
annal_status export_reader_next_head(struct export_reader *reader, annal_event *out_event,
                                     uint64_t *out_data_bytes, annal_error *err);

#endif
