/*
 * Runs: logs that are a directory of JSON files and not a file of lines. A run becomes the lines
 * that its importer (lionagi.sql) says, in a temporary file, and is imported as such.
 */
#ifndef TOOLS_IMPORT_RUNS_H
#define TOOLS_IMPORT_RUNS_H

#include "tools/import/import.h"

/* Whether this importer reads runs: that of lionagi. */
bool importer_is_of_runs(const struct importer *importer);

/* Whether path is the directory of a run: run.json stands in it. */
bool run_is_here(const char *path);

/* As import_file(). path is the directory of a run, or one branch file, "x.json". */
annal_status import_run(annal_store *store, const struct importer *importer, const char *path,
                        const struct import_options *options, struct import_report *report,
                        annal_error *err);

#endif
