/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the state of a session at a moment, queries the state in SQL, or plays the events up to
 * the moment.
 */
#include "index/sys/pack.h"
#include "journal/sys/seam.h"
#include "snapshot/sys/snapshot.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/overdue.h"
#include "tools/cli/rows.h"
#include "tools/cli/store_open.h"
#include "tools/show/event_out.h"
#include "tools/show/player.h"
#include "tools/show/replay_proof.h"

#include <annal/pack.h>
#include <annal/replay.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DUE_EVENTS = 1000, GAP_SECONDS = 5, AMOUNT_MAX = 1000000 };

struct replay {
    const struct args *args;
    annal_slice session;
    annal_moment at;
    annal_moment from; /* first moment of --events */
    struct player_options play;
    enum out_format format; /* format of the answer to --sql */
    annal_store *store;
    annal_index *index;
    annal_pack *pack;    /* pack of --pack; NULL: the tables of core */
    annal_limits limits; /* limits of --sql */
};

/* Choose the pace of --events. If nobody watches (no terminal, no --cast), the usual speed is max.
 * Return the exit status. */
static int read_pace(struct replay *replay)
{
    const struct args *args = replay->args;
    const char *speed = args_get(args, "speed");
    bool watched = isatty(STDOUT_FILENO) || args_has(args, "cast");
    bool max = speed != NULL ? strcmp(speed, "max") == 0 : !watched;
    replay->play = (struct player_options){.speed = max ? 0 : 1,
                                           .gap = fields_amount(args, "gap", GAP_SECONDS),
                                           .json = args->json,
                                           .types = args_get(args, "type"),
                                           .cast = args_get(args, "cast"),
                                           .full = args_has(args, "full")};
    if (speed != NULL && !max &&
        (!fields_parse_amount(speed, AMOUNT_MAX, &replay->play.speed) || replay->play.speed == 0))
        return fail_usage("--speed needs a number above 0, such as 2 or 0.5, or max, not '%s'",
                          speed);
    return 0;
}

static int read_options(struct replay *replay)
{
    const struct args *args = replay->args;
    replay->limits = fields_limits(args);
    replay->at.kind = ANNAL_AT_END;
    replay->from.kind = ANNAL_AT_SEQ;
    fields_moment(args, "at", &replay->at);
    fields_moment(args, "to", &replay->at);
    fields_moment(args, "from", &replay->from);
    int exit_status = read_pace(replay);
    return exit_status != 0 || !args_has(args, "sql") ? exit_status
                                                      : fields_format(args, &replay->format);
}

static int write_bytes(void *arg, const char *bytes, size_t len)
{
    (void)arg;
    out_slice((annal_slice){bytes, len});
    return 0;
}

static int print_sql(struct replay *replay, annal_state *state)
{
    annal_error err = {0};
    struct rows rows = {.format = replay->format, .unfold = !args_has(replay->args, "format")};
    annal_status status =
        annal_state_sql(state, annal_slice_of(args_get(replay->args, "sql")),
                        &(annal_sql_options){.columns = rows_columns, .limits = replay->limits},
                        rows_row, &rows, &err);
    rows_done(&rows);
    if (status < 0)
        return fields_fail_limited(&err);
    return status == ANNAL_END ? EXIT_DONE : (int)status;
}

/* Print for people the session's row, one column per line, and its turns. Return the exit
 * status. */
static int print_text(annal_state *state)
{
    static const char session[] = "SELECT * FROM sessions";
    static const char turns[] = "SELECT sequence AS turn, status, created_at, completed_at,"
                                " input_tokens, output_tokens, cost_usd FROM turns"
                                " ORDER BY sequence";
    annal_error err = {0};
    struct rows rows = {.format = OUT_TABLE};
    printf("%-20s %" PRIu64 "\n", "after seq", annal_state_seq(state));
    annal_status status =
        annal_state_sql(state, ANNAL_SLICE(session), NULL, rows_print_lines, NULL, &err);
    fputc('\n', stdout);
    if (status == ANNAL_OK)
        status =
            annal_state_sql(state, ANNAL_SLICE(turns),
                            &(annal_sql_options){.columns = rows_columns}, rows_row, &rows, &err);
    rows_done(&rows);
    return status < 0 ? fail_error(&err) : EXIT_DONE;
}

static int add_name(void *arg, const annal_row *row)
{
    must_append_slice(arg, row->values[0].bytes);
    must_append(arg, "", 1);
    return ANNAL_OK;
}

/* Print all tables of a pack. Return the exit status. */
static int print_tables(annal_state *state)
{
    static const char tables[] = "SELECT name FROM sqlite_schema WHERE type = 'table' AND "
                                 "substr(name, 1, 1) <> '_' AND name NOT LIKE 'sqlite~_%' "
                                 "ESCAPE '~' ORDER BY rowid";
    annal_error err = {0};
    SCOPED_BUF names = {0};
    printf("%-20s %" PRIu64 "\n", "after seq", annal_state_seq(state));
    annal_status status = annal_state_sql(state, ANNAL_SLICE(tables), NULL, add_name, &names, &err);
    for (size_t at = 0; status == ANNAL_OK && at < names.len; at += strlen(names.ptr + at) + 1) {
        char sql[300];
        struct rows rows = {.format = OUT_TABLE};
        printf("\n%s\n", names.ptr + at);
        snprintf(sql, sizeof sql, "SELECT * FROM \"%s\"", names.ptr + at);
        status =
            annal_state_sql(state, annal_slice_of(sql),
                            &(annal_sql_options){.columns = rows_columns}, rows_row, &rows, &err);
        rows_done(&rows);
    }
    return status < 0 ? fail_error(&err) : EXIT_DONE;
}

static int print_json(annal_state *state)
{
    annal_error err = {0};
    annal_status status = annal_state_json(state, write_bytes, NULL, &err);
    fputc('\n', stdout);
    return status < 0 ? fail_error(&err) : EXIT_DONE;
}

static void say_damaged(const struct replay *replay, uint64_t places)
{
    say("session '%.*s': %" PRIu64 " damaged places were skipped; 'annal verify' lists them",
        ANNAL_FMT(replay->session), places);
}

/*
 * After the answer was printed, take the snapshots that are due, if the state was computed from at
 * least DUE_EVENTS events. A failure is ignored.
 */
static void take_due_snapshots(const struct replay *replay, const annal_replay_info *info)
{
    annal_error err = {0};
    if (replay->pack != NULL || info->folded < DUE_EVENTS ||
        args_has(replay->args, "no-snapshots") || annal__session_list_is_read_only(replay->store) ||
        !out_flush())
        return;
    (void)!annal__snapshot_catch_up(replay->index, replay->session, NULL, NULL, &err);
}

static int print_state(struct replay *replay)
{
    annal_error err = {0};
    annal_state *state = NULL;
    annal_replay_info info = {0};
    int exit_status;
    annal_replay_options options = {.no_snapshots = args_has(replay->args, "no-snapshots")};
    const annal_pack *packs[] = {replay->pack};
    if (replay->pack != NULL) {
        options.packs = packs;
        options.pack_count = 1;
    }
    if (annal_replay_open(replay->index, replay->session, replay->at, &options, &state, &info,
                          &err) < 0)
        return fail_error(&err);
    if (args_has(replay->args, "sql"))
        exit_status = print_sql(replay, state);
    else if (args_has(replay->args, "hash"))
        exit_status = replay_print_hash(replay->session, state, info.seq, replay->args->json);
    else
        exit_status = replay->args->json     ? print_json(state)
                      : replay->pack != NULL ? print_tables(state)
                                             : print_text(state);
    if (info.damaged > 0)
        say_damaged(replay, info.damaged);
    annal_state_free(state);
    take_due_snapshots(replay, &info);
    return exit_status == EXIT_DONE && info.damaged > 0 ? EXIT_REFUSED : exit_status;
}

/* Find the first event to play. For a time it is the event after the last earlier event. */
static annal_status first_seq(struct replay *replay, uint64_t *out_seq, annal_error *err)
{
    annal_moment before = replay->from;
    if (before.kind == ANNAL_AT_SEQ) {
        *out_seq = before.seq;
        return ANNAL_OK;
    }
    before.time_us--;
    annal_status status = annal_replay_seq(replay->index, replay->session, before, out_seq, err);
    ++*out_seq;
    return status;
}

static int play_events(struct replay *replay)
{
    annal_error err = {0};
    struct player_options *play = &replay->play;
    annal_status status =
        annal_replay_seq(replay->index, replay->session, replay->at, &play->to_seq, &err);
    if (status >= 0)
        status = first_seq(replay, &play->from_seq, &err);
    return status < 0 ? fail_error(&err) : player_run(replay->index, replay->session, play);
}

static int find_pack(struct replay *replay)
{
    annal_error err = {0};
    const char *name = args_get(replay->args, "pack");
    if (name == NULL || strcmp(name, "core") == 0)
        return EXIT_DONE;
    return annal__pack_named(replay->index, name, &replay->pack, &err) < 0 ? fail_error(&err)
                                                                           : EXIT_DONE;
}

/* Open the index. The state is computed from the journal, so new events are added to the index only
 * for --events and --verify, which look up rows in it. */
static int open_index(struct replay *replay, const struct session_list *list)
{
    annal_error err = {0};
    if (args_has(replay->args, "events") || args_has(replay->args, "verify"))
        return catch_up_open(replay->store, list, &replay->index);
    return annal_index_open(replay->store, NULL, &replay->index, &err) < 0 ? fail_error(&err)
                                                                           : EXIT_DONE;
}

static int run(const struct args *args)
{
    struct replay replay = {.args = args, .format = OUT_TABLE};
    struct session_list list = {0};
    event_keep_bytes(args_has(args, "raw"));
    int exit_status = read_options(&replay);
    if (exit_status == 0 && args_has(args, "sql"))
        overdue_watch(&replay.limits);
    if (exit_status == 0)
        exit_status = store_open(args, OPEN_READ, 0, &replay.store);
    replay.session = fields_text(args, "SESSION");
    if (exit_status == 0)
        exit_status = sessions_collect(replay.store, args, &list);
    if (exit_status == 0)
        exit_status = open_index(&replay, &list);
    if (exit_status == 0)
        exit_status = find_pack(&replay);
    if (exit_status == 0)
        exit_status = args_has(args, "events") ? play_events(&replay)
                      : args_has(args, "verify")
                          ? replay_prove(replay.index, replay.session, replay.at, args->json)
                          : print_state(&replay);
    annal_pack_free(replay.pack);
    annal_index_close(replay.index);
    sessions_done(&list);
    return store_close(replay.store, exit_status);
}

static const struct field fields[] = {
    OPERAND("SESSION", FIELD_SESSION, NULL, "the session"),
    OPTION("at", "SEQ|TIME", FIELD_MOMENT, NULL, "the moment: after this event, or at this time"),
    OPTION("sql", "QUERY", FIELD_TEXT, NULL, "SELECT over the state"),
    LIMIT_OPTIONS,
    OPTION("pack", "NAME", FIELD_TEXT, NULL, "pack whose tables are built (core)"),
    OPTION_WITH("format", "FORMAT", FIELD_CHOICE, NULL, "output format of --sql (table)",
                .choices = OUT_FORMATS, .with = "sql"),
    OPTION_WITH("events", NULL, FIELD_FLAG, NULL,
                "play the events up to that moment, as a conversation", .without = "sql"),
    OPTION_WITH("speed", "N", FIELD_TEXT, NULL, "speed of --events: 1 (on a terminal), 10, max",
                .with = "events"),
    OPTION_WITH("gap", "SECONDS", FIELD_AMOUNT, NULL,
                "longest pause of --events (5); 0: as recorded", .most = AMOUNT_MAX,
                .with = "events"),
    OPTION_WITH("from", "SEQ|TIME", FIELD_MOMENT, NULL, "--events: first event, or its time",
                .with = "events"),
    OPTION_WITH("to", "SEQ|TIME", FIELD_MOMENT, NULL, "--events: the same as --at",
                .with = "events", .without = "at"),
    OPTION_WITH("full", NULL, FIELD_FLAG, NULL, "--events: long texts in full", .with = "events"),
    OPTION_WITH("type", "GLOB", FIELD_TEXT, NULL, "--events: types to show ('*': bookkeeping too)",
                .with = "events", .without = "json"),
    OPTION_WITH("cast", "FILE", FIELD_TEXT, NULL, "--events: file for asciinema, nothing is played",
                .with = "events", .without = "json"),
    OPTION_WITH("hash", NULL, FIELD_FLAG, NULL, "SHA-256 of the state; equal for equal states",
                .without = "sql|events"),
    OPTION_WITH("verify", NULL, FIELD_FLAG, NULL,
                "fold from the first event, compare with every snapshot",
                .without = "sql|events|hash|pack"),
    FLAG("no-snapshots", NULL, "fold from the first event, for the same answer"),
    RAW_OPTION,
    FIELDS_END};

const struct command cmd_replay = {
    COMMAND("replay", "the state of a session at a moment of its past", replay, fields, run)};
