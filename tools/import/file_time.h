/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Find the time of a log without times in its lines: the date in its name (2026-03-02, or with a
 * time: 2026-03-02T09-14-06, in UTC), else the time of its last modification.
 */
#ifndef TOOLS_IMPORT_FILE_TIME_H
#define TOOLS_IMPORT_FILE_TIME_H

#include "journal/base/buf.h"

#include <stdint.h>

/* *out_from names the source, for "time" in an event's data. 0: no time is known. */
int64_t file_time_us(const char *path, const char **out_from);

/*
 * Append to `bytes` a copy of the data with a member "time" that names the source of the timestamp.
 * Data that is not an object is not changed.
 */
annal_status file_time_say(struct buf *bytes, const char *from, size_t *inout_at,
                           size_t *inout_len);

/* Add to an event's data the host and the file that it was imported from. */
annal_status file_time_say_source(struct buf *bytes, const char *path, size_t *inout_at,
                                  size_t *inout_len);

#endif
