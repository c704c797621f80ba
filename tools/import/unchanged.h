/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Find logs that did not change since they were imported.
 *
 * (1) STORE/imports.jsonl has a line for each, the last of several for one log: its path, its size
 *     and times, a hash of its beginning and its end, the importer with its options, the result,
 *     and the sessions that received events from it. The file may be deleted at any moment: then
 *     every log is read again.
 * (2) A log is unchanged if all of that is the same, and its sessions still have the events: the
 *     same journals, at least as long. So a session that was deleted is imported again.
 * (3) This does not prove that no byte in the middle changed, only that the file system recorded no
 *     write. --recheck reads everything.
 * (4) An incomplete import is not noted: a damaged log, a log with an unfinished last line, a log
 *     that was written while it was read or less than RECENT_US before.
 * (5) New lines are appended. When most lines are replaced by later ones, the next import rewrites
 *     the file; lines that another import appends at that moment are lost, and its logs are
 *     read again.
 */
#ifndef TOOLS_IMPORT_UNCHANGED_H
#define TOOLS_IMPORT_UNCHANGED_H

#include "tools/import/import.h"

struct unchanged;

/* Begin; the file is read when it is needed. NULL without memory: then nothing is noted or found.
 * An unreadable file is ignored. */
struct unchanged *unchanged_open(annal_store *store);

/*
 * The current state of a log, whose importer may not be known yet. Read it before the log:
 * unchanged_note() compares the log with it afterwards.
 */
struct log_mark {
    char *path; /* absolute; NULL: the log cannot be noted */
    uint64_t size, inode, hash;
    int64_t mtime_ns, ctime_ns;
};
void unchanged_mark_take(const char *path, struct log_mark *out_mark);
void unchanged_mark_done(struct log_mark *mark);

/*
 * Return whether the log is unchanged since its last import. If so, *out_report is set to the
 * result of that import, with 0 events appended now, and *inout_importer, whose kind may be unset,
 * to the importer that read it.
 */
bool unchanged_find(struct unchanged *unchanged, const struct log_mark *mark,
                    const struct import_options *options, struct importer *inout_importer,
                    struct import_report *out_report);

/* Note that the log was imported completely. */
void unchanged_note(struct unchanged *unchanged, const struct log_mark *mark,
                    const struct import_options *options, const struct importer *importer,
                    const struct import_report *report);

/* Write the notes so far. Accepts NULL. */
void unchanged_write(struct unchanged *unchanged);

/* Free what was read of the file; the next unchanged_find() reads it again. Accepts NULL. */
void unchanged_forget(struct unchanged *unchanged);

/* Write the notes, and close. Accepts NULL. */
void unchanged_close(struct unchanged *unchanged);

#endif
