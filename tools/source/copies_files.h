/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log that is a directory, as a text (copies_text.h): the head is {"annal_files":1}; the key of a
 * piece is the name of a file below the directory, as a JSON string, and its content is
 * {"mode":N,"mtime_ns":N,"text":…}, or "base64" if the file is not UTF-8.
 */
#pragma once

#include "tools/source/copies_text.h"

#define COPIES_FILE_MAX ((size_t)256 << 20) /* bytes of a file */

annal_status copies_files_head(struct copies_text *text, annal_error *err);

/* Add a file; path ends with its name. ANNAL_END: it is being written. A missing file is left
 * out. */
annal_status copies_files_add(struct copies_text *text, const char *path, const char *name,
                              annal_error *err);

/*
 * Write the files below a directory, which exists; nothing outside of it is written. Unless force,
 * ANNAL_ERR_CONFLICT if a file with another size or time exists: then nothing was written.
 */
annal_status copies_files_restore(FILE *text, const char *root, bool force, uint64_t *out_files,
                                  annal_error *err);
