/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the time of a log whose lines have no times: the date in its name (2026-03-02, or with a
 * time, 2026-03-02T09-14-06, in UTC), else the time of the last modification.
 */
#pragma once

#include "journal/base/buf.h"

#include <stdint.h>

/* Return the time in us; 0 if it is unknown. *out_from says where the time was found, as text for
 * the member "time" of an event. */
int64_t file_time_us(const char *path, const char **out_from);

/*
 * Append to `bytes` a copy of the data with a member "time", which says where the timestamp was
 * found. Data that is not an object is not changed.
 */
void file_time_say(struct buf *bytes, const char *from, size_t *inout_at, size_t *inout_len);

/* Append to `bytes` a copy of the data with the host and the path of the log. */
void file_time_say_source(struct buf *bytes, const char *path, size_t *inout_at, size_t *inout_len);
