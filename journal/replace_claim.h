/* SPDX-License-Identifier: Apache-2.0 */
/* Own a session and locks/structure during a change of its journal or name (replace.h, rule 1). */
#pragma once

#include "journal/base/buf.h"
#include "journal/codec.h"
#include "journal/session.h"

#include <annal/journal.h>

/* A change of a session's journal or name. This process owns the session during the change. */
struct change {
    annal_store *store;
    /* end of all waiting for other processes (monotonic, microseconds) */
    int64_t deadline_us;
    struct session *session;   /* session that this process owns for the change, or NULL */
    const struct codec *codec; /* format of the session's journal */
    struct buf path;
    /* Header frame of the journal; empty if it is damaged, or belongs to another session. */
    struct buf frame;
    struct frame_header header;
    annal_session_info info;
    /* whether a commit log contains records that recovery would write to the journal */
    bool is_logged;
};

/*
 * Lock locks/structure, and take ownership of the session, which need not exist. With sound, fail
 * if the end of its journal is damaged. Waits up to the store's limit for a process that holds one
 * of them. Call annal__replace_end() in any case.
 */
annal_status annal__replace_claim(struct change *change, annal_store *store, annal_slice id,
                                  bool sound, annal_error *err);

/* Call annal__replace_claim(), and checkpoint this process's commit log (rule 1). Call
 * annal__replace_end() in any case. */
annal_status annal__replace_begin(struct change *change, annal_store *store, annal_slice id,
                                  bool sound, annal_error *err);

/* Release the session and locks/structure. */
void annal__replace_end(struct change *change);
