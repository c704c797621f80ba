/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by those that read a journal to its last byte: whether bytes after the last proven event
 * will remain unproven. */
#ifndef JOURNAL_VERIFY_H
#define JOURNAL_VERIFY_H

#include <annal/journal.h>

/*
 * The cursor reached the end: whether this really is the end. Bytes after the last proven event
 * have time to become an event, because a process may be writing them. Set *tries to 0 at first and
 * after each event.
 *
 * ANNAL_OK not certain yet: call annal_cursor_next() again
 * ANNAL_END nothing follows
 * ANNAL_DAMAGE bytes follow that prove nothing; *out_bytes is the size of the journal
 */
annal_status annal__verify_settle(annal_store *store, annal_slice session,
                                  const annal_cursor *cursor, int *tries, uint64_t *out_bytes,
                                  annal_error *err);

#endif
