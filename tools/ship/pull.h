/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pulling: a session that was shipped comes to this store, under its own id and with its own
 * journal, and goes on here.
 *
 * (1) The journal is written again, byte for byte: each event is encoded as it was, and its hash,
 *     which depends on all before it, must be the one that it had. The last one must be that of the
 *     target's head.
 * (2) It is written beside the store and moved in whole (staging.h). Before that nothing of it is
 *     in the store, and a session that is here with another history stays as it is.
 * (3) What is here already is not asked for: neither the beginning of a session that is shorter
 *     here, nor what a pull that was interrupted has written.
 * (4) Of a fork, those that it was forked from come first. With a tree, sub-agents and forks come
 *     after it.
 * (5) Artifacts come last: those that events name and that are not here, of all sessions that it
 *     came to, also of those that were here. So the next pull fetches what an interrupted one did
 *     not.
 */
#ifndef TOOLS_SHIP_PULL_H
#define TOOLS_SHIP_PULL_H

#include "tools/cli/args.h"
#include "tools/ship/ship.h"

struct pull_options {
    struct ship_where from;
    const struct ship_kind *kind;
    const char *session;
    bool tree; /* also its sub-agents and forks */
    bool json;
};

/* An exit status. */
int pull_run(annal_store *store, const struct pull_options *options);

/* The same, without a word. ANNAL_ERR_NOTFOUND: it is not there. ANNAL_ERR_BUSY: the target is
 * away, or another process pulls the session. */
annal_status pull_silently(annal_store *store, const struct pull_options *options,
                           annal_error *err);

#endif
