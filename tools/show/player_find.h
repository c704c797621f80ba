/* SPDX-License-Identifier: Apache-2.0 */
/* Where the player's keys go: the next or last event of a kind. */
#ifndef TOOLS_SHOW_PLAYER_FIND_H
#define TOOLS_SHOW_PLAYER_FIND_H

#include "tools/show/conversation.h"

#include <annal/journal.h>

enum sought {
    SOUGHT_ANY,     /* that is shown */
    SOUGHT_TURN,    /* said by the user */
    SOUGHT_FAILURE, /* a tool, the model or a turn that failed */
    SOUGHT_TEXT     /* has a text, in capitals or not */
};

struct search {
    enum sought sought;
    const char *text;
    const struct conversation *talk; /* what is shown */
};

/*
 * The first such event from from_seq to to_seq, or the last if backwards; *out_seq 0: there is
 * none.
 */
annal_status player_find(annal_store *store, annal_slice session, const struct search *search,
                         uint64_t from_seq, uint64_t to_seq, bool backwards, uint64_t *out_seq,
                         annal_error *err);

#endif
