/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strays: files in events/ that have the name of a journal, and are not the journal of the session
 * in that name. They appear if a user copies or renames a journal.
 *
 * (1) The header of a file names the session of the journal. A file with a damaged header is a
 *     damaged journal, not a stray; a file of a newer version whose header names no session is not
 *     a stray either.
 * (2) The events of a stray are never read as events of the session in its name, nothing is
 *     appended to it, and only the user moves or removes it.
 * (3) The rest of the store works. A function that reads all sessions omits a stray, and the log
 *     callback receives a warning, once for each store object. A function that reads the stray's
 *     session fails with the same sentence. Internal work that lists sessions, such as looking for
 *     forks or for snapshots that are due, reports none.
 * (4) Listing sessions opens no journal, so strays are in the list. Callers that open the listed
 *     sessions call annal__stray_is() if that fails.
 * (5) If a session's name has two journals, in two formats, the journal whose header names the
 *     session is read, and the first if both do. While a conversion replaces one by the other both
 *     exist for a moment, and neither is a stray.
 * (6) A journal that this user may not read is omitted in the same way. But it is not a stray: rows
 *     that another user indexed stay, and no artifact is removed, because the journal may name it.
 */
#pragma once

#include "journal/context.h"

#include <pthread.h>
#include <stdatomic.h>

/* Fail because this user may not read the journal of a session; the message says who can change
 * that. */
annal_status annal__stray_fail_denied(annal_error *err, annal_slice session);

/* The strays that a store object has reported to the log callback. */
struct strays {
    pthread_mutex_t lock;
    struct buf said; /* names of the files that were reported, each followed by a NUL */
    unsigned count;
    _Atomic bool denied; /* whether a journal was omitted because this user may not read it */
};

enum stray_kind { NO_STRAY, STRAY, DOUBLE, DENIED };

/* Find out what is wrong with the files that have this session's name; out_why receives it as a
 * sentence. */
enum stray_kind annal__stray_look(const struct context *context, annal_slice session,
                                  annal_error *out_why);

/* Return whether a file has the name of a journal, but with an invalid session id. */
bool annal__stray_is_strange(const struct context *context, const char *name, annal_error *out_why);

/* Return whether the header of the session's journal in this format names another session. */
bool annal__stray_is_anothers(const struct context *context, annal_slice session,
                              const struct codec *codec);

/* Report to the log callback what a listing found: a session with two journals, or a file whose
 * name contains an invalid session id. */
void annal__stray_note_double(annal_store *store, annal_slice session);
void annal__stray_note_name(annal_store *store, const char *name);
