/* SPDX-License-Identifier: Apache-2.0 */
/* Appending an event for a function of a pack. */
#ifndef INDEX_PACKS_POST_H
#define INDEX_PACKS_POST_H

#include "journal/base/buf.h"

#include <annal/pack.h>

struct post {
    annal_slice session;
    annal_slice type;
    annal_slice id;    /* may be empty */
    annal_slice cause; /* may be empty */
    uint32_t wait_ms;  /* wait for a session that another process writes */
};

/* Append the event through the packs, durably. The caller frees out->data: annal_free(). */
annal_status annal__post(annal_index *index, const struct post *post, annal_slice data,
                         annal_appended *out, annal_error *err);

/* Append the next member to data, which is empty at first: {"name":"text", or null if text has no
 * bytes (ptr NULL). annal__post_close_data() ends it. */
annal_status annal__post_add_text(struct buf *data, const char *name, annal_slice text);
annal_status annal__post_close_data(struct buf *data);

#endif
