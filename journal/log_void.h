/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit/<nn>.void: groups of a commit log that never happened (commit-log rule 11).
 *
 * After a sync of the log failed, its last group may be on the disk or not, and nothing that is
 * written into that log later can tell. So a file beside it does: from this group on, the content
 * of the log is to be ignored. Once this file is durable the answer to those events is "refused",
 * whatever happens next.
 *
 *    0  8  "ANNALVOI"
 *    8  4  version, 1      12  4  zero
 *   16 16  slot id of the log
 *   32  8  the first group that never happened
 *   40  8  XXH3-64 of the 40 bytes before
 *
 * (1) It is written whole, under another name first, and never changed.
 * (2) It is about the log with this slot id only. Beside another log it means nothing, and may be
 *     removed.
 * (3) A log with a void is not written any more. Its groups before the void are redone as usual;
 *     then the log is removed, durably, and only then the void.
 */
#ifndef JOURNAL_LOG_VOID_H
#define JOURNAL_LOG_VOID_H

#include "journal/log.h"

#define VOID_NOTHING UINT64_MAX

/* Make durable that this group of the log, and all after it, never happened. */
annal_status annal__log_void_write(const struct log *log, uint64_t group, annal_error *err);

/* The first group that never happened; VOID_NOTHING if this log has no void. */
annal_status annal__log_void_read(const struct log *log, uint64_t *out_group, annal_error *err);

/* Like annal__log_find_groups(), but leaves out the groups that never happened. *out_void: the log
 * has a void. */
annal_status annal__log_void_find_groups(struct log *log, struct log_group **out_groups,
                                         size_t *out_count, bool *out_void, annal_error *err);

/* Remove the void beside this log, if there is one. */
void annal__log_void_remove(const struct log *log);

#endif
