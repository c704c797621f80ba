/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Import a log in memory: its events, as text to compare.
 */
#pragma once

#include "journal/base/buf.h"

#include <annal/import.h>

struct imported {
    struct buf text; /* "session TAB ts TAB type TAB id TAB data" and a line break for each event */
    struct imported_event {
        uint64_t line;
        size_t text; /* where it begins in text */
        size_t data; /* where its data begins */
        int64_t ts_us;
        char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
        char type[ANNAL_TYPE_BYTES_MAX + 1];
    } * events;
    size_t count;
    size_t lines;
    annal_import_counts counts;
};

/*
 * Import the first most_lines (0: all) lines of bytes as file name of that kind, batch lines at
 * once. A failure fails the test.
 */
void import_log(const char *kind, const char *name, annal_slice bytes, size_t batch,
                size_t most_lines, struct imported *out);
void imported_done(struct imported *imported);

/* Copy the data of an event, up to its line break, with a NUL at the end; free() it. */
char *imported_data(const struct imported *imported, size_t i);

/* Count the events of a type, in a session or, with NULL, in all sessions. */
size_t imported_count(const struct imported *imported, const char *session, const char *type);

/* Find the n-th event of a type, n from 0; fails the test if it is missing. */
size_t imported_find(const struct imported *imported, const char *type, size_t n);

/* Call fn with every log of a kind in tests/data or, if real, in the folder of real_logs(). */
typedef void (*log_fn)(const char *kind, const char *path, annal_slice bytes);
void for_each_log(const char *kind, bool real, log_fn fn);
