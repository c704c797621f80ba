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
    struct buf text; /* printed since the last piece */
    double seconds;  /* since the beginning */
    bool open;
};

/* From now on stdout is recorded in the file. 0, or an exit status. */
int cast_begin(struct cast *cast, const char *path, annal_slice title);

/* What was printed since the last piece appears now; then so much time passes. */
void cast_pass(struct cast *cast, double seconds);

/* whole: the file gets its name. 0, or an exit status. */
int cast_end(struct cast *cast, bool whole);

#endif
