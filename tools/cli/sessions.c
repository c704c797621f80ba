/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/sessions.h"

#include "journal/base/alloc.h"
#include "journal/base/slice.h"
#include "journal/sys/seam.h"
#include "tools/cli/command.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"

#include <stdio.h>
#include <string.h>

enum { CANDIDATES_SHOWN = 10 };

struct collecting {
    annal_store *store;
    struct session_list *list;
};

void sessions_add(struct session_list *list, annal_slice session, uint64_t journal_bytes)
{
    struct session_name *name = must_array_add(&list->names, &list->count, sizeof *name);
    name->bytes = journal_bytes;
    snprintf(name->id, sizeof name->id, "%.*s", ANNAL_FMT(session));
    list->bytes += journal_bytes;
}

/* Add a session that the store lists, unless its file is not a journal; an annal_session_fn. The
 * check costs little, because a verb for all sessions reads each journal anyway. */
static int add_listed(void *arg, annal_slice session, uint64_t journal_bytes)
{
    const struct collecting *collecting = arg;
    if (!annal__stray_is(collecting->store, session))
        sessions_add(collecting->list, session, journal_bytes);
    return 0;
}

static bool is_listed(const struct session_list *list, annal_slice session)
{
    for (size_t i = 0; i < list->count; i++) {
        if (annal__slice_is(session, list->names[i].id))
            return true;
    }
    return false;
}

int sessions_collect(annal_store *store, const struct args *args, struct session_list *list)
{
    annal_error err = {0};
    for (int i = 0; i < args->operand_count; i++) {
        annal_slice session = annal_slice_of(args->operands[i]);
        annal_session_info info;
        if (is_listed(list, session))
            continue;
        if (annal_session_info_get(store, session, &info, &err) < 0)
            return fail_error(&err);
        sessions_add(list, session, info.bytes);
    }
    if (args->operand_count > 0)
        return 0;
    struct collecting collecting = {store, list};
    annal_status status = annal_session_each(store, add_listed, &collecting, &err);
    return status < 0 ? fail_error(&err) : (int)status;
}

/* ---- Sub-agents ---- */

/* Return whether a session is a sub-agent of parent: its id is the id of parent, a dot, and
 * more. */
static bool is_below(annal_slice session, annal_slice parent)
{
    return session.len > parent.len && session.ptr[parent.len] == '.' &&
           memcmp(session.ptr, parent.ptr, parent.len) == 0;
}

static int add_if_below(void *arg, annal_slice session, uint64_t journal_bytes)
{
    struct session_list *list = arg;
    bool below = false;
    for (size_t i = 0; i < list->count && !below; i++)
        below = is_below(session, annal_slice_of(list->names[i].id));
    if (below && !is_listed(list, session))
        sessions_add(list, session, journal_bytes);
    return 0;
}

int sessions_add_sub_agents(annal_store *store, struct session_list *list)
{
    annal_error err = {0};
    annal_status status = annal_session_each(store, add_if_below, list, &err);
    return status < 0 ? fail_error(&err) : (int)status;
}

/* ---- Abbreviated ids ---- */

struct candidates {
    annal_slice prefix;
    size_t count;
    char *first;     /* memory of ARGS_ID_BYTES for the first id that begins with prefix */
    struct buf list; /* the first few ids that begin with prefix, for a message */
};

static int add_candidate(void *arg, annal_slice session, uint64_t journal_bytes)
{
    struct candidates *found = arg;
    (void)journal_bytes;
    if (session.len < found->prefix.len ||
        memcmp(session.ptr, found->prefix.ptr, found->prefix.len) != 0)
        return 0;
    annal_slice first = annal_slice_of(found->first);
    if (found->count > 0 && is_below(session, first))
        return 0;
    bool above = found->count == 1 && is_below(first, session);
    if (above) {
        found->count = 0;
        annal__buf_clear(&found->list);
    }
    if (found->count == 0)
        snprintf(found->first, ARGS_ID_BYTES, "%.*s", ANNAL_FMT(session));
    if (found->count < CANDIDATES_SHOWN)
        must_printf(&found->list, "%s%.*s", found->count > 0 ? ", " : "", ANNAL_FMT(session));
    found->count++;
    return 0;
}

int sessions_resolve_word(annal_store *store, const char **word, char *room)
{
    struct candidates found = {.prefix = annal_slice_of(*word), .first = room};
    annal_session_info info;
    annal_error err = {0};
    if (found.prefix.len < SESSION_PREFIX_LEAST ||
        annal_session_info_get(store, found.prefix, &info, NULL) != ANNAL_ERR_NOTFOUND)
        return 0;
    int exit_status = 0;
    annal_status status = annal_session_each(store, add_candidate, &found, &err);
    if (status < 0)
        exit_status = fail_error(&err);
    else if (found.count > 1)
        exit_status = fail_usage("%zu sessions begin with '%s': %.*s%s", found.count, *word,
                                 ANNAL_FMT(annal__buf_slice(&found.list)),
                                 found.count > CANDIDATES_SHOWN ? ", \u2026" : "");
    else if (found.count == 1)
        *word = room;
    annal__buf_done(&found.list);
    return exit_status;
}

static bool takes_sessions(const struct field *field)
{
    return field->kind == FIELD_SESSION || field->kind == FIELD_SESSIONS;
}

int sessions_resolve(annal_store *store, const struct args *args)
{
    int exit_status = 0, place = 0;
    const struct field *field = args->command != NULL ? args->command->fields : NULL;
    for (; field != NULL && field->kind != FIELD_END && exit_status == 0; field++) {
        int last = field_is_operand(field) ? place + 1 : 0;
        if (FIELD_IS_LIST(field->kind) && field_is_operand(field))
            last = args->operand_count;
        for (; place < last && exit_status == 0; place++)
            if (takes_sessions(field) && place < args->operand_count)
                exit_status = sessions_resolve_word(store, &args->operands[place],
                                                    args->ids + (size_t)place * ARGS_ID_BYTES);
        for (int i = 0; takes_sessions(field) && i < args->value_count && exit_status == 0; i++)
            if (args->values[i].option == &field->option)
                exit_status = sessions_resolve_word(store, &args->values[i].text,
                                                    args->ids + (size_t)(args->operand_count + i) *
                                                                    ARGS_ID_BYTES);
    }
    return exit_status;
}

void sessions_done(struct session_list *list)
{
    annal__free(list->names);
    *list = (struct session_list){0};
}
