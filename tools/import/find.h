/* SPDX-License-Identifier: Apache-2.0 */
/* Find the logs at a path: the path itself, or files below it by their names. */
#ifndef TOOLS_IMPORT_FIND_H
#define TOOLS_IMPORT_FIND_H

#include "tools/import/importers.h"
#include "tools/import/places.h"

#include <stddef.h>
#include <sys/types.h>

/* The found logs, sorted by path. */
struct logs {
    struct log {
        char *path;
        uint64_t bytes;
        bool named;               /* named by the user, not found below a directory */
        struct importer importer; /* importer of its place */
    } * all;
    size_t count;
    uint64_t bytes;
    const struct importer *importer; /* kind NULL: detected for each log */
    const char *store;               /* directory to skip, or NULL */
    bool quiet;                      /* unreadable files are left out without a message */
    bool ignores_others;             /* files that are not logs by their names are not counted */
    uint64_t left_out;               /* files, directories and links that could not be read */

    uint64_t others; /* number of files that are not logs by their names */
    char *other;     /* name of the first of them */

    /* Callback for every directory that was read; may be NULL. */
    void (*looked)(void *arg, const char *path);
    void *arg;

    struct found {
        dev_t device;
        ino_t inode;
    } * found; /* all paths that were read */
    size_t found_count;
    struct places places; /* index of `found` */
    char **links;         /* links below a directory, still to be followed */
    size_t link_count;
};

/*
 * Add the logs at path. For a directory that is not a log itself, add the logs below it, by their
 * names. A link below it is followed after everything that needs no link was found, and adds only
 * what was not found before. Unreadable paths are reported and counted, and the others are added.
 * An exit status: EXIT_REFUSED if something was left out.
 */
int find_logs(struct logs *logs, const char *path);

/* The same for a path below a directory that was searched: a file needs the name of a log. */
int find_logs_below(struct logs *logs, const char *path);

/* Free the state that only finding needs, once all paths were read. */
void find_logs_all(struct logs *logs);

void find_logs_done(struct logs *logs);

#endif
