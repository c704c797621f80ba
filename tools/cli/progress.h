/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Show on stderr how far long work is, in one line: only on a terminal, only after a moment,
 * redrawn at most ten times a second, and wiped when the work is done.
 */
#ifndef TOOLS_CLI_PROGRESS_H
#define TOOLS_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what; /* "verify" */
    uint64_t total;   /* in bytes; 0: unknown, no bar */
    bool on_terminal;
    bool drawn;
    int64_t begun_us;
    int64_t drawn_us;
};

void progress_begin(struct progress *progress, const char *what, uint64_t total);

/* Show done of total; detail (may be NULL) is the current item. */
void progress_set(struct progress *progress, uint64_t done, const char *detail);

/* Wipe the line, before other output; the next progress_set() draws it again. */
void progress_hide(struct progress *progress);

#endif
