/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/plot/plot.h"
#include "tools/plot/timeline_svg.h"
#include "tools/plot/timeline_text.h"

#include <inttypes.h>
#include <string.h>

static void say_what_is_missing(const struct session *session, struct drawing *out)
{
    char text[TEXT_BYTES];
    if (session->events > 0 && session->untimed > 0)
        text_drawing_put(out, "Not in the picture: %s event%s without a time.\n",
                         text_exact(text, (int64_t)session->untimed, UNIT_COUNT),
                         session->untimed == 1 ? "" : "s");
    if (session->damaged > 0)
        say("session '%.*s': %s events are damaged and not in the picture (see 'annal verify')",
            ANNAL_FMT(session->id), text_exact(text, (int64_t)session->damaged, UNIT_COUNT));
}

static void say_session_empty(const struct plot *plot, const struct session *session,
                              struct drawing *out)
{
    if (session->untimed > 0)
        text_drawing_put(out, "The log of this session has no times.\n");
    else
        plot_say_empty(plot, out);
}

static int fill_timeline(const struct plot *plot, struct session *session,
                         struct timeline *timeline)
{
    annal_error err = {0};
    bool svg = plot->svg != NULL;
    int slots = svg ? TIMELINE_SVG_SLOTS : timeline_text_slots(session, plot->columns);
    timeline_init(timeline, session, slots, svg ? TIMELINE_SVG_CUT_SLOTS : 1);
    if (gather_happenings(plot->index, plot->view, session, timeline_enter, timeline, &err) < 0)
        return fail_error(&err);
    timeline_finish(timeline);
    return EXIT_DONE;
}

static int draw_timeline(const struct plot *plot, struct session *session)
{
    struct timeline timeline = {0};
    struct picture picture = {0};
    int exit_status = EXIT_DONE;
    if (session->events == 0)
        say_session_empty(plot, session, &picture.notes);
    else
        exit_status = fill_timeline(plot, session, &timeline);
    if (exit_status == EXIT_DONE && session->events > 0 && plot->svg != NULL)
        picture.height = timeline_svg(&timeline, 0, &picture.drawn);
    else if (exit_status == EXIT_DONE && session->events > 0)
        timeline_text(&timeline, plot->columns, &picture.drawn);
    say_what_is_missing(session, &picture.notes);
    if (exit_status == EXIT_DONE)
        exit_status = plot_put(plot, plot->list.names[0].id, &picture);
    timeline_done(&timeline);
    return exit_status;
}

/* ---- As JSON ---- */

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

static int print_session(const struct plot *plot, struct session *session)
{
    annal_error err = {0};
    out_json("{\"plot\":\"session\",\"session_id\":?,\"events\":#,\"untimed_events\":#",
             session->id, JSON_U64(session->events), JSON_U64(session->untimed));
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

int plot_session(struct plot *plot)
{
    annal_error err = {0};
    struct session session = {.id = annal_slice_of(plot->list.names[0].id), .range = plot->range};
    int exit_status = EXIT_DONE;
    if (gather_session(plot->store, plot->view, &session, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == EXIT_DONE && (plot->svg != NULL || !plot->args->json))
        exit_status = draw_timeline(plot, &session);
    if (exit_status == EXIT_DONE && plot->args->json)
        exit_status = print_session(plot, &session);
    gather_session_done(&session);
    return exit_status;
}
