/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pulling downloads a shipped session into this store, with its own id and journal. The session can
 * then be continued here.
 *
 * (1) The journal is rebuilt byte for byte: each event is encoded as in the original, and its hash,
 *     which depends on all events before it, must equal the original hash. The last hash must equal
 *     the target's head.
 * (2) The journal is written outside the store and then moved in (staging.h). Until then the store
 *     contains nothing of it. A local session with a different history is left unchanged.
 * (3) Nothing is downloaded twice: neither the beginning of a session that is shorter here, nor
 *     what an interrupted pull has written.
 * (4) The ancestors of a fork are pulled before the fork. With tree, sub-agents and forks follow
 *     the session.
 * (5) Artifacts are downloaded last: every artifact that is missing locally and that a pulled or an
 *     existing session of this pull refers to. So a later pull completes an interrupted one.
 */
#pragma once

#include "tools/cli/args.h"
#include "tools/ship/ship.h"

struct pull_options {
    struct ship_where from;
    const struct ship_kind *kind;
    const char *session;
    bool tree; /* whether to pull the session's sub-agents and forks, too */
    bool json;
};

/* Pull, and print the result. Returns an exit status. */
int pull_run(annal_store *store, const struct pull_options *options);

/* As pull_run(), but print nothing. ANNAL_ERR_NOTFOUND: the target has no such session.
 * ANNAL_ERR_BUSY: the target is unreachable, or another process is pulling the session. */
annal_status pull_silently(annal_store *store, const struct pull_options *options,
                           annal_error *err);
