#include "tools/plot/plot.h"

#include "journal/base/alloc.h"
#include "tools/catch_up.h"
#include "tools/open.h"
#include "tools/plot/chart_text.h"
#include "tools/plot/gather.h"
#include "tools/plot/timeline_text.h"
#include "tools/sessions.h"

#include <inttypes.h>
#include <string.h>

enum { COLUMNS_DEFAULT = 80, COLUMNS_MAX = 400, CHARTS_MAX = 3 };

struct plot {
    const struct args *args;
    enum by by;
    struct range range;
    int columns;
    annal_store *store;
    annal_index *index;
    annal_view *view;
    struct gathered gathered;
    struct session_list list; /* the session that is drawn; none: the store is */
    struct session session;
};

/* ---- The command line ---- */

static int read_options(struct plot *plot)
{
    const struct args *args = plot->args;
    const char *by = args_get(args, "by");
    plot->by = by == NULL ? BY_NONE : by_read(by);
    if (by != NULL && plot->by == BY_NONE)
        return fail_usage("--by is hour, day, week or month, and was given '%s'", by);
    if (by != NULL && args->operand_count > 0)
        return fail_usage("--by is for pictures of the store: a session has one axis of time");
    int exit_status = args_time(args, "since", &plot->range.since_us);
    if (exit_status == 0)
        exit_status = args_time(args, "until", &plot->range.until_us);
    if (exit_status == 0 && plot->range.until_us != 0 &&
        plot->range.since_us >= plot->range.until_us)
        return fail_usage("--since %s is not before --until %s", args_get(args, "since"),
                          args_get(args, "until"));
    int columns = out_columns();
    plot->columns = columns == 0 ? COLUMNS_DEFAULT : columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
    return exit_status;
}

/* ---- Charts ---- */

struct charts {
    struct chart charts[CHARTS_MAX];
    int count;
};

/* From the first time to the last of all that was gathered; what was asked for is wider. */
static bool find_range(const struct plot *plot, int64_t *from_us, int64_t *to_us)
{
    const struct points *all[] = {&plot->gathered.events, &plot->gathered.usage};
    bool found = false;
    for (int i = 0; i < 2; i++) {
        for (size_t j = 0; j < all[i]->count; j++) {
            int64_t time_us = all[i]->at[j].time_us;
            *from_us = found && *from_us < time_us ? *from_us : time_us;
            *to_us = found && *to_us > time_us ? *to_us : time_us;
            found = true;
        }
    }
    if (plot->range.since_us != 0)
        *from_us = plot->range.since_us;
    if (plot->range.until_us != 0)
        *to_us = plot->range.until_us - 1;
    return found;
}

static bool any(const struct points *points, int value)
{
    for (size_t i = 0; i < points->count; i++) {
        if (points->at[i].values[value] > 0)
            return true;
    }
    return false;
}

static void list_charts(struct plot *plot, struct charts *out)
{
    const struct points *usage = &plot->gathered.usage;
    if (plot->gathered.events.count > 0)
        out->charts[out->count++] = (struct chart){.what = "events",
                                                   .points = &plot->gathered.events,
                                                   .series = {{.value = EVENTS, .part = -1}},
                                                   .series_count = 1};
    if (any(usage, INPUT_TOKENS) || any(usage, OUTPUT_TOKENS))
        out->charts[out->count++] =
            (struct chart){.what = "tokens",
                           .points = usage,
                           .series = {{.name = "input",
                                       .part_name = "from cache",
                                       .value = INPUT_TOKENS,
                                       .part = CACHED_INPUT_TOKENS},
                                      {.name = "output", .value = OUTPUT_TOKENS, .part = -1}},
                           .series_count = 2};
    if (any(usage, COST_MICROUSD))
        out->charts[out->count++] = (struct chart){.what = "cost",
                                                   .unit = UNIT_MICROUSD,
                                                   .points = usage,
                                                   .series = {{.value = COST_MICROUSD, .part = -1}},
                                                   .series_count = 1};
}

static int make_charts(struct plot *plot, size_t buckets_max, struct charts *out)
{
    int64_t from_us = 0, to_us = 0;
    if (!find_range(plot, &from_us, &to_us))
        return 0;
    enum by by = plot->by != BY_NONE ? plot->by : chart_choose(from_us, to_us, buckets_max);
    list_charts(plot, out);
    for (int i = 0; i < out->count; i++) {
        struct chart *chart = &out->charts[i];
        bool daily = chart->points == &plot->gathered.usage; /* nothing is known of its hours */
        chart->by = daily && by == BY_HOUR ? BY_DAY : by;
        chart->from_us = from_us;
        chart->to_us = to_us;
        if (!chart_fill(chart, buckets_max))
            return fail_storage("draw the store: out of memory");
    }
    return 0;
}

static void say_empty(const struct plot *plot, struct page *out)
{
    char text[TEXT_BYTES];
    page_put(out, "There are no events");
    if (plot->range.since_us != 0)
        page_put(out, " since %s", text_time(text, plot->range.since_us));
    if (plot->range.until_us != 0)
        page_put(out, "%s before %s", plot->range.since_us != 0 ? " and" : "",
                 text_time(text, plot->range.until_us));
    page_put(out, ".\n");
}

static void say_untimed(const struct plot *plot, struct page *out)
{
    char text[TEXT_BYTES];
    if (plot->gathered.untimed > 0)
        page_put(out, "\nNot in the pictures: %s event%s without a time.\n",
                 text_exact(text, plot->gathered.untimed, UNIT_COUNT),
                 plot->gathered.untimed == 1 ? "" : "s");
}

static int print_page(struct page *page)
{
    if (page->lacks)
        return fail_storage("draw: out of memory");
    out_slice(annal__buf_slice(&page->text));
    return EXIT_DONE;
}

static int draw_charts(struct plot *plot)
{
    struct charts charts = {0};
    struct page page = {0};
    int exit_status = make_charts(plot, chart_text_buckets(plot->columns), &charts);
    for (int i = 0; i < charts.count; i++) {
        page_put(&page, "%s", i > 0 ? "\n" : "");
        if (exit_status == 0)
            chart_text(&charts.charts[i], plot->columns, &page);
        chart_done(&charts.charts[i]);
    }
    if (charts.count == 0)
        say_empty(plot, &page);
    say_untimed(plot, &page);
    exit_status = exit_status == 0 ? print_page(&page) : exit_status;
    page_done(&page);
    return exit_status;
}

static void print_bucket(const struct point *bucket, bool usage, enum by by)
{
    static const char *const names[] = {"input_tokens", "output_tokens", "cached_input_tokens",
                                        "cache_write_tokens", "cost_microusd"};
    printf("{\"plot\":\"%s\",\"by\":\"%s\",\"begin\":\"", usage ? "usage" : "events", by_name(by));
    out_time(bucket->time_us);
    fputc('"', stdout);
    if (!usage)
        printf(",\"events\":%" PRId64, bucket->values[EVENTS]);
    for (int i = 0; usage && i < POINT_VALUES; i++)
        printf(",\"%s\":%" PRId64, names[i], bucket->values[i]);
    puts("}");
}

/* Points come by time, so a bucket is whole when the next one begins; empty ones are left out. */
static void print_buckets(const struct points *points, bool usage, enum by by)
{
    enum by finest = usage ? BY_DAY : BY_HOUR;
    struct point bucket = {0};
    by = by < finest ? finest : by;
    for (size_t i = 0; i < points->count; i++) {
        int64_t begin_us = by_begin(by, points->at[i].time_us);
        if (i > 0 && begin_us != bucket.time_us) {
            print_bucket(&bucket, usage, by);
            bucket = (struct point){0};
        }
        bucket.time_us = begin_us;
        for (int j = 0; j < POINT_VALUES; j++)
            bucket.values[j] += points->at[i].values[j];
    }
    if (points->count > 0)
        print_bucket(&bucket, usage, by);
}

static int print_points(const struct plot *plot)
{
    print_buckets(&plot->gathered.events, false, plot->by);
    print_buckets(&plot->gathered.usage, true, plot->by);
    return EXIT_DONE;
}

/* ---- A timeline ---- */

static void say_what_is_missing(const struct plot *plot, struct page *out)
{
    const struct session *session = &plot->session;
    char text[TEXT_BYTES];
    if (session->events > 0 && session->untimed > 0)
        page_put(out, "\nNot in the picture: %s event%s without a time.\n",
                 text_exact(text, (int64_t)session->untimed, UNIT_COUNT),
                 session->untimed == 1 ? "" : "s");
    if (session->damaged > 0)
        say("session '%.*s': %s events are damaged and not in the picture ('annal verify' tells "
            "more)",
            ANNAL_FMT(session->id), text_exact(text, (int64_t)session->damaged, UNIT_COUNT));
}

static void say_session_empty(const struct plot *plot, struct page *out)
{
    if (plot->session.untimed > 0)
        page_put(out, "The log of this session tells no times.\n");
    else
        say_empty(plot, out);
}

static int print_happening(void *arg, const struct happening *what)
{
    static const char *const names[] = {[HAPPENED_TURN] = "turn",
                                        [HAPPENED_USER] = "user",
                                        [HAPPENED_CALL] = "call",
                                        [HAPPENED_TOKENS] = "tokens",
                                        [HAPPENED_FAIL] = "failure"};
    (void)arg;
    if (what->kind == HAPPENED_EVENT)
        return 0;
    printf("{\"plot\":\"%s\",\"name\":", names[what->kind]);
    if (what->name.len > 0)
        out_json_string(what->name);
    else
        fputs("null", stdout);
    fputs(",\"from\":\"", stdout);
    out_time(what->from_us);
    fputs("\",\"to\":\"", stdout);
    out_time(what->to_us);
    printf("\",\"failed\":%s,\"open\":%s", what->failed ? "true" : "false",
           what->open ? "true" : "false");
    if (what->kind == HAPPENED_TOKENS)
        printf(",\"input_tokens\":%" PRId64 ",\"output_tokens\":%" PRId64, what->input_tokens,
               what->output_tokens);
    puts("}");
    return out_wanted() ? 0 : ANNAL_END;
}

static int print_session(struct plot *plot)
{
    annal_error err = {0};
    struct session *session = &plot->session;
    fputs("{\"plot\":\"session\",\"session_id\":", stdout);
    out_json_string(session->id);
    printf(",\"events\":%" PRIu64 ",\"untimed_events\":%" PRIu64, session->events,
           session->untimed);
    if (session->events > 0) {
        fputs(",\"from\":\"", stdout);
        out_time(session->from_us);
        fputs("\",\"to\":\"", stdout);
        out_time(session->to_us);
        fputc('"', stdout);
    }
    puts("}");
    for (size_t i = 0; i < session->pause_count; i++) {
        fputs("{\"plot\":\"pause\",\"from\":\"", stdout);
        out_time(session->pauses[i].from_us);
        fputs("\",\"to\":\"", stdout);
        out_time(session->pauses[i].to_us);
        puts("\"}");
    }
    if (session->events > 0 &&
        gather_happenings(plot->index, plot->view, session, print_happening, NULL, &err) < 0)
        return fail_error(&err);
    return EXIT_DONE;
}

static int draw_timeline(struct plot *plot)
{
    annal_error err = {0};
    struct timeline timeline = {0};
    struct page page = {0};
    int exit_status = EXIT_DONE;
    int slots = timeline_text_slots(&plot->session, plot->columns);
    if (plot->session.events == 0) {
        say_session_empty(plot, &page);
    } else if (!timeline_init(&timeline, &plot->session, slots, 1)) {
        exit_status = fail_storage("draw the session: out of memory");
    } else if (gather_happenings(plot->index, plot->view, &plot->session, timeline_enter, &timeline,
                                 &err) < 0) {
        exit_status = fail_error(&err);
    } else {
        timeline_finish(&timeline);
        timeline_text(&timeline, plot->columns, &page);
    }
    say_what_is_missing(plot, &page);
    exit_status = exit_status == EXIT_DONE ? print_page(&page) : exit_status;
    timeline_done(&timeline);
    page_done(&page);
    return exit_status;
}

/* ---- The verb ---- */

static int plot_store(struct plot *plot)
{
    annal_error err = {0};
    if (gather_charts(plot->view, &plot->range, &plot->gathered, &err) < 0)
        return fail_error(&err);
    return plot->args->json ? print_points(plot) : draw_charts(plot);
}

static int plot_session(struct plot *plot)
{
    annal_error err = {0};
    plot->session.id = annal_slice_of(plot->list.names[0].id);
    plot->session.range = plot->range;
    if (gather_session(plot->store, plot->view, &plot->session, &err) < 0)
        return fail_error(&err);
    return plot->args->json ? print_session(plot) : draw_timeline(plot);
}

static int plot_all(struct plot *plot)
{
    annal_error err = {0};
    if (annal_view_open(plot->index, &plot->view, &err) < 0)
        return fail_error(&err);
    int exit_status = plot->list.count > 0 ? plot_session(plot) : plot_store(plot);
    annal_view_close(plot->view);
    return exit_status;
}

/* The index of a fork's ancestors has to be caught up, too. */
static int add_ancestor(void *arg, const annal_lineage_part *part)
{
    struct session_list *list = arg;
    if (annal_slice_of(list->names[0].id).len == part->session.len &&
        memcmp(list->names[0].id, part->session.ptr, part->session.len) == 0)
        return 0;
    void *grown = annal__realloc_array(list->names, list->count + 1, sizeof *list->names);
    if (grown == NULL)
        return fail_storage("draw the session: out of memory");
    list->names = grown;
    list->capacity = list->count + 1;
    list->names[list->count] = (struct session_name){0};
    memcpy(list->names[list->count++].id, part->session.ptr, part->session.len);
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
    int status = annal_session_lineage(plot->store, id, add_ancestor, &plot->list, &err);
    return status < 0 ? fail_error(&err) : status;
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
        exit_status = index_open_caught_up(plot.store, &plot.list, &plot.index);
    if (exit_status == 0)
        exit_status = plot_all(&plot);
    gathered_done(&plot.gathered);
    session_done(&plot.session);
    sessions_done(&plot.list);
    annal_index_close(plot.index);
    return store_close(plot.store, exit_status);
}

int plot_refuse_options(const struct args *args)
{
    static const char *const names[] = {"by", "since", "until", "svg"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (args_has(args, names[i]))
            return fail_usage("--%s belongs to a picture: annal stats --plot --%s ...", names[i],
                              names[i]);
    }
    return args->operand_count > 0 ? fail_usage("annal stats counts the whole store: 'annal show "
                                                "%s' tells of one session, --plot draws it",
                                                args->operands[0])
                                   : 0;
}
