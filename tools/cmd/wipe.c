#include "tools/cmd/wipe.h"

#include "tools/cli/out.h"
#include "tools/export/bundle.h"

#include <annal/search.h>

void index_forget_words(annal_index *index, annal_slice session)
{
    annal_error err = {0};
    if (annal_search_forget(index, session, &err) < 0)
        say("words of session '%.*s' stay in search.db until 'annal search --rebuild': %s",
            ANNAL_FMT(session), err.message);
}

void wipe_deleted(annal_store *store, annal_index *index, const annal_slice *sessions, size_t count)
{
    annal_error err = {0};
    bundle_remove_stale(store);
    if (annal_index_wipe(index, sessions, count, &err) < 0)
        say("content of what was deleted may remain in %s; 'annal checkpoint' takes it away later",
            err.message);
    /* Last: it is here that a process which is stopped is most likely waited for. */
    if (annal_logs_wipe(store, &err) < 0)
        say("%s", err.message);
}
