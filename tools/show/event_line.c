/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/event_line.h"

#include "journal/base/json_walk.h"
#include "tools/cli/must.h"
#include "tools/show/excerpt.h"
#include "tools/show/gist.h"

#include <annal/query.h>

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { TYPE_COLUMNS = 16 };

bool event_lines_wanted(const struct args *args)
{
    return !args->json && args_get(args, "format") == NULL && isatty(STDOUT_FILENO);
}

/* ---- A line ---- */

static void print_text(int *room, const char *style, annal_slice text)
{
    if (style != NULL)
        out_style(style);
    *room -= out_cut(*room, text);
    if (style != NULL)
        out_style("0");
}

static void print_heading(struct event_lines *lines, annal_slice session, const char *time)
{
    bool same = memcmp(lines->day, time, 10) == 0 &&
                (!lines->sessions || strncmp(lines->session, session.ptr, session.len) == 0) &&
                (!lines->sessions || lines->session[session.len] == '\0');
    if (same)
        return;
    snprintf(lines->day, sizeof lines->day, "%.10s", time);
    snprintf(lines->session, sizeof lines->session, "%.*s", ANNAL_FMT(session));
    out_style("1");
    printf("%s%s%s\n", lines->day, lines->sessions ? "  " : "",
           lines->sessions ? lines->session : "");
    out_style("0");
}

/* Print seq, time and type of an event. Returns the number of columns that remain. */
static int print_envelope(struct event_lines *lines, annal_slice session, const annal_event *event)
{
    char time[HUMAN_TIME_BYTES];
    human_time(time, event->ts_us);
    print_heading(lines, session, time);
    out_style("2");
    int used = printf("%6" PRIu64 "  %s  ", event->seq, time + 11);
    out_style("0");
    used += printf("%-*.*s  ", TYPE_COLUMNS, ANNAL_FMT(event->type));
    return out_columns() - used;
}

/* ---- The speaker ---- */

static int take_tool(void *arg, const annal_row *row)
{
    struct buf *out = arg;
    if (row->values[0].kind == ANNAL_VALUE_TEXT)
        must_append_slice(out, row->values[0].bytes);
    return 0;
}

static void find_tool(annal_index *index, annal_slice session, annal_slice call_id, struct buf *out)
{
    SCOPED_BUF scratch = {0};
    annal_slice id = {0};
    if (index != NULL && call_id.len > 2 && annal__json_text(call_id, &scratch, &id) >= 0) {
        const annal_value params[] = {{.kind = ANNAL_VALUE_TEXT, .bytes = session},
                                      {.kind = ANNAL_VALUE_TEXT, .bytes = id}};
        const annal_sql_options options = {.params = params, .param_count = 2};
        (void)!annal_index_sql(
            index,
            ANNAL_SLICE("SELECT tool FROM tool_calls WHERE session_id = ?1 AND call_id = ?2"),
            &options, take_tool, out, NULL);
    }
}

/* Append the role of a message, or the tool of a call or result. */
static void add_who(struct event_lines *lines, annal_slice session, const annal_event *event,
                    struct buf *out)
{
    annal_slice call_id = event_member(event, "call_id"), tool = event_member(event, "tool");
    enum fact fact = event_fact_of(event);
    if (fact == FACT_MESSAGE)
        excerpt_line(out, event_message_role(event), 30);
    if (fact != FACT_CALL && fact != FACT_RESULT)
        return;
    if (fact == FACT_CALL)
        event_calls_add(&lines->calls, call_id, tool);
    const char *known = event_calls_tool(&lines->calls, call_id);
    if (tool.len > 0)
        excerpt_line(out, tool, 60);
    else if (known != NULL)
        must_append_text(out, known);
    else
        find_tool(lines->index, session, call_id, out);
}

static const char *style_of(const annal_event *event, annal_slice who)
{
    enum fact fact = event_fact_of(event);
    if (fact == FACT_RESULT && event_failed(event))
        return "31";
    if (fact == FACT_MESSAGE)
        return who.len == 4 && memcmp(who.ptr, "user", 4) == 0 ? "1;32" : "1;36";
    return "34";
}

void event_line_print(struct event_lines *lines, annal_slice session, const annal_event *event)
{
    SCOPED_BUF who = {0}, what = {0};
    int room = print_envelope(lines, session, event);
    add_who(lines, session, event, &who);
    if (who.len > 0)
        must_append_text(&who, "  ");
    if (who.len > 0)
        print_text(&room, style_of(event, annal__buf_slice(&who)), annal__buf_slice(&who));
    gist(&what, event);
    print_text(&room, NULL, annal__buf_slice(&what));
    fputc('\n', stdout);
}

void event_line_print_long(struct event_lines *lines, annal_slice session, const annal_event *event,
                           uint64_t data_bytes)
{
    char size[HUMAN_BYTES];
    (void)print_envelope(lines, session, event);
    printf("%s of data: --json prints it\n", human_bytes(size, data_bytes));
}
