/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file that fits into memory. */
#pragma once

#include "journal/base/buf.h"

#include <stdbool.h>

/* Append the contents of a file, or the rest of an open one, of at most limit bytes. Return whether
 * that succeeded, with errno; EFBIG: it is longer. */
bool whole_file_read(const char *path, size_t limit, struct buf *out);
bool whole_file_read_fd(int fd, size_t limit, struct buf *out);
