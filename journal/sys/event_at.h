/* SPDX-License-Identifier: Apache-2.0 */
/* One event at a place that is known from the index. Implemented in journal/event_at.c. */
#ifndef JOURNAL_SYS_EVENT_AT_H
#define JOURNAL_SYS_EVENT_AT_H

#include <annal/journal.h>

/*
 * Read one event at a known place: an index keeps offset and length. *buffer is NULL at first, and
 * is created; the event's slices point into it until the next call with it, or until it is freed,
 * which must be before the store is closed: it keeps the last journals open, up to 128. Each thread
 * needs its own. ANNAL_ERR_CORRUPT if event seq is missing or does not match its hash. Any thread.
 */
typedef struct annal__event_buffer annal__event_buffer;

void annal__event_buffer_free(annal__event_buffer *buffer);

ANNAL_MUST_CHECK annal_status annal__event_read_at(annal_store *store, annal_slice session,
                                                   uint64_t seq, uint64_t offset, uint64_t length,
                                                   annal__event_buffer **buffer,
                                                   annal_event *out_event, annal_error *err);

typedef struct annal__event_place {
    annal_slice session;
    uint64_t offset;
    uint64_t length;
} annal__event_place;

/*
 * Announce which events annal__event_read_at() will read next with this buffer, in this order: they
 * are read together, in their present state. Returns how many of them, from the first on, were
 * accepted; announce the others again when those are read. It accepts up to 1,024 events and 256
 * KiB, and 0 if nothing can be read ahead: then they are read one by one. Any thread.
 */
size_t annal__event_read_ahead(annal_store *store, const annal__event_place *places, size_t count,
                               annal__event_buffer **buffer);

#endif
