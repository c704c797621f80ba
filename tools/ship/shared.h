/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that several stores share: the target decides each of their events.
 *
 * STORE/cluster has the address of that target. It is shared from `annal home share` on, or, if a
 * pack names it (`scope cluster`), before its first append in any store with that file.
 *
 * (1) At the target the home of such a session is SHARED_STORE, for ever: no store ships it or
 *     takes its home, and its head there has that name.
 * (2) Here its lease says that it is shared.
 * (3) An event is decided when a transaction has moved the head from the event before it, which is
 *     the last one here, and has the whole event with its id. Appending it here comes after that.
 *     So what is here is always the beginning of what is there.
 * (4) If the answer to COMMIT does not come, the same is tried again: the head is locked, so the
 *     transaction before has ended; either the event is there, or it never will be by that one.
 */
#ifndef TOOLS_SHIP_SHARED_H
#define TOOLS_SHIP_SHARED_H

#include <annal/store.h>

#define SHARED_STORE "*"

enum { SHARED_URL_BYTES = 1024 };

/* Whether this may be the address. ANNAL_ERR_CONFLICT: the file has another one.
 * ANNAL_ERR_INVALID: it has a password, or is not one line. */
annal_status shared_check_url(annal_store *store, const char *url, annal_error *err);

/* Write STORE/cluster, after that check. */
annal_status shared_set_url(annal_store *store, const char *url, annal_error *err);

/* The sessions that are shared end here (*out_sessions: so many), and the file goes. */
annal_status shared_leave(annal_store *store, uint64_t *out_sessions, annal_error *err);

/* The address in the bytes of that file: one line. False if it is something else. */
bool shared_read_url(annal_slice text, char out[SHARED_URL_BYTES]);

/* ANNAL_ERR_NOTFOUND: there is none. ANNAL_ERR_UNSUPPORTED: it is something else. */
annal_status shared_url(annal_store *store, char out[SHARED_URL_BYTES], annal_error *err);

#endif
