/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/json_msgpack.h"

#include "journal/base/base64.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/msgpack.h"
#include "journal/base/number.h"
#include "journal/base/slice.h"

#include <math.h>
#include <string.h>

#define BIN_KEY "$msgpack.bin"
#define EXT_KEY "$msgpack.ext"

static annal_status decode_string(annal_slice quoted, struct buf *out, bool *out_half)
{
    annal__buf_clear(out);
    return annal__json_decode(quoted, out, out_half);
}

static struct json_walk walk_of(annal_slice json)
{
    return (struct json_walk){.at = json.ptr, .end = json.ptr + json.len};
}

/* Return the kind of a token: its first byte, or '0' for every number. */
static char kind_of(annal_slice token)
{
    char c = *token.ptr;
    return c == '-' || (c >= '0' && c <= '9') ? '0' : c;
}

/* ---- To msgpack ---- */

/* An object that is the JSON form of a msgpack bin or ext. */
struct spelling {
    bool is_ext;
    int8_t type;
    struct buf key, base64;
};

struct packing {
    struct buf *out;
    /* uint32_t for each array and object, in order: the number of its values and keys */
    struct buf counts;
    size_t opened;   /* number of arrays and objects that were packed */
    struct buf text; /* a string with its escapes resolved, or the bytes of a bin or ext */
    struct spelling spelling;
};

static uint32_t *count_at(const struct packing *packing, size_t index)
{
    return (uint32_t *)(void *)packing->counts.ptr + index;
}

static annal_status count_values(struct packing *packing, annal_slice json)
{
    uint32_t open[ANNAL_DATA_DEPTH_MAX];
    uint32_t arrays = 0;
    size_t depth = 0;
    struct json_walk walk = walk_of(json);
    annal_slice token;
    while (annal__json_token(&walk, &token)) {
        char kind = *token.ptr;
        if (kind == '}' || kind == ']') {
            depth--;
            continue;
        }
        if (depth > 0)
            ++*count_at(packing, open[depth - 1]);
        if (kind != '{' && kind != '[')
            continue;
        open[depth++] = arrays++;
        annal_status status = annal__buf_append_zeros(&packing->counts, sizeof(uint32_t));
        if (status < 0)
            return status;
    }
    return ANNAL_OK;
}

static annal_status pack_string(struct packing *packing, annal_slice quoted)
{
    bool half = false;
    if (!annal__json_is_escaped(quoted))
        return annal__msgpack_str(packing->out, annal__json_inside(quoted));
    annal_status status = decode_string(quoted, &packing->text, &half);
    if (status < 0)
        return status;
    return half ? annal__msgpack_ext(packing->out, DATA_EXT_JSON, quoted)
                : annal__msgpack_str(packing->out, annal__buf_slice(&packing->text));
}

static annal_status pack_number(struct packing *packing, annal_slice text)
{
    struct number number = annal__number_read(text);
    switch (number.kind) {
    case NUMBER_UINT:
        return annal__msgpack_uint(packing->out, number.uint);
    case NUMBER_INT:
        return annal__msgpack_int(packing->out, number.sint);
    case NUMBER_DOUBLE:
        return annal__msgpack_double(packing->out, number.real);
    case NUMBER_OTHER:
        break;
    }
    return annal__msgpack_ext(packing->out, DATA_EXT_JSON, text);
}

/*
 * If `value` is the opening bracket of an array, read the type of an ext from it, and the token
 * after the type into `value`. Return false if this is not an array that begins with a valid
 * type.
 */
static bool read_ext_type(struct json_walk *at, annal_slice *value, int8_t *out_type)
{
    annal_slice type;
    if (*value->ptr != '[')
        return false;
    (void)annal__json_token(at, &type);
    (void)annal__json_token(at, value);
    if (kind_of(type) != '0')
        return false;
    struct number number = annal__number_read(type);
    bool fits = (number.kind == NUMBER_UINT && number.uint < 128 && number.uint != DATA_EXT_JSON) ||
                (number.kind == NUMBER_INT && number.sint >= -128);
    if (fits)
        *out_type = (int8_t)(number.kind == NUMBER_UINT ? (int64_t)number.uint : number.sint);
    return fits;
}

/*
 * Find out whether an object with a single member is the JSON form of a bin or ext; `rest` is after
 * its opening bracket, and is moved after the complete object if so. Escapes are resolved, because
 * the conversion to JSON would write the same object without them.
 */
static annal_status read_spelling(struct json_walk *rest, struct spelling *out, bool *out_found)
{
    struct json_walk at = *rest;
    annal_slice key, value;
    bool half;
    *out_found = false;
    (void)annal__json_token(&at, &key);
    (void)annal__json_token(&at, &value);
    annal_status status = decode_string(key, &out->key, &half);
    if (status < 0)
        return status;
    out->is_ext = annal__slice_is(annal__buf_slice(&out->key), EXT_KEY);
    if (out->is_ext && !read_ext_type(&at, &value, &out->type))
        return ANNAL_OK;
    if ((!out->is_ext && !annal__slice_is(annal__buf_slice(&out->key), BIN_KEY)) ||
        *value.ptr != '"')
        return ANNAL_OK;
    status = decode_string(value, &out->base64, &half);
    if (status < 0 || !annal__base64_check(annal__buf_slice(&out->base64)))
        return status;
    if (out->is_ext) {
        (void)annal__json_token(&at, &value);
        if (*value.ptr != ']')
            return ANNAL_OK;
    }
    (void)annal__json_token(&at, &value); /* the closing bracket */
    *out_found = true;
    *rest = at;
    return ANNAL_OK;
}

static annal_status pack_object(struct packing *packing, struct json_walk *rest)
{
    uint32_t count = *count_at(packing, packing->opened++) / 2;
    struct spelling *spelling = &packing->spelling;
    bool found = false;
    annal_status status = ANNAL_OK;
    if (count == 1)
        status = read_spelling(rest, spelling, &found);
    if (status < 0)
        return status;
    if (!found)
        return annal__msgpack_map(packing->out, count);
    /* skip the count of the array that is in the JSON form of an ext */
    packing->opened += spelling->is_ext;
    annal__buf_clear(&packing->text);
    status = annal__base64_take(&packing->text, annal__buf_slice(&spelling->base64));
    if (status < 0)
        return status;
    annal_slice bytes = annal__buf_slice(&packing->text);
    return spelling->is_ext ? annal__msgpack_ext(packing->out, spelling->type, bytes)
                            : annal__msgpack_bin(packing->out, bytes);
}

static annal_status pack_values(struct packing *packing, annal_slice json)
{
    annal_status status = ANNAL_OK;
    struct json_walk walk = walk_of(json);
    annal_slice token;
    while (status == ANNAL_OK && annal__json_token(&walk, &token)) {
        switch (kind_of(token)) {
        case '{':
            status = pack_object(packing, &walk);
            break;
        case '[':
            status = annal__msgpack_array(packing->out, *count_at(packing, packing->opened++));
            break;
        case '"':
            status = pack_string(packing, token);
            break;
        case '0':
            status = pack_number(packing, token);
            break;
        case 't':
        case 'f':
            status = annal__msgpack_bool(packing->out, *token.ptr == 't');
            break;
        case 'n':
            status = annal__msgpack_nil(packing->out);
            break;
        }
    }
    return status;
}

/* Limit the output to the largest data, unless `out` has a lower limit. Return the limit that `out`
 * had. */
static size_t limit_to_data(struct buf *out)
{
    size_t before = out->limit;
    size_t limit = before == 0 ? BUF_LIMIT_DEFAULT : before;
    if (limit > out->len + ANNAL_DATA_BYTES_MAX)
        out->limit = out->len + ANNAL_DATA_BYTES_MAX;
    return before;
}

static annal_status fail_size(annal_status status, const char *what, annal_error *err)
{
    if (status == ANNAL_ERR_LIMIT)
        return annal__fail(err, status, "data has more than %u bytes as %s", ANNAL_DATA_BYTES_MAX,
                           what);
    return annal__fail(err, status, "convert data to %s: out of memory", what);
}

annal_status annal__json_msgpack_from_json(annal_slice json, struct buf *out, annal_error *err)
{
    struct packing packing = {.out = out};
    size_t start = out->len, offset = 0;
    json_fault fault = annal__json_check(json, ANNAL_DATA_DEPTH_MAX, &offset);
    if (fault != JSON_VALID)
        return annal__fail(err, fault == JSON_DEPTH ? ANNAL_ERR_LIMIT : ANNAL_ERR_INVALID,
                           "data is not one JSON value: %s at byte %zu",
                           annal__json_fault_text(fault), offset);
    size_t limit = limit_to_data(out);
    annal_status status = count_values(&packing, json);
    if (status == ANNAL_OK)
        status = pack_values(&packing, json);
    out->limit = limit;
    annal__buf_done(&packing.counts);
    annal__buf_done(&packing.text);
    annal__buf_done(&packing.spelling.key);
    annal__buf_done(&packing.spelling.base64);
    if (status < 0) {
        annal__buf_cut(out, start);
        return fail_size(status, "msgpack", err);
    }
    return ANNAL_OK;
}

/* ---- To JSON ---- */

struct level {
    uint64_t left; /* number of keys and values of this array or map that were not printed yet */
    bool is_map;
    bool begun;
};

struct printing {
    struct buf *out;
    annal_slice rest;
    size_t depth;
    const char *fault; /* why JSON cannot express the value, or NULL */
    struct level levels[ANNAL_DATA_DEPTH_MAX];
};

static annal_status refuse(struct printing *printing, const char *fault)
{
    printing->fault = fault;
    return ANNAL_ERR_INVALID;
}

static annal_status put(struct printing *printing, annal_slice text)
{
    return annal__buf_append_slice(printing->out, text);
}

static annal_status put_str(struct printing *printing, annal_slice text)
{
    if (!annal__json_is_utf8(text))
        return refuse(printing, "a str that is not UTF-8");
    return annal__json_quote(printing->out, text);
}

static annal_status put_real(struct printing *printing, double real)
{
    char text[NUMBER_TEXT_BYTES];
    if (!isfinite(real))
        return refuse(printing, "a number that is not finite");
    return annal__buf_append(printing->out, text, annal__number_print(real, text));
}

static annal_status put_bytes(struct printing *printing, const struct msgpack_value *value)
{
    bool is_ext = value->kind == UNPACKED_EXT;
    if (printing->depth + 1 + is_ext > ANNAL_DATA_DEPTH_MAX)
        return ANNAL_DAMAGE;
    annal_status status =
        is_ext ? annal__buf_printf(printing->out, "{\"" EXT_KEY "\":[%d,\"", value->ext_type)
               : put(printing, ANNAL_SLICE("{\"" BIN_KEY "\":\""));
    if (status == ANNAL_OK)
        status = annal__base64_put(printing->out, value->bytes);
    if (status == ANNAL_OK)
        status = put(printing, is_ext ? ANNAL_SLICE("\"]}") : ANNAL_SLICE("\"}"));
    return status;
}

/* Return whether the text is a JSON number or string. */
static bool is_leaf(annal_slice text)
{
    return text.len > 0 && (kind_of(text) == '"' || kind_of(text) == '0') &&
           annal__json_trim(text).len == text.len && annal__json_check(text, 0, NULL) == JSON_VALID;
}

static annal_status put_ext(struct printing *printing, const struct msgpack_value *value)
{
    if (value->ext_type != DATA_EXT_JSON)
        return put_bytes(printing, value);
    if (!is_leaf(value->bytes))
        return refuse(printing, "an ext of type 74 that is no JSON text");
    return put(printing, value->bytes);
}

/* Return whether a map with a single pair would look like the JSON form of a bin or ext. rest is
 * after the head of the map. */
static bool is_spelling(annal_slice rest)
{
    struct msgpack_value key, value;
    if (!annal__msgpack_next(&rest, &key) || key.kind != UNPACKED_STR ||
        !annal__msgpack_next(&rest, &value))
        return false;
    if (annal__slice_is(key.bytes, EXT_KEY)) {
        struct msgpack_value type;
        if (value.kind != UNPACKED_ARRAY || value.count != 2 ||
            !annal__msgpack_next(&rest, &type) ||
            !((type.kind == UNPACKED_UINT && type.uint < 128 && type.uint != DATA_EXT_JSON) ||
              (type.kind == UNPACKED_INT && type.sint >= -128)) ||
            !annal__msgpack_next(&rest, &value))
            return false;
    } else if (!annal__slice_is(key.bytes, BIN_KEY)) {
        return false;
    }
    return value.kind == UNPACKED_STR && annal__base64_check(value.bytes);
}

static annal_status open_level(struct printing *printing, const struct msgpack_value *value)
{
    bool is_map = value->kind == UNPACKED_MAP;
    if (printing->depth == ANNAL_DATA_DEPTH_MAX)
        return ANNAL_DAMAGE;
    if (is_map && value->count == 1 && is_spelling(printing->rest))
        return refuse(printing, "a map that is how JSON spells a bin or ext");
    printing->levels[printing->depth++] =
        (struct level){(uint64_t)value->count * (is_map ? 2 : 1), is_map, false};
    return put(printing, is_map ? ANNAL_SLICE("{") : ANNAL_SLICE("["));
}

static annal_status put_value(struct printing *printing, const struct msgpack_value *value)
{
    switch (value->kind) {
    case UNPACKED_NIL:
        return put(printing, ANNAL_SLICE("null"));
    case UNPACKED_BOOL:
        return put(printing, value->boolean ? ANNAL_SLICE("true") : ANNAL_SLICE("false"));
    case UNPACKED_UINT:
        return annal__buf_printf(printing->out, "%llu", (unsigned long long)value->uint);
    case UNPACKED_INT:
        return annal__buf_printf(printing->out, "%lld", (long long)value->sint);
    case UNPACKED_DOUBLE:
        return put_real(printing, value->real);
    case UNPACKED_STR:
        return put_str(printing, value->bytes);
    case UNPACKED_BIN:
        return put_bytes(printing, value);
    case UNPACKED_EXT:
        return put_ext(printing, value);
    case UNPACKED_ARRAY:
    case UNPACKED_MAP:
        break;
    }
    return open_level(printing, value);
}

/* Write the comma or colon before a value, and refuse a key that is not a string. */
static annal_status put_between(struct printing *printing, const struct msgpack_value *value)
{
    if (printing->depth == 0)
        return ANNAL_OK;
    struct level *level = &printing->levels[printing->depth - 1];
    bool is_key = level->is_map && level->left % 2 == 0;
    if (is_key && value->kind != UNPACKED_STR &&
        (value->kind != UNPACKED_EXT || value->ext_type != DATA_EXT_JSON || value->bytes.len == 0 ||
         value->bytes.ptr[0] != '"'))
        return refuse(printing, "a key that is not a str");
    level->left--;
    if (!level->begun) {
        level->begun = true;
        return ANNAL_OK;
    }
    return put(printing, level->is_map && !is_key ? ANNAL_SLICE(":") : ANNAL_SLICE(","));
}

static annal_status put_all(struct printing *printing)
{
    annal_status status = ANNAL_OK;
    do {
        struct msgpack_value value;
        annal_slice before = printing->rest;
        if (!annal__msgpack_next(&printing->rest, &value))
            return refuse(printing, "something that is not msgpack, or not all of it");
        status = put_between(printing, &value);
        if (status == ANNAL_OK)
            status = put_value(printing, &value);
        if (status != ANNAL_OK) {
            printing->rest = before;
            break;
        }
        while (status == ANNAL_OK && printing->depth > 0 &&
               printing->levels[printing->depth - 1].left == 0) {
            printing->depth--;
            status = put(printing, printing->levels[printing->depth].is_map ? ANNAL_SLICE("}")
                                                                            : ANNAL_SLICE("]"));
        }
    } while (status == ANNAL_OK && printing->depth > 0);
    if (status == ANNAL_OK && printing->rest.len > 0)
        return refuse(printing, "several values");
    return status;
}

annal_status annal__json_msgpack_to_json(annal_slice msgpack, struct buf *out, annal_error *err)
{
    struct printing printing;
    printing.out = out;
    printing.rest = msgpack;
    printing.depth = 0;
    printing.fault = NULL;
    size_t start = out->len;
    size_t limit = limit_to_data(out);
    annal_status status = put_all(&printing);
    out->limit = limit;
    if (status == ANNAL_OK)
        return ANNAL_OK;
    annal__buf_cut(out, start);
    size_t at = msgpack.len - printing.rest.len;
    if (status == ANNAL_DAMAGE)
        return annal__fail(err, ANNAL_ERR_LIMIT, "data is nested deeper than %d levels at byte %zu",
                           ANNAL_DATA_DEPTH_MAX, at);
    if (printing.fault != NULL)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "data is msgpack that has no JSON form: %s at byte %zu", printing.fault,
                           at);
    return fail_size(status, "JSON", err);
}

annal_status annal__json_msgpack_show(annal_event *event, struct buf *json, annal_error *err)
{
    if (event->format != ANNAL_FORMAT_MSGPACK)
        return ANNAL_OK;
    event->msgpack = event->data;
    annal__buf_clear(json);
    annal_status status = annal__json_msgpack_to_json(event->msgpack, json, err);
    if (status == ANNAL_ERR_INVALID || status == ANNAL_ERR_LIMIT)
        return ANNAL_DAMAGE;
    if (status < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read event %llu: out of memory",
                           (unsigned long long)event->seq);
    event->data = annal__buf_slice(json);
    return ANNAL_OK;
}

annal_draft annal__json_msgpack_draft(const annal_event *event)
{
    return (annal_draft){.type = event->type,
                         .data =
                             event->format == ANNAL_FORMAT_MSGPACK ? event->msgpack : event->data,
                         .id = event->id,
                         .cause = event->cause,
                         .ts_us = ANNAL_TS(event->ts_us),
                         .data_format = event->format};
}

/* ---- Equality ---- */

static annal_status strings_equal(annal_slice a, annal_slice b, struct buf scratch[2],
                                  bool *out_equal)
{
    bool half;
    *out_equal = annal__slice_same(a, b);
    if (*out_equal)
        return ANNAL_OK;
    annal_status status = decode_string(a, &scratch[0], &half);
    if (status == ANNAL_OK)
        status = decode_string(b, &scratch[1], &half);
    if (status == ANNAL_OK)
        *out_equal =
            annal__slice_same(annal__buf_slice(&scratch[0]), annal__buf_slice(&scratch[1]));
    return status;
}

/* Compare two JSON texts token by token. The caller has checked both. */
static annal_status json_equal(annal_slice a, annal_slice b, bool *out_equal)
{
    struct buf scratch[2] = {{0}, {0}};
    annal_status status = ANNAL_OK;
    struct json_walk walk_a = walk_of(a), walk_b = walk_of(b);
    bool equal = true;
    while (status == ANNAL_OK && equal) {
        annal_slice left, right;
        bool more = annal__json_token(&walk_a, &left);
        equal = annal__json_token(&walk_b, &right) == more;
        if (!equal || !more)
            break;
        if (kind_of(left) != kind_of(right))
            equal = false;
        else if (*left.ptr == '"')
            status = strings_equal(left, right, scratch, &equal);
        else if (kind_of(left) == '0')
            equal = annal__number_equal(left, right);
    }
    annal__buf_done(&scratch[0]);
    annal__buf_done(&scratch[1]);
    *out_equal = equal;
    return status;
}

/* Turn data into JSON: it is returned unchanged, or converted in scratch. *out_readable is false if
 * the data is not valid JSON, or msgpack that JSON cannot express. */
static annal_status as_json(annal_format format, annal_slice data, struct buf *scratch,
                            annal_slice *out_json, bool *out_readable)
{
    annal_status status = ANNAL_OK;
    *out_json = data;
    if (format == ANNAL_FORMAT_MSGPACK) {
        status = annal__json_msgpack_to_json(data, scratch, NULL);
        *out_json = annal__buf_slice(scratch);
        *out_readable = status == ANNAL_OK;
        return status == ANNAL_ERR_NOMEM ? status : ANNAL_OK;
    }
    *out_readable = annal__json_check(data, ANNAL_DATA_DEPTH_MAX, NULL) == JSON_VALID;
    return ANNAL_OK;
}

annal_status annal__json_msgpack_equal(annal_format format_a, annal_slice a, annal_format format_b,
                                       annal_slice b, bool *out_equal, annal_error *err)
{
    SCOPED_BUF scratch_a = {0}, scratch_b = {0};
    annal_slice json_a, json_b;
    bool readable_a = false, readable_b = false;
    bool equal = (format_a == ANNAL_FORMAT_MSGPACK) == (format_b == ANNAL_FORMAT_MSGPACK) &&
                 annal__slice_same(a, b);
    annal_status status = ANNAL_OK;
    if (!equal)
        status = as_json(format_a, a, &scratch_a, &json_a, &readable_a);
    if (!equal && status == ANNAL_OK)
        status = as_json(format_b, b, &scratch_b, &json_b, &readable_b);
    if (readable_a && readable_b && status == ANNAL_OK)
        status = json_equal(json_a, json_b, &equal);
    if (status < 0)
        return annal__fail(err, status, "compare data: out of memory");
    *out_equal = equal;
    return ANNAL_OK;
}
