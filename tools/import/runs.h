/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs: logs that are a directory of JSON files and not a file of lines. A run is converted to the
 * lines that its importer (lionagi.sql) describes, in a temporary file, and then imported.
 */
#ifndef TOOLS_IMPORT_RUNS_H
#define TOOLS_IMPORT_RUNS_H

#include "tools/import/importers.h"

#include <stdio.h>

/* Return whether this importer reads runs: the importer lionagi does. */
bool runs_is_importer(const struct importer *importer);

/* Return whether path is the directory of a run: it contains run.json. */
bool run_is_here(const char *path);

/*
 * Write the lines of a run. path is its directory, or one branch file, "x.json". ANNAL_END: a file
 * is not JSON, with only_whole.
 */
annal_status run_write_lines(const char *path, bool only_whole, FILE *lines, annal_error *err);

#endif
