/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/otlp/wire.h"

#include "journal/base/base64.h"
#include "journal/base/error.h"
#include "journal/base/hex.h"
#include "journal/base/json.h"
#include "tools/cli/out.h"

#include <inttypes.h>
#include <string.h>

#define DEPTH_MAX    64
#define ID_BYTES_MAX 16 /* the length of a trace id in bytes; a span id is shorter */

/* How a field is encoded in protobuf and in JSON. */
enum kind {
    KIND_TEXT,
    KIND_BYTES,   /* bytes; in JSON base64 */
    KIND_ID,      /* id of a trace or span; in JSON hex */
    KIND_NUMBER,  /* varint of a small number or an enum; in JSON a number */
    KIND_BOOL,    /* varint; in JSON true or false */
    KIND_INT64,   /* varint; in JSON digits in a string */
    KIND_FIXED64, /* 8 bytes; in JSON digits in a string */
    KIND_FIXED32,
    KIND_DOUBLE,
    KIND_MESSAGE
};

struct message;

struct field {
    uint32_t number;
    const char *name; /* name in JSON; NULL at the end of the list */
    enum kind kind;
    bool repeated;
    const struct message *message;
};

struct message {
    const struct field *fields;
};

/* ---- The schema ---- */

static const struct message any_value, key_value;

static const struct message key_value = {(const struct field[]){
    {1, "key", KIND_TEXT, false, NULL}, {2, "value", KIND_MESSAGE, false, &any_value}, {0}}};
static const struct message array_value = {
    (const struct field[]){{1, "values", KIND_MESSAGE, true, &any_value}, {0}}};
static const struct message key_values = {
    (const struct field[]){{1, "values", KIND_MESSAGE, true, &key_value}, {0}}};
static const struct message any_value = {
    (const struct field[]){{1, "stringValue", KIND_TEXT, false, NULL},
                           {2, "boolValue", KIND_BOOL, false, NULL},
                           {3, "intValue", KIND_INT64, false, NULL},
                           {4, "doubleValue", KIND_DOUBLE, false, NULL},
                           {5, "arrayValue", KIND_MESSAGE, false, &array_value},
                           {6, "kvlistValue", KIND_MESSAGE, false, &key_values},
                           {7, "bytesValue", KIND_BYTES, false, NULL},
                           {0}}};

#define ATTRIBUTES(number_)                                                                        \
    {                                                                                              \
        number_, "attributes", KIND_MESSAGE, true, &key_value                                      \
    }
#define DROPPED(number_)                                                                           \
    {                                                                                              \
        number_, "droppedAttributesCount", KIND_NUMBER, false, NULL                                \
    }

static const struct message resource = {(const struct field[]){ATTRIBUTES(1), DROPPED(2), {0}}};
static const struct message scope = {(const struct field[]){{1, "name", KIND_TEXT, false, NULL},
                                                            {2, "version", KIND_TEXT, false, NULL},
                                                            ATTRIBUTES(3),
                                                            DROPPED(4),
                                                            {0}}};
static const struct message span_event = {
    (const struct field[]){{1, "timeUnixNano", KIND_FIXED64, false, NULL},
                           {2, "name", KIND_TEXT, false, NULL},
                           ATTRIBUTES(3),
                           DROPPED(4),
                           {0}}};
static const struct message span_link = {
    (const struct field[]){{1, "traceId", KIND_ID, false, NULL},
                           {2, "spanId", KIND_ID, false, NULL},
                           {3, "traceState", KIND_TEXT, false, NULL},
                           ATTRIBUTES(4),
                           DROPPED(5),
                           {6, "flags", KIND_FIXED32, false, NULL},
                           {0}}};
static const struct message span_status = {(const struct field[]){
    {2, "message", KIND_TEXT, false, NULL}, {3, "code", KIND_NUMBER, false, NULL}, {0}}};
static const struct message span = {
    (const struct field[]){{1, "traceId", KIND_ID, false, NULL},
                           {2, "spanId", KIND_ID, false, NULL},
                           {3, "traceState", KIND_TEXT, false, NULL},
                           {4, "parentSpanId", KIND_ID, false, NULL},
                           {5, "name", KIND_TEXT, false, NULL},
                           {6, "kind", KIND_NUMBER, false, NULL},
                           {7, "startTimeUnixNano", KIND_FIXED64, false, NULL},
                           {8, "endTimeUnixNano", KIND_FIXED64, false, NULL},
                           ATTRIBUTES(9),
                           DROPPED(10),
                           {11, "events", KIND_MESSAGE, true, &span_event},
                           {12, "droppedEventsCount", KIND_NUMBER, false, NULL},
                           {13, "links", KIND_MESSAGE, true, &span_link},
                           {14, "droppedLinksCount", KIND_NUMBER, false, NULL},
                           {15, "status", KIND_MESSAGE, false, &span_status},
                           {16, "flags", KIND_FIXED32, false, NULL},
                           {0}}};
static const struct message log_record = {
    (const struct field[]){{1, "timeUnixNano", KIND_FIXED64, false, NULL},
                           {2, "severityNumber", KIND_NUMBER, false, NULL},
                           {3, "severityText", KIND_TEXT, false, NULL},
                           {5, "body", KIND_MESSAGE, false, &any_value},
                           ATTRIBUTES(6),
                           DROPPED(7),
                           {8, "flags", KIND_FIXED32, false, NULL},
                           {9, "traceId", KIND_ID, false, NULL},
                           {10, "spanId", KIND_ID, false, NULL},
                           {11, "observedTimeUnixNano", KIND_FIXED64, false, NULL},
                           {12, "eventName", KIND_TEXT, false, NULL},
                           {0}}};

#define SCOPED(of_scope, name, item)                                                               \
    static const struct message of_scope = {                                                       \
        (const struct field[]){{1, "scope", KIND_MESSAGE, false, &scope},                          \
                               {2, name, KIND_MESSAGE, true, &(item)},                             \
                               {3, "schemaUrl", KIND_TEXT, false, NULL},                           \
                               {0}}}
#define OF_RESOURCE(of_resource, name, of_scope)                                                   \
    static const struct message of_resource = {                                                    \
        (const struct field[]){{1, "resource", KIND_MESSAGE, false, &resource},                    \
                               {2, name, KIND_MESSAGE, true, &(of_scope)},                         \
                               {3, "schemaUrl", KIND_TEXT, false, NULL},                           \
                               {0}}}
SCOPED(scope_spans, "spans", span);
SCOPED(scope_logs, "logRecords", log_record);
OF_RESOURCE(resource_spans, "scopeSpans", scope_spans);
OF_RESOURCE(resource_logs, "scopeLogs", scope_logs);

/* ---- Protobuf ---- */

enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_LENGTH = 2, WIRE_32 = 5 };

struct wire {
    const unsigned char *at, *end;
    uint32_t number; /* number of the current field */
    uint32_t type;   /* wire type of the field */
    /* value of the field, if its wire type is a number; else `bytes` is the value */
    uint64_t value;
    annal_slice bytes;
};

static bool read_varint(struct wire *wire, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && wire->at < wire->end; shift += 7) {
        unsigned char byte = *wire->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool read_fixed(struct wire *wire, size_t len)
{
    if ((size_t)(wire->end - wire->at) < len)
        return false;
    wire->value = 0;
    for (size_t i = 0; i < len; i++)
        wire->value |= (uint64_t)wire->at[i] << (8 * i);
    wire->at += len;
    return true;
}

/* Read the next field. Returns ANNAL_OK, ANNAL_END after the last one, or ANNAL_ERR_INVALID. */
static annal_status next_field(struct wire *wire)
{
    uint64_t tag = 0, len = 0;
    if (wire->at == wire->end)
        return ANNAL_END;
    if (!read_varint(wire, &tag) || tag >> 35 != 0)
        return ANNAL_ERR_INVALID;
    wire->number = (uint32_t)(tag >> 3);
    wire->type = (uint32_t)(tag & 7);
    bool good = false;
    if (wire->type == WIRE_VARINT)
        good = read_varint(wire, &wire->value);
    else if (wire->type == WIRE_64 || wire->type == WIRE_32)
        good = read_fixed(wire, wire->type == WIRE_64 ? 8 : 4);
    else if (wire->type == WIRE_LENGTH && read_varint(wire, &len) &&
             len <= (uint64_t)(wire->end - wire->at)) {
        wire->bytes = (annal_slice){(const char *)wire->at, (size_t)len};
        wire->at += len;
        good = true;
    }
    return good ? ANNAL_OK : ANNAL_ERR_INVALID;
}

static struct wire wire_of(annal_slice bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.ptr;
    return (struct wire){.at = at, .end = bytes.len == 0 ? at : at + bytes.len};
}

static bool fits(const struct field *field, uint32_t type)
{
    switch (field->kind) {
    case KIND_NUMBER:
    case KIND_BOOL:
    case KIND_INT64:
        return type == WIRE_VARINT;
    case KIND_FIXED64:
    case KIND_DOUBLE:
        return type == WIRE_64;
    case KIND_FIXED32:
        return type == WIRE_32;
    case KIND_TEXT:
    case KIND_BYTES:
    case KIND_ID:
    case KIND_MESSAGE:
        break;
    }
    return type == WIRE_LENGTH;
}

/* ---- JSON ---- */

static annal_status put_message(struct buf *out, const struct message *message, annal_slice bytes,
                                int depth);

static annal_status put_double(struct buf *out, uint64_t bits)
{
    char text[REAL_BYTES];
    double real;
    memcpy(&real, &bits, sizeof real);
    return annal__buf_append_slice(out, annal_slice_of(table_real_text(text, real)));
}

static annal_status put_hex(struct buf *out, annal_slice bytes)
{
    return bytes.len > ID_BYTES_MAX ? ANNAL_ERR_INVALID : annal__hex_quote(out, bytes);
}

static annal_status put_base64(struct buf *out, annal_slice bytes)
{
    annal__buf_append(out, "\"", 1);
    annal__base64_put(out, bytes);
    return annal__buf_append(out, "\"", 1);
}

static annal_status put_value(struct buf *out, const struct field *field, const struct wire *wire,
                              int depth)
{
    switch (field->kind) {
    case KIND_TEXT:
        return annal__json_quote(out, wire->bytes);
    case KIND_BYTES:
        return put_base64(out, wire->bytes);
    case KIND_ID:
        return put_hex(out, wire->bytes);
    case KIND_NUMBER:
    case KIND_FIXED32:
        return annal__buf_printf(out, "%" PRIu64, wire->value);
    case KIND_BOOL:
        return annal__buf_printf(out, "%s", wire->value != 0 ? "true" : "false");
    case KIND_INT64:
        return annal__buf_printf(out, "\"%" PRId64 "\"", (int64_t)wire->value);
    case KIND_FIXED64:
        return annal__buf_printf(out, "\"%" PRIu64 "\"", wire->value);
    case KIND_DOUBLE:
        return put_double(out, wire->value);
    case KIND_MESSAGE:
        break;
    }
    return put_message(out, field->message, wire->bytes, depth + 1);
}

/* Print all values of a repeated field, or the last value of any other field. *begun: whether the
 * object has a member already. */
static annal_status put_field(struct buf *out, const struct field *field, annal_slice bytes,
                              int depth, bool *begun)
{
    struct wire wire = wire_of(bytes), last = {0};
    size_t count = 0;
    annal_status status = ANNAL_OK;
    while (status >= 0 && (status = next_field(&wire)) == ANNAL_OK) {
        if (wire.number != field->number || !fits(field, wire.type))
            continue;
        last = wire;
        if (count++ == 0)
            status = annal__buf_printf(out, "%s\"%s\":%s", *begun ? "," : "", field->name,
                                       field->repeated ? "[" : "");
        else if (field->repeated)
            status = annal__buf_append(out, ",", 1);
        if (status >= 0 && field->repeated)
            status = put_value(out, field, &wire, depth);
    }
    *begun = *begun || count > 0;
    if (status < 0 || count == 0)
        return status;
    return field->repeated ? annal__buf_append(out, "]", 1) : put_value(out, field, &last, depth);
}

static annal_status put_message(struct buf *out, const struct message *message, annal_slice bytes,
                                int depth)
{
    bool begun = false;
    if (depth > DEPTH_MAX)
        return ANNAL_ERR_INVALID;
    annal_status status = annal__buf_append(out, "{", 1);
    for (const struct field *field = message->fields; status >= 0 && field->name != NULL; field++)
        status = put_field(out, field, bytes, depth, &begun);
    return status < 0 ? status : annal__buf_append(out, "}", 1);
}

annal_status wire_each(annal_slice wire, enum otlp_signal signal, otlp_fn fn, void *arg,
                       annal_error *err)
{
    const struct message *message = signal == OTLP_TRACES ? &resource_spans : &resource_logs;
    struct wire fields = wire_of(wire);
    SCOPED_BUF json = {0};
    annal_status status;
    while ((status = next_field(&fields)) == ANNAL_OK) {
        if (fields.number != 1 || fields.type != WIRE_LENGTH)
            continue;
        annal__buf_clear(&json);
        status = put_message(&json, message, fields.bytes, 0);
        if (status >= 0)
            status = fn(arg, annal__buf_slice(&json));
        if (status < 0)
            break;
    }
    if (status == ANNAL_ERR_INVALID)
        annal__fail(err, status, "the body is not an OTLP export request in protobuf");
    else if (status < 0)
        annal__fail(err, status, "the OTLP export request is too large");
    return status < 0 ? status : ANNAL_OK;
}
