/* SPDX-License-Identifier: Apache-2.0 */
/* Read single events whose offset is known from the index. */
#pragma once

#include <annal/journal.h>

/*
 * Read one event whose offset and length an index has stored. *buffer is NULL at first, and is
 * created by the call; the event's slices point into it until the next call with this buffer, or
 * until it is freed. The buffer keeps up to 128 journals open, so free it before the store is
 * closed. Each thread needs its own buffer. ANNAL_ERR_CORRUPT if event seq is missing or does not
 * match its hash. Any thread.
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
 * Announce which events annal__event_read_at() will read next with this buffer, in this order, so
 * that they are read together now. Returns how many of them, from the first on, were accepted, at
 * most 1,024 events and 256 KiB; announce the others again after reading these. If it returns 0,
 * nothing can be read ahead: read the events one by one. Any thread.
 */
size_t annal__event_read_ahead(annal_store *store, const annal__event_place *places, size_t count,
                               annal__event_buffer **buffer);
