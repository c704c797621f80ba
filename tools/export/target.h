/*
 * Where an export goes: stdout, or a file that takes its name when it is whole. Meanwhile what is
 * printed on stdout goes to FILE.partial-PID beside it. What is there and is no file, such as a
 * pipe, is written to as it is.
 */
#ifndef TOOLS_EXPORT_TARGET_H
#define TOOLS_EXPORT_TARGET_H

#include "journal/base/buf.h"

struct export_target {
    const char *path; /* NULL: stdout */
    struct buf aside; /* empty: path is written to as it is */
    int saved_stdout; /* -1: nothing was redirected */
};

/* 0, or an exit status after one line on stderr. */
int export_target_begin(struct export_target *target, const char *path);

/* stdout is itself again. whole: the file is synced and takes its name; else it is removed. */
int export_target_end(struct export_target *target, bool whole);

#endif
