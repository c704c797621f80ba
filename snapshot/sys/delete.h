/* SPDX-License-Identifier: Apache-2.0 */
/* annal_session_delete() in two steps, for functions that do other work between them. */
#pragma once

#include <annal/delete.h>

/* Delete one session. Its content stays in databases and commit logs until annal__delete_wipe(). fn
 * as for annal_session_delete(). */
annal_status annal__delete_session(annal_index *index, annal_slice session, annal_delete_fn fn,
                                   void *arg, annal_error *err);

/* Overwrite the content of deleted sessions in databases and commit logs. Call this once, after the
 * last session. Parts that remain are reported to fn. */
void annal__delete_wipe(annal_index *index, const annal_slice *sessions, size_t count,
                        annal_delete_fn fn, void *arg);
