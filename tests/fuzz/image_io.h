/* SPDX-License-Identifier: Apache-2.0 */
/* An I/O seam over one file in memory: enough for what reads a journal or a commit log. */
#pragma once

#include "journal/base/io.h"

struct image_io {
    struct io io; /* its arg is this struct: do not copy */
    annal_slice bytes;
};

/* Every path that is opened is this file; it cannot be written. */
void image_io_init(struct image_io *image, annal_slice bytes);
