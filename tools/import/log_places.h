/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths with logs, each with its importer: paths that the user names, or the places where the
 * agents of this machine keep their logs. An importer lists them: "-- places: PLACE..."
 *
 *   ~/NAME     below the home directory
 *   $VAR/NAME  below the directory in an environment variable; ignored if it is not set
 *
 * NAME may have the wildcards of a shell.
 */
#ifndef TOOLS_IMPORT_LOG_PLACES_H
#define TOOLS_IMPORT_LOG_PLACES_H

#include "tools/import/importers.h"

#include <stddef.h>
#include <sys/types.h>

struct log_places {
    struct log_place {
        struct importer importer; /* kind NULL: detected for each log */
        char *path;
        bool is_found; /* found, not named by the user */
        dev_t device;  /* device and inode of a found place */
        ino_t inode;
    } * all;
    size_t count;
};

/* Add a path that the user names. false: out of memory. */
bool log_places_add(struct log_places *places, const struct importer *importer, const char *path);

/*
 * Add the places of all importers that exist and are new. all_users: in the home directory of every
 * user, too. false: out of memory.
 */
bool log_places_find(struct log_places *places, bool all_users);

/* Call fn for each environment variable that a place names and that is set, once for each. */
typedef void (*log_variable_fn)(void *arg, const char *name, const char *value);
void log_places_variables(log_variable_fn fn, void *arg);

void log_places_done(struct log_places *places);

#endif
