/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/serve/serve_otlp.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/import/importers.h"
#include "tools/import/owners.h"
#include "tools/otlp/gzip.h"
#include "tools/otlp/wire.h"

#include <annal/import.h>

#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#define WIRE_TYPE      "application/x-protobuf"
#define BODY_BYTES_MAX ((size_t)64 << 20) /* maximum size of a body after gunzip */
/* maximum size of a resource as JSON; a larger one is rejected */
#define LINE_BYTES_MAX ((size_t)8 << 20)
/* number of bytes after which an importer is replaced by a new one, to free its memory */
#define KEPT_BYTES_MAX ((uint64_t)256 << 20)
#define JSON_DEPTH     128
#define TRACE_DIGITS   32
/* Maximum cost of a request. A unit is about the cost of importing one comma or bracket of JSON. */
#define WEIGHT_MAX     ((uint64_t)4000000)
#define RESOURCE_COSTS 200
/* number of events between two checks whether the client is still connected */
#define EVENTS_AT_ONCE 1000
#define ITEM_COSTS     50 /* cost of a span or log record, in the unit of WEIGHT_MAX */

static const struct {
    const char *kind, *file, *resources, *line, *scopes, *items, *rejected;
} signals[OTLP_SIGNALS] = {{"otel", "traces.jsonl", "resourceSpans", "{\"resourceSpans\":[",
                            "scopeSpans", "spans", "rejectedSpans"},
                           {"otel-logs", "logs.jsonl", "resourceLogs", "{\"resourceLogs\":[",
                            "scopeLogs", "logRecords", "rejectedLogRecords"}};

struct intake {
    pthread_mutex_t lock; /* only one thread at a time uses an importer */
    annal_import *import; /* running import; NULL: the next line opens a new one */
    struct owners *owners;
    uint64_t lines, bytes;
};

struct otlp {
    annal_store *store;
    struct intake intakes[OTLP_SIGNALS];
};

struct otlp *serve_otlp_new(annal_store *store)
{
    struct otlp *otlp = annal__zalloc(sizeof *otlp);
    if (otlp == NULL)
        return NULL;
    otlp->store = store;
    for (int i = 0; i < OTLP_SIGNALS; i++)
        pthread_mutex_init(&otlp->intakes[i].lock, NULL);
    return otlp;
}

static void close_intake(struct intake *intake)
{
    annal_import_close(intake->import);
    intake->import = NULL;
    owners_free(intake->owners);
    intake->owners = NULL;
    intake->lines = intake->bytes = 0;
}

void serve_otlp_free(struct otlp *otlp)
{
    if (otlp == NULL)
        return;
    for (int i = 0; i < OTLP_SIGNALS; i++) {
        close_intake(&otlp->intakes[i]);
        pthread_mutex_destroy(&otlp->intakes[i].lock);
    }
    annal__free(otlp);
}

/* ---- Events ---- */

struct taking {
    struct otlp *otlp;
    annal_index *index;
    struct intake *intake;
    const struct request *request;
    uint64_t weight, events;
    enum otlp_signal signal;
    struct buf line;
    uint64_t rejected;
    annal_error why; /* reason of the last rejection */
    annal_writer *writer;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* session of writer */
};

static annal_status open_writer(struct taking *taking, annal_slice session, annal_error *err)
{
    if (taking->writer != NULL && annal__slice_is(session, taking->session))
        return ANNAL_OK;
    annal_writer_close(taking->writer);
    taking->writer = NULL;
    annal_status status =
        annal_writer_open(taking->otlp->store, session, NULL, &taking->writer, err);
    if (status >= 0) {
        memcpy(taking->session, session.ptr, session.len);
        taking->session[session.len] = '\0';
    }
    return status;
}

/* Append an event. If the session has an event with this id and other data, that event is kept
 * (serve_otlp.h, rule 2). The importer uses time 1 for an unknown time. */
static annal_status take_event(void *arg, const annal_import_event *event, annal_error *err)
{
    struct taking *taking = arg;
    annal_draft draft = event->draft;
    uint64_t seq;
    if (++taking->events % EVENTS_AT_ONCE == 0 && http_client_left(taking->request))
        return annal__fail(err, ANNAL_ERR_CLOSED, "the client disconnected");
    if (draft.ts_us == 1)
        draft.ts_us = 0;
    annal_status status = open_writer(taking, event->session, err);
    if (status >= 0)
        status =
            annal_writer_append(taking->writer, &draft, 1,
                                &(annal_append_options){.level = ANNAL_LEVEL_BATCH}, &seq, err);
    return status == ANNAL_ERR_CONFLICT ? ANNAL_OK : status;
}

/* ---- Lines ---- */

/* Iterates over the spans or log records of a resource, in all its scopes. */
struct items {
    struct json_walk scopes, items;
    const char *name;
};

static struct items items_of(annal_slice resource, enum otlp_signal signal)
{
    struct items walk = {.name = signals[signal].items};
    (void)annal__json_walk_array(&walk.scopes,
                                 annal__json_member(resource, signals[signal].scopes));
    return walk;
}

static bool next_item(struct items *walk, annal_slice *out)
{
    annal_slice scope;
    while (!annal__json_walk_item(&walk->items, out)) {
        if (!annal__json_walk_item(&walk->scopes, &scope))
            return false;
        (void)annal__json_walk_array(&walk->items, annal__json_member(scope, walk->name));
    }
    return true;
}

/* Return whether the trace id of an item is invalid: it must have 16 bytes; in a log record it may
 * be missing. */
static bool has_bad_trace(annal_slice item, enum otlp_signal signal)
{
    annal_slice trace = annal__json_member(item, "traceId");
    size_t digits = trace.len < 2 ? 0 : trace.len - 2; /* skip the quotation marks */
    if (signal == OTLP_LOGS && digits == 0)
        return false;
    for (size_t i = 1; i <= digits; i++) {
        if (!isxdigit((unsigned char)trace.ptr[i]))
            return true;
    }
    return digits != TRACE_DIGITS;
}

/* Overwrite each item that has an invalid trace id with a number, which the importers ignore; count
 * it as rejected. */
static void drop_bad_traces(struct taking *taking)
{
    annal_slice line = annal__buf_slice(&taking->line), resource, item;
    struct json_walk walk;
    if (!annal__json_walk_array(&walk,
                                annal__json_member(line, signals[taking->signal].resources)) ||
        !annal__json_walk_item(&walk, &resource))
        return;
    struct items items = items_of(resource, taking->signal);
    while (next_item(&items, &item)) {
        if (!has_bad_trace(item, taking->signal))
            continue;
        memset(taking->line.ptr + (item.ptr - line.ptr), ' ', item.len);
        taking->line.ptr[item.ptr - line.ptr] = '0';
        taking->rejected++;
        annal__fail(&taking->why, ANNAL_ERR_INVALID, "a trace id must have 16 bytes");
    }
}

static annal_status open_import(struct taking *taking, annal_error *err)
{
    struct importer importer;
    annal_import_source source = {.kind = signals[taking->signal].kind,
                                  .file = signals[taking->signal].file,
                                  .owner = owners_find};
    if (taking->intake->bytes > KEPT_BYTES_MAX)
        close_intake(taking->intake);
    if (taking->intake->import != NULL)
        return ANNAL_OK;
    if ((source.owner_arg = taking->intake->owners = owners_new(NULL, taking->index)) == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "import spans: out of memory");
    if (!importer_find(source.kind, &importer))
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED, "there is no importer '%s'", source.kind);
    return annal_import_open(importer.sql, &source, &taking->intake->import, err);
}

static void reject(struct taking *taking, annal_slice resource, const annal_error *why)
{
    struct items items = items_of(resource, taking->signal);
    annal_slice item;
    while (next_item(&items, &item))
        taking->rejected++;
    taking->why = *why;
}

/* Import a resource, which is in taking->line. A failure of the importer rejects only this
 * resource; a failure of the store ends the request. */
static annal_status feed(struct taking *taking, annal_slice resource, annal_error *err)
{
    struct intake *intake = taking->intake;
    annal_status status = open_import(taking, err);
    const annal_import_line line = {.number = ++intake->lines,
                                    .bytes = annal__buf_slice(&taking->line)};
    intake->bytes += line.bytes.len;
    if (status >= 0)
        status = annal_import_feed(intake->import, &line, 1, take_event, taking, err);
    owners_pause(intake->owners);
    if (status >= 0)
        return status;
    close_intake(intake);
    if (status != ANNAL_ERR_SQL && status != ANNAL_ERR_INVALID && status != ANNAL_ERR_LIMIT)
        return status;
    reject(taking, resource, err);
    return ANNAL_OK;
}

/* Add the cost of a resource to the request's. All resources are weighed before one is imported, so
 * that a request is imported as a whole or not at all. */
static annal_status weigh(void *arg, annal_slice resource)
{
    struct taking *taking = arg;
    struct items items = items_of(resource, taking->signal);
    const char *at = resource.ptr, *end = at + resource.len;
    annal_slice item;
    taking->weight += RESOURCE_COSTS;
    while (taking->weight <= WEIGHT_MAX && next_item(&items, &item))
        taking->weight += ITEM_COSTS;
    while (taking->weight <= WEIGHT_MAX && at < end) {
        taking->weight += *at == ',' || *at == '{' || *at == '[';
        at = *at == '"' ? annal__json_string_end(at, end) : at + 1;
    }
    return taking->weight <= WEIGHT_MAX
               ? ANNAL_OK
               : annal__fail(&taking->why, ANNAL_ERR_LIMIT,
                             "the request contains more resources, spans and values than the "
                             "server accepts at once: send it in parts");
}

/* Convert a resource to a line of OTLP's JSON, and import it (serve_otlp.h, rule 1). Line breaks
 * between JSON tokens are replaced by spaces. */
static annal_status take_resource(void *arg, annal_slice resource)
{
    struct taking *taking = arg;
    annal_error err = {0};
    annal__buf_clear(&taking->line);
    if (http_client_left(taking->request))
        return annal__fail(&taking->why, ANNAL_ERR_CLOSED, "the client disconnected");
    if (resource.len > LINE_BYTES_MAX) {
        annal__fail(&err, ANNAL_ERR_LIMIT, "a resource is larger than %zu bytes of JSON",
                    LINE_BYTES_MAX);
        reject(taking, resource, &err);
        return ANNAL_OK;
    }
    annal__buf_append_slice(&taking->line, annal_slice_of(signals[taking->signal].line));
    annal__buf_append_slice(&taking->line, resource);
    annal_status status = annal__buf_append(&taking->line, "]}", 2);
    for (size_t i = 0; status >= 0 && i < taking->line.len; i++) {
        if (taking->line.ptr[i] == '\n' || taking->line.ptr[i] == '\r')
            taking->line.ptr[i] = ' ';
    }
    if (status >= 0)
        drop_bad_traces(taking);
    if (status >= 0)
        status = feed(taking, resource, &err);
    if (status < 0)
        taking->why = err;
    return status;
}

static annal_status each_json(struct taking *taking, annal_slice body, otlp_fn fn, annal_error *err)
{
    struct json_walk walk;
    annal_slice resource;
    annal_status status = ANNAL_OK;
    if (annal__json_check(body, JSON_DEPTH, NULL) != JSON_VALID ||
        annal__json_trim(body).ptr[0] != '{')
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "the body is not an OTLP export request in JSON");
    if (!annal__json_walk_array(&walk, annal__json_member(body, signals[taking->signal].resources)))
        return ANNAL_OK;
    while (status >= 0 && annal__json_walk_item(&walk, &resource))
        status = fn(taking, resource);
    if (status < 0)
        *err = taking->why;
    return status;
}

/* ---- Requests ---- */

static bool is_type(const struct request *request, const char *type)
{
    const char *given = http_header(request, "Content-Type");
    return given != NULL && strncasecmp(given, type, strlen(type)) == 0;
}

/* Print ExportTraceServiceResponse or ExportLogsServiceResponse in protobuf: field 1,
 * partial_success, with fields 1, rejected, and 2, error_message. */
static annal_status put_wire_answer(struct buf *out, const struct taking *taking)
{
    unsigned char count[10];
    size_t digits = 0, len = strlen(taking->why.message);
    uint64_t rest = taking->rejected;
    if (taking->rejected == 0)
        return ANNAL_OK;
    do {
        count[digits++] = (unsigned char)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
        rest >>= 7;
    } while (rest > 0);
    /* cut the text, so that its length, and the length of the message with it, fit in one byte */
    len = len > 100 ? 100 : len;
    size_t inner = 1 + digits + 2 + len;
    annal__buf_printf(out, "\x0a%c\x08", (char)inner);
    annal_status status = annal__buf_append(out, count, digits);
    return status < 0
               ? status
               : annal__buf_printf(out, "\x12%c%.*s", (char)len, (int)len, taking->why.message);
}

/* Answer a failure with google.rpc.Status, as the protocol requires: field 1 is the code, field 2
 * the message. */
static void answer_status(struct request *request, const annal_error *err, bool wire)
{
    bool invalid = err->status == ANNAL_ERR_INVALID;
    /* INVALID_ARGUMENT, RESOURCE_EXHAUSTED or UNAVAILABLE */
    int code = invalid ? 3 : err->status == ANNAL_ERR_LIMIT ? 8 : 14;
    size_t len = strlen(err->message);
    struct buf *out = &request->answer;
    len = len > 100 ? 100 : len; /* cut the text, so that its length fits in one byte of protobuf */
    annal__buf_clear(out);
    request->status = invalid ? 400 : err->status == ANNAL_ERR_LIMIT ? 413 : 503;
    request->type = wire ? WIRE_TYPE : JSON_TYPE;
    annal_status status =
        wire ? annal__buf_printf(out, "\x08%c\x12%c%.*s", code, (char)len, (int)len, err->message)
             : annal__json_put(out, "{\"code\":#,\"message\":?}", JSON_I64(code),
                               annal_slice_of(err->message));
    if (status < 0)
        answer_no_memory(request);
}

static annal_status put_json_answer(struct buf *out, const struct taking *taking)
{
    if (taking->rejected == 0)
        return annal__buf_append(out, "{}", 2);
    return annal__json_put(out, "{\"partialSuccess\":{\"#\":\"#\",\"errorMessage\":?}}",
                           annal_slice_of(signals[taking->signal].rejected),
                           JSON_U64(taking->rejected), annal_slice_of(taking->why.message));
}

static void answer_export(struct request *request, const struct taking *taking, bool wire)
{
    annal_status status = wire ? put_wire_answer(&request->answer, taking)
                               : put_json_answer(&request->answer, taking);
    request->status = 200;
    request->type = wire ? WIRE_TYPE : JSON_TYPE;
    if (status < 0)
        answer_no_memory(request);
}

static annal_status take_body(struct taking *taking, struct request *request, bool wire,
                              annal_error *err)
{
    const char *encoding = http_header(request, "Content-Encoding");
    SCOPED_BUF plain = {.limit = BODY_BYTES_MAX};
    annal_slice body = annal__buf_slice(&request->body);
    annal_status status = ANNAL_OK;
    if (encoding != NULL && strcasecmp(encoding, "gzip") == 0) {
        status = gzip_inflate(body, &plain, err);
        body = annal__buf_slice(&plain);
    } else if (encoding != NULL && strcasecmp(encoding, "identity") != 0) {
        status = annal__fail(err, ANNAL_ERR_INVALID, "Content-Encoding must be gzip");
    }
    static const otlp_fn rounds[] = {weigh, take_resource};
    for (size_t i = 0; status >= 0 && i < sizeof rounds / sizeof *rounds; i++)
        status = wire ? wire_each(body, taking->signal, rounds[i], taking, err)
                      : each_json(taking, body, rounds[i], err);
    if (status < 0 && taking->why.status == status)
        *err = taking->why;
    return status;
}

static void export(struct serve *serve, struct request *request, enum otlp_signal signal)
{
    struct intake *intake = &serve->otlp->intakes[signal];
    struct taking taking = {.otlp = serve->otlp,
                            .index = serve->index,
                            .intake = intake,
                            .request = request,
                            .signal = signal};
    annal_error err = {0};
    bool wire = is_type(request, WIRE_TYPE);
    if (!wire && !is_type(request, JSON_TYPE)) {
        answer_error(request, 415, "type",
                     "Content-Type must be " WIRE_TYPE " or application/json");
        return;
    }
    pthread_mutex_lock(&intake->lock);
    annal_status status = take_body(&taking, request, wire, &err);
    pthread_mutex_unlock(&intake->lock);
    annal_writer_close(taking.writer);
    if (status >= 0)
        status = annal_store_sync(serve->store, &err);
    annal__buf_done(&taking.line);
    if (status >= 0)
        answer_export(request, &taking, wire);
    else
        answer_status(request, &err, wire);
}

void serve_otlp_traces(struct serve *serve, struct request *request)
{
    export(serve, request, OTLP_TRACES);
}

void serve_otlp_logs(struct serve *serve, struct request *request)
{
    export(serve, request, OTLP_LOGS);
}
