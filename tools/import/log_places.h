/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists paths with logs, each with its importer: paths that the user names, or the places where
 * the agents of this machine store their logs. An importer names these places: "-- places:
 * PLACE..."
 *
 *   ~/NAME     below the home directory
 *   $VAR/NAME  below the directory in an environment variable; ignored if it is not set
 *   ./NAME     in the root of the git repository in which the command runs, else in the directory
 *              in which it runs
 *
 * NAME may contain the wildcards of a shell.
 */
#pragma once

#include "tools/import/importers.h"

#include <stddef.h>
#include <sys/types.h>

struct log_places {
    struct log_place {
        /* importer of the logs at the place; if its kind is NULL, it is detected for each log */
        struct importer importer;
        char *path;
        bool is_found; /* whether the place was found, not named by the user */
        dev_t device;  /* device and inode of a place that was found */
        ino_t inode;
    } * all;
    size_t count;
};

/* Add a path that the user named. */
void log_places_add(struct log_places *places, const struct importer *importer, const char *path);

/*
 * Add the existing places of all importers that are not listed yet. all_users: search the home
 * directories of all users.
 */
void log_places_find(struct log_places *places, bool all_users);

/* Call fn once for each environment variable that a place begins with and that is set. */
typedef void (*log_variable_fn)(void *arg, const char *name, const char *value);
void log_places_variables(log_variable_fn fn, void *arg);

void log_places_done(struct log_places *places);
