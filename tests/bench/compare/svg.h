/* SPDX-License-Identifier: Apache-2.0 */
/* A picture of lines over two logarithmic axes, as SVG. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct svg_point {
    double x, y; /* both above 0 */
};

struct svg_line {
    const char *name;
    const struct svg_point *points;
    size_t count;
    bool bold;   /* ours */
    bool dashed; /* a limit, no store */
};

struct svg_picture {
    const char *title, *x_label, *y_label;
    const struct svg_line *lines;
    size_t count;
};

/* Lines without points are left out. */
void svg_draw(const struct svg_picture *picture, FILE *out);
