/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "tools/source/copies_file.h"

/*
 * Pass the bytes of the log that the file contains up to its last mark to sink. directory is the
 * descriptor of STORE/sources. deep is the maximum number of older generations to unpack.
 * ANNAL_ERR_CORRUPT: the file, or an older generation that it needs, is damaged. ANNAL_END: only
 * records after the last mark are damaged.
 */
annal_status copies_read_file(int directory, const char *name, unsigned deep, copies_sink sink,
                              void *arg, annal_error *err);

/* Unpack the bytes of the log up to the last mark into an unnamed temporary file. Return its
 * descriptor, or -1 after a failure. */
int copies_read_unpack(int directory, const char *name, unsigned deep, annal_error *err);

/* Write the file name of an older generation of the log whose newest generation is `name`. */
void copies_read_name(const char *name, uint64_t generation, char out[SOURCES_NAME_BYTES]);
