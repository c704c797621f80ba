/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads logs that are a zip archive. The importer names the files in a directive:
 *
 *   -- archive: header.json sample-*.json
 *
 * Each file whose name matches becomes the line {"file":"sample-1.json","value":…}, in the order of
 * the patterns, then of the archive. Values are copied unchecked, with spaces for line breaks: a
 * file that is not JSON becomes an unreadable line.
 */
#pragma once

#include "tools/import/importers.h"

#include <stdio.h>

/*
 * Write the files of an archive as lines, at most files_max; 0: all.
 *
 * ANNAL_ERR_CORRUPT      the archive is damaged or too large; the lines before that are written
 * ANNAL_ERR_UNSUPPORTED  libarchive is not installed
 */
annal_status archive_write_lines(const struct importer *importer, int fd, size_t files_max,
                                 FILE *lines, annal_error *err);
