/* SPDX-License-Identifier: Apache-2.0 */
/* A picture as text on a terminal, or as an SVG file. */
#include "tools/plot/plot.h"

#include "journal/base/slice.h"
#include "tools/cli/must.h"
#include "tools/cli/target.h"
#include "tools/plot/chart_svg.h"
#include "tools/plot/svg.h"

#include <string.h>

void plot_say_empty(const struct plot *plot, struct drawing *out)
{
    char text[TEXT_BYTES];
    text_drawing_put(out, "No events");
    if (plot->range.has_since)
        text_drawing_put(out, " since %s", text_time(text, plot->range.since_us));
    if (plot->range.has_until)
        text_drawing_put(out, "%s before %s", plot->range.has_since ? " and" : "",
                         text_time(text, plot->range.until_us));
    text_drawing_put(out, ".\n");
}

/* Append a complete SVG: the elements of the picture, and its notes as lines of text. */
static void make_svg(const char *title, const struct picture *picture, struct drawing *out)
{
    enum { LINE_HEIGHT = 20 };
    annal_slice rest = text_drawing_slice(&picture->notes), line;
    int height = picture->height + 16;
    for (size_t i = 0; i < rest.len; i++)
        height += rest.ptr[i] == '\n' ? LINE_HEIGHT : 0;
    svg_begin(out, PICTURE_WIDTH, height, annal_slice_of(title));
    must_append_slice(&out->text, text_drawing_slice(&picture->drawn));
    for (int y = picture->height + LINE_HEIGHT; rest.len > 0; y += LINE_HEIGHT) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        line = (annal_slice){rest.ptr, end == NULL ? rest.len : (size_t)(end - rest.ptr)};
        svg_text(out, 16, y, ALIGN_LEFT, "name", line);
        rest.ptr += line.len + (end != NULL);
        rest.len -= line.len + (end != NULL);
    }
    svg_end(out);
}

static void make_text(const struct picture *picture, struct drawing *out)
{
    annal_slice drawn = text_drawing_slice(&picture->drawn);
    annal_slice notes = text_drawing_slice(&picture->notes);
    must_append_slice(&out->text, drawn);
    text_drawing_put(out, "%s", drawn.len > 0 && notes.len > 0 ? "\n" : "");
    must_append_slice(&out->text, notes);
}

int plot_put(const struct plot *plot, const char *title, struct picture *picture)
{
    struct drawing drawing = {0};
    struct target target = {.saved_stdout = -1};
    bool file = plot->svg != NULL && strcmp(plot->svg, "-") != 0;
    if (plot->svg != NULL)
        make_svg(title, picture, &drawing);
    else
        make_text(picture, &drawing);
    int exit_status = target_begin(&target, file ? plot->svg : NULL);
    if (exit_status == EXIT_DONE) {
        out_slice(text_drawing_slice(&drawing));
        exit_status = target_end(&target, true);
    }
    text_drawing_done(&drawing);
    text_drawing_done(&picture->drawn);
    text_drawing_done(&picture->notes);
    return exit_status;
}
