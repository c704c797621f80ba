/* SPDX-License-Identifier: Apache-2.0 */
/* The log of the slot of this process: creating one, and replacing it by another. */
#pragma once

#include "journal/context.h"
#include "journal/held_list.h"
#include "journal/log.h"

#include <stdatomic.h>

/* The commit log and the held list of this store object, after it has claimed a slot (slot.h). */
struct own_log {
    const struct context *context;
    uint32_t number; /* number of the slot */
    struct log log;  /* only the leader uses it */
    struct held held;
    /* size of a region of the log, in bytes; 0: there is no log yet */
    _Atomic uint64_t region_bytes;
};

/*
 * Create a log that belongs to no slot (any thread); replace the log of this slot, of which nothing
 * is needed any more, by it (only the leader; never waits for other processes); close and remove
 * it. After annal__slot_put_log(), *fresh is empty, even after a failure.
 */
annal_status annal__slot_make_log(const struct context *context, uint64_t region_bytes,
                                  struct log *out_log, annal_error *err);
annal_status annal__slot_put_log(struct own_log *own, struct log *fresh, annal_error *err);
void annal__slot_drop_log(const struct context *context, struct log *fresh);

/*
 * Make the log's name in commit/ durable, unless the held list records that it is. Otherwise a
 * power cut could remove the name, or give it back to an older log: the process that created or
 * replaced the log may have died before it synced commit/.
 */
annal_status annal__slot_sync_name(const struct context *context, const struct held *held,
                                   annal_error *err);
