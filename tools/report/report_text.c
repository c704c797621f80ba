/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a section as an aligned table, as JSON lines, or as a table of Markdown. */
#include "tools/cli/target.h"
#include "tools/export/page.h"
#include "tools/report/report.h"
#include "tools/show/cost_note.h"

#include <string.h>

/* Add a cell to a table: the form for people, or the value for programs. */
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

/* Return the signs that occur in the costs of all sections. */
static struct cost_signs cost_signs(const struct report_section *sections, size_t count)
{
    struct cost_signs signs = {0};
    for (size_t n = 0; n < count; n++) {
        const struct report_section *section = &sections[n];
        for (int i = 0; i < report_columns(section); i++) {
            for (size_t row = 0; section->columns[i].cell == CELL_COST && row < section->count;
                 row++) {
                const char *shown = section->rows[row].shown[i];
                signs.computed = signs.computed || shown[0] == '~';
                signs.part = signs.part || strchr(shown, '%') != NULL;
                signs.unknown = signs.unknown || strcmp(shown, "-") == 0;
            }
        }
    }
    return signs;
}

static int print_table(const struct report_section *section, enum out_format format)
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
    SCOPED_BUF cell = {0};
    int count = report_columns(section);
    printf("## %s\n\n", section->title);
    if (section->count == 0) {
        fputs("none\n\n", stdout);
        return;
    }
    for (int i = 0; i < count; i++) {
        if (section->columns[i].title != NULL)
            printf("| %s ", section->columns[i].title);
    }
    fputs("|\n", stdout);
    for (int i = 0; i < count; i++) {
        if (section->columns[i].title != NULL)
            fputs(report_is_number(section->columns[i].cell) ? "| ---: " : "| --- ", stdout);
    }
    fputs("|\n", stdout);
    for (size_t row = 0; row < section->count; row++) {
        for (int i = 0; i < count; i++) {
            if (section->columns[i].title == NULL)
                continue;
            fputs("| ", stdout);
            annal__buf_clear(&cell);
            page_inline(&cell, annal_slice_of(section->rows[row].shown[i]), 160);
            out_slice(annal__buf_slice(&cell));
            fputc(' ', stdout);
        }
        fputs("|\n", stdout);
    }
    fputc('\n', stdout);
}

/* ---- The report ---- */

enum { SECTIONS_MAX = 12 };

static int print_costs(const struct report_section *sections, size_t count, annal_index *index,
                       const struct report_scope *scope)
{
    annal_error err = {0};
    struct cost_signs signs = cost_signs(sections, count);
    const struct cost_scope costs = {
        .sessions = scope->sessions, .since = scope->since, .until = scope->until};
    annal_status status = cost_note_print(index, &signs, &costs, &err);
    return status < 0 ? fail_error(&err) : (int)status;
}

static int print_all(const struct report_section *sections, size_t count, enum report_form form)
{
    int exit_status = 0;
    if (form == REPORT_SVG) {
        report_svg(sections, count, ANNAL_SLICE("annal report"));
        return 0;
    }
    if (form == REPORT_MARKDOWN)
        fputs("# Report\n\n", stdout);
    for (size_t i = 0; exit_status == 0 && i < count; i++) {
        if (sections[i].if_any && sections[i].count == 0)
            continue;
        if (form == REPORT_MARKDOWN)
            report_markdown(&sections[i]);
        else
            exit_status = print_table(&sections[i], form == REPORT_JSONL ? OUT_JSONL : OUT_TABLE);
    }
    return exit_status;
}

int report_print(const struct report_section *from, annal_index *index,
                 const struct report_scope *scope, enum report_form form, const char *to)
{
    struct report_section sections[SECTIONS_MAX];
    struct target target;
    char zone[HUMAN_ZONE_BYTES], title[HUMAN_ZONE_BYTES + 40];
    size_t count = 0;
    int exit_status = 0;
    for (; exit_status == 0 && from->name != NULL; from++) {
        if (from->of_period && from->by != scope->by)
            continue;
        sections[count] = *from;
        if (from->of_period) {
            snprintf(title, sizeof title, "%s (%s)", from->title, human_zone(zone));
            sections[count].title = title;
        }
        exit_status = report_fill(&sections[count++], index, scope);
    }
    if (exit_status == 0)
        exit_status = target_begin(&target, to);
    if (exit_status == 0) {
        exit_status = print_all(sections, count, form);
        if (exit_status == 0 && form == REPORT_TABLE)
            exit_status = print_costs(sections, count, index, scope);
        int ended = target_end(&target, exit_status == 0);
        exit_status = exit_status != 0 ? exit_status : ended;
    }
    for (size_t i = 0; i < count; i++)
        report_clear(&sections[i]);
    return exit_status;
}
