/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cut the end of a journal (rule 13 of the commit log): only bytes after the last valid event, only
 * by the process that owns the session or recovers its slot, and only after the bytes are saved in
 * events/.torn/.
 */
#pragma once

#include "journal/session.h"

/*
 * Save bytes [from, to) of the journal that is open as fd to events/.torn/<session>.<from>.<time>,
 * and sync them; then cut them off the journal, and sync it. After an interruption this can be
 * repeated.
 */
annal_status annal__torn_cut(struct session_table *sessions, annal_slice session, int fd,
                             uint64_t from, uint64_t to, annal_error *err);

/* Remove all saved bytes of a session from events/.torn. */
annal_status annal__torn_forget(const struct context *context, annal_slice session,
                                annal_error *err);
