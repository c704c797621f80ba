/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary files and directories, in $TMPDIR, or in /tmp if it is not set. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Open a file without a name, which exists until it is closed, for reading and writing. directory:
 * where it takes space; NULL: as above. Return -1 or NULL, and set errno, on failure.
 */
int temporary_file(const char *directory);
FILE *temporary_stream(const char *directory);

/* Create a directory annal-WHAT-XXXXXX, which the caller removes, and write its path. Return false
 * and set errno on failure. */
bool temporary_directory(const char *what, char path[PATH_MAX]);

/* Remove the directory and its files, and no directories in it. */
void temporary_directory_remove(const char *path);
