/* SPDX-License-Identifier: Apache-2.0 */
/* Answers with more bytes than are kept: filled piece by piece in the pool, while they are sent. */
#ifndef TOOLS_SERVE_PRODUCE_H
#define TOOLS_SERVE_PRODUCE_H

#include "tools/serve/serve.h"

struct producer {
    enum lane lane;
    void *arg;
    /*
     * Append about FLOW_BYTES. ANNAL_OK: there is more; ANNAL_END: that was all. A failure ends the
     * connection, so that the client sees that something is missing. One thread at a time.
     */
    annal_status (*fill)(void *arg, struct buf *out);
    void (*free)(void *arg);
};

/* Answer with what it produces; takes arg, and frees it when it is over, or at once if it fails. */
void produce(struct serve *serve, struct request *request, const char *type,
             const struct producer *producer);

#endif
