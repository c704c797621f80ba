/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/player.h"

#include "index/sys/open.h"
#include "journal/base/clock.h"
#include "journal/sys/cursor.h"
#include "tools/cli/args.h"
#include "tools/cli/command.h"
#include "tools/cli/out.h"
#include "tools/cli/terminal.h"
#include "tools/cli/width.h"
#include "tools/show/cast.h"
#include "tools/show/conversation.h"
#include "tools/show/event_out.h"
#include "tools/show/player_find.h"

#include <annal/journal.h>
#include <annal/query.h>
#include <annal/replay.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LOOK_US = 50000, LONGEST_WAIT_MS = 500, STATUS_BYTES = 400, BEGIN_BYTES = 120, INDENT = 19 };

static const double SPEED_MAX = 1000; /* a higher speed means no pauses */

struct player {
    const struct player_options *options;
    annal_index *index;
    annal_slice session;
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_cursor *cursor;
    uint64_t data_bytes; /* size of the data of the cursor's last event */
    /* data of the cursor's last event, if the cursor returned the event without it */
    struct buf data;
    struct terminal terminal;
    struct conversation talk;
    struct cast cast;
    char types[80];  /* types to show, as the user typed them */
    char search[80]; /* text that was searched last */
    double speed;
    bool paused;
    bool step; /* whether to show one event, then pause */
    bool quit;
    bool status;    /* whether the last line of the screen shows the status */
    uint64_t shown; /* seq of the last event shown */
    int64_t shown_ts_us;
    uint64_t damaged;
    uint64_t sound_seq; /* damage before this seq is already in `damaged` */
    int64_t looked_us;  /* time of the last check of keys and status, in us (monotonic) */
};

/* ---- The last line of the screen ---- */

static void clear_status(struct player *player)
{
    if (player->status)
        out_control(stdout, CLEAR_LINE);
    player->status = false;
}

static void speed_text(const struct player *player, char text[HUMAN_BYTES])
{
    if (player->speed == 0)
        snprintf(text, HUMAN_BYTES, "max");
    else
        snprintf(text, HUMAN_BYTES, "%gx", player->speed);
}

static void draw_status(struct player *player)
{
    char text[STATUS_BYTES], tally[TALLY_BYTES], speed[HUMAN_BYTES], ts[HUMAN_TIME_BYTES] = "";
    if (!player->terminal.open)
        return;
    player->talk.columns = out_columns();
    speed_text(player, speed);
    if (player->shown > 0)
        human_time(ts, player->shown_ts_us);
    snprintf(text, sizeof text, "%s %s  event %" PRIu64 " of %" PRIu64 "  %.19s  %s  [? for keys]",
             player->paused ? "⏸" : "▶", speed, player->shown, player->options->to_seq, ts,
             event_tally_text(tally, &player->talk.spending.tally));
    out_control(stdout, CLEAR_LINE);
    out_style("7");
    printf("%.*s", (int)width_fitting(text, player->talk.columns - 1), text);
    out_style("0");
    fflush(stdout);
    player->status = true;
}

/* ---- Moving ---- */

static uint64_t integer_at(const annal_row *row, size_t i)
{
    return i < row->count ? (uint64_t)row->values[i].integer : 0;
}

static int take_tally(void *arg, const annal_row *row)
{
    struct conversation *talk = arg;
    talk->spending.tally = (struct tally){.turns = integer_at(row, 0),
                                          .input_tokens = (int64_t)integer_at(row, 1),
                                          .output_tokens = (int64_t)integer_at(row, 2),
                                          .cost_microusd = (int64_t)integer_at(row, 3)};
    return 0;
}

static int take_turn(void *arg, const annal_row *row)
{
    conversation_know_turn(arg, row->values[0].bytes, integer_at(row, 1) != 0, integer_at(row, 2));
    return 0;
}

static int take_call(void *arg, const annal_row *row)
{
    conversation_know_call(arg, row->values[0].bytes, row->values[1].bytes);
    return 0;
}

/* Read the state before an event from the index: usage, turns and calls up to it. */
static annal_status know_state(struct player *player, uint64_t seq, annal_error *err)
{
    static const struct {
        const char *sql;
        annal_row_fn take;
    } questions[] = {
        {"SELECT total_turns, input_tokens, output_tokens, cost_microusd FROM sessions",
         take_tally},
        {"SELECT turn_id, completed_at IS NOT NULL, seq FROM (SELECT * FROM turns WHERE turn_id IS "
         "NOT"
         " NULL ORDER BY sequence DESC LIMIT 250) ORDER BY sequence",
         take_turn},
        {"SELECT call_id, tool FROM dangling ORDER BY seq DESC LIMIT 100", take_call}};
    annal_state *state = NULL;
    player->talk.spending.tally = (struct tally){0};
    if (seq == 0)
        return ANNAL_OK;
    annal_status status = annal_replay_open(player->index, player->session,
                                            (annal_moment){.kind = ANNAL_AT_SEQ, .seq = seq}, NULL,
                                            &state, NULL, err);
    for (size_t i = 0; status >= 0 && i < sizeof questions / sizeof *questions; i++)
        status = annal_state_sql(state, annal_slice_of(questions[i].sql), NULL, questions[i].take,
                                 &player->talk, err);
    annal_state_free(state);
    return status;
}

/* Move the cursor so that the next event is seq. */
static annal_status go_to(struct player *player, uint64_t seq, annal_error *err)
{
    annal_status status = annal_cursor_seek(player->cursor, seq, err);
    return status < 0 || player->options->json ? status : know_state(player, seq - 1, err);
}

/* ---- Keys ---- */

static void change_speed(struct player *player, bool faster)
{
    if (faster)
        player->speed = player->speed == 0 || player->speed * 2 > SPEED_MAX ? 0 : player->speed * 2;
    else
        player->speed = player->speed == 0 ? SPEED_MAX / 2 : fmax(player->speed / 2, 1.0 / 16);
}

/* Print a line about the player itself, such as help. */
static void remark(struct player *player, const char *text)
{
    clear_status(player);
    conversation_end_line(&player->talk);
    printf("%*s%s\n", INDENT, "", text);
}

static void help(struct player *player)
{
    static const char *const lines[] = {
        "space      pause, continue         + -   faster, slower",
        "right, Enter   next event        left, p   previous event",
        "n  N       next, last message of the user",
        "f          next failure          /     search (nothing: again)",
        "g          go to an event        t     types that are shown: tool.*, *; nothing: the",
        "q          end                         conversation"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        remark(player, lines[i]);
}

static void ask_types(struct player *player)
{
    char types[sizeof player->types];
    if (!terminal_line(&player->terminal, "types: ", types, sizeof types))
        return;
    memcpy(player->types, types, sizeof types);
    player->talk.types = player->types;
}

/* Handle a key that does not change the position. */
static void act(struct player *player, enum key key)
{
    if (key == KEY_SPACE)
        player->paused = !player->paused;
    else if (key == KEY_NEXT)
        player->step = player->paused = true;
    else if (key == KEY_FASTER || key == KEY_SLOWER)
        change_speed(player, key == KEY_FASTER);
    else if (key == KEY_HELP)
        help(player);
    else if (key == KEY_TYPES)
        ask_types(player);
    else if (key == KEY_QUIT || key == KEY_SIGNAL)
        player->quit = true;
    player->looked_us = annal__clock_monotonic_us();
    if (key != KEY_NONE)
        draw_status(player);
}

static bool moves(enum key key)
{
    return key == KEY_BACK || key == KEY_SEARCH || key == KEY_TURN || key == KEY_TURN_BACK ||
           key == KEY_FAILURE || key == KEY_GOTO;
}

/* Handle keys until the next event is to be shown. Returns KEY_NONE, or a key that changes the
 * position. */
static enum key wait_for(struct player *player, double left_us, bool at_end)
{
    for (;;) {
        int64_t begin = annal__clock_monotonic_us();
        bool still = player->paused || at_end;
        double real_us = player->speed == 0 ? 0 : left_us / player->speed;
        int ms =
            still || real_us > LONGEST_WAIT_MS * 1e3 ? LONGEST_WAIT_MS : (int)ceil(real_us / 1e3);
        enum key key = terminal_key(&player->terminal, ms);
        if (moves(key))
            return key;
        act(player, key);
        if (player->quit || (player->step && !at_end))
            return KEY_NONE;
        player->step = false;
        if (!still)
            left_us -= (double)(annal__clock_monotonic_us() - begin) * player->speed;
        if (!player->paused && (at_end || player->speed == 0 || left_us <= 0))
            return KEY_NONE;
    }
}

/* Choose what to search for a key, and from which event on. Returns false if the user cancelled. */
static bool ask_where(struct player *player, enum key key, struct search *search,
                      uint64_t *from_seq)
{
    char text[sizeof player->search];
    const char *prompt = key == KEY_GOTO ? "go to event: " : "search: ";
    *search = (struct search){.sought = key == KEY_TURN || key == KEY_TURN_BACK ? SOUGHT_TURN
                                        : key == KEY_FAILURE                    ? SOUGHT_FAILURE
                                        : key == KEY_SEARCH                     ? SOUGHT_TEXT
                                                                                : SOUGHT_ANY,
                              .text = player->search,
                              .talk = &player->talk};
    if (key != KEY_GOTO && key != KEY_SEARCH)
        return true;
    if (!terminal_line(&player->terminal, prompt, text, sizeof text))
        return false;
    if (key == KEY_GOTO)
        return fields_parse_number(text, from_seq);
    if (text[0] != '\0')
        memcpy(player->search, text, sizeof text);
    return player->search[0] != '\0';
}

/* Show the event that a key requests, and pause after it. If there is no such event, the next one
 * to show remains next_seq. */
static annal_status move(struct player *player, enum key key, uint64_t next_seq, annal_error *err)
{
    bool back = key == KEY_BACK || key == KEY_TURN_BACK;
    uint64_t from_seq = back ? player->options->from_seq : player->shown + 1, seq = 0;
    uint64_t to_seq = back ? player->shown - (player->shown > 0) : player->options->to_seq;
    char text[60];
    struct search search;
    annal_status status = ANNAL_OK;
    clear_status(player);
    player->paused = true;
    if (ask_where(player, key, &search, &from_seq) && from_seq <= to_seq && from_seq > 0) {
        status = player_find(annal__index_store(player->index), player->session, &search, from_seq,
                             to_seq, back, &seq, err);
        if (seq == 0 && status >= 0 && !back)
            remark(player, "no such event after this event");
    }
    if (status < 0 || seq == 0)
        return status < 0 ? status : annal_cursor_seek(player->cursor, next_seq, err);
    snprintf(text, sizeof text, "%s to event %" PRIu64, seq <= player->shown ? "↑ back" : "↓ on",
             seq);
    remark(player, text);
    player->shown = 0;
    player->step = true;
    return go_to(player, seq, err);
}

/* ---- Playing ---- */

static void span_text(char text[HUMAN_BYTES], double seconds)
{
    if (seconds < 120)
        snprintf(text, HUMAN_BYTES, "%.0f s", seconds);
    else if (seconds < 7200)
        snprintf(text, HUMAN_BYTES, "%.0f min", seconds / 60);
    else if (seconds < 172800)
        snprintf(text, HUMAN_BYTES, "%.1f h", seconds / 3600);
    else
        snprintf(text, HUMAN_BYTES, "%.1f days", seconds / 86400);
}

/* Return the pause before an event, in us of the session's time. A pause longer than `gap` is cut,
 * which a line reports. */
static double pause_before(struct player *player, const annal_event *event)
{
    char text[HUMAN_BYTES], later[HUMAN_BYTES + 20];
    if (player->speed == 0 || player->shown == 0 || event->ts_us <= player->shown_ts_us ||
        player->shown_ts_us <= 1) /* 1 is how importers write an unknown time */
        return 0;
    double gap_us = (double)(event->ts_us - player->shown_ts_us);
    double most_us = player->options->gap * 1e6 * player->speed;
    if (player->options->gap == 0 || gap_us <= most_us)
        return gap_us;
    if (!player->options->json && !player->step) {
        span_text(text, gap_us / 1e6);
        snprintf(later, sizeof later, "… %s later", text);
        remark(player, later);
    }
    return most_us;
}

/* Print an event as a part of the conversation; of long data only the beginning. */
static annal_status show_talk(struct player *player, annal_event *event, annal_error *err)
{
    char begin[BEGIN_BYTES];
    size_t len = 0;
    annal_status status = ANNAL_OK;
    if (event->data.len == 0)
        status = annal__cursor_data(player->cursor, 0, begin, sizeof begin, &len, err);
    if (status < 0)
        return status;
    if (event->data.len > 0)
        conversation_print(&player->talk, event);
    else
        conversation_print_long(&player->talk, event, (annal_slice){begin, len},
                                player->data_bytes);
    return ANNAL_OK;
}

static annal_status show(struct player *player, annal_event *event, annal_error *err)
{
    annal_status status = ANNAL_OK;
    clear_status(player);
    if (!player->options->json)
        status = show_talk(player, event, err);
    else if (!event_print_head(player->cursor, event, player->session, player->data_bytes, err))
        status = err->status;
    player->shown = event->seq;
    player->shown_ts_us = event->ts_us;
    player->step = false;
    return status;
}

/* Return whether to check the keys now, although no pause is due. */
static bool is_time_to_look(const struct player *player)
{
    return player->terminal.open && annal__clock_monotonic_us() - player->looked_us >= LOOK_US;
}

/* Return whether the event is hidden, because its type is not shown; then only count its token
 * usage. */
static bool passes(struct player *player, const annal_event *event)
{
    if (player->options->json || conversation_shows(&player->talk, event))
        return false;
    conversation_print(&player->talk, event);
    return true;
}

static annal_status show_next(struct player *player, annal_event *event, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (!player->options->json)
        status = event_read_data(player->cursor, event, player->data_bytes, &player->data, err);
    if (status < 0 || passes(player, event))
        return status;
    double left_us = pause_before(player, event);
    if (player->cast.open) {
        cast_pass(&player->cast, player->speed == 0 ? 0 : left_us / player->speed / 1e6);
    } else if (player->paused || left_us > 0 || is_time_to_look(player)) {
        draw_status(player);
        fflush(stdout);
        enum key key = player->step ? KEY_NONE : wait_for(player, left_us, false);
        if (key != KEY_NONE)
            return move(player, key, event->seq, err);
    }
    /* check again whether the event is shown: while this function waited, a key may have changed
     * which types are */
    return player->quit || passes(player, event) ? ANNAL_OK : show(player, event, err);
}

/* At the end of the session, wait for keys while the player is paused: the user may step back.
 * *out_done: whether playing ends. */
static annal_status stay_at_end(struct player *player, bool *out_done, annal_error *err)
{
    *out_done = true;
    if (!player->terminal.open || !player->paused)
        return ANNAL_OK;
    draw_status(player);
    enum key key = wait_for(player, 0, true);
    if (key == KEY_NONE)
        return ANNAL_OK;
    *out_done = false;
    return move(player, key, player->options->to_seq + 1, err);
}

/* Count the damage at this position, but only once if the user steps back and passes it again. */
static void count_damage(struct player *player)
{
    annal_damage damage = annal_cursor_damage(player->cursor);
    if (damage.seq >= player->sound_seq)
        player->damaged++;
    player->sound_seq = damage.seq + 1;
}

static annal_status play(struct player *player, annal_error *err)
{
    uint64_t from_seq = player->options->from_seq;
    bool done = false;
    annal_status status = annal_cursor_open(annal__index_store(player->index), player->session,
                                            from_seq, &player->cursor, err);
    if (status >= 0)
        status = go_to(player, from_seq, err);
    while (status >= 0 && !done && !player->quit && out_wanted()) {
        annal_event event;
        bool at_end = annal_cursor_position(player->cursor).seq > player->options->to_seq;
        status = at_end ? ANNAL_END
                        : annal__cursor_next_head(player->cursor, &event, &player->data_bytes, err);
        if (status == ANNAL_DAMAGE)
            count_damage(player);
        else if (status == ANNAL_END)
            status = stay_at_end(player, &done, err);
        else if (status == ANNAL_OK)
            status = show_next(player, &event, err);
    }
    return status;
}

static int begin_cast(struct player *player)
{
    player->talk.colours = player->talk.rewrites = true;
    player->talk.columns = CAST_COLUMNS;
    return cast_begin(&player->cast, player->options->cast, player->session);
}

int player_run(annal_index *index, annal_slice session, const struct player_options *options)
{
    struct player_options own = *options;
    struct player player = {.options = &own,
                            .index = index,
                            .session = session,
                            .speed = options->speed,
                            .talk = {.full = options->full}};
    annal_error err = {0};
    int exit_status = 0;
    snprintf(player.name, sizeof player.name, "%.*s", ANNAL_FMT(session));
    own.from_seq = own.from_seq == 0 ? 1 : own.from_seq;
    player.talk.colours = out_colours(stdout);
    player.talk.columns = out_columns();
    player.talk.types = own.types;
    if (own.to_seq < own.from_seq)
        return EXIT_DONE;
    if (own.cast != NULL)
        exit_status = begin_cast(&player);
    /* keys are read only for a conversation: JSON lines are for programs, even on a terminal */
    else if (!own.json)
        player.talk.rewrites = terminal_open(&player.terminal);
    if (exit_status != 0)
        return exit_status;
    annal_status status = play(&player, &err);
    clear_status(&player);
    conversation_done(&player.talk);
    fflush(stdout);
    exit_status = cast_end(&player.cast, status >= 0);
    annal_cursor_close(player.cursor);
    annal__buf_done(&player.data);
    terminal_close(&player.terminal);
    if (status < 0)
        return fail_error(&err);
    if (exit_status != 0)
        return exit_status;
    if (player.damaged == 0)
        return EXIT_DONE;
    say("session '%s': %" PRIu64 " damaged places were skipped; 'annal verify %s' lists them",
        player.name, player.damaged, player.name);
    return EXIT_REFUSED;
}
