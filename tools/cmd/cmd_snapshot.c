/* SPDX-License-Identifier: Apache-2.0 */
/* annal snapshot: the stored states of sessions. */
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"
#include "tools/cli/verbs.h"

#include <annal/snapshot.h>

#include <inttypes.h>
#include <stdio.h>

/* ---- list ---- */

static const struct column columns[] = {
    {.name = "session_id", .title = "SESSION", .flexible = true},
    {.name = "seq", .title = "SEQ", .right = true},
    {.name = "bytes", .title = "STORED", .right = true},
    {.name = "raw_bytes", .title = "STATE", .right = true},
    {.name = "base_seq", .title = "OVER", .right = true},
    {.name = "created_at", .title = "WHEN"},
    {.name = "problem", .title = "PROBLEM", .flexible = true},
};

static int list_one(void *arg, annal_slice session, const annal_snapshot_info *info,
                    const char *problem)
{
    struct table *table = arg;
    char bytes[HUMAN_BYTES], raw[HUMAN_BYTES];
    table_text(table, session);
    table_number(table, info->seq);
    table_number(table, info->bytes);
    table_shown(table, "%s", human_bytes(bytes, info->bytes));
    table_number(table, info->raw_bytes);
    table_shown(table, "%s", human_bytes(raw, info->raw_bytes));
    if (info->base_seq == 0)
        table_null(table);
    else
        table_number(table, info->base_seq);
    table_time(table, info->created_us);
    if (problem == NULL)
        table_null(table);
    else
        table_text(table, annal_slice_of(problem));
    table_row(table);
    return out_wanted() ? 0 : ANNAL_END;
}

static int list_all(const struct args *args, annal_index *index)
{
    annal_error err = {0};
    struct table *table = table_new(args->json ? OUT_JSONL : OUT_TABLE, columns,
                                    (int)(sizeof columns / sizeof *columns));
    annal_status status = annal_snapshot_each(index, annal_slice_of(args_get(args, "SESSION")),
                                              list_one, table, &err);
    int exit_status = status < 0 ? fail_error(&err) : EXIT_DONE;
    table_free(table);
    return out_finish(exit_status);
}

static int list(const struct args *args)
{
    return store_with_index(args, OPEN_READ, list_all);
}

/* ---- take ---- */

static void print_info(const struct args *args, const char *session,
                       const annal_snapshot_info *info)
{
    char bytes[HUMAN_BYTES], raw[HUMAN_BYTES];
    if (args->json)
        printf("{\"session_id\":\"%s\",\"seq\":%" PRIu64 ",\"bytes\":%" PRIu64
               ",\"raw_bytes\":%" PRIu64 ",\"base_seq\":%" PRIu64 "}\n",
               session, info->seq, info->bytes, info->raw_bytes, info->base_seq);
    else
        printf("%s: snapshot at seq %" PRIu64 ", %s stored, %s of state\n", session, info->seq,
               human_bytes(bytes, info->bytes), human_bytes(raw, info->raw_bytes));
}

static int take_one(const struct args *args, annal_index *index)
{
    const char *session = args_get(args, "SESSION");
    annal_error err = {0};
    annal_snapshot_info info;
    /* The state is computed from the journal, so no new events are added to the index. */
    if (annal_snapshot_take(index, annal_slice_of(session), NULL, &info, &err) < 0)
        return fail_error(&err);
    print_info(args, session, &info);
    return EXIT_DONE;
}

static int take(const struct args *args)
{
    return store_with_index(args, OPEN_WRITE, take_one);
}

/* ---- drop ---- */

static int drop_some(const struct args *args, annal_index *index)
{
    annal_error err = {0};
    annal_slice session = annal_slice_of(args_get(args, "SESSION"));
    return annal_snapshot_drop(index, session, &err) < 0 ? fail_error(&err) : EXIT_DONE;
}

static int drop(const struct args *args)
{
    if ((args_get(args, "SESSION") == NULL) != args_has(args, "all"))
        return fail_usage("annal snapshot drop needs either SESSION or --all");
    return store_with_index(args, OPEN_WRITE, drop_some);
}

/* ---- The table ---- */

static const struct field list_fields[] = {
    OPERAND_MAYBE("SESSION", FIELD_SESSION, NULL, "session of the snapshots (all)"), FIELDS_END};

static const struct field take_fields[] = {
    OPERAND("SESSION", FIELD_SESSION, NULL, "session whose state is stored"), FIELDS_END};

static const struct field drop_fields[] = {
    OPERAND_MAYBE("SESSION", FIELD_SESSION, NULL, "session of the snapshots to delete"),
    FLAG("all", NULL, "all sessions"), FIELDS_END};

static const struct command verbs[] = {
    {COMMAND("list", "list snapshots, and whether each is valid", snapshot_list, list_fields,
             list)},
    {COMMAND("take", "take a snapshot of a session's state now", snapshot_take, take_fields, take)},
    {COMMAND("drop", "delete snapshots", snapshot_drop, drop_fields, drop)},
    {0}};

const struct noun noun_snapshot = {
    .name = "snapshot", .summary = "stored states of sessions", .verbs = verbs, .usual = "take"};
