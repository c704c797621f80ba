/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs that are a directory of JSON files. The importer's directive names the files:
 *
 *   -- directory: base_state.json events/event-*.json
 *
 * A directory is a log if a file in it matches one of the patterns. Each file that matches becomes
 * a line, {"file":"events/event-00001-….json","value":…}, in the order of the patterns, then by
 * name. A file that is not JSON, or too large for an event, has null as value, and its text follows
 * in separate lines.
 */
#ifndef TOOLS_IMPORT_DIRECTORY_H
#define TOOLS_IMPORT_DIRECTORY_H

#include "tools/import/importers.h"

#include <stdio.h>

bool directory_is_log(const struct importer *importer, const char *path);

/* Write the lines of a directory. ANNAL_END: a file is not JSON, with only_whole. */
annal_status directory_write_lines(const struct importer *importer, const char *path,
                                   bool only_whole, FILE *lines, annal_error *err);

/* ---- One file of a directory ---- */

/*
 * Write a line of head, the file's value and "}". A file that is not JSON, or too large, is written
 * as above. Nothing is written for a missing file; out_there, which may be NULL, says whether it
 * exists. ANNAL_END: nothing was written, because the file is not JSON, with only_whole.
 */
annal_status directory_write_file(const char *path, annal_slice head, bool only_whole, FILE *lines,
                                  bool *out_there, annal_error *err);

#endif
