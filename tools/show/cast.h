/* SPDX-License-Identifier: Apache-2.0 */
/* A recording of a terminal that asciinema plays: asciicast, version 2. */
#ifndef TOOLS_SHOW_CAST_H
#define TOOLS_SHOW_CAST_H

#include "tools/cli/target.h"

#include "journal/base/buf.h"

#include <annal/base.h>

enum { CAST_COLUMNS = 100, CAST_ROWS = 30 };

struct cast {
    struct target target;
    struct buf text; /* output since the last piece */
    double seconds;  /* since the beginning */
    bool open;
};

/* Record stdout in the file from now on. 0, or an exit status. */
int cast_begin(struct cast *cast, const char *path, annal_slice title);

/* Write the output since the last piece; then advance the recording by this time. */
void cast_pass(struct cast *cast, double seconds);

/* End the recording. whole: rename the file to its name. 0, or an exit status. */
int cast_end(struct cast *cast, bool whole);

#endif
