/* SPDX-License-Identifier: Apache-2.0 */
/* The command annal tail --from nats://HOST: prints the events that the stores of a fleet ship to a
 * stream of JetStream. */
#pragma once

#include <annal/base.h>

struct nats_tail_options {
    const char *url;
    const annal_slice *sessions; /* NULL for all */
    size_t session_count;
    bool follow;
};

/* Print each event once, in the order of its session, and report missing events. Returns an exit
 * status. */
int nats_tail(const struct nats_tail_options *options);
