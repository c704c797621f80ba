/* SPDX-License-Identifier: Apache-2.0 */
/* Find out, for readers that read a journal to its last byte, whether the bytes after the last
 * valid event will never become an event. */
#pragma once

#include <annal/journal.h>

/*
 * Find out whether the end that the cursor has reached is final. Bytes after the last valid event
 * get some time to become an event, because a process may be writing them. Set *tries to 0 at first
 * and after each event.
 *
 * ANNAL_OK      not certain yet: call annal_cursor_next() again
 * ANNAL_END     no bytes follow the last event
 * ANNAL_DAMAGE  bytes follow that are not an event; *out_bytes is the size of the journal
 */
annal_status annal__verify_settle(annal_store *store, annal_slice session,
                                  const annal_cursor *cursor, int *tries, uint64_t *out_bytes,
                                  annal_error *err);
