/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redis: a stream for each session, by a socket of the filesystem. appendonly with fsync always, so
 * that an answer means durable; many events are one MULTI … EXEC. All of it stays in memory, too.
 */
#include "tests/bench/compare/server.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK        1000
#define START_TRIES  500
#define SOCKET_BYTES 100 /* of sun_path */

struct redis {
    const struct place *place;
    redisContext *context;
};

static bool redis_find(char why[BENCH_WHY_BYTES])
{
    char path[SERVER_PATH_BYTES];
    return server_find("redis-server", "redis-server", path, why);
}

static void redis_version(char out[BENCH_VERSION_BYTES])
{
    server_version("redis-server", out);
}

static void socket_of(const struct place *place, char out[SOCKET_BYTES])
{
    if (snprintf(out, SOCKET_BYTES, "%s/redis.sock", place->dir) >= SOCKET_BYTES)
        bench_fail("redis: %s is too long for a socket: --dir names a shorter one", place->dir);
}

static void redis_start(struct place *place)
{
    char program[SERVER_PATH_BYTES], why[BENCH_WHY_BYTES], address[SOCKET_BYTES];
    if (!server_find("redis-server", "redis-server", program, why))
        bench_fail("%s", why);
    socket_of(place, address);
    const char *arguments[] = {program,    "--port",
                               "0",        "--unixsocket",
                               address,    "--dir",
                               place->dir, "--appendonly",
                               "yes",      "--appendfsync",
                               "always",   "--save",
                               "",         NULL};
    server_start(place, arguments, NULL, SIGKILL);
    for (int i = 0; i < START_TRIES; i++) {
        redisContext *context = redisConnectUnix(address);
        bool up = context != NULL && context->err == 0;
        if (context != NULL)
            redisFree(context);
        if (up)
            return;
        server_check(place, "redis-server");
    }
    bench_fail("redis: the server does not answer");
}

static void redis_stop(struct place *place)
{
    server_stop(place, SIGTERM);
}

static redisReply *check(redisContext *context, redisReply *reply, const char *what)
{
    if (reply == NULL)
        bench_fail("redis: %s: %s", what, context->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        bench_fail("redis: %s: %s", what, reply->str);
    return reply;
}

static redisReply *next_reply(redisContext *context, const char *what)
{
    void *reply = NULL;
    redisGetReply(context, &reply);
    return check(context, reply, what);
}

static void *redis_connect(void *handle)
{
    struct redis *redis = handle;
    char address[SOCKET_BYTES];
    socket_of(redis->place, address);
    redisContext *context = redisConnectUnix(address);
    if (context == NULL || context->err != 0)
        bench_fail("redis: connect: %s", context == NULL ? "no memory" : context->errstr);
    return context;
}

static void redis_disconnect(void *writer)
{
    redisFree(writer);
}

static void *redis_open(const struct place *place, unsigned process)
{
    (void)process;
    struct redis *redis = bench_alloc(sizeof *redis);
    redis->place = place;
    redis->context = redis_connect(redis);
    return redis;
}

static void redis_close(void *handle)
{
    struct redis *redis = handle;
    redisFree(redis->context);
    free(redis);
}

static void send_event(redisContext *context, const struct bench_event *event)
{
    char id[32], ts[32];
    int id_len = snprintf(id, sizeof id, "%" PRIu64 "-0", event->seq);
    int ts_len = snprintf(ts, sizeof ts, "%" PRId64, event->ts_us);
    const char *words[] = {"XADD", event->name.ptr, id,     "ts",           ts,
                           "type", event->type.ptr, "data", event->data.ptr};
    const size_t lens[] = {
        4, event->name.len, (size_t)id_len, 2, (size_t)ts_len, 4, event->type.len,
        4, event->data.len};
    if (redisAppendCommandArgv(context, 9, words, lens) != REDIS_OK)
        bench_fail("redis: %s", context->errstr);
}

static void redis_append(void *writer, const struct bench_event *events, size_t count)
{
    redisContext *context = writer;
    if (count == 1) {
        send_event(context, events);
        freeReplyObject(next_reply(context, "XADD"));
        return;
    }
    redisAppendCommand(context, "MULTI");
    for (size_t i = 0; i < count; i++)
        send_event(context, &events[i]);
    redisAppendCommand(context, "EXEC");
    for (size_t i = 0; i < count + 1; i++)
        freeReplyObject(next_reply(context, "MULTI"));
    redisReply *done = next_reply(context, "EXEC");
    for (size_t i = 0; i < done->elements; i++)
        check(context, done->element[i], "XADD");
    if (done->type != REDIS_REPLY_ARRAY || done->elements != count)
        bench_fail("redis: EXEC did not do all");
    freeReplyObject(done);
}

static void hand_on(const struct redis *redis, unsigned session, const redisReply *entry,
                    bench_event_fn fn, void *arg)
{
    const redisReply *id = entry->element[0], *fields = entry->element[1];
    if (fields->elements != 6)
        bench_fail("redis: an entry has %zu fields", fields->elements);
    const redisReply *ts = fields->element[1], *type = fields->element[3],
                     *data = fields->element[5];
    fn(arg, &(struct bench_event){.session = session,
                                  .name = payloads_name(redis->place->payloads, session),
                                  .seq = strtoull(id->str, NULL, 10),
                                  .ts_us = strtoll(ts->str, NULL, 10),
                                  .type = {type->str, (size_t)type->len},
                                  .data = {data->str, (size_t)data->len}});
}

static void redis_read(void *handle, unsigned session, uint64_t from_seq, uint64_t count,
                       bench_event_fn fn, void *arg)
{
    struct redis *redis = handle;
    annal_slice name = payloads_name(redis->place->payloads, session);
    while (count > 0) {
        uint64_t chunk = count < CHUNK ? count : CHUNK;
        redisReply *reply =
            check(redis->context,
                  redisCommand(redis->context, "XRANGE %b %llu-0 + COUNT %llu", name.ptr, name.len,
                               (unsigned long long)from_seq, (unsigned long long)chunk),
                  "XRANGE");
        size_t got = reply->elements;
        for (size_t i = 0; i < got; i++)
            hand_on(redis, session, reply->element[i], fn, arg);
        freeReplyObject(reply);
        if (got < chunk)
            return;
        from_seq += got;
        count -= got;
    }
}

/* ---- Following ---- */

struct redis_tail {
    struct redis *redis;
    unsigned session;
    uint64_t last_seq;
};

static void keep_seq(void *arg, const struct bench_event *event)
{
    *(uint64_t *)arg = event->seq;
}

static void *redis_tail_open(void *handle, unsigned session)
{
    struct redis_tail *tail = bench_alloc(sizeof *tail);
    *tail = (struct redis_tail){handle, session, 0};
    redis_read(handle, session, 1, UINT64_MAX, keep_seq, &tail->last_seq);
    return tail;
}

static bool redis_tail_next(void *arg_tail, unsigned timeout_ms, bench_event_fn fn, void *arg)
{
    struct redis_tail *tail = arg_tail;
    struct redis *redis = tail->redis;
    annal_slice name = payloads_name(redis->place->payloads, tail->session);
    redisReply *reply =
        check(redis->context,
              redisCommand(redis->context, "XREAD COUNT 1 BLOCK %u STREAMS %b %llu-0", timeout_ms,
                           name.ptr, name.len, (unsigned long long)tail->last_seq),
              "XREAD");
    bool got = reply->type == REDIS_REPLY_ARRAY && reply->elements == 1;
    if (got) {
        const redisReply *entries = reply->element[0]->element[1];
        hand_on(redis, tail->session, entries->element[0], fn, arg);
        tail->last_seq = strtoull(entries->element[0]->element[0]->str, NULL, 10);
    }
    freeReplyObject(reply);
    return got;
}

const struct contender contender_redis = {.name = "redis",
                                          .promise = "on the disk of the server",
                                          .durable = true,
                                          .find = redis_find,
                                          .version = redis_version,
                                          .start = redis_start,
                                          .stop = redis_stop,
                                          .open = redis_open,
                                          .close = redis_close,
                                          .writer_open = redis_connect,
                                          .writer_close = redis_disconnect,
                                          .append = redis_append,
                                          .read = redis_read,
                                          .tail_open = redis_tail_open,
                                          .tail_next = redis_tail_next,
                                          .tail_close = free};
