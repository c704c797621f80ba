/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/compare/svg.h"
#include "tests/support/runner.h"

#include <stdlib.h>
#include <string.h>

static char *draw(const struct svg_line *lines, size_t count)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    ck_assert_ptr_nonnull(out);
    svg_draw(&(struct svg_picture){"a < b & c", "sessions", "events", lines, count}, out);
    fclose(out);
    return text;
}

static unsigned times_in(const char *text, const char *word)
{
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word))
        count++;
    return count;
}

START_TEST(points_are_placed_by_their_logarithms)
{
    static const struct svg_point points[] = {{1, 10}, {10, 100}, {100, 1000}};
    const struct svg_line line = {.name = "annal", .points = points, .count = 3};
    char *text = draw(&line, 1);
    /* The corners of the field and its middle. */
    ck_assert_ptr_nonnull(strstr(text, "points=\"78.0,384.0 384.0,216.0 690.0,48.0\""));
    ck_assert_uint_eq(times_in(text, "<circle"), 3);
    ck_assert_ptr_nonnull(strstr(text, "a &lt; b &amp; c"));
    ck_assert_str_eq(text + strlen(text) - 7, "</svg>\n");
    free(text);
}
END_TEST

START_TEST(lines_without_points_are_omitted_and_names_are_beside_their_ends)
{
    static const struct svg_point low[] = {{1, 10}, {10, 20}}, high[] = {{1, 10}, {10, 900}};
    const struct svg_line lines[] = {{.name = "lower", .points = low, .count = 2},
                                     {.name = "nobody", .points = NULL, .count = 0},
                                     {.name = "higher", .points = high, .count = 2}};
    char *text = draw(lines, 3);
    ck_assert_ptr_null(strstr(text, "nobody"));
    ck_assert_uint_eq(times_in(text, "<polyline"), 2);
    ck_assert_ptr_nonnull(strstr(text, "y=\"60.0\">higher"));
    ck_assert_ptr_nonnull(strstr(text, "y=\"80.0\">lower"));
    free(text);
}
END_TEST

START_TEST(a_picture_without_points_is_valid)
{
    char *text = draw(NULL, 0);
    ck_assert_uint_eq(times_in(text, "<polyline"), 0);
    ck_assert_ptr_null(strstr(text, "nan"));
    ck_assert_ptr_null(strstr(text, "inf"));
    free(text);
}
END_TEST

Suite *suite_svg(void)
{
    Suite *suite = suite_create("svg");
    TCase *tcase = suite_case(suite, "svg", NULL, NULL);
    tcase_add_test(tcase, points_are_placed_by_their_logarithms);
    tcase_add_test(tcase, lines_without_points_are_omitted_and_names_are_beside_their_ends);
    tcase_add_test(tcase, a_picture_without_points_is_valid);
    return suite;
}
