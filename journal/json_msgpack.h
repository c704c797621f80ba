/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of an event as JSON and as msgpack, and the conversion between them.
 *
 * (1) JSON to msgpack: objects become maps, arrays become arrays, with the same order and the same
 *     duplicate keys. The spelling is lost: spaces between tokens, escapes in strings, 10e-1 for
 *     1.0.
 * (2) A number without point or exponent, of at most 64 bits, becomes an integer; any other becomes
 *     the double that represents it exactly (base/number.h). A number that no double represents
 *     (1e400, integers of more bits, long decimals), and a string with half a surrogate pair, which
 *     is not UTF-8, is kept as its JSON text in an ext of type 74.
 * (3) msgpack to JSON: without spaces, strings with the escapes that JSON requires. bin is
 *     {"$msgpack.bin":"<base64>"}, ext {"$msgpack.ext":[type,"<base64>"]}, and an object that is
 *     exactly that becomes bin and ext again.
 * (4) Refused, because JSON cannot express it: a key that is not a string, NaN, infinity, a str
 *     that is not UTF-8, an ext of type 74 that is not the text of a number or string, a map that
 *     looks like the JSON form of a bin or ext.
 */
#pragma once

#include "journal/base/buf.h"

#include <annal/event.h>

#define DATA_EXT_JSON 74 /* 'J' */

/* Append json as msgpack to out. ANNAL_ERR_INVALID or ANNAL_ERR_LIMIT say why json cannot be
 * converted; out is unchanged then. */
annal_status annal__json_msgpack_from_json(annal_slice json, struct buf *out, annal_error *err);

/* Append msgpack as JSON on one line to out. Errors as for annal__json_msgpack_from_json(). */
annal_status annal__json_msgpack_to_json(annal_slice msgpack, struct buf *out, annal_error *err);

/*
 * Turn an event of a journal into an event for readers: if its data is msgpack, convert it to JSON
 * in the buffer json, and keep the original in event->msgpack. ANNAL_DAMAGE if JSON cannot express
 * it, because another program wrote it. Fails only for lack of memory.
 */
annal_status annal__json_msgpack_show(annal_event *event, struct buf *json, annal_error *err);

/* Return a draft of the same event, with data in the format of the journal. Valid as long as the
 * event. */
annal_draft annal__json_msgpack_draft(const annal_event *event);

/*
 * Compare two data as values: they are equal if they have the same tokens in the same order,
 * strings by their characters, numbers digit by digit. Data that cannot be converted to JSON is
 * equal only to the same bytes. Fails only for lack of memory.
 */
annal_status annal__json_msgpack_equal(annal_format format_a, annal_slice a, annal_format format_b,
                                       annal_slice b, bool *out_equal, annal_error *err);
