/*
 * The data of an event as JSON and as msgpack, and the way from one to the other.
 *
 * (1) JSON to msgpack: objects become maps, arrays arrays, in the order and with the double keys
 *     that they have. What is not kept is how it was written: spaces between tokens, escapes in
 *     strings, 10e-1 for 1.0.
 * (2) A number becomes the integer that it is if that has no point, no exponent and at most 64
 *     bits, else the double that holds it (base/number.h). A number that none holds (1e400,
 *     integers of more bits, long decimals), and a string with half a surrogate pair, which is no
 *     UTF-8, is kept as its JSON text in an ext of type 74.
 * (3) msgpack to JSON: without spaces, strings with the escapes that JSON asks for. bin is
 *     {"$msgpack.bin":"<base64>"}, ext {"$msgpack.ext":[type,"<base64>"]}, and an object that is
 *     exactly that becomes bin and ext again.
 * (4) Refused, for JSON has no word for it: a key that is no string, NaN, infinity, a str that is
 *     not UTF-8, an ext of type 74 that is not the text of a number or string, a map that is the
 *     spelling of a bin or ext.
 */
#ifndef JOURNAL_JSON_MSGPACK_H
#define JOURNAL_JSON_MSGPACK_H

#include "journal/base/buf.h"

#include <annal/event.h>

#define DATA_EXT_JSON 74 /* 'J' */

/* Append json as msgpack to out. ANNAL_ERR_INVALID, ANNAL_ERR_LIMIT with the reason; then out is as
 * it was. */
annal_status annal__data_to_msgpack(annal_slice json, struct buf *out, annal_error *err);

/* Append msgpack as JSON on one line to out. The same. */
annal_status annal__data_to_json(annal_slice msgpack, struct buf *out, annal_error *err);

/*
 * An event as readers get it, from one as it stands in its journal: data in JSON, made in json if
 * need be, and msgpack beside it. What cannot be said in JSON, for another program wrote it, is
 * shown as {"$msgpack.raw":"<base64>"}. Failures are those of memory.
 */
annal_status annal__data_show(annal_event *event, struct buf *json, annal_error *err);

/* The draft of which an event became what it is, data as it stands in the journal. Lives as the
 * event does. */
annal_draft annal__data_draft(const annal_event *event);

/*
 * Whether two data are the same value: the same tokens in the same order, strings by their
 * characters, numbers digit for digit. What cannot be read is the same as its own bytes only.
 * Failures are those of memory.
 */
annal_status annal__data_equal(annal_format format_a, annal_slice a, annal_format format_b,
                               annal_slice b, bool *out_equal, annal_error *err);

#endif
