/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ship/nats.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "tools/cli/must.h"
#include "tools/cli/outside.h"
#include "tools/ship/ship.h"
#include "tools/show/event_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKET "ANNAL_HEADS"

enum {
    SERVERS_MAX = 16,
    URL_BYTES = 1000,
    UNACKED_MAX = 512,
    PART_ROOM = 8192, /* bytes reserved in each message for its headers */
    INBOX_BYTES = 100,
    ACK_BYTES = 1000,
    HEAD_BYTES = SHIP_STORE_BYTES_MAX + 400,
    NO_REPLICAS = 10074 /* error code with which a server without a cluster refuses replicas */
};

struct ship_target {
    const char *url;
    const char *store;
    uint32_t quiet_ms;
    natsConnection *connection;
    jsCtx *js;
    kvStore *bucket;
    natsSubscription *acks;
    char inbox[INBOX_BYTES];
    uint64_t store_hash;
    /* creation time of the stream; heads (records of a session's last event) for another stream are
     * ignored */
    int64_t created;
    size_t part_bytes;
    /* for each session its last event at the target; key: number of that event's message;
     * is_reported: whether the message was looked up */
    struct shipments heads;
    struct buf text;             /* buffer for one event */
    struct shipment **shipments; /* shipments of the current batch */
    size_t count, unacked;
};

/* ---- Connecting ---- */

const char *nats_name(const char *url)
{
    static char name[URL_BYTES];
    const char *at = strrchr(url, '@');
    snprintf(name, sizeof name, "%s", at != NULL ? at + 1 : url + strlen("nats://"));
    return name;
}

/* Return the library's text for the code, or a clearer one for codes whose text explains
 * nothing. */
static const char *nats_why(natsStatus code)
{
    return code == NATS_ERR || code == NATS_PROTOCOL_ERROR || code == NATS_LINE_TOO_LONG
               ? "the server does not speak the NATS protocol"
               : natsStatus_GetText(code);
}

static annal_status fail_nats(const struct ship_target *target, const char *what, natsStatus code,
                              annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_BUSY, "ship to %s: %s: %s", nats_name(target->url), what,
                       nats_why(code));
}

static natsStatus set_servers(natsOptions *options, char *list)
{
    char *servers[SERVERS_MAX], *rest = NULL;
    int count = 0;
    for (char *word = strtok_r(list, ",", &rest); word != NULL && count < SERVERS_MAX;
         word = strtok_r(NULL, ",", &rest))
        servers[count++] = word;
    return natsOptions_SetServers(options, (const char **)servers, count);
}

annal_status nats_connect(const char *url, uint32_t quiet_ms, natsConnection **out_connection,
                          jsCtx **out_js, annal_error *err)
{
    char list[URL_BYTES];
    natsOptions *options = NULL;
    natsConnection *connection = NULL;
    jsOptions js_options;
    const char *credentials = getenv("NATS_CREDS");
    if ((size_t)snprintf(list, sizeof list, "%s", url) >= sizeof list)
        return annal__fail(err, ANNAL_ERR_INVALID, "ship: the address of the stream is too long");
    natsStatus code = natsOptions_Create(&options);
    if (code == NATS_OK)
        code = set_servers(options, list);
    if (code == NATS_OK)
        code = natsOptions_SetTimeout(options, quiet_ms);
    if (code == NATS_OK)
        code = natsOptions_SetAllowReconnect(options, false); /* the caller reconnects */
    if (code == NATS_OK && credentials != NULL && credentials[0] != '\0')
        code = natsOptions_SetUserCredentialsFromFiles(options, credentials, NULL);
    if (code == NATS_OK)
        code = natsConnection_Connect(&connection, options);
    natsOptions_Destroy(options);
    if (code == NATS_OK)
        code = jsOptions_Init(&js_options);
    js_options.Wait = quiet_ms;
    if (code == NATS_OK)
        code = natsConnection_JetStream(out_js, connection, &js_options);
    if (code != NATS_OK) {
        natsConnection_Destroy(connection);
        return annal__fail(err,
                           code == NATS_INVALID_ARG || code == NATS_CONNECTION_AUTH_FAILED
                               ? ANNAL_ERR_INVALID
                               : ANNAL_ERR_BUSY,
                           "ship to %s: %s", nats_name(url), nats_why(code));
    }
    *out_connection = connection;
    return ANNAL_OK;
}

static void nats_close(struct ship_target *target)
{
    if (target == NULL)
        return;
    natsSubscription_Destroy(target->acks);
    kvStore_Destroy(target->bucket);
    jsCtx_Destroy(target->js);
    natsConnection_Destroy(target->connection);
    shipments_done(&target->heads);
    annal__buf_done(&target->text);
    annal__free(target);
}

/* Create the stream, with three replicas in a cluster. An existing stream is left unchanged. */
static natsStatus make_stream(struct ship_target *target)
{
    static const char *subjects[] = {NATS_SUBJECTS};
    jsStreamConfig config;
    jsErrCode why = 0;
    jsStreamInfo *info = NULL;
    natsStatus code = js_GetStreamInfo(&info, target->js, NATS_STREAM, NULL, &why);
    jsStreamInfo_Destroy(info);
    if (code != NATS_NOT_FOUND)
        return code;
    jsStreamConfig_Init(&config);
    config.Name = NATS_STREAM;
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.Storage = js_FileStorage;
    config.Replicas = 3;
    code = js_AddStream(NULL, target->js, &config, NULL, &why);
    if (code != NATS_OK && (int)why == NO_REPLICAS) {
        config.Replicas = 1;
        code = js_AddStream(NULL, target->js, &config, NULL, &why);
    }
    return code;
}

static natsStatus open_bucket(struct ship_target *target)
{
    kvConfig config;
    natsStatus code = js_KeyValue(&target->bucket, target->js, BUCKET);
    if (code != NATS_NOT_FOUND)
        return code;
    kvConfig_Init(&config);
    config.Bucket = BUCKET;
    config.History = 1;
    config.Replicas = 3;
    code = js_CreateKeyValue(&target->bucket, target->js, &config);
    if (code == NATS_OK)
        return code;
    config.Replicas = 1;
    jsStreamInfo *info = NULL;
    if (js_GetStreamInfo(&info, target->js, NATS_STREAM, NULL, NULL) == NATS_OK &&
        info->Config->Replicas == 1)
        code = js_CreateKeyValue(&target->bucket, target->js, &config);
    jsStreamInfo_Destroy(info);
    return code;
}

static natsStatus listen(struct ship_target *target)
{
    natsInbox *inbox = NULL;
    char subject[INBOX_BYTES + 2];
    natsStatus code = natsInbox_Create(&inbox);
    if (code == NATS_OK) {
        snprintf(target->inbox, sizeof target->inbox, "%s", inbox);
        snprintf(subject, sizeof subject, "%s.*", target->inbox);
        code = natsConnection_SubscribeSync(&target->acks, target->connection, subject);
    }
    natsInbox_Destroy(inbox);
    return code;
}

static annal_status nats_open(const struct ship_where *where, bool to_write,
                              struct ship_target **out_target, annal_error *err)
{
    annal_status status = library_load(&library_nats, err);
    if (status < 0)
        return status;
    struct ship_target *target = must_zalloc(sizeof *target);
    target->url = where->url;
    target->store = where->store;
    target->quiet_ms = where->quiet_ms;
    target->store_hash = annal__hash(where->store, strlen(where->store), 0);
    status = nats_connect(where->url, where->quiet_ms, &target->connection, &target->js, err);
    if (status >= 0) {
        natsStatus code = to_write ? make_stream(target) : NATS_OK;
        if (code == NATS_OK)
            code =
                to_write ? open_bucket(target) : js_KeyValue(&target->bucket, target->js, BUCKET);
        if (code == NATS_OK)
            code = listen(target);
        int64_t largest = natsConnection_GetMaxPayload(target->connection);
        target->part_bytes =
            largest > 2 * PART_ROOM ? (size_t)largest - PART_ROOM : (size_t)PART_ROOM;
        if (code == NATS_NOT_FOUND)
            status = annal__fail(err, ANNAL_ERR_NOTFOUND, "ship: nothing was shipped to '%s' yet",
                                 nats_name(where->url));
        else if (code != NATS_OK)
            status = fail_nats(target, "open the JetStream stream", code, err);
    }
    if (status < 0) {
        nats_close(target);
        return status;
    }
    *out_target = target;
    return ANNAL_OK;
}

/* ---- Heads ---- */

/* Read a head (a session's last event at the target): SEQ H AT MESSAGE CREATED SESSION STORE, each
 * on its own line. Returns false if it belongs to another store or stream. */
static bool read_head(struct ship_target *target, kvEntry *entry, struct place *there,
                      int64_t *message, char session[ANNAL_SESSION_ID_BYTES_MAX + 1])
{
    char text[HEAD_BYTES];
    struct outside line = {.at = text};
    snprintf(text, sizeof text, "%.*s", kvEntry_ValueLen(entry),
             (const char *)kvEntry_Value(entry));
    there->seq = outside_number(&line, OUTSIDE_SEQ_MAX);
    outside_skip(&line, "\n");
    there->h = outside_hash(&line);
    outside_skip(&line, "\n");
    there->at = outside_number(&line, OUTSIDE_BYTES_MAX);
    outside_skip(&line, "\n");
    *message = (int64_t)outside_number(&line, INT64_MAX);
    outside_skip(&line, "\n");
    int64_t created = outside_signed(&line);
    outside_skip(&line, "\n");
    outside_session(&line, session);
    outside_skip(&line, "\n");
    return !line.is_bad && created == target->created && strcmp(line.at, target->store) == 0;
}

static annal_status take_head(struct ship_target *target, kvEntry *entry, uint64_t last, head_fn fn,
                              void *arg, annal_error *err)
{
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct place there;
    int64_t message;
    if (kvEntry_Operation(entry) != kvOp_Put ||
        !read_head(target, entry, &there, &message, session) || (uint64_t)message > last)
        /* the head is of another store, or its message is not in the stream: send the session again
         * (nats.h, rule 3) */
        return ANNAL_OK;
    struct shipment *shipment = shipment_of(&target->heads, annal_slice_of(session));
    shipment->head = there;
    shipment->has_head = true;
    shipment->key = message;
    return fn(arg, annal_slice_of(shipment->session), &there, err);
}

static annal_status nats_heads(struct ship_target *target, head_fn fn, void *arg, annal_error *err)
{
    char keys[40];
    kvWatcher *watcher = NULL;
    kvEntry *entry = NULL;
    jsStreamInfo *info = NULL;
    annal_status status = ANNAL_OK;
    shipments_done(&target->heads);
    snprintf(keys, sizeof keys, "%016" PRIx64 ".>", target->store_hash);
    natsStatus code = js_GetStreamInfo(&info, target->js, NATS_STREAM, NULL, NULL);
    if (code == NATS_OK) {
        target->created = info->Created;
        code = kvStore_Watch(&watcher, target->bucket, keys, NULL);
    }
    while (code == NATS_OK && status >= 0) {
        code = kvWatcher_Next(&entry, watcher, target->quiet_ms);
        if (code != NATS_OK || entry == NULL) /* all heads were read */
            break;
        status = take_head(target, entry, info->State.LastSeq, fn, arg, err);
        kvEntry_Destroy(entry);
        entry = NULL;
    }
    kvWatcher_Destroy(watcher);
    jsStreamInfo_Destroy(info);
    return code == NATS_OK ? status
                           : fail_nats(target, "read the last seq of each session", code, err);
}

/*
 * Check that the stream contains the message of the session's last event (nats.h, rule 3). If all
 * messages in the stream are newer, the stream's limits removed the message, and the recorded event
 * is valid.
 */
static annal_status look_up(struct ship_target *target, struct shipment *shipment, annal_error *err)
{
    natsMsg *message = NULL;
    const char *h = NULL, *session = NULL;
    char want[20];
    jsStreamInfo *info = NULL;
    natsStatus code =
        js_GetMsg(&message, target->js, NATS_STREAM, (uint64_t)shipment->key, NULL, NULL);
    snprintf(want, sizeof want, "%016" PRIx64, shipment->head.h);
    if (code == NATS_NOT_FOUND) {
        code = js_GetStreamInfo(&info, target->js, NATS_STREAM, NULL, NULL);
        shipment->has_head = code == NATS_OK && (uint64_t)shipment->key < info->State.FirstSeq;
        jsStreamInfo_Destroy(info);
    } else if (code == NATS_OK) {
        shipment->has_head = natsMsgHeader_Get(message, "Annal-H", &h) == NATS_OK &&
                             natsMsgHeader_Get(message, "Annal-Session", &session) == NATS_OK &&
                             strcmp(h, want) == 0 && strcmp(session, shipment->session) == 0;
    }
    natsMsg_Destroy(message);
    shipment->is_reported = true;
    return code == NATS_OK ? ANNAL_OK
                           : fail_nats(target, "look up the last message of a session", code, err);
}

static annal_status nats_begin(struct ship_target *target, struct shipment **shipments,
                               size_t count, annal_error *err)
{
    annal_status status = ANNAL_OK;
    target->shipments = shipments;
    target->count = count;
    for (size_t i = 0; i < count && status >= 0; i++) {
        struct shipment *head = shipment_of(&target->heads, annal_slice_of(shipments[i]->session));
        if (head->has_head && !head->is_reported)
            status = look_up(target, head, err);
        annal_session_info *info = shipments[i]->info;
        shipments[i]->head = head->has_head ? head->head
                             : info != NULL ? (struct place){.seq = info->first_seq - 1}
                                            : (struct place){0};
        shipments[i]->has_head = head->has_head || info != NULL;
    }
    return status;
}

/* ---- Events ---- */

/* Read one acknowledgement: {"stream":…,"seq":N…} or {"error":…}. N of the last event of a shipment
 * is saved in its key. */
static annal_status take_ack(struct ship_target *target, annal_error *err)
{
    natsMsg *message = NULL;
    natsStatus code = natsSubscription_NextMsg(&message, target->acks, target->quiet_ms);
    if (code != NATS_OK)
        return fail_nats(target, "wait for an acknowledgement of shipped events", code, err);
    char text[ACK_BYTES];
    snprintf(text, sizeof text, "%.*s", natsMsg_GetDataLength(message), natsMsg_GetData(message));
    const char *seq = strstr(text, "\"seq\":");
    const char *why = strstr(text, "\"description\":\"");
    annal_status status = ANNAL_OK;
    if (strstr(text, "\"error\"") != NULL || seq == NULL) {
        why = why != NULL ? why + strlen("\"description\":\"") : text;
        status = annal__fail(err, ANNAL_ERR_BUSY, "ship to %s: %.*s", nats_name(target->url),
                             (int)strcspn(why, "\""), why);
    } else {
        const char *shipment = strrchr(natsMsg_GetSubject(message), '.');
        struct outside of = {.at = shipment != NULL ? shipment + 1 : ""};
        struct outside key = {.at = seq + strlen("\"seq\":")};
        size_t i = outside_number(&of, SIZE_MAX / 16);
        int64_t number = (int64_t)outside_number(&key, INT64_MAX);
        if (outside_end(&of) && !key.is_bad && i < target->count)
            target->shipments[i]->key = number;
        target->unacked -= target->unacked > 0;
    }
    natsMsg_Destroy(message);
    return status;
}

struct parts {
    size_t number, count; /* number counts from 1 */
};

static natsStatus set_headers(const struct ship_target *target, natsMsg *message,
                              const struct shipment *shipment, const annal_event *event,
                              struct parts parts)
{
    char id[400], seq[24], h[20], before[20], part[50];
    snprintf(seq, sizeof seq, "%" PRIu64, event->seq);
    snprintf(h, sizeof h, "%016" PRIx64, event->h);
    snprintf(before, sizeof before, "%016" PRIx64, shipment->next.h);
    snprintf(part, sizeof part, "%zu/%zu", parts.number, parts.count);
    snprintf(id, sizeof id, "%016" PRIx64 "/%s/%s/%s%s%s", target->store_hash, shipment->session,
             seq, h, parts.count > 1 ? "/" : "", parts.count > 1 ? part : "");
    const char *const headers[][2] = {{"Nats-Msg-Id", id},
                                      {"Nats-Expected-Stream", NATS_STREAM},
                                      {"Annal-Store", target->store},
                                      {"Annal-Session", shipment->session},
                                      {"Annal-Seq", seq},
                                      {"Annal-H", h},
                                      {"Annal-H-Before", before},
                                      {"Annal-Part", part}};
    natsStatus code = NATS_OK;
    for (size_t i = 0; i < sizeof headers / sizeof *headers && code == NATS_OK; i++)
        if (i < 7 || parts.count > 1)
            code = natsMsgHeader_Set(message, headers[i][0], headers[i][1]);
    return code;
}

static size_t index_of(const struct ship_target *target, const struct shipment *shipment)
{
    size_t i = 0;
    while (i < target->count && target->shipments[i] != shipment)
        i++;
    return i;
}

static annal_status send_part(struct ship_target *target, const struct shipment *shipment,
                              const annal_event *event, struct parts parts, annal_slice bytes,
                              annal_error *err)
{
    char subject[40], reply[INBOX_BYTES + 30];
    natsMsg *message = NULL;
    annal_status status = ANNAL_OK;
    while (target->unacked >= UNACKED_MAX && status >= 0)
        status = take_ack(target, err);
    if (status < 0)
        return status;
    uint64_t hash = annal__hash(shipment->session, strlen(shipment->session), target->store_hash);
    snprintf(subject, sizeof subject, "annal.events.%d", (int)(hash % NATS_PARTITIONS));
    snprintf(reply, sizeof reply, "%s.%zu", target->inbox, index_of(target, shipment));
    natsStatus code = natsMsg_Create(&message, subject, reply, bytes.ptr, (int)bytes.len);
    if (code == NATS_OK)
        code = set_headers(target, message, shipment, event, parts);
    if (code == NATS_OK)
        code = natsConnection_PublishMsg(target->connection, message);
    natsMsg_Destroy(message);
    target->unacked++;
    return code == NATS_OK ? ANNAL_OK : fail_nats(target, "publish events", code, err);
}

static annal_status nats_put(struct ship_target *target, const struct shipment *shipment,
                             const annal_event *event, annal_error *err)
{
    char head[EVENT_HEAD_BYTES];
    size_t len = event_head(event, annal_slice_of(shipment->session), head);
    annal__buf_clear(&target->text);
    must_append(&target->text, head, len);
    must_append_slice(&target->text, event->data);
    must_append(&target->text, "}", 1);
    struct parts parts = {0, (target->text.len + target->part_bytes - 1) / target->part_bytes};
    annal_status status = ANNAL_OK;
    while (parts.number < parts.count && status >= 0) {
        size_t at = parts.number++ * target->part_bytes, left = target->text.len - at;
        annal_slice bytes = {target->text.ptr + at,
                             left < target->part_bytes ? left : target->part_bytes};
        status = send_part(target, shipment, event, parts, bytes, err);
    }
    return status;
}

static annal_status write_head(struct ship_target *target, const struct shipment *shipment,
                               annal_error *err)
{
    char key[40], text[HEAD_BYTES];
    uint64_t hash = annal__hash(shipment->session, strlen(shipment->session), 0);
    snprintf(key, sizeof key, "%016" PRIx64 ".%016" PRIx64, target->store_hash, hash);
    snprintf(text, sizeof text,
             "%" PRIu64 "\n%016" PRIx64 "\n%" PRIu64 "\n%" PRId64 "\n%" PRId64 "\n%s\n%s",
             shipment->next.seq, shipment->next.h, shipment->next.at, shipment->key,
             target->created, shipment->session, target->store);
    natsStatus code = kvStore_PutString(NULL, target->bucket, key, text);
    struct shipment *head = shipment_of(&target->heads, annal_slice_of(shipment->session));
    head->head = shipment->next;
    head->key = shipment->key;
    head->has_head = head->is_reported = true;
    return code == NATS_OK ? ANNAL_OK
                           : fail_nats(target, "write the last seq of a session", code, err);
}

static annal_status nats_commit(struct ship_target *target, struct shipment **shipments,
                                size_t count, annal_error *err)
{
    annal_status status = ANNAL_OK;
    while (target->unacked > 0 && status >= 0)
        status = take_ack(target, err);
    for (size_t i = 0; i < count && status >= 0; i++)
        if (shipments[i]->next.seq != shipments[i]->head.seq)
            status = write_head(target, shipments[i], err);
    return status;
}

const struct ship_kind ship_nats = {.pace_ms = 0,
                                    .open = nats_open,
                                    .close = nats_close,
                                    .heads = nats_heads,
                                    .begin = nats_begin,
                                    .put = nats_put,
                                    .commit = nats_commit};
