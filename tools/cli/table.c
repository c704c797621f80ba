/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints tables: the same cells as an aligned table, as JSON lines, or as CSV.
 *
 * JSON lines and CSV are printed row by row. An aligned table holds back its first ROWS_HELD rows,
 * computes the widths of its columns from them, and then prints row by row as well. Each of its
 * cells is one line.
 */
#include "journal/base/alloc.h"
#include "journal/base/json.h"
#include "journal/base/json_halves.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/width.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_HELD = 500, GAP = 2, FLEXIBLE_LEAST = 8, CELL_COLUMNS_MAX = 100 };

struct table {
    enum out_format format;
    const struct column *columns;
    int count;
    int at;            /* number of cells in the current row */
    struct buf row;    /* JSON lines and CSV: text of the current row */
    struct buf *cells; /* aligned: cells of the current row */
    char **held; /* aligned: cells of the rows that are held back, `count` cells for each row */
    int rows;
    int *widths; /* width of each column; 0: the column is not shown */
    bool begun;  /* whether the heading was printed */
    bool cut;    /* whether flexible columns are cut */
    int limit;   /* width of a flexible column if stdout is not a terminal; 0: no cell is cut */
    /* whether rows that are wider than the terminal are printed one column a line; once the heading
     * is printed: whether this table's rows are */
    bool unfold;
};

struct table *table_new(enum out_format format, const struct column *columns, int count)
{
    struct table *table = must_zalloc(sizeof *table);
    table->format = format;
    table->columns = columns;
    table->count = count;
    table->cells = must_zalloc((size_t)count * sizeof *table->cells);
    table->held = must_zalloc((size_t)count * ROWS_HELD * sizeof *table->held);
    table->widths = must_zalloc((size_t)count * sizeof *table->widths);
    if (format == OUT_CSV) {
        for (int i = 0; i < count; i++)
            printf("%s%s", i > 0 ? "," : "", columns[i].name);
        fputs("\r\n", stdout);
    }
    return table;
}

void table_limit(struct table *table, int columns)
{
    table->limit = columns;
}

void table_unfold(struct table *table)
{
    table->unfold = isatty(STDOUT_FILENO);
}

/* ---- Width on a terminal ---- */

/* Print the end of a text that is wider than width, because paths differ at their end. own is the
 * width of the text. */
static void print_end(const char *text, int own, int width, bool last)
{
    while (own > width - 1) {
        wchar_t c;
        text += width_decode(text, &c);
        own -= width_of(c);
    }
    printf("\u2026%s%*s", text, last ? 0 : width - own - 1, "");
}

static void print_begin(const char *text, int width, bool last)
{
    int used = 0;
    while (*text != '\0') {
        wchar_t c;
        size_t len = width_decode(text, &c);
        if (used + width_of(c) > width - 1)
            break;
        fwrite(text, 1, len, stdout);
        used += width_of(c);
        text += len;
    }
    printf("\u2026%*s", last ? 0 : width - used - 1, "");
}

static void print_spaces(int count)
{
    static const char spaces[] = "                                ";
    const int most = sizeof spaces - 1;
    for (; count > 0; count -= most)
        fwrite(spaces, 1, (size_t)(count < most ? count : most), stdout);
}

/* Print text in `width` columns; if cut is set, cut a longer text with an ellipsis. */
static void print_cell(const char *text, int width, const struct column *column, bool cut,
                       bool last)
{
    int own = width_of_text(text);
    if (own > width && cut && column->flexible) {
        if (column->cut_left)
            print_end(text, own, width, last);
        else
            print_begin(text, width, last);
        return;
    }
    int gap = own < width ? width - own : 0;
    print_spaces(column->right ? gap : 0);
    fputs(text, stdout);
    print_spaces(column->right || last ? 0 : gap);
}

/* ---- Cells ---- */

static void add_plain(struct table *table, annal_slice text)
{
    struct buf *cell = &table->cells[table->at];
    annal__buf_clear(cell);
    (void)out_line(cell, text);
    annal__json_text_mend_halves(cell->ptr, cell->len);
}

static void add_csv(struct table *table, annal_slice text)
{
    bool quote = false;
    for (size_t i = 0; i < text.len; i++)
        quote = quote || strchr(",\"\r\n", text.ptr[i]) != NULL;
    size_t before = table->row.len;
    if (!quote)
        must_append_slice(&table->row, text);
    else
        must_append_text(&table->row, "\"");
    for (size_t i = 0; quote && i < text.len; i++) {
        if (text.ptr[i] == '"')
            must_append_text(&table->row, "\"");
        must_append(&table->row, text.ptr + i, 1);
    }
    if (quote)
        must_append_text(&table->row, "\"");
    annal__json_text_mend_halves(table->row.ptr + before, table->row.len - before);
}

enum cell_kind { CELL_TEXT, CELL_RAW, CELL_NULL };

/* If the next cell is not printed, because its column has no title in an aligned table, pass over
 * it. */
static bool pass_over(struct table *table)
{
    bool hidden = table->format == OUT_TABLE && table->at < table->count &&
                  table->columns[table->at].title == NULL;
    table->at += hidden;
    return hidden;
}

/* Add a cell. If memory runs out, the cell is shorter; out_finish() does not report that. */
static void add(struct table *table, annal_slice text, enum cell_kind kind)
{
    struct buf *row = &table->row;
    if (table->at >= table->count || pass_over(table))
        return;
    if (table->format == OUT_TABLE) {
        add_plain(table, text);
    } else if (table->format == OUT_CSV) {
        if (table->at > 0)
            must_append_text(row, ",");
        add_csv(table, text);
    } else {
        must_append(row, table->at > 0 ? "," : "{", 1);
        must_json(row, "?:", annal_slice_of(table->columns[table->at].name));
        if (kind == CELL_NULL)
            must_append_text(row, "null");
        else if (kind == CELL_RAW)
            must_append_slice(row, text);
        else
            must_quote(row, text);
    }
    table->at++;
}

void table_text(struct table *table, annal_slice text)
{
    add(table, text, CELL_TEXT);
}

void table_json(struct table *table, annal_slice json)
{
    add(table, json, CELL_RAW);
}

void table_null(struct table *table)
{
    add(table, (annal_slice){0}, CELL_NULL);
}

void table_number(struct table *table, uint64_t number)
{
    add(table, JSON_U64(number), CELL_RAW);
}

void table_count(struct table *table, uint64_t count)
{
    char text[HUMAN_BYTES];
    if (table->format == OUT_TABLE)
        add(table, annal_slice_of(human_count(text, count)), CELL_TEXT);
    else
        table_number(table, count);
}

void table_signed(struct table *table, int64_t number)
{
    if (!pass_over(table))
        add(table, JSON_I64(number), CELL_RAW);
}

const char *table_real_text(char text[REAL_BYTES], double number)
{
    if (!isfinite(number))
        return "null";
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, REAL_BYTES, "%.*g", digits, number);
        double back = strtod(text, NULL);
        if (memcmp(&back, &number, sizeof back) == 0)
            break;
    }
    return text;
}

void table_real(struct table *table, double number)
{
    char text[REAL_BYTES];
    if (pass_over(table))
        return;
    if (isfinite(number))
        add(table, annal_slice_of(table_real_text(text, number)), CELL_RAW);
    else
        table_null(table);
}

void table_time(struct table *table, int64_t time_us)
{
    char text[ANNAL_TIME_BYTES];
    if (time_us == 0) {
        table_null(table);
        return;
    }
    annal_time_format(time_us, text);
    add(table, annal_slice_of(text), CELL_TEXT);
    if (isatty(STDOUT_FILENO)) {
        human_time(text, time_us);
        table_shown(table, "%s", text);
    }
}

void table_shown(struct table *table, const char *format, ...)
{
    char text[256];
    va_list list;
    if (table->format != OUT_TABLE || table->at == 0)
        return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    table->at--;
    add_plain(table, annal_slice_of(text));
    table->at++;
}

/* ---- Rows ---- */

static void print_aligned(struct table *table, char **cells)
{
    int last = table->count - 1;
    while (last > 0 && table->widths[last] == 0)
        last--;
    for (int i = 0; i <= last; i++) {
        const struct column *column = &table->columns[i];
        if (table->widths[i] == 0)
            continue;
        print_cell(cells[i] == NULL ? "" : cells[i], table->widths[i], column, table->cut,
                   i == last);
        print_spaces(i < last ? GAP : 0);
    }
}

static int least_of(const struct column *column)
{
    return column->least > 0 ? column->least : FLEXIBLE_LEAST;
}

/* Leave a column out, and set the other columns back to their uncut widths, which are in
 * `whole`. */
static void leave_out(struct table *table, int column, const int *whole)
{
    table->widths[column] = 0;
    for (int i = 0; i < table->count; i++)
        if (table->widths[i] > 0)
            table->widths[i] = whole[i];
}

/*
 * Cut flexible columns, the widest first, until a row fits the terminal. When they have reached
 * their `least` width, leave out spare columns; after that, cut down to the absolute minimum.
 * whole: the uncut widths.
 */
static void fit(struct table *table, int columns, const int *whole)
{
    bool tight = false;
    for (;;) {
        int total = -GAP, widest = -1, spare = -1;
        for (int i = 0; i < table->count; i++) {
            const struct column *column = &table->columns[i];
            if (table->widths[i] == 0)
                continue;
            total += table->widths[i] + GAP;
            if (column->flexible &&
                table->widths[i] > (tight ? FLEXIBLE_LEAST : least_of(column)) &&
                (widest < 0 || table->widths[i] > table->widths[widest]))
                widest = i;
            if (column->spare > (spare < 0 ? 0 : table->columns[spare].spare))
                spare = i;
        }
        if (total <= columns || (widest < 0 && spare < 0 && tight))
            return;
        tight = tight || (widest < 0 && spare < 0);
        if (widest >= 0)
            table->widths[widest]--;
        else if (spare >= 0)
            leave_out(table, spare, whole);
    }
}

/* Compute the widths of the columns from their titles and cells; without a terminal, at most the
 * limit. Returns the width of a row. */
static int measure(struct table *table, int columns)
{
    int total = -GAP;
    const int limit = table->limit > 0 ? table->limit : CELL_COLUMNS_MAX;
    for (int i = 0; i < table->count; i++) {
        const char *title = table->columns[i].title;
        table->widths[i] = title == NULL ? 0 : width_of_text(title);
        for (int row = 0; title != NULL && row < table->rows; row++) {
            const char *cell = table->held[row * table->count + i];
            int width = cell == NULL ? 0 : width_of_text(cell);
            if (table->columns[i].flexible && width > limit && columns == 0)
                width = limit;
            if (width > table->widths[i])
                table->widths[i] = width;
        }
        total += table->widths[i] + GAP;
    }
    return total;
}

/* Print a row as a line for each column. A text that is longer than the line continues on further
 * lines. */
static void print_unfolded(struct table *table, char **cells)
{
    int columns = out_columns(), widest = 0;
    for (int i = 0; i < table->count; i++) {
        int width = width_of_text(table->columns[i].title);
        widest = width > widest ? width : widest;
    }
    int room = columns - widest - GAP < FLEXIBLE_LEAST ? FLEXIBLE_LEAST : columns - widest - GAP;
    for (int i = 0; i < table->count; i++) {
        const char *title = table->columns[i].title, *text = cells[i] == NULL ? "" : cells[i];
        out_style("1");
        printf("%s%*s", title, widest + GAP - width_of_text(title), "");
        out_style("0");
        for (size_t len; (len = width_fitting(text, room)), text[len] != '\0'; text += len)
            printf("%.*s\n%*s", (int)len, text, widest + GAP, "");
        puts(text);
    }
}

static void begin_aligned(struct table *table)
{
    int columns = out_columns();
    char **titles = must_zalloc((size_t)table->count * sizeof *titles);
    table->begun = true;
    table->cut = columns > 0 || table->limit > 0;
    table->unfold = measure(table, columns) > columns && columns > 0 && table->unfold;
    int *whole = must_zalloc((size_t)table->count * sizeof *whole);
    memcpy(whole, table->widths, (size_t)table->count * sizeof *whole);
    if (columns > 0)
        fit(table, columns, whole);
    annal__free(whole);
    for (int i = 0; i < table->count; i++)
        titles[i] = must_strndup(table->columns[i].title ? table->columns[i].title : "",
                                 table->columns[i].title ? strlen(table->columns[i].title) : 0);
    if (!table->unfold) {
        out_style("1");
        print_aligned(table, titles);
        out_style("0");
        fputc('\n', stdout);
    }
    for (int i = 0; i < table->count; i++)
        annal__free(titles[i]);
    annal__free(titles);
}

static void print_cells(struct table *table, char **cells)
{
    if (table->unfold)
        print_unfolded(table, cells);
    else
        print_aligned(table, cells);
    fputc('\n', stdout);
}

static void print_held(struct table *table)
{
    if (!table->begun && table->rows > 0)
        begin_aligned(table);
    for (int row = 0; row < table->rows; row++) {
        char **cells = table->held + row * table->count;
        print_cells(table, cells);
        for (int i = 0; i < table->count; i++) {
            annal__free(cells[i]);
            cells[i] = NULL;
        }
    }
    table->rows = 0;
}

void table_row(struct table *table)
{
    while (table->at < table->count)
        table_null(table);
    table->at = 0;
    if (table->format != OUT_TABLE) {
        out_slice(annal__buf_slice(&table->row));
        fputs(table->format == OUT_CSV ? "\r\n" : "}\n", stdout);
        annal__buf_clear(&table->row);
        return;
    }
    char **cells = table->held + table->rows * table->count;
    for (int i = 0; i < table->count; i++) {
        struct buf *cell = &table->cells[i];
        must_append(cell, "", 1);
        cells[i] = table->begun ? cell->ptr : must_strndup(cell->ptr, cell->len - 1);
    }
    if (table->begun) {
        print_cells(table, cells);
        memset(cells, 0, (size_t)table->count * sizeof *cells);
    } else if (++table->rows == ROWS_HELD) {
        print_held(table);
    }
    for (int i = 0; i < table->count; i++)
        annal__buf_clear(&table->cells[i]);
}

bool table_shows(struct table *table, int column)
{
    if (table->format == OUT_TABLE)
        print_held(table);
    return table->format == OUT_TABLE && table->widths[column] > 0;
}

void table_free(struct table *table)
{
    if (table == NULL)
        return;
    if (table->held != NULL && table->widths != NULL)
        print_held(table);
    for (int i = 0; table->cells != NULL && i < table->count; i++)
        annal__buf_done(&table->cells[i]);
    annal__buf_done(&table->row);
    annal__free(table->cells);
    annal__free(table->held);
    annal__free(table->widths);
    annal__free(table);
}
