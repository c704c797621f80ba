/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOLS_SOURCE_COPIES_READ_H
#define TOOLS_SOURCE_COPIES_READ_H

#include "tools/source/copies_file.h"

/*
 * Pass the marked bytes of a file to sink; directory: of the copies. ANNAL_ERR_CORRUPT: it is
 * damaged, or a generation that it needs. ANNAL_END: only the records after those bytes are.
 */
annal_status copies_read_file(int directory, const char *name, unsigned deep, copies_sink sink,
                              void *arg, annal_error *err);

/* Unpack the marked bytes into a file without a name. -1: it failed. */
int copies_read_unpack(int directory, const char *name, unsigned deep, annal_error *err);

/* Write the name of an older generation of the same log. */
void copies_read_name(const char *name, uint64_t generation, char out[SOURCES_NAME_BYTES]);

#endif
