/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared sessions: several stores append to them, and the target decides about each event.
 *
 * The address of the target is in the file STORE/cluster. A session becomes shared by `annal home
 * share`, or, if a pack declares it with `scope cluster`, before its first append in any store that
 * has this file.
 *
 * (1) At the target, the home of a shared session (home.h) is SHARED_STORE, permanently: no store
 *     ships the session or takes its home. Its head, the record of its last event, names
 *     SHARED_STORE, too.
 * (2) In the store, the lease of the session is marked as shared.
 * (3) An event is decided when one transaction at the target has moved the head from the preceding
 *     event, which is the last local one, to this event, and has stored the whole event with its
 *     id. Only then is it appended to the journal. The journal is therefore always a prefix of the
 *     target's history.
 * (4) If the connection is lost during COMMIT, the same event is sent again. The head is locked, so
 *     the first transaction has ended by then: either its event is in the target, or it never will
 *     be.
 */
#pragma once

#include <annal/store.h>

#define SHARED_STORE "*"

enum { SHARED_URL_BYTES = 1024 };

/* Check an address for the cluster file. ANNAL_ERR_CONFLICT: the file has a different address.
 * ANNAL_ERR_INVALID: the address contains a password, or is not one line. */
annal_status shared_check_url(annal_store *store, const char *url, annal_error *err);

/* Check the address, and write it to STORE/cluster. */
annal_status shared_set_url(annal_store *store, const char *url, annal_error *err);

/* Stop sharing all local sessions (*out_sessions: their number), and remove the file. */
annal_status shared_leave(annal_store *store, uint64_t *out_sessions, annal_error *err);

/* Read the address from the content of the file: one line. Returns false if it is something
 * else. */
bool shared_read_url(annal_slice text, char out[SHARED_URL_BYTES]);

/* Read the address of the cluster. ANNAL_ERR_NOTFOUND: the file does not exist.
 * ANNAL_ERR_UNSUPPORTED: its content is not an address. */
annal_status shared_url(annal_store *store, char out[SHARED_URL_BYTES], annal_error *err);
