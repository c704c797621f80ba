// SPDX-License-Identifier: Apache-2.0
// Payloads of the Workflow SDK in events. They are bytes: the letters "devl" and a value in the form of devalue, a list in
// which arrays and objects refer to their parts by place. What is a JSON value becomes that value, so that others can read
// and search it, and its bytes are computed from it again; what is not becomes text, and what is no text becomes base64. Of
// an object, members that are undefined are only in the coding, which then lists all its members.
'use strict';

const PREFIX = 'devl';
const UNDEFINED = -1; // its place in a list
const GROWTH = 4; // a value whose text is this much longer than its bytes stays text

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The JSON value of a list of devalue; throws if it is not one. */
function unflatten(list, room) {
  const used = new Set();
  let left = room;
  const at = (index) => {
    if (!Number.isInteger(index) || index < 0 || index >= list.length) throw new RangeError('not a place');
    const cell = list[index];
    left -= typeof cell === 'string' ? cell.length + 2 : 4;
    if (left < 0) throw new RangeError('too long');
    if (typeof cell === 'string' && !cell.isWellFormed()) throw new RangeError('not Unicode');
    if (typeof cell !== 'object' || cell === null) return cell;
    if (used.has(index)) throw new RangeError('shared');
    used.add(index);
    if (Array.isArray(cell)) return cell.map(at);
    const value = {};
    for (const [key, place] of Object.entries(cell)) {
      left -= key.length + 3;
      if (key === '__proto__' || !key.isWellFormed()) throw new RangeError('not a key');
      value[key] = index === 0 && place === UNDEFINED ? undefined : at(place);
    }
    return value;
  };
  if (!Array.isArray(list)) throw new RangeError('not a list');
  return at(0);
}

const escaped = (text) =>
  JSON.stringify(text).replace(/[<\u2028\u2029]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`);

/** A JSON value in the form of devalue. */
function flatten(value) {
  const cells = [];
  const places = new Map();
  const add = (part) => {
    if (part === undefined) return UNDEFINED;
    if (places.has(part)) return places.get(part);
    const place = cells.push('') - 1;
    places.set(part, place);
    if (typeof part === 'string') cells[place] = escaped(part);
    else if (Array.isArray(part)) cells[place] = `[${part.map(add).join(',')}]`;
    else if (typeof part === 'object' && part !== null)
      cells[place] = `{${Object.keys(part).map((key) => `${escaped(key)}:${add(part[key])}`).join(',')}}`;
    else cells[place] = String(part);
    return place;
  };
  add(value);
  return `[${cells.join(',')}]`;
}

const isPartial = (value) => typeof value === 'object' && value !== null && Object.values(value).includes(undefined);

/** Content for an event, and how the payload is made of it: [content, coding]. Other values than bytes have no coding. */
function told(payload) {
  if (!(payload instanceof Uint8Array)) return [payload, undefined];
  let text;
  try {
    text = utf8.decode(payload);
  } catch {
    return [Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('base64'), 'base64'];
  }
  if (!text.startsWith(PREFIX)) return [text, 'text'];
  try {
    const list = text.slice(PREFIX.length);
    const value = unflatten(JSON.parse(list), GROWTH * (list.length + 64));
    if (flatten(value) === list) return isPartial(value) ? [value, Object.keys(value)] : [value, 'devalue'];
  } catch {
    // It is more than JSON: dates, maps, undefined, parts that are shared.
  }
  return [text, 'text'];
}

/** The payload of which told() made the content. */
function payloadOf(content, coding) {
  if (Array.isArray(coding)) return payloadOf(Object.fromEntries(coding.map((key) => [key, content[key]])), 'devalue');
  if (coding === 'devalue') return new TextEncoder().encode(PREFIX + flatten(content));
  if (coding === 'text') return new TextEncoder().encode(content);
  return coding === 'base64' ? new Uint8Array(Buffer.from(content, 'base64')) : content;
}

module.exports = { told, payloadOf };
