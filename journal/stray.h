/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strays: files in events/ that have the name of a journal, and are not the journal of the session
 * in that name. A user copied or renamed a journal, or left a second journal there.
 *
 * (1) The header of a file says whose journal it is. A file whose header does not prove itself is
 *     damaged, not a stray, and so is one of a newer version that says it in another way.
 * (2) The events of a stray are never read as events of the session in its name, nothing is
 *     appended to it, and only the user moves or removes it.
 * (3) It stops nothing else. A function that asks for all sessions leaves it out, and the log
 *     reports it, once for each store object. A function that asks for it alone gets the same
 *     sentence as an error. Internal work that lists sessions, as looking for forks or for
 *     snapshots that are due, reports none.
 * (4) Listing sessions opens no journal, so strays are in the list. Callers that open the listed
 *     sessions call annal__stray_is() if that fails.
 * (5) If a session's name has two journals, in two formats, the journal whose header names the
 *     session is read, and the first if both do. While a conversion replaces one by the other both
 *     exist for a moment, and neither is a stray.
 * (6) A journal that this user may not read is left out in the same way. But it is not a stray:
 *     rows that another user indexed stay, and nothing that it may name is removed.
 */
#ifndef JOURNAL_STRAY_H
#define JOURNAL_STRAY_H

#include "journal/base/buf.h"
#include "journal/codec.h"

#include <annal/store.h>

#include <pthread.h>
#include <stdatomic.h>

/* This user may not read the journal of a session: what to do about it. */
annal_status annal__stray_fail_denied(annal_error *err, annal_slice session);

/* Of a store object: the strays that its log reported. */
struct strays {
    pthread_mutex_t lock;
    struct buf said; /* names of files, each with its NUL */
    unsigned count;
    _Atomic bool denied; /* a journal that this user may not read was left out */
};

/* Whether the journal in this format says that it belongs to another session. */
bool annal__stray_is_anothers(const annal_store *store, annal_slice session,
                              const struct codec *codec);

/*
 * Name in the log what a listing found: two journals of a session, a file with an impossible name.
 */
void annal__stray_note_double(annal_store *store, annal_slice session);
void annal__stray_note_name(annal_store *store, const char *name);

#endif
