/* SPDX-License-Identifier: Apache-2.0 */
/* Appending an event for a function of a pack. */
#ifndef INDEX_PACKS_POST_H
#define INDEX_PACKS_POST_H

#include "journal/base/buf.h"

#include <annal/pack.h>

struct post {
    annal_slice session;
    annal_slice type;
    annal_slice id;    /* id of the event, or empty */
    annal_slice cause; /* cause of the event, or empty */
    uint32_t wait_ms;  /* time in ms to wait for another process that writes the session */
};

/* Append the event through the packs, at level sync. The caller frees out->data.ptr with
 * annal_free(). */
annal_status annal__post(annal_index *index, const struct post *post, annal_slice data,
                         annal_appended *out, annal_error *err);

/* Append a member to data, which is empty before the first call: the text as a JSON string, or null
 * if text.ptr is NULL. After the last member call annal__post_close_data(). */
annal_status annal__post_add_text(struct buf *data, const char *name, annal_slice text);
annal_status annal__post_close_data(struct buf *data);

#endif
