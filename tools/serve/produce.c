/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/serve/produce.h"

#include "journal/base/alloc.h"

#include <stdatomic.h>

#define PRODUCE_S 3600u

/* State of a production. Only one thread at a time may call fill(), and only one may end the
 * production. While fill() runs, the connection may ask for more bytes, or the server may end the
 * flow because it stops; the latter is noticed when the bytes of fill() are appended. While the
 * production waits, only produce_wake() may continue it. */
enum { IDLE, FILLING, WAITING, DONE };

struct production {
    struct producer producer;
    struct pool *pool;
    struct flow *flow;
    _Atomic int state;
};

static bool enter(struct production *production, int state)
{
    int idle = IDLE;
    return atomic_compare_exchange_strong(&production->state, &idle, state);
}

static void free_production(void *arg)
{
    struct production *production = arg;
    production->producer.free(production->producer.arg);
    annal__free(production);
}

static void end(struct production *production, annal_slice bytes, bool failed)
{
    struct flow *flow = production->flow;
    atomic_store(&production->state, DONE);
    http_flow_put_last(flow, bytes, failed);
    http_flow_drop(flow);
}

static void fill(void *arg)
{
    struct production *production = arg;
    struct flow *flow = production->flow;
    SCOPED_BUF out = {0};
    annal_status status = ANNAL_END;
    /* a client that has not received the earlier bytes asks for more after it received them */
    if (!http_flow_is_gone(flow))
        status = http_flow_is_full(flow)
                     ? ANNAL_OK
                     : production->producer.fill(production->producer.arg, &out);
    if (status == PRODUCE_WAIT) {
        atomic_store(&production->state, WAITING);
        if (out.len > 0 && !http_flow_put(flow, annal__buf_slice(&out)))
            end(production, (annal_slice){0}, true);
        else
            production->producer.wait(production->producer.arg, production);
    } else if (status == ANNAL_OK) {
        http_flow_keep(flow);
        /* set the state before the bytes are appended: once they are, the connection may ask for
         * more */
        atomic_store(&production->state, IDLE);
        if (!http_flow_put(flow, annal__buf_slice(&out)) && enter(production, DONE))
            end(production, (annal_slice){0}, true);
        http_flow_drop(flow);
    } else {
        end(production, annal__buf_slice(&out), status < 0);
    }
}

static bool submit(struct production *production)
{
    return pool_submit(production->pool, production->producer.queue, fill, production);
}

/* Let another thread call fill(), which produces the next part of the answer, unless such a call is
 * running. If the client has disconnected, fill() notices it, and is not called again. */
static void want(void *arg)
{
    struct production *production = arg;
    const struct producer *producer = &production->producer;
    if (enter(production, FILLING) &&
        !(producer->soon != NULL ? producer->soon(producer->arg, production) : submit(production)))
        end(production, (annal_slice){0}, true);
}

void produce_wake(struct production *production, bool over)
{
    atomic_store(&production->state, FILLING);
    if (!over && production->producer.soon != NULL)
        fill(production);
    else if (over || !submit(production))
        end(production, (annal_slice){0}, !over);
}

void produce(struct serve *serve, struct request *request, const char *type,
             const struct producer *producer)
{
    struct production *production = annal__zalloc(sizeof *production);
    if (production == NULL) {
        producer->free(producer->arg);
        answer_no_memory(request);
        return;
    }
    *production = (struct production){.producer = *producer, .pool = serve->pool};
    production->flow = http_flow_new(
        request, &(struct flow_source){.arg = production, .want = want, .free = free_production});
    if (production->flow == NULL) {
        free_production(production);
        answer_no_memory(request);
        return;
    }
    request->status = 200;
    request->most_s = PRODUCE_S;
    request->type = type;
}
