/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cutting the end of a journal (commit-log rule 13): only what does not prove itself, only by the
 * process that owns the session or recovers its slot, and only after the bytes are safe under
 * events/.torn/.
 */
#ifndef JOURNAL_TORN_TAIL_H
#define JOURNAL_TORN_TAIL_H

#include "journal/store.h"

/*
 * Save bytes [from, to) of the journal that is open as fd to events/.torn/<session>.<from>.<time>,
 * synced; then cut them off, and sync that. If it is interrupted it may be repeated.
 */
annal_status annal__torn_cut(annal_store *store, annal_slice session, int fd, uint64_t from,
                             uint64_t to, annal_error *err);

/* Remove what was saved of a session's journal. */
annal_status annal__torn_forget(annal_store *store, annal_slice session, annal_error *err);

#endif
