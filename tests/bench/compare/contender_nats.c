/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NATS JetStream: one stream in files, a subject for each session. Servers before 2.10 sync their
 * files every two minutes, without a setting, so an answer promises nothing for a power cut.
 * Positions in a stream are numbers of the stream, not of a subject, so ranges of a session are not
 * supported.
 */
#include "tests/bench/compare/server.h"

#include <nats/nats.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAM      "EVENTS"
#define START_TRIES 500
#define WAIT_MS     30000

struct head {
    uint64_t seq;
    int64_t ts_us;
    uint64_t type_bytes;
};

struct connection {
    const struct place *place;
    natsConnection *connection;
    jsCtx *stream;
    char *bytes; /* of one message */
    size_t room;
};

static bool nats_find(char why[BENCH_WHY_BYTES])
{
    char path[SERVER_PATH_BYTES];
    return server_find("nats-server", "nats-server", path, why);
}

static void nats_version(char out[BENCH_VERSION_BYTES])
{
    server_version("nats-server", out);
}

static void check(natsStatus status, const char *what)
{
    if (status != NATS_OK)
        bench_fail("nats: %s: %s", what, natsStatus_GetText(status));
}

static unsigned port_of(const struct place *place)
{
    char path[4200];
    unsigned port = 0;
    snprintf(path, sizeof path, "%s/port", place->dir);
    FILE *file = fopen(path, "re");
    if (file == NULL || fscanf(file, "%u", &port) != 1)
        bench_fail("nats: %s does not say the port", path);
    fclose(file);
    return port;
}

static natsStatus connect_to(const struct place *place, natsConnection **out)
{
    char url[64];
    snprintf(url, sizeof url, "nats://127.0.0.1:%u", port_of(place));
    return natsConnection_ConnectTo(out, url);
}

static void make_stream(natsConnection *connection)
{
    const char *subjects[] = {"s.*"};
    jsCtx *stream = NULL;
    jsStreamConfig config;
    jsErrCode code = 0;
    jsStreamConfig_Init(&config);
    config.Name = STREAM;
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.Storage = js_FileStorage;
    check(natsConnection_JetStream(&stream, connection, NULL), "JetStream");
    check(js_AddStream(NULL, stream, &config, NULL, &code), "make the stream");
    jsCtx_Destroy(stream);
}

static void write_config(const struct place *place, unsigned port)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/port", place->dir);
    FILE *file = fopen(path, "we");
    if (file == NULL || fprintf(file, "%u\n", port) < 0 || fclose(file) != 0)
        bench_fail("nats: write %s: %m", path);
    snprintf(path, sizeof path, "%s/nats.conf", place->dir);
    file = fopen(path, "we");
    if (file == NULL ||
        fprintf(file,
                "host: 127.0.0.1\nport: %u\nmax_payload: 16MB\nmax_pending: 256MB\n"
                "jetstream { store_dir: \"%s/jetstream\", max_file: 1TB }\n",
                port, place->dir) < 0 ||
        fclose(file) != 0)
        bench_fail("nats: write %s: %m", path);
}

/* The library starts threads, and the supervisor forks: so a process of its own makes the
 * stream. */
static void try_stream(struct place *place)
{
    natsConnection *connection = NULL;
    for (int i = 0; i < START_TRIES && connect_to(place, &connection) != NATS_OK; i++)
        server_check(place, "nats-server");
    if (connection == NULL)
        bench_fail("nats: the server does not answer");
    make_stream(connection);
    natsConnection_Destroy(connection);
}

static void nats_start(struct place *place)
{
    char program[SERVER_PATH_BYTES], why[BENCH_WHY_BYTES], config[4200];
    if (!server_find("nats-server", "nats-server", program, why))
        bench_fail("%s", why);
    write_config(place, server_port());
    snprintf(config, sizeof config, "%s/nats.conf", place->dir);
    const char *arguments[] = {program, "-c", config, NULL};
    server_start(place, arguments, NULL, SIGKILL);
    server_apart(place, try_stream);
}

static void nats_stop(struct place *place)
{
    server_stop(place, SIGINT);
}

static void *nats_connect(const struct place *place)
{
    struct connection *connection = bench_alloc(sizeof *connection);
    connection->place = place;
    check(connect_to(place, &connection->connection), "connect");
    check(natsConnection_JetStream(&connection->stream, connection->connection, NULL), "JetStream");
    return connection;
}

static void *nats_open(const struct place *place, unsigned process)
{
    (void)process;
    return nats_connect(place);
}

static void nats_disconnect(void *handle)
{
    struct connection *connection = handle;
    jsCtx_Destroy(connection->stream);
    natsConnection_Destroy(connection->connection);
    free(connection->bytes);
    free(connection);
}

static void *nats_writer_open(void *handle)
{
    return nats_connect(((struct connection *)handle)->place);
}

static void subject_of(annal_slice name, char out[64])
{
    snprintf(out, 64, "s.%.*s", ANNAL_FMT(name));
}

/* Returns the bytes of the message. */
static size_t encode(struct connection *connection, const struct bench_event *event)
{
    struct head head = {event->seq, event->ts_us, event->type.len};
    size_t len = sizeof head + event->type.len + event->data.len;
    if (len > connection->room) {
        free(connection->bytes);
        connection->bytes = bench_alloc(connection->room = len * 2);
    }
    memcpy(connection->bytes, &head, sizeof head);
    memcpy(connection->bytes + sizeof head, event->type.ptr, event->type.len);
    memcpy(connection->bytes + sizeof head + event->type.len, event->data.ptr, event->data.len);
    return len;
}

static void nats_append(void *writer, const struct bench_event *events, size_t count)
{
    struct connection *connection = writer;
    char subject[64];
    jsPubOptions wait;
    jsPubOptions_Init(&wait);
    wait.MaxWait = WAIT_MS;
    for (size_t i = 0; i < count; i++) {
        size_t len = encode(connection, &events[i]);
        subject_of(events[i].name, subject);
        check(count == 1
                  ? js_Publish(NULL, connection->stream, subject, connection->bytes, (int)len,
                               &wait, NULL)
                  : js_PublishAsync(connection->stream, subject, connection->bytes, (int)len, NULL),
              "publish");
    }
    if (count > 1)
        check(js_PublishAsyncComplete(connection->stream, &wait), "publish");
}

/* ---- Reading and following: a consumer that keeps the order ---- */

struct nats_tail {
    struct connection *connection;
    natsSubscription *subscription;
    unsigned session;
};

static void subscribe(struct nats_tail *tail, struct connection *connection, unsigned session,
                      bool from_now)
{
    char subject[64];
    jsSubOptions options;
    jsSubOptions_Init(&options);
    options.Stream = STREAM;
    options.Ordered = true;
    if (from_now)
        options.Config.DeliverPolicy = js_DeliverNew;
    *tail = (struct nats_tail){connection, NULL, session};
    subject_of(payloads_name(connection->place->payloads, session), subject);
    check(js_SubscribeSync(&tail->subscription, connection->stream, subject, NULL, &options, NULL),
          "subscribe");
    check(natsSubscription_SetPendingLimits(tail->subscription, -1, -1), "limits");
}

static bool receive(struct nats_tail *tail, unsigned timeout_ms, bench_event_fn fn, void *arg,
                    uint64_t *out_pending)
{
    natsMsg *message = NULL;
    natsStatus status = natsSubscription_NextMsg(&message, tail->subscription, timeout_ms);
    if (status == NATS_TIMEOUT)
        return false;
    check(status, "receive");
    if ((size_t)natsMsg_GetDataLength(message) < sizeof(struct head))
        bench_fail("nats: a message is none of ours: '%.80s'", natsMsg_GetData(message));
    if (out_pending != NULL) {
        jsMsgMetaData *about = NULL;
        check(natsMsg_GetMetaData(&about, message), "receive");
        *out_pending = about->NumPending;
        jsMsgMetaData_Destroy(about);
    }
    struct head head;
    const char *bytes = natsMsg_GetData(message);
    memcpy(&head, bytes, sizeof head);
    const char *type = bytes + sizeof head;
    fn(arg, &(struct bench_event){
                .session = tail->session,
                .name = payloads_name(tail->connection->place->payloads, tail->session),
                .seq = head.seq,
                .ts_us = head.ts_us,
                .type = {type, head.type_bytes},
                .data = {type + head.type_bytes,
                         (size_t)natsMsg_GetDataLength(message) - sizeof head - head.type_bytes}});
    natsMsg_Destroy(message);
    return true;
}

static void nats_read(void *handle, unsigned session, uint64_t from_seq, uint64_t count,
                      bench_event_fn fn, void *arg)
{
    struct nats_tail tail;
    uint64_t pending = 1;
    if (from_seq != 1)
        bench_fail("nats: it reads from the first event only");
    subscribe(&tail, handle, session, false);
    /* Read to the end: the library does not allow a subscription to end while messages arrive. */
    for (; count > 0 && pending > 0; count--)
        if (!receive(&tail, WAIT_MS, fn, arg, &pending))
            bench_fail("nats: an event did not come");
    natsSubscription_Destroy(tail.subscription);
}

static void *nats_tail_open(void *handle, unsigned session)
{
    struct nats_tail *tail = bench_alloc(sizeof *tail);
    subscribe(tail, handle, session, true);
    return tail;
}

static bool nats_tail_next(void *tail, unsigned timeout_ms, bench_event_fn fn, void *arg)
{
    return receive(tail, timeout_ms, fn, arg, NULL);
}

static void nats_tail_close(void *arg_tail)
{
    struct nats_tail *tail = arg_tail;
    natsSubscription_Destroy(tail->subscription);
    free(tail);
}

const struct contender contender_nats = {
    .name = "nats",
    .promise = "in the page cache of the server, which syncs every two minutes",
    .find = nats_find,
    .version = nats_version,
    .start = nats_start,
    .stop = nats_stop,
    .open = nats_open,
    .close = nats_disconnect,
    .writer_open = nats_writer_open,
    .writer_close = nats_disconnect,
    .append = nats_append,
    .read = nats_read,
    .no_range = "it numbers the events of all sessions together",
    .tail_open = nats_tail_open,
    .tail_next = nats_tail_next,
    .tail_close = nats_tail_close};
