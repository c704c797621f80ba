/* One event at a place that is known from the index. journal/event_at.c answers. */
#ifndef JOURNAL_SYS_EVENT_AT_H
#define JOURNAL_SYS_EVENT_AT_H

#include <annal/journal.h>

/*
 * Read one event at a known place, of which an index keeps offset and length. *buffer is NULL at
 * first, and made; the event's slices point into it until the next call with it, or its free, which
 * comes before the store is closed: it keeps the journals open that were read last, up to 128. Each
 * thread has its own. ANNAL_ERR_CORRUPT when event seq is not there or does not match its hash. Any
 * thread.
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
 * Say which events annal__event_read_at() will be asked for next with this buffer, in this order:
 * they are read together, as they stand now. Returns how many of them, from the first on, were
 * taken; say the others again when those are read. It takes up to 1,024 events and 256 KiB, and 0
 * where nothing can be read ahead: then they are read one by one. Any thread.
 */
size_t annal__event_read_ahead(annal_store *store, const annal__event_place *places, size_t count,
                               annal__event_buffer **buffer);

#endif
