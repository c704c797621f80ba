/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output file of a command line.
 *
 * (1) It is written as FILE.partial-<random>, synced, and renamed when it is complete: a reader
 *     that opens FILE sees the old file or the new file.
 * (2) It has the permissions of the file that it replaces; a new file has those that the umask
 *     gives.
 * (3) A symbolic link remains, and the file to which it points is replaced.
 * (4) A run that fails, or is ended by SIGINT, SIGTERM, SIGHUP or SIGQUIT, removes its partial
 *     file; a run that is killed by SIGKILL leaves FILE.partial-…. Only one file at a time is
 *     written in this way.
 * (5) If the path is not a regular file, such as a pipe, it may be written to directly.
 * (6) A file that the caller has open, as /proc/self/fd/N, is written directly through that path;
 *     *out_fd is unchanged, and the caller syncs the file.
 */
#pragma once

#include <stdbool.h>

struct aside {
    char *path;      /* final path: absolute, and not a symbolic link */
    char *name;      /* path of the partial file; NULL if none exists */
    char *directory; /* directory of path and name; NULL if path is written directly (rule 6) */
};

/* Create an empty partial file, and set *out_fd to its descriptor. Returns 0, or an exit status
 * after one line on stderr. */
int target_aside_begin(struct aside *aside, const char *path, int *out_fd);

/* Sync the complete partial file, and rename it. Returns 0, or an exit status after one line on
 * stderr. */
int target_aside_finish(struct aside *aside);

/* Remove the partial file if it was not renamed, and free the members; aside may be empty. */
void target_aside_done(struct aside *aside);

/* Make the directories above a file, with mode 0700. Return false, with errno, on failure. */
bool target_make_parents(char *path);

/* Remove the partial file that this process is writing, if any, because the process ends. */
void target_remove_unfinished(void);

/* ---- Redirected output ---- */

struct target {
    const char *path; /* path of the file; NULL for stdout */
    struct aside aside;
    int saved_stdout; /* descriptor of the original stdout; -1 if it is not redirected */
};

/* Redirect stdout to the file; if path is NULL, do nothing. Returns 0, or an exit status after one
 * line on stderr. */
int target_begin(struct target *target, const char *path);

/* Restore stdout, and rename the file if whole is set, else remove it. Returns 0 or an exit
 * status. */
int target_end(struct target *target, bool whole);
