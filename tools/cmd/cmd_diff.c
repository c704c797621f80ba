/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the changes of a session's state between two moments: as rows for people, as one JSON
 * object per row, or as a JSON patch.
 */
#include "index/sys/pack.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/rows.h"
#include "tools/cli/store_open.h"
#include "tools/report/report.h"
#include "tools/show/change_json.h"

#include <annal/diff.h>
#include <annal/pack.h>
#include <annal/replay.h>

#include <inttypes.h>
#include <string.h>

enum { SHOWN_BYTES = 60 /* maximum bytes of a value printed for people */, COMPARE_ROWS = 50 };

struct diff {
    const struct args *args;
    annal_slice session;
    annal_moment moments[2];
    annal_store *store;
    annal_index *index;
    annal_pack *pack; /* pack of --pack; NULL: the tables of core */
    annal_state *states[2];
    annal_replay_info infos[2];
    uint64_t counts[ANNAL_ROW_DELETED + 1];
    annal_error err; /* set if a change cannot be printed */
};

/* ---- For people ---- */

static void print_text(annal_slice text)
{
    size_t len = text.len;
    if (len > SHOWN_BYTES) /* do not cut inside a UTF-8 character */
        for (len = SHOWN_BYTES; len > 0 && ((unsigned char)text.ptr[len] & 0xc0) == 0x80;)
            len--;
    fputc('"', stdout);
    out_plain((annal_slice){text.ptr, len});
    fputs(len < text.len ? "\"…" : "\"", stdout);
    if (len < text.len)
        printf(" (%zu bytes)", text.len);
}

static void print_value(const annal_value *value)
{
    if (value->kind == ANNAL_VALUE_TEXT)
        print_text(value->bytes);
    else if (value->kind == ANNAL_VALUE_BLOB)
        printf("(%zu bytes)", value->bytes.len);
    else
        rows_print_value(value);
}

static bool is_empty(const annal_value *value)
{
    return value->kind == ANNAL_VALUE_NULL ||
           (value->kind == ANNAL_VALUE_TEXT && value->bytes.len == 0);
}

/* Print for example ~ turns id="s:t1", in the colour for inserted, updated or deleted. */
static void print_heading(const annal_change *change)
{
    static const char marks[] = {
        [ANNAL_ROW_INSERTED] = '+', [ANNAL_ROW_UPDATED] = '~', [ANNAL_ROW_DELETED] = '-'};
    static const char *const colours[] = {
        [ANNAL_ROW_INSERTED] = "32", [ANNAL_ROW_UPDATED] = "33", [ANNAL_ROW_DELETED] = "31"};
    const annal_value *row = change->after != NULL ? change->after : change->before;
    bool has_key = false;
    out_style(colours[change->kind]);
    printf("%c ", marks[change->kind]);
    out_plain(change->table);
    for (size_t i = 0; i < change->column_count; i++) {
        if (!change->in_key[i])
            continue;
        fputc(' ', stdout);
        out_plain(change->columns[i]);
        fputc('=', stdout);
        print_value(&row[i]);
        has_key = true;
    }
    if (!has_key)
        printf(" rowid=%" PRId64, change->rowid);
    out_style("0");
    fputc('\n', stdout);
}

static void print_change(const annal_change *change)
{
    print_heading(change);
    for (size_t i = 0; i < change->column_count; i++) {
        const annal_value *before = change->before == NULL ? NULL : &change->before[i];
        const annal_value *after = change->after == NULL ? NULL : &change->after[i];
        if (change->in_key[i] || !change->differs[i] || (before == NULL && is_empty(after)) ||
            after == NULL)
            continue;
        fputs("    ", stdout);
        out_plain(change->columns[i]);
        fputs(": ", stdout);
        if (before != NULL) {
            print_value(before);
            fputs(" -> ", stdout);
        }
        print_value(after);
        fputc('\n', stdout);
    }
}

static void print_summary(const struct diff *diff)
{
    uint64_t inserted = diff->counts[ANNAL_ROW_INSERTED];
    uint64_t updated = diff->counts[ANNAL_ROW_UPDATED];
    uint64_t deleted = diff->counts[ANNAL_ROW_DELETED];
    printf("after seq %" PRIu64 " -> after seq %" PRIu64 ": ", diff->infos[0].seq,
           diff->infos[1].seq);
    if (inserted + updated + deleted == 0)
        puts("no difference");
    else
        printf("%" PRIu64 " inserted, %" PRIu64 " updated, %" PRIu64 " deleted\n", inserted,
               updated, deleted);
}

/* ---- For programs ---- */

static int write_bytes(void *arg, const char *bytes, size_t len)
{
    (void)arg;
    out_slice((annal_slice){bytes, len});
    return out_wanted() ? 0 : ANNAL_END;
}

static annal_status print_json(const annal_change *change, annal_error *err)
{
    SCOPED_BUF line = {0};
    annal_status status = change_json(&line, change, err);
    if (status >= 0)
        out_slice(annal__buf_slice(&line));
    fputc('\n', stdout);
    return status;
}

static int take_change(void *arg, const annal_change *change)
{
    struct diff *diff = arg;
    annal_status status = ANNAL_OK;
    diff->counts[change->kind]++;
    if (diff->args->json)
        status = print_json(change, &diff->err);
    else
        print_change(change);
    return status != ANNAL_OK || out_wanted() ? (int)status : ANNAL_END;
}

/* ---- The verb ---- */

static int print_diff(struct diff *diff)
{
    bool patch = args_has(diff->args, "patch");
    annal_status status =
        patch ? annal_state_patch(diff->states[0], diff->states[1], write_bytes, NULL, &diff->err)
              : annal_state_diff(diff->states[0], diff->states[1], take_change, diff, &diff->err);
    if (status < 0)
        return fail_error(&diff->err);
    if (patch)
        fputc('\n', stdout);
    else if (!diff->args->json && status == ANNAL_OK)
        print_summary(diff);
    uint64_t damaged = diff->infos[0].damaged + diff->infos[1].damaged;
    if (damaged > 0)
        say("session '%.*s': damaged places were skipped; 'annal verify' lists them",
            ANNAL_FMT(diff->session));
    return damaged > 0 ? EXIT_REFUSED : EXIT_DONE;
}

static int open_states(struct diff *diff)
{
    annal_error err = {0};
    const annal_pack *packs[] = {diff->pack};
    annal_replay_options options = {0};
    if (diff->pack != NULL) {
        options.packs = packs;
        options.pack_count = 1;
    }
    for (int i = 0; i < 2; i++) {
        if (annal_replay_open(diff->index, diff->session, diff->moments[i], &options,
                              &diff->states[i], &diff->infos[i], &err) < 0)
            return fail_error(&err);
    }
    return EXIT_DONE;
}

static int find_pack(struct diff *diff)
{
    annal_error err = {0};
    const char *name = args_get(diff->args, "pack");
    if (name == NULL || strcmp(name, "core") == 0)
        return EXIT_DONE;
    return annal__pack_named(diff->index, name, &diff->pack, &err) < 0 ? fail_error(&err)
                                                                       : EXIT_DONE;
}

/* Open the index, and catch up with the first operand, the session. The other operands are
 * moments. */
static int open_index(struct diff *diff)
{
    struct session_list list = {0};
    struct args session_only = *diff->args;
    session_only.operand_count = 1;
    int exit_status = sessions_collect(diff->store, &session_only, &list);
    if (exit_status == 0)
        exit_status = catch_up_open(diff->store, &list, &diff->index);
    sessions_done(&list);
    return exit_status;
}

/* Compare two sessions, whose ids are the operands SESSION and A. */
static int compare_sessions(const struct args *given)
{
    static const struct field sessions[] = {OPERAND("SESSION", FIELD_SESSIONS, NULL, ""),
                                            FIELDS_END};
    static const struct command command = {.name = "diff", .fields = sessions};
    struct args both = *given;
    const struct args *args = &both;
    both.command = &command;
    struct report_scope scope = {.limit = COMPARE_ROWS};
    SCOPED_BUF ids = {0};
    struct session_list list = {0};
    annal_store *store = NULL;
    annal_index *index = NULL;
    int exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == 0)
        exit_status = sessions_collect(store, args, &list);
    must_printf(&ids, "[\"%s\",\"%s\"]", args->operands[0], args->operands[1]);
    scope.sessions = annal__buf_slice(&ids);
    if (exit_status == 0)
        exit_status = catch_up_open(store, &list, &index);
    if (exit_status == 0)
        exit_status = report_print(report_compare_sections, index, &scope,
                                   args->json ? REPORT_JSONL : REPORT_TABLE, NULL);
    annal_index_close(index);
    sessions_done(&list);
    return store_close(store, exit_status);
}

static int run(const struct args *args)
{
    struct diff diff = {.args = args};
    if (args->operand_count == 2)
        return compare_sessions(args);
    fields_moment(args, "A", &diff.moments[0]);
    fields_moment(args, "B", &diff.moments[1]);
    if (diff.moments[0].kind == ANNAL_AT_END)
        return fail_usage("A needs a seq, a time or an age, not '%s'", args_get(args, "A"));
    int exit_status = store_open(args, OPEN_READ, 0, &diff.store);
    diff.session = fields_text(args, "SESSION");
    if (exit_status == 0)
        exit_status = open_index(&diff);
    if (exit_status == 0)
        exit_status = find_pack(&diff);
    if (exit_status == 0)
        exit_status = open_states(&diff);
    if (exit_status == 0)
        exit_status = print_diff(&diff);
    annal_state_free(diff.states[0]);
    annal_state_free(diff.states[1]);
    annal_pack_free(diff.pack);
    annal_index_close(diff.index);
    return store_close(diff.store, exit_status);
}

static const struct field fields[] = {
    OPERAND("SESSION", FIELD_SESSION, NULL, "the session"),
    OPERAND("A", FIELD_TEXT, NULL, "a seq, a time or an age such as 2h; or another session"),
    OPERAND_MAYBE("B", FIELD_MOMENT, NULL, "the second moment"),
    OPTION_WITH("patch", NULL, FIELD_FLAG, NULL, "a JSON patch (RFC 6902) from A to B",
                .without = "json"),
    OPTION("pack", "NAME", FIELD_TEXT, NULL, "pack whose tables are compared (core)"),
    FIELDS_END};

const struct command cmd_diff = {
    COMMAND("diff", "what changed between two moments, or differs between two sessions", diff,
            fields, run)};
