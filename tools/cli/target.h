/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output file of a command line.
 *
 * (1) It is written aside, as FILE.partial-<random>, synced, and renamed when it is whole: a reader
 *     that opens FILE sees the old one or the new one.
 * (2) It has the permissions of the file that it replaces; a new one those of the umask.
 * (3) A symbolic link stays, and the file that it leads to is replaced.
 * (4) A run that fails, or is ended by SIGINT, SIGTERM, SIGHUP or SIGQUIT, removes what it began;
 *     one that is killed by SIGKILL leaves FILE.partial-…. Only one file at a time is written in
 *     this way.
 * (5) If there is something that is not a file, such as a pipe, it may be written to as it is.
 * (6) A file that the caller has open, as /proc/self/fd/N, is written by that path as it is;
 *     *out_fd stays, and the caller syncs it.
 */
#ifndef TOOLS_CLI_TARGET_H
#define TOOLS_CLI_TARGET_H

#include <stdbool.h>

struct aside {
    char *path;      /* where the file goes: absolute, and not a symbolic link */
    char *name;      /* where it is written; NULL: there is nothing */
    char *directory; /* of both; NULL: rule 6 */
};

/*
 * Create the file that is written, empty, and set *out_fd; 0, or an exit status after one sentence.
 */
int aside_begin(struct aside *aside, const char *path, int *out_fd);

/*
 * Everything is written: sync it, and put it in its place. 0, or an exit status after one sentence.
 */
int aside_finish(struct aside *aside);

/* Remove what is not in its place; aside may be empty. */
void aside_done(struct aside *aside);

/* ---- What is printed, into a file ---- */

struct target {
    const char *path; /* NULL: stdout */
    struct aside aside;
    int saved_stdout; /* -1: nothing was redirected */
};

/* From now on stdout is that file; path NULL: it is unchanged. 0, or an exit status after one
 * sentence. */
int target_begin(struct target *target, const char *path);

/* stdout is itself again. whole: the file gets its name; else it is removed. */
int target_end(struct target *target, bool whole);

#endif
