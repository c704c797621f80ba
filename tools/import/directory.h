/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads logs that are a directory of JSON files. The importer names the files in a directive:
 *
 *   -- directory: base_state.json events/event-*.json
 *
 * A directory is a log if a file in it matches one of the patterns. Each matching file becomes the
 * line {"file":"events/event-00001-….json","value":…}, in the order of the patterns, then by name.
 * For a file that is not JSON, the value is null and the text of the file follows in separate
 * lines. A file that is too large for an event becomes one line, unchecked.
 */
#pragma once

#include "tools/import/importers.h"

#include <stdio.h>
#include <sys/stat.h>

/*
 * Call fn for the files of a directory that match the patterns of a directive, until it returns
 * another status than ANNAL_OK. name is the part of the path below the directory.
 */
typedef annal_status (*directory_fn)(void *arg, const char *path, const char *name,
                                     const struct stat *st, annal_error *err);
annal_status directory_each_file(const struct importer *importer, const char *directive,
                                 const char *path, directory_fn fn, void *arg, annal_error *err);

bool directory_is_log(const struct importer *importer, const char *path);

/* Write the files of a directory as lines. With only_whole, ANNAL_END means that a file is not JSON
 * yet. */
annal_status directory_write_lines(const struct importer *importer, const char *path,
                                   bool only_whole, FILE *lines, annal_error *err);

/* ---- One file of a directory ---- */

/*
 * Write head, the value of a file, and "}" as one line. A file that is not JSON or too large is
 * written as described at the top. For a missing file, nothing is written. *out_there says whether
 * the file exists; out_there may be NULL. With only_whole, ANNAL_END means that nothing was written
 * because the file is not JSON yet.
 */
annal_status directory_write_file(const char *path, annal_slice head, bool only_whole, FILE *lines,
                                  bool *out_there, annal_error *err);
