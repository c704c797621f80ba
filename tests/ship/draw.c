/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw TITLE X-LABEL Y-LABEL <points >picture.svg: lines over two logarithmic axes, as in
 * docs/performance. A point is a line "x y name".
 */
#include "tests/bench/compare/svg.h"

#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 12, POINTS_MAX = 64, NAME_BYTES = 60 };

int main(int argc, char **argv)
{
    static struct svg_point points[LINES_MAX][POINTS_MAX];
    static char names[LINES_MAX][NAME_BYTES];
    struct svg_line lines[LINES_MAX] = {{0}};
    struct svg_point point;
    char name[NAME_BYTES];
    size_t count = 0;
    if (argc != 4) {
        fputs("usage: draw TITLE X-LABEL Y-LABEL <points >picture.svg\n", stderr);
        return 2;
    }
    while (scanf("%lf %lf %59[^\n]", &point.x, &point.y, name) == 3) {
        size_t at = 0;
        while (at < count && strcmp(names[at], name) != 0)
            at++;
        if (at == LINES_MAX || lines[at].count == POINTS_MAX || point.x <= 0 || point.y <= 0)
            return 1;
        if (at == count) {
            memcpy(names[count++], name, sizeof name);
            lines[at] = (struct svg_line){.name = names[at], .points = points[at]};
        }
        points[at][lines[at].count++] = point;
    }
    svg_draw(&(struct svg_picture){argv[1], argv[2], argv[3], lines, count}, stdout);
    return 0;
}
