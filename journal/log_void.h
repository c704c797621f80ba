/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit/<nn>.void: groups of a commit log that never happened (commit-log rule 11).
 *
 * After a sync of the log failed, its last group may be on the disk or not, and nothing that is
 * written into that log later can tell. Therefore a void file beside the log names the first group
 * to ignore. Once the void file is durable, the events of that group and of later groups are
 * certainly refused.
 *
 *    0  8  "ANNALVOI"
 *    8  4  version, 1      12  4  zero
 *   16 16  slot id of the log
 *   32  8  the first group that never happened
 *   40  8  XXH3-64 of the 40 bytes before
 *
 * (1) It is written under a temporary name, renamed, and never changed.
 * (2) It applies only to the log with this slot id. Beside another log it is ignored, and may be
 *     removed.
 * (3) A log with a void file is not written any more. The groups before the first ignored group are
 *     redone as usual; then the log is removed, durably, and only then the void file.
 */
#pragma once

#include "journal/log.h"

#define VOID_NOTHING UINT64_MAX

/* Write the void file of a log: this group, and all later groups, are ignored. On success the file
 * is durable. */
annal_status annal__log_void_write(const struct log *log, uint64_t group, annal_error *err);

/* Find the first group that the void file says to ignore; VOID_NOTHING if the log has no void
 * file. */
annal_status annal__log_void_read(const struct log *log, uint64_t *out_group, annal_error *err);

/* Like annal__log_find_groups(), but without the groups that the void file says to ignore.
 * *out_void: whether the log has a void file. */
annal_status annal__log_void_find_groups(struct log *log, struct log_group **out_groups,
                                         size_t *out_count, bool *out_void, annal_error *err);

/* Remove the void file of this log, if it exists. */
void annal__log_void_remove(const struct log *log);
