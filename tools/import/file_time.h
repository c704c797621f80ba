/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of a log in which no line says one: the date in its name (2026-03-02, also with a time:
 * 2026-03-02T09-14-06, as UTC), else when it was last modified.
 */
#ifndef TOOLS_IMPORT_FILE_TIME_H
#define TOOLS_IMPORT_FILE_TIME_H

#include "journal/base/buf.h"

#include <stdint.h>

/* *out_from says where it is from, for "time" in an event's data. 0: there is none. */
int64_t file_time_us(const char *path, const char **out_from);

/*
 * Say under "time" where the time of an event is from. Its data is in bytes; with the new member it
 * is at their end. What is no object stays as it is.
 */
annal_status say_time(struct buf *bytes, const char *from, size_t *inout_at, size_t *inout_len);

/* Add to an event's data which host and file it was imported from. */
annal_status say_source(struct buf *bytes, const char *path, size_t *inout_at, size_t *inout_len);

#endif
