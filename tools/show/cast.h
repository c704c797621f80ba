/* SPDX-License-Identifier: Apache-2.0 */
/* Records a terminal for asciinema (asciicast, version 2). */
#pragma once

#include "tools/cli/target.h"

#include "journal/base/buf.h"

#include <annal/base.h>

enum { CAST_COLUMNS = 100, CAST_ROWS = 30 };

struct cast {
    struct target target;
    struct buf text; /* output that is not in the recording yet */
    double seconds;  /* time in the recording, in s since its beginning */
    bool open;
};

/* Record stdout in the file from now on. Returns 0 or an exit status. */
int cast_begin(struct cast *cast, const char *path, annal_slice title);

/* Write the output since the last call to the recording; then advance its time. */
void cast_pass(struct cast *cast, double seconds);

/* End the recording. whole: keep it, under its final name. Returns 0 or an exit status. */
int cast_end(struct cast *cast, bool whole);
