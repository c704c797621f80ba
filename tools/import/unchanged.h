/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds logs that did not change since they were imported.
 *
 * (1) STORE/imports.jsonl contains a line for each log, with its path, its size and times, a hash
 *     of its beginning and its end, the importer with its options, the result, and the sessions
 *     that received events from it. If a log has several lines, the last line counts. The file may
 *     be deleted at any time: then every log is read again.
 * (2) A log is unchanged if all of this is the same, and its sessions still contain the events:
 *     they have the same journals, with at least as many events. So a session that was deleted is
 *     imported again.
 * (3) This does not prove that no byte in the middle changed, only that the file system recorded
 *     no write. --recheck reads all logs.
 * (4) An incomplete import is not noted: a damaged log, a log with an unfinished last line, or a
 *     log that was written during the import or less than RECENT_US before its end.
 * (5) New lines are appended. If most lines are replaced by later lines, the next import rewrites
 *     the file. Lines that another import appends during this time are lost, and their logs are
 *     read again.
 */
#pragma once

#include "tools/import/import.h"

struct unchanged;

/* Begin to find and note logs; the file is read when it is needed. Return NULL if out of memory:
 * then no log is found or noted. An unreadable file is ignored. */
struct unchanged *unchanged_open(annal_store *store);

/*
 * State of a log. Take it before the log is read: unchanged_note() compares it with the state
 * afterwards.
 */
struct log_mark {
    char *path; /* absolute path; NULL: the log cannot be noted */
    uint64_t size, inode, hash;
    int64_t mtime_ns, ctime_ns;
};
void unchanged_mark_take(const char *path, struct log_mark *out_mark);
void unchanged_mark_done(struct log_mark *mark);

/*
 * Return whether the log is unchanged since its last import. If it is, *out_report is set to the
 * result of that import with events 0, and *inout_importer, whose kind may be NULL, to the importer
 * that read it.
 */
bool unchanged_find(struct unchanged *unchanged, const struct log_mark *mark,
                    const struct import_options *options, struct importer *inout_importer,
                    struct import_report *out_report);

/* Record that the log was imported completely, in the state `mark`, with this result. */
void unchanged_note(struct unchanged *unchanged, const struct log_mark *mark,
                    const struct import_options *options, const struct importer *importer,
                    const struct import_report *report);

/* Write the notes that are not written yet. unchanged may be NULL. */
void unchanged_write(struct unchanged *unchanged);

/* Free the content of the file; the next unchanged_find() reads it again. unchanged may be NULL. */
void unchanged_forget(struct unchanged *unchanged);

/* Write the notes and free unchanged, which may be NULL. */
void unchanged_close(struct unchanged *unchanged);
