/* SPDX-License-Identifier: Apache-2.0 */
/* The logs at a path: the path itself, or those below it by their names. */
#ifndef TOOLS_IMPORT_FIND_H
#define TOOLS_IMPORT_FIND_H

#include "tools/import/importers.h"

#include <stddef.h>
#include <sys/types.h>

/* The logs that were found, sorted by path. */
struct logs {
    struct log {
        char *path;
        uint64_t bytes;
    } * all;
    size_t count;
    uint64_t bytes;
    const struct importer *importer; /* kind NULL: each log says itself which */
    const char *store;               /* a directory that is skipped; may be NULL */
    bool quiet;                      /* what cannot be read is skipped */

    /* Called for every directory that was looked into; may be NULL. */
    void (*looked)(void *arg, const char *path);
    void *arg;
};

/*
 * Add those at path. For a directory that is not a log itself, add those below it, by their names;
 * links in it are not followed. An exit status: a log that cannot be read is refused here, before
 * anything is written.
 */
int find_logs(struct logs *logs, const char *path);

void logs_done(struct logs *logs);

#endif
