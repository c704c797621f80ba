/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the progress of long work on stderr, in one line: only on a terminal, only after a moment,
 * redrawn at most ten times a second, and removed when the work is done.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what; /* name of the work, such as "verify" */
    uint64_t total;   /* size of the work in bytes; 0 if it is unknown, and then no bar is drawn */
    bool on_terminal;
    bool drawn;
    int64_t begun_us;
    int64_t drawn_us;
};

void progress_begin(struct progress *progress, const char *what, uint64_t total);

/* Show that `done` of total is done. detail names the current item; may be NULL. */
void progress_set(struct progress *progress, uint64_t done, const char *detail);

/* Remove the line, so that other output can be printed; the next progress_set() draws it again. */
void progress_hide(struct progress *progress);
