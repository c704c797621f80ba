#include "tools/serve/produce.h"

#include "journal/base/alloc.h"

#define PRODUCE_S 3600u

struct production {
    struct producer producer;
    struct pool *pool;
    struct flow *flow;
    bool done; /* the flow was dropped */
};

static void free_production(void *arg)
{
    struct production *production = arg;
    production->producer.free(production->producer.arg);
    annal__free(production);
}

static void end(struct production *production, annal_slice bytes, bool failed)
{
    production->done = true;
    flow_put_last(production->flow, bytes, failed);
    flow_drop(production->flow);
}

static void fill(void *arg)
{
    struct production *production = arg;
    struct buf out = {0};
    annal_status status = ANNAL_END;
    if (!flow_is_gone(production->flow))
        status = production->producer.fill(production->producer.arg, &out);
    if (status == ANNAL_OK)
        (void)flow_put(production->flow, annal__buf_slice(&out));
    else
        end(production, annal__buf_slice(&out), status < 0);
    annal__buf_done(&out);
}

/* If the client is gone the next filling notices it, and is the last. */
static void want(void *arg)
{
    struct production *production = arg;
    if (!production->done &&
        !pool_submit(production->pool, production->producer.lane, fill, production))
        end(production, (annal_slice){0}, true);
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
    production->flow = flow_new(
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
