/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/progress.h"

#include "journal/base/clock.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/visible.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_US = 300000, REDRAW_US = 100000, BAR_CELLS = 20, DETAIL_BYTES = 18 };

void progress_begin(struct progress *progress, const char *what, uint64_t total)
{
    const char *term = getenv("TERM");
    *progress =
        (struct progress){.what = what, .total = total, .begun_us = annal__clock_monotonic_us()};
    progress->on_terminal = isatty(STDERR_FILENO) && (term == NULL || strcmp(term, "dumb") != 0);
}

/* Write the beginning of a name, which may be the name of a file, as far as there is room, to out,
 * and return it. */
static const char *short_name(struct buf *out, const char *name)
{
    size_t len = 0;
    if (name == NULL || visible_append(out, annal_slice_of(name)) < 0)
        return "";
    for (len = out->len; len > DETAIL_BYTES || (len < out->len && (out->ptr[len] & 0xc0) == 0x80);)
        len--;
    out->len = len;
    return must_cstr(out);
}

static void draw(const struct progress *progress, uint64_t done, const char *detail)
{
    char bar[BAR_CELLS + 1] = "";
    char text[HUMAN_BYTES];
    SCOPED_BUF name = {0};
    detail = short_name(&name, detail);
    out_control(stderr, CLEAR_LINE);
    if (progress->total > 0) {
        uint64_t part = done < progress->total ? done : progress->total;
        double share = (double)part / (double)progress->total;
        size_t full = (size_t)(share * BAR_CELLS);
        memset(bar, '#', full);
        memset(bar + full, '.', BAR_CELLS - full);
        bar[BAR_CELLS] = '\0';
        char total[HUMAN_BYTES], left[30] = "";
        int64_t took_us = annal__clock_monotonic_us() - progress->begun_us;
        if (share > 0.01 && share < 1)
            snprintf(left, sizeof left, "%.0f s left ",
                     (double)took_us / 1000000 * (1 - share) / share);
        fprintf(stderr, "%s [%s] %s of %s %s%s", progress->what, bar, human_bytes(text, part),
                human_bytes(total, progress->total), left, detail);
    } else {
        fprintf(stderr, "%s %s %s", progress->what, human_count(text, done), detail);
    }
    fflush(stderr);
}

void progress_set(struct progress *progress, uint64_t done, const char *detail)
{
    if (!progress->on_terminal)
        return;
    int64_t now = annal__clock_monotonic_us();
    if (now - progress->begun_us < PATIENCE_US || now - progress->drawn_us < REDRAW_US)
        return;
    draw(progress, done, detail);
    progress->drawn = true;
    progress->drawn_us = now;
}

void progress_hide(struct progress *progress)
{
    if (!progress->drawn)
        return;
    out_control(stderr, CLEAR_LINE);
    progress->drawn = false;
}
