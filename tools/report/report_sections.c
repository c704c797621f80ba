/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/must.h"
#include "tools/report/report.h"

#include "journal/base/alloc.h"
#include "tools/import/importers.h"
#include "tools/plot/text.h"
#include "tools/show/cost_note.h"
#include "tools/show/gist.h"
#include "tools/show/session_rows.h"
#include "tools/show/values.h"

#include <stdlib.h>
#include <string.h>

/* ---- Sections ---- */

#define COST_COLUMNS                                                                               \
    {"cost_microusd", "COST", .cell = CELL_COST}, {"computed_microusd", NULL, .cell = CELL_COUNT}, \
    {                                                                                              \
        "costed_share", NULL, .cell = CELL_COUNT                                                   \
    }
#define USED_COLUMNS                                                                               \
    {"requests", "REQUESTS", .cell = CELL_COUNT, .spared = true},                                  \
        {"input_tokens", "INPUT", .cell = CELL_COUNT, .bar = true},                                \
        {"cached_input_tokens", "CACHED", .cell = CELL_COUNT},                                     \
        {"output_tokens", "OUTPUT", .cell = CELL_COUNT}, COST_COLUMNS

#define SESSIONS_COLUMNS                                                                           \
    {"session_id", "SESSION", .cell = CELL_SESSION}, {"turns", "TURNS", .cell = CELL_COUNT},       \
        {"calls", "CALLS", .cell = CELL_COUNT}, {"failed", "FAILED", .cell = CELL_COUNT},          \
        {"total_tokens", "TOKENS", .cell = CELL_COUNT, .bar = true}, COST_COLUMNS,                 \
        {"duration_ms", "LASTED", .cell = CELL_MS},                                                \
    {                                                                                              \
        "title", "TITLE", .cell = CELL_TEXT, .spared = true                                        \
    }

/* A section of the newest days, weeks or other units of time, in order; report_print() adds the
 * time zone to its title. */
#define PERIOD_SECTION(period, plural, unit, head)                                                 \
    {                                                                                              \
        .name = plural, .title = "Tokens and cost by " unit, .of_period = true, .by = period,      \
        .panels = " period ", .sql = "periods", .columns = {                                       \
            {unit, head, .cell = CELL_TEXT},                                                       \
            USED_COLUMNS                                                                           \
        }                                                                                          \
    }

const struct report_section report_sections[] = {
    {.name = "total",
     .title = "In all",
     .panels = " all ",
     .sql = "total",
     .columns = {{"sessions", "SESSIONS", .cell = CELL_COUNT},
                 {"calls", "CALLS", .cell = CELL_COUNT},
                 {"failed", "FAILED", .cell = CELL_COUNT},
                 {"input_tokens", "INPUT", .cell = CELL_COUNT},
                 {"output_tokens", "OUTPUT", .cell = CELL_COUNT},
                 COST_COLUMNS}},
    {.name = "tools",
     .title = "Tools",
     .sql = "tools",
     .columns = {{"tool", "TOOL", .cell = CELL_TEXT},
                 {"calls", "CALLS", .cell = CELL_COUNT, .bar = true},
                 {"failed", "FAILED", .cell = CELL_COUNT},
                 {"median_ms", "MEDIAN", .cell = CELL_MS},
                 {"p95_ms", "95 %", .cell = CELL_MS},
                 {"sum_ms", "IN ALL", .cell = CELL_MS}}},
    {.name = "failures",
     .title = "Calls that failed, newest first",
     .sql = "failures",
     .columns = {{"timestamp", "TIME", .cell = CELL_TIME},
                 {"tool", "TOOL", .cell = CELL_TEXT},
                 {"input", "CALLED WITH", .cell = CELL_INPUT},
                 {"output", "WHAT FAILED", .cell = CELL_OUTPUT},
                 {"session_id", "SESSION", .cell = CELL_SESSION, .spared = true},
                 {"seq", "SEQ", .cell = CELL_COUNT, .spared = true}}},
    {.name = "refused",
     .title = "Requests that failed, newest first",
     .if_any = true,
     .sql = "refused",
     .columns = {{"timestamp", "TIME", .cell = CELL_TIME},
                 {"provider", "PROVIDER", .cell = CELL_TEXT},
                 {"error", "WHAT FAILED", .cell = CELL_TEXT},
                 {"session_id", "SESSION", .cell = CELL_SESSION, .spared = true},
                 {"seq", "SEQ", .cell = CELL_COUNT, .spared = true}}},
    {.name = "slowest",
     .title = "Slowest calls",
     .sql = "slowest",
     .columns = {{"duration_ms", "TOOK", .cell = CELL_MS, .bar = true},
                 {"tool", "TOOL", .cell = CELL_TEXT},
                 {"input", "CALLED WITH", .cell = CELL_INPUT},
                 {"session_id", "SESSION", .cell = CELL_SESSION},
                 {"seq", "SEQ", .cell = CELL_COUNT}}},
    {.name = "models",
     .title = "Tokens and cost by model",
     .panels = " model ",
     .sql = "models",
     .columns = {{"model", "MODEL", .cell = CELL_TEXT}, USED_COLUMNS}},
    {.name = "projects",
     .title = "Tokens and cost by project",
     .if_any = true,
     .panels = " project ",
     .sql = "projects",
     .columns = {{"project", "PROJECT", .cell = CELL_TEXT},
                 {"sessions", "SESSIONS", .cell = CELL_COUNT},
                 {"requests", "REQUESTS", .cell = CELL_COUNT, .spared = true},
                 {"input_tokens", "INPUT", .cell = CELL_COUNT, .bar = true},
                 {"output_tokens", "OUTPUT", .cell = CELL_COUNT},
                 COST_COLUMNS}},
    {.name = "hosts",
     .title = "Tokens and cost by host",
     .if_any = true,
     .panels = " host ",
     .sql = "hosts",
     .columns = {{"source_host", "HOST", .cell = CELL_TEXT},
                 {"sessions", "SESSIONS", .cell = CELL_COUNT},
                 {"requests", "REQUESTS", .cell = CELL_COUNT, .spared = true},
                 {"input_tokens", "INPUT", .cell = CELL_COUNT, .bar = true},
                 {"output_tokens", "OUTPUT", .cell = CELL_COUNT},
                 COST_COLUMNS}},
    PERIOD_SECTION(PERIOD_HOUR, "hours", "hour", "HOUR"),
    PERIOD_SECTION(PERIOD_DAY, "days", "day", "DAY"),
    PERIOD_SECTION(PERIOD_WEEK, "weeks", "week", "WEEK"),
    PERIOD_SECTION(PERIOD_MONTH, "months", "month", "MONTH"),
    {.name = "sessions",
     .title = "Sessions by tokens",
     .panels = " session ",
     .sql = "sessions",
     .columns = {SESSIONS_COLUMNS}},
    {.name = NULL}};

/* ---- Sources ---- */

#define SOURCES_COLUMNS                                                                            \
    {"sources", "SOURCES", .cell = CELL_COUNT}, {"bytes", "BYTES", .cell = CELL_COUNT},            \
        {"copies", "COPIES", .cell = CELL_COUNT}, {"stored_bytes", "STORED", .cell = CELL_COUNT},  \
        {"gone", "GONE", .cell = CELL_COUNT}, {"shrank", "SHRANK", .cell = CELL_COUNT},            \
    {                                                                                              \
        "replaced", "REPLACED", .cell = CELL_COUNT                                                 \
    }

const struct report_section report_source_sections[] = {
    {.name = "total",
     .title = "In all",
     .sql = "sources_total",
     .columns = {{"kinds", "KINDS", .cell = CELL_COUNT}, SOURCES_COLUMNS}},
    {.name = "kinds",
     .title = "Logs by kind",
     .sql = "sources_kinds",
     .columns = {{"kind", "KIND", .cell = CELL_TEXT}, SOURCES_COLUMNS}},
    {.name = NULL}};

/* ---- Comparison of two sessions ---- */

const struct report_section report_compare_sections[] = {
    {.name = "sessions",
     .title = "Both",
     .panels = " session ",
     .sql = "sessions",
     .columns = {SESSIONS_COLUMNS}},
    {.name = "tools",
     .title = "Tools: calls, failures and medians of A and of B",
     .sql = "compare_tools",
     .columns = {{"tool", "TOOL", .cell = CELL_TEXT},
                 {"calls_a", "CALLS A", .cell = CELL_COUNT},
                 {"calls_b", "CALLS B", .cell = CELL_COUNT},
                 {"failed_a", "FAILED A", .cell = CELL_COUNT},
                 {"failed_b", "FAILED B", .cell = CELL_COUNT},
                 {"median_a_ms", "MEDIAN A", .cell = CELL_MS},
                 {"median_b_ms", "MEDIAN B", .cell = CELL_MS}}},
    {.name = "first_difference",
     .title = "The first calls that differ",
     .sql = "first_difference",
     .columns = {{"session_id", "SESSION", .cell = CELL_SESSION},
                 {"call", "CALL", .cell = CELL_COUNT},
                 {"tool", "TOOL", .cell = CELL_TEXT},
                 {"input", "CALLED WITH", .cell = CELL_INPUT, .differs = true},
                 {"seq", "SEQ", .cell = CELL_COUNT}}},
    {.name = NULL}};

int report_columns(const struct report_section *section)
{
    int count = 0;
    while (count < COLUMNS_MAX && section->columns[count].name != NULL)
        count++;
    return count;
}

/* ---- Rows ---- */

static int64_t whole(const annal_value *value)
{
    return value->kind == ANNAL_VALUE_REAL ? (int64_t)(value->real + 0.5) : value->integer;
}

/* Append a cost: "$10.72"; "~$10.72" if some of it was computed from prices; "$10.72 of 27%" if it
 * covers only 27% of the tokens. values are the cost and the two columns after it. */
static void show_cost(struct buf *out, const annal_value *values)
{
    char text[TEXT_BYTES];
    bool computed = values[1].kind == ANNAL_VALUE_INTEGER;
    must_printf(out, "%s%s", computed ? "~" : "",
                text_exact(text, whole(&values[0]), UNIT_MICROUSD));
    if (values[2].kind == ANNAL_VALUE_REAL && values[2].real < 1)
        must_printf(out, " of %d%%", cost_percent(values[2].real));
}

/* Append a value in the form for people. */
static void show(struct buf *out, enum cell cell, const annal_value *value)
{
    char text[TEXT_BYTES];
    annal_event event = {.data = value->bytes};
    int64_t time_us = 0;
    if (value->kind == ANNAL_VALUE_NULL ||
        (report_is_number(cell) && value->kind > ANNAL_VALUE_REAL)) {
        must_append_text(out, "-");
        return;
    }
    switch (cell) {
    case CELL_COUNT:
        must_printf(out, "%s", text_exact(text, whole(value), UNIT_COUNT));
        break;
    case CELL_COST:
        show_cost(out, value);
        break;
    case CELL_MS:
        must_printf(out, "%s", text_span(text, whole(value) * 1000));
        break;
    case CELL_TIME:
        if (annal_time_parse(value->bytes, &time_us, NULL) == ANNAL_OK)
            human_time(text, time_us);
        must_printf(out, "%.16s", time_us == 0 ? "-" : text);
        break;
    case CELL_INPUT:
        gist_input(out, event_either(&event, "input", "arguments"));
        break;
    case CELL_OUTPUT:
        gist_output(out, event_either(&event, "output", "error"));
        break;
    case CELL_SESSION:
        must_append_slice(out, session_begin(value->bytes));
        break;
    case CELL_TEXT:
        must_append_slice(out, value->bytes);
    }
}

/* Store a value of a row in the form for people and in the form for programs: numbers unchanged,
 * times and names as text. */
static void keep(struct report_row *row, int i, const annal_value *value, enum cell cell)
{
    SCOPED_BUF shown = {0};
    bool is_number = value->kind == ANNAL_VALUE_INTEGER || value->kind == ANNAL_VALUE_REAL;
    show(&shown, cell, value);
    row->shown[i] = must_strndup(shown.len > 0 ? shown.ptr : "", shown.len);
    if (cell == CELL_TIME || cell == CELL_TEXT || cell == CELL_SESSION)
        row->raw[i] =
            must_strndup(value->bytes.ptr == NULL ? "" : value->bytes.ptr, value->bytes.len);
    if (cell == CELL_INPUT && value->kind == ANNAL_VALUE_TEXT) {
        annal_event event = {.data = value->bytes};
        annal_slice input = event_either(&event, "input", "arguments");
        row->whole = must_strndup(input.ptr == NULL ? "" : input.ptr, input.len);
    }
    row->values[i] =
        is_number || value->kind == ANNAL_VALUE_NULL ? *value : text_value((annal_slice){0});
}

static int add_row(void *arg, const annal_row *from)
{
    struct report_section *section = arg;
    struct report_row *row = must_array_add(&section->rows, &section->count, sizeof *row);
    for (int i = 0; i < report_columns(section); i++)
        keep(row, i, &from->values[i], section->columns[i].cell);
    return 0;
}

/* ---- The difference of two texts ---- */

enum { SAME_MAX = 20 }; /* number of bytes before the first difference that are shown */

static size_t same_bytes(const char *a, const char *b)
{
    size_t at = 0;
    while (a[at] != '\0' && a[at] == b[at])
        at++;
    return at;
}

/* Return a copy of text from its first difference on, with up to SAME_MAX bytes before it. `same`
 * is the number of equal bytes. The caller frees it. */
static char *from_difference(const char *text, size_t same)
{
    SCOPED_BUF out = {0};
    size_t from = same > SAME_MAX ? same - SAME_MAX : 0;
    while (from > 0 && ((unsigned char)text[from] & 0xc0) == 0x80)
        from--;
    must_printf(&out, "%s%.*s", from > 0 ? "\u2026" : "", GIST_CHARS, text + from);
    return must_strndup(out.len > 0 ? out.ptr : "", out.len);
}

/* Let people see two texts from their first difference on, because there may be room for the
 * beginning only. If people would see equal texts, use the complete JSON. */
static void show_difference(struct report_section *section, int i)
{
    struct report_row *rows = section->rows;
    const char *a = rows[0].shown[i], *b = rows[1].shown[i];
    if (a == NULL || b == NULL || rows[0].whole == NULL || rows[1].whole == NULL)
        return;
    bool equal = strcmp(a, b) == 0;
    if (equal) {
        a = rows[0].whole;
        b = rows[1].whole;
    }
    size_t same = same_bytes(a, b);
    char *shown[2] = {from_difference(a, same), from_difference(b, same)};
    for (int k = 0; k < 2; k++) {
        annal__free(rows[k].shown[i]);
        rows[k].shown[i] = shown[k];
    }
}

extern const char annal__sql_usage[];         /* show/usage.sql */
extern const char annal__sql_report_shared[]; /* shared.sql */

annal_status report_sql(const struct report_section *section, annal_index *index, struct buf *out)
{
    const struct importer_text *text = report_texts;
    while (strcmp(text->kind, section->sql) != 0)
        text++;
    return annal__buf_printf(
        out, "WITH %s,\n%s%s%s %s\n%s", session_marks(index),
        section->panels == NULL ? "" : "used AS (", section->panels == NULL ? "" : annal__sql_usage,
        section->panels == NULL ? "" : "),", annal__sql_report_shared, text->sql);
}

int report_fill(struct report_section *section, annal_index *index,
                const struct report_scope *scope)
{
    annal_error err = {0};
    SCOPED_BUF sql = {0};
    const annal_value params[] = {text_or_null(scope->sessions),
                                  text_or_null(scope->since),
                                  text_or_null(scope->until),
                                  integer_value((int64_t)scope->limit),
                                  string_value(annal__period_words[scope->by]),
                                  string_value(section->panels)};
    const annal_sql_options options = {
        .params = params, .param_count = section->panels == NULL ? 4 : 6, .as_indexed = true};
    must_status(report_sql(section, index, &sql));
    annal_status status =
        annal_index_sql(index, annal__buf_slice(&sql), &options, add_row, section, &err);
    for (int i = 0; status == ANNAL_OK && section->count == 2 && i < report_columns(section); i++)
        if (section->columns[i].differs)
            show_difference(section, i);
    return status < 0 ? fail_error(&err) : (int)status;
}

void report_clear(struct report_section *section)
{
    for (size_t row = 0; row < section->count; row++) {
        for (int i = 0; i < COLUMNS_MAX; i++) {
            annal__free(section->rows[row].shown[i]);
            annal__free(section->rows[row].raw[i]);
        }
        annal__free(section->rows[row].whole);
    }
    annal__free(section->rows);
    section->rows = NULL;
    section->count = 0;
}
