/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/session_rows.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "tools/cli/command.h"
#include "tools/cli/rows.h"
#include "tools/cli/sessions.h"
#include "tools/show/values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Selecting sessions ---- */

static int keep_session(void *arg, const annal_row *row)
{
    sessions_add(arg, row->values[0].bytes, 0);
    return 0;
}

static void keep_both(struct session_list *kept, const struct session_list *list)
{
    size_t count = 0;
    for (size_t i = 0; i < kept->count; i++) {
        bool in_both = list->count == 0;
        for (size_t k = 0; k < list->count && !in_both; k++)
            in_both = strcmp(kept->names[i].id, list->names[k].id) == 0;
        if (in_both)
            kept->names[count++] = kept->names[i];
    }
    kept->count = count;
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

int sessions_match(annal_index *index, const struct session_match *match, struct session_list *list)
{
    struct session_list kept = {0};
    annal_error err = {0};
    const annal_value params[] = {string_value(match->agent), string_value(match->model),
                                  string_value(match->project)};
    annal_status status = annal_sql(
        index,
        ANNAL_SLICE(
            "SELECT id FROM sessions AS s WHERE" SESSION_FITS("agent_id", "?1") " AND" SESSION_FITS(
                "model", "?2") " AND" SESSION_OF_PROJECT("s", "?3") " ORDER BY id"),
        &(annal_sql_options){.params = params, .param_count = 3, .as_indexed = true}, keep_session,
        &kept, &err);
    keep_both(&kept, list);
    sessions_done(list);
    *list = kept;
    if (status != ANNAL_OK)
        return status < 0 ? fail_error(&err) : (int)status;
    return kept.count > 0 ? EXIT_DONE
                          : fail_refused("no session matches --agent, --model and --project; "
                                         "'annal ls' lists the sessions");
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
