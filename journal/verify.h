/* What reading a journal to its last byte shares: whether the bytes behind the last proven event
 * stay so. */
#ifndef JOURNAL_VERIFY_H
#define JOURNAL_VERIFY_H

#include <annal/journal.h>

/*
 * The cursor came to the end: whether it really is one. Bytes behind the last proven event get time
 * to become one, since somebody may be writing them. *tries begins with 0, and again with each
 * event.
 *
 * ANNAL_OK      not yet: call annal_cursor_next() again
 * ANNAL_END     nothing stands behind it
 * ANNAL_DAMAGE  bytes stand behind it that prove nothing; *out_bytes is the size of the journal
 */
annal_status annal__verify_settle(annal_store *store, annal_slice session,
                                  const annal_cursor *cursor, int *tries, uint64_t *out_bytes,
                                  annal_error *err);

#endif
