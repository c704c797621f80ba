/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are too large to keep: a thread of the pool fills them piece by piece while they are
 * sent. */
#ifndef TOOLS_SERVE_PRODUCE_H
#define TOOLS_SERVE_PRODUCE_H

#include "tools/serve/serve.h"

struct producer {
    enum pool_queue queue;
    void *arg;
    /* Append about FLOW_BYTES. ANNAL_OK: more follows; ANNAL_END: the answer is complete. A failure
     * ends the connection, so that the client sees that something is missing. One thread at a
     * time. */
    annal_status (*fill)(void *arg, struct buf *out);
    void (*free)(void *arg);
};

/* Answer with the bytes that fill() produces. Takes ownership of arg and frees it at the end, or at
 * once on failure. */
void produce(struct serve *serve, struct request *request, const char *type,
             const struct producer *producer);

#endif
