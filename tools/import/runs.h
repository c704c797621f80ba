/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads runs, the logs of lionagi. A run is a directory with run.json and one JSON file for each
 * branch (conversation). The files are converted to lines of a temporary file, the form that
 * lionagi.sql reads.
 */
#pragma once

#include "tools/import/importers.h"

#include <stdio.h>

/* Return whether the importer reads runs (only lionagi does). */
bool runs_is_importer(const struct importer *importer);

/* Return whether path is the directory of a run: it contains run.json. */
bool run_is_here(const char *path);

/*
 * Write the JSON files of a run as lines. path is the directory of the run, or one file of its
 * branches/, with a name that ends with .json. With only_whole, return ANNAL_END if a file is not
 * complete JSON yet.
 */
annal_status run_write_lines(const char *path, bool only_whole, FILE *lines, annal_error *err);
