/*
 * Strays: files in events/ that are named as journals are, and are not the journal of the session
 * that their name says. Somebody copied or renamed one, or left a second one there.
 *
 * (1) Whose journal a file is, its header says. A file whose header does not prove itself is damage
 *     and no stray, and so is one of a newer version that says it in another way.
 * (2) The events of a stray are never read as those of the session that it is named for, nothing is
 *     appended to it, and only the user moves or removes it.
 * (3) It stops nobody else. Whoever asks for all sessions leaves it out, and it is named in the
 *     log, once for each store object. Whoever asks for it alone gets the same sentence as an
 *     error. Work that lists sessions for itself, as looking for forks or snapshots that are due,
 *     names none.
 * (4) Listing sessions opens no journal, so strays are in the list. Callers that open what is
 *     listed ask annal__store_is_stray() when that fails.
 * (5) Of two journals that are named for a session, in two formats, the one that is the session's
 *     is read, and the first if both are. While a conversion replaces one by the other both are
 *     there for a moment, and neither is a stray.
 */
#ifndef JOURNAL_STRAY_H
#define JOURNAL_STRAY_H

#include "journal/base/buf.h"
#include "journal/codec.h"

#include <annal/store.h>

#include <pthread.h>

/* Of a store object: which strays its log has named. */
struct strays {
    pthread_mutex_t lock;
    struct buf said; /* names of files, each with its NUL */
    unsigned count;
};

/* Whether the journal of this format says that it is another session's. */
bool annal__stray_is_anothers(const annal_store *store, annal_slice session,
                              const struct codec *codec);

/* Name in the log what listing came across: two journals of a session, a file of such a name. */
void annal__stray_note_double(annal_store *store, annal_slice session);
void annal__stray_note_name(annal_store *store, const char *name);

#endif
