/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are too large to keep in memory, or that wait for events: they are produced piece by
 * piece while they are sent. */
#pragma once

#include "tools/serve/serve.h"

/* What fill() returns if nothing more is available at the moment. */
#define PRODUCE_WAIT ((annal_status)100)

struct production;

struct producer {
    enum pool_queue queue;
    void *arg;
    /* Append about FLOW_BYTES of the answer. ANNAL_OK: more follows; ANNAL_END: the answer is
     * complete. After a failure the connection is closed, so that the client sees that something is
     * missing. Only one thread at a time calls it. */
    annal_status (*fill)(void *arg, struct buf *out);
    /* Arrange that produce_wake() is called soon, in a thread in which fill() may run. Returns
     * false if that is not possible. NULL: fill() runs in a thread of the queue. */
    bool (*soon)(void *arg, struct production *production);
    /* Arrange that produce_wake() is called once. Called after PRODUCE_WAIT. */
    void (*wait)(void *arg, struct production *production);
    void (*free)(void *arg);
};

/* Answer with the bytes that fill() produces. Takes ownership of arg: frees it at the end of the
 * answer, or at once if the answer cannot be started. */
void produce(struct serve *serve, struct request *request, const char *type,
             const struct producer *producer);

/* Continue a production after its wait(). over: end the answer instead. Any thread. */
void produce_wake(struct production *production, bool over);
