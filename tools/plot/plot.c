/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each picture is the rows of one SELECT in plot/sql (picture.h), and the numbers in it, as JSON,
 * those of another. SQL functions that they use:
 *
 *     plot_exact(n, usd)  n with all digits: "12,345"; if usd, as microdollars: "$12.35"
 *     plot_short(n, usd)  n rounded: "12 k", "$0.50"
 *     plot_us(a)          a time in microseconds
 *     plot_width(text)    the columns that a text needs
 *     plot_span(us)       a duration: "1 h 28 min"
 *     plot_times(a, b)    "2026-03-02T09:10:00Z to 10:40:02Z (1 h 30 min)", without fractions of a
 *                         second if that is long; one time if both are the same
 */
#include "tools/plot/plot.h"

#include "index/sys/sql_functions.h"
#include "journal/base/clock.h"
#include "journal/base/slice.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/must.h"
#include "tools/cli/store_open.h"
#include "tools/cli/target.h"
#include "tools/plot/picture.h"
#include "tools/show/values.h"

#include <inttypes.h>
#include <string.h>

enum { COLUMNS_DEFAULT = 80, COLUMNS_MAX = 400, PARAMS = 11 };

extern const char annal__sql_plot_store_axis[], annal__sql_plot_store[],
    annal__sql_plot_store_json[], annal__sql_plot_session_axis[], annal__sql_plot_session[],
    annal__sql_plot_session_json[]; /* plot/sql/ */

struct plot {
    const struct args *args;
    struct time_range range;
    const char *svg; /* path of the SVG file, "-" for stdout; NULL to draw in the terminal */
    int columns;
    annal_store *store;
    annal_index *index;
    struct session_list list; /* the session to draw, then its ancestors; empty to draw the store */
};

/* ---- The command line ---- */

static int read_options(struct plot *plot)
{
    const struct args *args = plot->args;
    if (args_get(args, "by") != NULL && args->operand_count > 0)
        return fail_usage("--by needs a picture of the store: a session has one axis of time");
    fields_range(args, &plot->range);
    plot->svg = args_get(args, "svg");
    if (plot->svg != NULL && strcmp(plot->svg, "-") == 0 && args->json)
        return fail_usage(
            "--json and '--svg -' both write to standard output: give --svg a file name");
    int columns = out_columns();
    plot->columns = columns == 0 ? COLUMNS_DEFAULT : columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
    return 0;
}

/* Add an ancestor of a fork to the list, because its events must be in the index, too. */
static int add_ancestor(void *arg, const annal_lineage_part *part)
{
    struct session_list *list = arg;
    if (!annal__slice_is(part->session, list->names[0].id))
        sessions_add(list, part->session, 0);
    return 0;
}

static int name_session(struct plot *plot)
{
    annal_error err = {0};
    if (plot->args->operand_count == 0)
        return 0;
    int exit_status = sessions_collect(plot->store, plot->args, &plot->list);
    if (exit_status != 0)
        return exit_status;
    annal_slice id = annal_slice_of(plot->args->operands[0]);
    int status = annal_lineage_each(plot->store, id, add_ancestor, &plot->list, &err);
    return status < 0 ? fail_error(&err) : status;
}

/* ---- SQL functions ---- */

static annal_status sql_exact(const annal_value *values, struct buf *out)
{
    char text[TEXT_BYTES];
    must_append_text(out, text_exact(text, values[0].integer, (enum unit)values[1].integer));
    return ANNAL_OK;
}

static annal_status sql_short(const annal_value *values, struct buf *out)
{
    char text[TEXT_BYTES];
    must_append_text(out, text_short(text, values[0].integer, (enum unit)values[1].integer));
    return ANNAL_OK;
}

static annal_status sql_us(const annal_value *values, struct buf *out)
{
    int64_t time_us = 0;
    if (annal_time_parse(values[0].bytes, &time_us, NULL) < 0)
        return ANNAL_END;
    must_printf(out, "%" PRId64, time_us);
    return ANNAL_OK;
}

static annal_status sql_width(const annal_value *values, struct buf *out)
{
    must_printf(out, "%d", text_width(values[0].bytes));
    return ANNAL_OK;
}

static annal_status sql_span(const annal_value *values, struct buf *out)
{
    char text[TEXT_BYTES];
    must_append_text(out, text_span(text, values[0].integer));
    return ANNAL_OK;
}

static annal_status sql_times(const annal_value *values, struct buf *out)
{
    enum { SECOND = 1000000 };
    char from[TEXT_BYTES], to[TEXT_BYTES], span[TEXT_BYTES];
    int64_t from_us = 0, to_us = 0;
    if (annal_time_parse(values[0].bytes, &from_us, NULL) < 0 ||
        annal_time_parse(values[1].bytes, &to_us, NULL) < 0)
        return ANNAL_END;
    int64_t lasts_us = to_us - from_us, unit = lasts_us < 10 * SECOND ? 1 : SECOND;
    from_us -= from_us % unit;
    must_append_text(out, text_time(from, from_us));
    if (lasts_us > 0)
        must_printf(out, " to %s (%s)", text_time_after(to, to_us - to_us % unit, from_us),
                    text_span(span, lasts_us));
    return ANNAL_OK;
}

static const annal__sql_function functions[] = {{"plot_exact", 2, sql_exact},
                                                {"plot_short", 2, sql_short},
                                                {"plot_us", 1, sql_us},
                                                {"plot_width", 1, sql_width},
                                                {"plot_span", 1, sql_span},
                                                {"plot_times", 2, sql_times},
                                                {NULL, 0, NULL}};

/* ---- The SELECTs ---- */

/* Append a sentence such as "No events since …". */
static void say_empty(const struct plot *plot, struct buf *out)
{
    char text[TEXT_BYTES];
    must_printf(out, "No events");
    if (plot->range.has_since)
        must_printf(out, " since %s", text_time(text, plot->range.since_us));
    if (plot->range.has_until)
        must_printf(out, "%s before %s", plot->range.has_since ? " and" : "",
                    text_time(text, plot->range.until_us));
    must_printf(out, ".");
}

/*
 * Run a SELECT. Events that were imported from logs without times have a time at the beginning of
 * 1970: without a range, a chart of the store counts them and does not draw them, and neither does
 * it draw events in the future.
 */
static int ask(const struct plot *plot, const char *sql, int columns, annal_slice axis,
               annal_row_fn fn, void *arg)
{
    annal_error err = {0};
    SCOPED_BUF empty = {0};
    char since[ANNAL_TIME_BYTES], until[ANNAL_TIME_BYTES], last[ANNAL_TIME_BYTES];
    char zone[HUMAN_ZONE_BYTES];
    struct time_range range = plot->range;
    bool all = !range.has_since && !range.has_until, store = plot->list.count == 0;
    if (all && store)
        range = (struct time_range){
            .since_us = TIME_LEAST_US,
            .until_us = annal__system_clock.wall_us(annal__system_clock.arg) + TIME_AHEAD_US};
    annal_time_format(range.since_us, since);
    annal_time_format(range.until_us, until);
    annal_time_format(range.until_us - 1, last);
    say_empty(plot, &empty);
    const annal_value params[PARAMS] = {
        string_value(store ? NULL : plot->args->operands[0]),
        string_value(range.since_us != 0 ? since : ""),
        /* ":" sorts after every digit, and so after every timestamp */
        string_value(range.until_us != 0 ? until : ":"),
        string_value(range.has_since ? since : NULL), string_value(range.has_until ? last : NULL),
        string_value(args_get(plot->args, "by")), integer_value(columns),
        string_value(human_zone(zone)), text_value(annal__buf_slice(&empty)), integer_value(all),
        text_or_null(axis)};
    const annal_sql_options options = {
        .params = params, .param_count = PARAMS, .as_indexed = true, .damages = true};
    annal_status status =
        annal__view_select(plot->index, annal_slice_of(sql), &options, functions, fn, arg, &err);
    return status < 0 ? fail_error(&err) : EXIT_DONE;
}

static int print_line(void *arg, const annal_row *row)
{
    (void)arg;
    out_slice(row->values[0].bytes);
    putchar('\n');
    return out_wanted() ? 0 : ANNAL_END;
}

static int keep_text(void *arg, const annal_row *row)
{
    must_append_slice(arg, row->values[0].bytes);
    return 0;
}

/* Run the SELECT of a picture after the one for its axis: one SELECT with both would take SQLite a
 * hundred times as long to compile. */
static int ask_twice(const struct plot *plot, const char *sql, int columns, annal_row_fn fn,
                     void *arg)
{
    SCOPED_BUF axis = {0};
    int exit_status =
        ask(plot, plot->list.count == 0 ? annal__sql_plot_store_axis : annal__sql_plot_session_axis,
            columns, (annal_slice){0}, keep_text, &axis);
    return exit_status != EXIT_DONE ? exit_status
                                    : ask(plot, sql, columns, annal__buf_slice(&axis), fn, arg);
}

static int draw(const struct plot *plot)
{
    SCOPED_BUF text = {0};
    struct target target = {.saved_stdout = -1};
    struct picture picture = {.columns = plot->svg != NULL ? 0 : plot->columns};
    bool file = plot->svg != NULL && strcmp(plot->svg, "-") != 0, store = plot->list.count == 0;
    int exit_status = ask_twice(plot, store ? annal__sql_plot_store : annal__sql_plot_session,
                                picture.columns, picture_row, &picture);
    picture_end(&picture, store ? annal_store_path(plot->store) : plot->args->operands[0], &text);
    if (exit_status == EXIT_DONE)
        exit_status = target_begin(&target, file ? plot->svg : NULL);
    if (exit_status == EXIT_DONE) {
        out_slice(annal__buf_slice(&text));
        exit_status = target_end(&target, true);
    }
    return exit_status;
}

static int draw_and_print(const struct plot *plot)
{
    int exit_status = EXIT_DONE;
    if (plot->svg != NULL || !plot->args->json)
        exit_status = draw(plot);
    if (exit_status == EXIT_DONE && plot->args->json)
        exit_status = ask_twice(
            plot, plot->list.count == 0 ? annal__sql_plot_store_json : annal__sql_plot_session_json,
            0, print_line, NULL);
    return exit_status;
}

int plot_run(const struct args *args)
{
    struct plot plot = {.args = args};
    int exit_status = read_options(&plot);
    if (exit_status == 0)
        exit_status = store_open(args, OPEN_READ, 0, &plot.store);
    if (exit_status == 0)
        exit_status = name_session(&plot);
    if (exit_status == 0)
        exit_status = catch_up_open(plot.store, &plot.list, &plot.index);
    if (exit_status == 0)
        exit_status = draw_and_print(&plot);
    sessions_done(&plot.list);
    annal_index_close(plot.index);
    return store_close(plot.store, exit_status);
}
