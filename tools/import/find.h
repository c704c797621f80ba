/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the logs at a path: the path itself, or the files below it, chosen by their names. */
#pragma once

#include "tools/cli/places.h"
#include "tools/import/importers.h"

#include <stddef.h>
#include <sys/types.h>

/* the logs that were found, sorted by path */
struct logs {
    struct log {
        char *path;
        uint64_t bytes;
        /* whether the user named the log; else it was found below a directory */
        bool named;
        struct importer importer; /* importer of the place where the log was found */
    } * all;
    size_t count;
    uint64_t bytes;
    /* importer of the place that is being searched; if its kind is NULL, the importer of each log
     * is detected */
    const struct importer *importer;
    const char *store; /* directory to skip, or NULL */
    bool quiet;        /* whether to leave out unreadable files without a message */
    /* whether to ignore files that do not have the name of a log */
    bool ignores_others;
    /* number of files, directories and links that could not be read */
    uint64_t left_out;

    uint64_t others; /* number of files that do not have the name of a log */
    char *other;     /* path of the first file counted in `others` */

    /* called for every directory that was read; may be NULL */
    void (*looked)(void *arg, const char *path);
    void *arg;

    struct found {
        dev_t device;
        ino_t inode;
    } * found; /* device and inode of everything that was found */
    size_t found_count;
    struct places places; /* hash table of the entries of `found` */
    char **links;         /* links below a directory that are not followed yet */
    size_t link_count;
};

/*
 * Add the logs at a path. If it is a directory, and not a log itself, add the logs below it, by
 * their names. Links below it are followed last, and add only files that were not found without
 * links. What cannot be read is reported and counted. Return EXIT_DONE, or EXIT_REFUSED if
 * something was left out.
 */
int find_logs(struct logs *logs, const char *path);

/* Add the logs at a path that was found below a directory: a file must have the name of a log. */
int find_logs_below(struct logs *logs, const char *path);

/* After the last path, free the members that only the search needs. */
void find_logs_all(struct logs *logs);

void find_logs_done(struct logs *logs);
