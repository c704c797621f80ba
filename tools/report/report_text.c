/* A section as an aligned table, JSON lines, or a table of Markdown. */
#include "tools/export/page.h"
#include "tools/report/report.h"

#include <string.h>

/* What JSON gets. */
static void put_cell(struct table *table, const struct report_row *row, int i, bool for_people)
{
    const annal_value *value = &row->values[i];
    if (for_people)
        table_text(table, annal_slice_of(row->shown[i]));
    else if (value->kind == ANNAL_VALUE_INTEGER)
        table_signed(table, value->integer);
    else if (value->kind == ANNAL_VALUE_REAL)
        table_real(table, value->real);
    else if (value->kind == ANNAL_VALUE_NULL)
        table_null(table);
    else
        table_text(table, annal_slice_of(row->raw[i] != NULL ? row->raw[i] : row->shown[i]));
}

int report_table(const struct report_section *section, enum out_format format)
{
    int count = report_columns(section);
    struct column columns[COLUMNS_MAX + 1] = {{.name = "section"}};
    for (int i = 0; i < count; i++) {
        const struct report_column *from = &section->columns[i];
        bool right = report_is_number(from->cell);
        columns[i + 1] = (struct column){.name = from->name,
                                         .title = from->title,
                                         .right = right,
                                         .flexible = !right && from->cell != CELL_TIME,
                                         .spare = from->spared ? i + 1 : 0};
    }
    if (format == OUT_TABLE) {
        out_style("1");
        fputs(section->title, stdout);
        out_style("0");
        fputs(section->count == 0 ? "\nnone\n\n" : "\n", stdout);
    }
    struct table *table = table_new(format, columns, count + 1);
    if (table == NULL)
        return fail_storage("report: out of memory");
    for (size_t row = 0; row < section->count; row++) {
        table_text(table, annal_slice_of(section->name));
        for (int i = 0; i < count; i++)
            put_cell(table, &section->rows[row], i, format == OUT_TABLE);
        table_row(table);
    }
    table_free(table);
    if (format == OUT_TABLE && section->count > 0)
        fputc('\n', stdout);
    return 0;
}

void report_markdown(const struct report_section *section)
{
    int count = report_columns(section);
    printf("## %s\n\n", section->title);
    if (section->count == 0) {
        fputs("none\n\n", stdout);
        return;
    }
    for (int i = 0; i < count; i++)
        printf("| %s ", section->columns[i].title);
    fputs("|\n", stdout);
    for (int i = 0; i < count; i++)
        fputs(report_is_number(section->columns[i].cell) ? "| ---: " : "| --- ", stdout);
    fputs("|\n", stdout);
    for (size_t row = 0; row < section->count; row++) {
        for (int i = 0; i < count; i++) {
            fputs("| ", stdout);
            page_inline(annal_slice_of(section->rows[row].shown[i]), 160);
            fputc(' ', stdout);
        }
        fputs("|\n", stdout);
    }
    fputc('\n', stdout);
}
