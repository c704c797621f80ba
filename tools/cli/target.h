/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output file of a command line.
 *
 * (1) It is written as FILE.partial-<random>, synced, and renamed when it is complete: a reader
 *     that opens FILE sees the old file or the new file.
 * (2) It has the permissions of the file that it replaces; a new file has those of the umask.
 * (3) A symbolic link stays, and the file that it leads to is replaced.
 * (4) A run that fails, or is ended by SIGINT, SIGTERM, SIGHUP or SIGQUIT, removes its partial
 *     file; a run that is killed by SIGKILL leaves FILE.partial-…. Only one file at a time is
 *     written in this way.
 * (5) If the path is not a regular file, such as a pipe, it may be written to directly.
 * (6) A file that the caller has open, as /proc/self/fd/N, is written directly through that path;
 *     *out_fd stays, and the caller syncs it.
 */
#ifndef TOOLS_CLI_TARGET_H
#define TOOLS_CLI_TARGET_H

#include <stdbool.h>

struct aside {
    char *path;      /* final path: absolute, and not a symbolic link */
    char *name;      /* path of the partial file; NULL: none exists */
    char *directory; /* directory of both; NULL: rule 6 */
};

/* Create the partial file, empty, and set *out_fd; 0, or an exit status after one sentence. */
int target_aside_begin(struct aside *aside, const char *path, int *out_fd);

/* Sync the complete file, and rename it. 0, or an exit status after one sentence. */
int target_aside_finish(struct aside *aside);

/* Remove the partial file if it was not renamed; aside may be empty. */
void target_aside_done(struct aside *aside);

/* ---- Redirected output ---- */

struct target {
    const char *path; /* NULL: stdout */
    struct aside aside;
    int saved_stdout; /* -1: not redirected */
};

/* Redirect stdout to that file; path NULL: leave it unchanged. 0, or an exit status after one
 * sentence. */
int target_begin(struct target *target, const char *path);

/* Restore stdout. whole: rename the file; else remove it. */
int target_end(struct target *target, bool whole);

#endif
