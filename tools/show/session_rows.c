/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/session_rows.h"

#include "index/sys/pack.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "tools/cli/command.h"
#include "tools/cli/fields.h"
#include "tools/cli/rows.h"
#include "tools/show/values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Selecting sessions ---- */

static int keep_id(void *arg, const annal_row *row)
{
    struct buf *text = arg;
    annal__buf_append_slice(text, row->values[0].bytes);
    return annal__buf_append(text, "", 1);
}

/* Append the ids of the sessions as a JSON array. */
static annal_status put_ids(struct buf *out, const struct session_match *match)
{
    annal_status status = annal__buf_append(out, "[", 1);
    for (size_t i = 0; status >= 0 && i < match->session_count; i++)
        status = annal__json_put(out, "#?", annal_slice_of(i == 0 ? "" : ","), match->sessions[i]);
    return annal__buf_append(out, "]", 1);
}

annal_status session_ids_find(struct session_ids *out, annal_index *index,
                              const struct session_match *match, annal_error *err)
{
    SCOPED_BUF among = {0};
    annal_status status = put_ids(&among, match);
    const annal_value params[] = {
        string_value(match->agent), string_value(match->model), string_value(match->project),
        text_or_null(match->session_count > 0 ? annal__buf_slice(&among) : (annal_slice){0}),
        string_value(match->status)};
    if (status >= 0)
        status = annal_index_sql(
            index,
            ANNAL_SLICE("SELECT id FROM sessions AS s WHERE" SESSION_FITS(
                "agent_id",
                "?1") " AND" SESSION_FITS("model",
                                          "?2") " AND" SESSION_OF_PROJECT("s",
                                                                          "?3") " AND (?4 IS NULL "
                                                                                "OR id IN (SELECT "
                                                                                "value FROM "
                                                                                "json_each(?4)))"
                                                                                " AND (?5 IS NULL "
                                                                                "OR status = ?5) "
                                                                                "ORDER BY id"),
            &(annal_sql_options){.params = params, .param_count = 5, .as_indexed = true}, keep_id,
            &out->text, err);
    for (size_t at = 0; status >= 0 && at < out->text.len;) {
        annal_slice *id = annal__array_add(&out->ids, &out->count, sizeof *id);
        if (id == NULL)
            status = ANNAL_ERR_NOMEM;
        else
            *id = annal_slice_of(out->text.ptr + at);
        at += id == NULL ? 0 : id->len + 1;
    }
    return status == ANNAL_ERR_NOMEM
               ? annal__fail(err, status, "choose the sessions: out of memory")
               : status;
}

void session_ids_done(struct session_ids *ids)
{
    annal__buf_done(&ids->text);
    annal__free(ids->ids);
    *ids = (struct session_ids){0};
}

const char *session_project(const char *given, char room[PROJECT_BYTES])
{
    if (given == NULL)
        return NULL;
    if (given[0] == '.') {
        char *path = realpath(given, NULL);
        snprintf(room, PROJECT_BYTES, "%s", path == NULL ? given : path);
        free(path);
    } else {
        snprintf(room, PROJECT_BYTES, "%s", given);
    }
    size_t len = strlen(room);
    while (len > 1 && room[len - 1] == '/')
        room[--len] = '\0';
    return room;
}

bool session_match_of(const struct args *args, char room[PROJECT_BYTES], struct session_match *out)
{
    *out = (struct session_match){.agent = args_get(args, "agent"),
                                  .model = args_get(args, "model"),
                                  .status = args_get(args, "status"),
                                  .project = session_project(args_get(args, "project"), room)};
    return out->agent != NULL || out->model != NULL || out->status != NULL || out->project != NULL;
}

int session_ids_choose(struct session_ids *out, annal_index *index,
                       const struct session_match *match)
{
    annal_error err = {0};
    annal_status status = session_ids_find(out, index, match, &err);
    if (status < 0)
        return fail_error(&err);
    return out->count > 0
               ? EXIT_DONE
               : fail_refused("no session matches%s%s%s%s%s; 'annal ls' lists the sessions",
                              match->session_count > 0 ? " the given ids," : "",
                              match->agent != NULL ? " --agent" : "",
                              match->model != NULL ? " --model" : "",
                              match->status != NULL ? " --status" : "",
                              match->project != NULL ? " --project" : "");
}

int session_ids_restrict(struct session_ids *out, annal_index *index, const struct args *args,
                         annal_search_options *options)
{
    char project[PROJECT_BYTES];
    struct session_match match;
    struct session_ids named = {0};
    int exit_status = EXIT_DONE;
    bool is_chosen = session_match_of(args, project, &match);
    fields_list(args, "session", &named.ids, &named.count);
    match.sessions = named.ids;
    match.session_count = named.count;
    if (is_chosen) {
        exit_status = session_ids_choose(out, index, &match);
        session_ids_done(&named);
    } else {
        *out = named;
    }
    options->sessions = out->ids;
    options->session_count = out->count;
    return exit_status;
}

static int pass(void *arg, const annal_row *row)
{
    (void)arg;
    (void)row;
    return 0;
}

bool session_has_marks(annal_index *index)
{
    return annal__packs_have(index, "annotations", NULL) >= 0 &&
           annal_index_sql(index, ANNAL_SLICE("SELECT 1 FROM annotations.session_notes LIMIT 1"),
                           &(annal_sql_options){.as_indexed = true}, pass, NULL, NULL) >= 0;
}

const char *session_marks(annal_index *index)
{
    static const char some[] = "marks AS MATERIALIZED (SELECT * FROM annotations.session_notes)";
    static const char none[] = "marks (session_id, name, starred, tags, notes) AS"
                               " (SELECT NULL, NULL, NULL, NULL, NULL WHERE 0)";
    return session_has_marks(index) ? some : none;
}

static int put_view(void *arg, const annal_row *row)
{
    return annal__buf_printf(arg, ", %.*s AS (%.*s)", ANNAL_FMT(row->values[0].bytes),
                             ANNAL_FMT(row->values[1].bytes));
}

annal_status session_costs_put(annal_index *index, const char *among, struct buf *sql,
                               annal_error *err)
{
    annal_status status = annal__buf_printf(
        sql, ", usage AS MATERIALIZED (SELECT * FROM main.usage WHERE session_id IN (%s))", among);
    return status < 0
               ? status
               : annal_index_sql(
                     index,
                     ANNAL_SLICE("SELECT name, substr(sql, instr(sql, ' AS') + 3)"
                                 " FROM sqlite_schema WHERE type = 'view' AND name IN"
                                 " ('usage_rates', 'no_rates', 'usage_totals', 'usage_costs')"
                                 " ORDER BY rowid"),
                     &(annal_sql_options){.as_indexed = true}, put_view, sql, err);
}

annal_slice session_begin(annal_slice id)
{
    enum { UUID_BYTES = 36, FIRST_PART = 8 };
    bool uuid = id.len == UUID_BYTES && id.ptr[FIRST_PART] == '-' && id.ptr[13] == '-';
    return (annal_slice){id.ptr, uuid ? FIRST_PART : id.len};
}

/* ---- A row ---- */

annal_status session_row_json(struct buf *out, const annal_row *row, size_t columns,
                              const struct session_findings *findings, const annal_value *tree)
{
    const annal_row shown = {.count = columns, .names = row->names, .values = row->values};
    annal_status status = annal__buf_append(out, "{", 1);
    if (status >= 0)
        status = rows_members_json(out, &shown);
    if (status >= 0)
        status = annal__buf_printf(out, ",\"findings\":%" PRIu64,
                                   session_findings_of(findings, row->values[SESSION_ID].bytes));
    if (status >= 0 && tree != NULL && tree->kind == ANNAL_VALUE_TEXT)
        status = annal__buf_printf(out, ",\"tree\":%.*s", ANNAL_FMT(tree->bytes));
    return status < 0 ? status : annal__buf_append(out, "}", 1);
}
