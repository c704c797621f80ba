/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads runs: logs of lionagi, which are a directory of JSON files. The files are converted to
 * lines of a temporary file, as lionagi.sql reads them.
 */
#ifndef TOOLS_IMPORT_RUNS_H
#define TOOLS_IMPORT_RUNS_H

#include "tools/import/importers.h"

#include <stdio.h>

/* Return whether the importer reads runs (only lionagi does). */
bool runs_is_importer(const struct importer *importer);

/* Return whether path is the directory of a run: it contains run.json. */
bool run_is_here(const char *path);

/*
 * Write a run as lines. path is its directory, or a file of a branch, x.json. With only_whole,
 * ANNAL_END means that a file is not JSON yet.
 */
annal_status run_write_lines(const char *path, bool only_whole, FILE *lines, annal_error *err);

#endif
