/* SPDX-License-Identifier: Apache-2.0 */
/* Draws all sections as one picture: tables whose columns are as wide as their widest cell, up to a
 * limit, with a bar under the text of each row. */
#include "tools/plot/svg.h"
#include "tools/report/report.h"

enum {
    MARGIN = 16,
    ROW = 18,
    GAP = 14,
    LETTER = 7, /* width of a letter in pixels: at 12 px only W and M of the fonts are wider */
    LETTERS_MAX = 40,
    /* number of lines that a section needs in addition to its rows: title, headings, and a gap */
    SECTION = 3
};

struct layout {
    int letters[COLUMNS_MAX]; /* width of each column, in characters */
    int width;
};

static struct layout lay_out(const struct report_section *section)
{
    struct layout layout = {.width = 2 * MARGIN};
    for (int i = 0; i < report_columns(section); i++) {
        if (section->columns[i].title == NULL)
            continue;
        int most = text_width(annal_slice_of(section->columns[i].title));
        for (size_t row = 0; row < section->count; row++) {
            int own = text_width(annal_slice_of(section->rows[row].shown[i]));
            most = own > most ? own : most;
        }
        layout.letters[i] = most > LETTERS_MAX ? LETTERS_MAX : most;
        layout.width += layout.letters[i] * LETTER + GAP;
    }
    return layout;
}

static void put_row(struct buf *out, const struct report_section *section,
                    const struct layout *layout, double y, const char *class, char *const *texts)
{
    double x = MARGIN;
    for (int i = 0; i < report_columns(section); i++) {
        SCOPED_BUF cell = {0};
        if (section->columns[i].title == NULL)
            continue;
        bool right = report_is_number(section->columns[i].cell);
        double width = layout->letters[i] * LETTER;
        annal_slice text = annal_slice_of(texts[i]);
        int own = text_width(text);
        text_fit(&cell, text, own > layout->letters[i] ? layout->letters[i] : own, false);
        svg_text(out, right ? x + width : x, y, right ? ALIGN_RIGHT : ALIGN_LEFT, class,
                 annal__buf_slice(&cell));
        x += width + GAP;
    }
}

static double number_of(const annal_value *value)
{
    return value->kind == ANNAL_VALUE_INTEGER ? (double)value->integer
           : value->kind == ANNAL_VALUE_REAL  ? value->real
                                              : 0;
}

/* Draw a bar under the text of each row. The longest bar is as wide as the table. */
static void put_bars(struct buf *out, const struct report_section *section, double y, double full)
{
    int bar = 0;
    double most = 0;
    while (bar < report_columns(section) && !section->columns[bar].bar)
        bar++;
    if (bar == report_columns(section))
        return;
    for (size_t row = 0; row < section->count; row++) {
        double own = number_of(&section->rows[row].values[bar]);
        most = own > most ? own : most;
    }
    for (size_t row = 0; row < section->count && most > 0; row++) {
        double own = number_of(&section->rows[row].values[bar]);
        svg_rect(out, MARGIN - 4, y + ROW * (double)row - 13, own > 0 ? own / most * full : 0,
                 ROW - 2, "share", annal_slice_of(section->rows[row].shown[bar]));
    }
}

static double put_section(struct buf *out, const struct report_section *section, double y)
{
    char *titles[COLUMNS_MAX];
    struct layout layout = lay_out(section);
    for (int i = 0; i < report_columns(section); i++)
        titles[i] = (char *)(uintptr_t)section->columns[i].title;
    svg_text(out, MARGIN, y, ALIGN_LEFT, "title", annal_slice_of(section->title));
    y += ROW;
    put_row(out, section, &layout, y, "axis", titles);
    y += ROW;
    put_bars(out, section, y, layout.width - 2 * MARGIN - GAP + 8);
    for (size_t row = 0; row < section->count; row++, y += ROW)
        put_row(out, section, &layout, y, "", section->rows[row].shown);
    return y + ROW;
}

void report_svg(const struct report_section *sections, size_t count, annal_slice title)
{
    SCOPED_BUF out = {0};
    int width = 0, rows = 1;
    for (size_t i = 0; i < count; i++) {
        struct layout layout = lay_out(&sections[i]);
        width = layout.width > width ? layout.width : width;
        rows += SECTION + (int)sections[i].count;
    }
    double y = MARGIN + ROW;
    svg_begin(&out, width, 2 * MARGIN + rows * ROW, title);
    for (size_t i = 0; i < count; i++)
        y = put_section(&out, &sections[i], y);
    svg_end(&out);
    out_slice(annal__buf_slice(&out));
}
