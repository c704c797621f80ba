/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the next or last event of a kind, for the player's keys. */
#pragma once

#include "tools/show/conversation.h"

#include <annal/journal.h>

enum sought {
    SOUGHT_ANY,     /* any event that is shown */
    SOUGHT_TURN,    /* a message of the user */
    SOUGHT_FAILURE, /* a failed tool, model request or turn */
    SOUGHT_TEXT     /* an event that contains a text, in upper or lower case */
};

struct search {
    enum sought sought;
    const char *text;
    const struct conversation *talk; /* settings that decide which events are shown */
};

/* Find the first event from from_seq to to_seq that `search` describes; if backwards is set, the
 * last one. *out_seq is 0 if there is none. */
annal_status player_find(annal_store *store, annal_slice session, const struct search *search,
                         uint64_t from_seq, uint64_t to_seq, bool backwards, uint64_t *out_seq,
                         annal_error *err);
