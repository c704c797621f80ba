/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of strays to the log callback: stray.h, rule 3. */
#include "journal/base/slice.h"
#include "journal/store.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <string.h>

/* maximum number of strays (files that are not the journal of the session in their name) that are
 * logged one by one; one more message is logged for all others */
#define SAID_MAX 8

static void say(annal_store *store, annal_slice name, const char *sentence)
{
    struct strays *strays = &store->strays;
    bool known = false;
    pthread_mutex_lock(&strays->lock);
    for (size_t at = 0; at < strays->said.len && !known; at += strlen(strays->said.ptr + at) + 1)
        known = annal__slice_is(name, strays->said.ptr + at);
    known = known || strays->count > SAID_MAX;
    if (!known && annal__buf_append_slice(&strays->said, name) == ANNAL_OK &&
        annal__buf_append(&strays->said, "", 1) == ANNAL_OK)
        strays->count++;
    bool many = strays->count > SAID_MAX;
    pthread_mutex_unlock(&strays->lock);
    if (!known && many)
        annal__say(store, ANNAL_LOG_WARNING,
                   "further journals are left out: 'annal doctor' lists all");
    else if (!known)
        annal__say(store, ANNAL_LOG_WARNING, "a journal is left out: %s", sentence);
}

bool annal__stray_is(annal_store *store, annal_slice session)
{
    annal_error why;
    enum stray_kind kind = annal__stray_look(&store->context, session, &why);
    if (kind != STRAY && kind != DENIED)
        return false;
    if (kind == DENIED)
        atomic_store(&store->strays.denied, true);
    say(store, session, why.message);
    return true;
}

bool annal__stray_was_denied(const annal_store *store)
{
    return atomic_load(&store->strays.denied);
}

void annal__stray_note_double(annal_store *store, annal_slice session)
{
    annal_error why;
    if (annal__stray_look(&store->context, session, &why) == DOUBLE)
        say(store, session, why.message);
}

void annal__stray_note_name(annal_store *store, const char *name)
{
    annal_error why;
    if (annal__stray_is_strange(&store->context, name, &why))
        say(store, annal_slice_of(name), why.message);
}
