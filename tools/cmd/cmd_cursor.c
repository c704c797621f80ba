/* SPDX-License-Identifier: Apache-2.0 */
/* annal cursor: list, show and drop the named cursors of tails. */
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"
#include "tools/cli/verbs.h"

#include <annal/tail.h>

/* ---- list ---- */

static const struct column list_columns[] = {
    {.name = "name", .title = "CURSOR", .flexible = true},
    {.name = "committed_at", .title = "COMMITTED"},
    {.name = "sessions", .title = "SESSIONS", .right = true},
    {.name = "state", .title = "STATE"},
};

static int list_one(void *arg, const annal_tail_cursor *cursor)
{
    struct table *table = arg;
    table_text(table, cursor->name);
    table_time(table, cursor->committed_us);
    table_number(table, cursor->sessions);
    table_text(table, annal_slice_of(cursor->damaged ? "damaged"
                                     : cursor->taken ? "in use"
                                                     : "free"));
    table_row(table);
    return out_wanted() ? 0 : ANNAL_END;
}

static int list(const struct args *args)
{
    annal_store *store = NULL;
    annal_error err = {0};
    int exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == 0) {
        struct table *table = table_new(args->json ? OUT_JSONL : OUT_TABLE, list_columns, 4);
        if (annal_tail_cursor_each(store, list_one, table, &err) < 0)
            exit_status = fail_error(&err);
        table_free(table);
    }
    return store_close(store, out_finish(exit_status));
}

/* ---- show ---- */

static const struct column show_columns[] = {
    {.name = "session_id", .title = "SESSION", .flexible = true},
    {.name = "seq", .title = "SEQ", .right = true},
    {.name = "behind", .title = "BEHIND", .right = true},
};

struct show {
    annal_store *store;
    struct table *table;
};

static int show_one(void *arg, const annal_tail_position *position)
{
    const struct show *show = arg;
    annal_session_info info;
    table_text(show->table, position->session);
    table_number(show->table, position->seq);
    if (annal_session_info_get(show->store, position->session, &info, NULL) < 0)
        table_null(show->table); /* the session was deleted */
    else
        table_number(show->table,
                     info.last_seq > position->seq ? info.last_seq - position->seq : 0);
    table_row(show->table);
    return out_wanted() ? 0 : ANNAL_END;
}

static int show(const struct args *args)
{
    struct show show = {0};
    annal_error err = {0};
    annal_slice name = annal_slice_of(args_get(args, "CURSOR"));
    int exit_status = store_open(args, OPEN_READ, 0, &show.store);
    if (exit_status == 0) {
        show.table = table_new(args->json ? OUT_JSONL : OUT_TABLE, show_columns, 3);
        if (annal_tail_position_each(show.store, name, show_one, &show, &err) < 0)
            exit_status = fail_error(&err);
        table_free(show.table);
    }
    return store_close(show.store, out_finish(exit_status));
}

/* ---- drop ---- */

static int drop(const struct args *args)
{
    annal_store *store = NULL;
    annal_error err = {0};
    annal_slice name = annal_slice_of(args_get(args, "CURSOR"));
    int exit_status = store_open(args, OPEN_WRITE, 0, &store);
    if (exit_status == 0 && annal_tail_cursor_drop(store, name, &err) < 0)
        exit_status = fail_error(&err);
    return store_close(store, exit_status);
}

/* ---- The table ---- */

static const struct field no_fields[] = {FIELDS_END};

static const struct field cursor_fields[] = {
    OPERAND("CURSOR", FIELD_TEXT, NULL, "name of the cursor"), FIELDS_END};

static const struct command verbs[] = {
    {COMMAND("list", "list the named cursors", cursor_list, no_fields, list)},
    {COMMAND("show", "show the position of a cursor in each session", cursor_show, cursor_fields,
             show)},
    {COMMAND("drop", "delete a cursor", cursor_drop, cursor_fields, drop)},
    {0}};

const struct noun noun_cursor = {
    .name = "cursor", .summary = "positions of the readers of tails", .verbs = verbs};
