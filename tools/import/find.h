/* SPDX-License-Identifier: Apache-2.0 */
/* The logs at a path: the path itself, or those below it by their names. */
#ifndef TOOLS_IMPORT_FIND_H
#define TOOLS_IMPORT_FIND_H

#include "tools/import/importers.h"
#include "tools/import/places.h"

#include <stddef.h>
#include <sys/types.h>

/* The logs that were found, sorted by path. */
struct logs {
    struct log {
        char *path;
        uint64_t bytes;
        bool named; /* by the user, and not found below a directory */
    } * all;
    size_t count;
    uint64_t bytes;
    const struct importer *importer; /* kind NULL: each log says itself which */
    const char *store;               /* a directory that is skipped; may be NULL */
    bool quiet;                      /* what cannot be read is left out without a word */
    uint64_t left_out;               /* files, directories and links that could not be read */

    uint64_t others; /* files that are no logs by their names, and */
    char *other;     /* the first of them */

    /* Called for every directory that was looked into; may be NULL. */
    void (*looked)(void *arg, const char *path);
    void *arg;

    struct found {
        dev_t device;
        ino_t inode;
    } * found; /* what was looked at */
    size_t found_count;
    struct places places; /* of found */
    char **links;         /* that were found below a directory, to be followed */
    size_t link_count;
};

/*
 * Add those at path. For a directory that is not a log itself, add those below it, by their names.
 * A link below it is followed once all that is not behind a link was found, and only to what was
 * not found before. What cannot be read is named and counted, and the rest is found. An exit
 * status: EXIT_REFUSED if something was left out.
 */
int find_logs(struct logs *logs, const char *path);

/* All paths were looked at: free what only finding needs. */
void logs_found_all(struct logs *logs);

void logs_done(struct logs *logs);

#endif
