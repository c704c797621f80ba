#include "tools/cli/sessions.h"

#include "journal/base/alloc.h"
#include "journal/base/slice.h"
#include "journal/sys/seam.h"
#include "tools/cli/out.h"

#include <string.h>

struct collecting {
    annal_store *store;
    struct session_list *list;
};

static int add(struct session_list *list, annal_slice session, uint64_t journal_bytes)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        void *grown = annal__realloc_array(list->names, capacity, sizeof *list->names);
        if (grown == NULL)
            return fail_storage("list the sessions: out of memory");
        list->names = grown;
        list->capacity = capacity;
    }
    struct session_name *name = &list->names[list->count++];
    *name = (struct session_name){.bytes = journal_bytes};
    memcpy(name->id, session.ptr, session.len);
    list->bytes += journal_bytes;
    return 0;
}

/* Whoever asks for all sessions reads them, so that looking at each costs little. */
static int add_listed(void *arg, annal_slice session, uint64_t journal_bytes)
{
    const struct collecting *collecting = arg;
    if (annal__store_is_stray(collecting->store, session))
        return 0;
    return add(collecting->list, session, journal_bytes);
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
        int exit_status = add(list, session, info.bytes);
        if (exit_status != 0)
            return exit_status;
    }
    if (args->operand_count > 0)
        return 0;
    struct collecting collecting = {store, list};
    annal_status status = annal_store_sessions(store, add_listed, &collecting, &err);
    return status < 0 ? fail_error(&err) : (int)status;
}

void sessions_done(struct session_list *list)
{
    annal__free(list->names);
    *list = (struct session_list){0};
}
