// SPDX-License-Identifier: Apache-2.0
// A checkpointer of LangGraph that keeps its checkpoints in a store. A thread is one session; each checkpoint is one durable
// event with the channels that changed, each call of putWrites() another. Messages in a checkpoint, and calls of tools,
// results and tokens in messages, are events of the core pack before it; a checkpoint refers to their text instead of
// repeating it. The Python package has the same events.
import {
  BaseCheckpointSaver, TASKS, WRITES_IDX_MAP, compareWritesSortKeys, getCheckpointId, maxChannelVersion, writesSortKey,
} from '@langchain/langgraph-checkpoint';
import { Conflict } from './index.mjs';
import meaning from './meaning.cjs';
import named from './named.cjs';
import native from './native.cjs';

const TRIES = 4; // to write a difference, while others append to the thread
const DEPTH = 64; // differences in a row: reading an old value follows them
const BLOCK = 4096;
const SHORT = 48; // bytes: a text up to this length is repeated instead of referred to
const MISSES = 2; // messages in a row without a text in the bytes, after which no earlier one is looked for

const MAKES = /"lc"|__proto__|\\u00/; // in JSON of a value that is more than JSON.parse() makes of it, perhaps
const utf8 = new TextDecoder();

const encoded = (bytes) => Buffer.from(bytes).toString('base64');
const pack = ([type, bytes]) => [type, encoded(bytes)];
const unpack = ([type, text]) => [type, Buffer.from(text, 'base64')];

/** A value as [begin, inserted, skipped, copied, tail]: it begins as the old one; null if that saves less than half. */
function encodeDelta(before, after, packed) {
  const most = Math.min(before.length, after.length);
  let begin = 0;
  while (begin + BLOCK <= most && before.compare(after, begin, begin + BLOCK, begin, begin + BLOCK) === 0) begin += BLOCK;
  while (begin < most && before[begin] === after[begin]) begin += 1;
  return 2 * (after.length - begin) >= after.length ? null : [begin, '', 0, 0, packed(after.subarray(begin))];
}

function decodeDelta(before, [begin, inserted, skipped, copied, tail], unpacked) {
  const at = begin + skipped;
  return Buffer.concat([before.subarray(0, begin), unpacked(inserted), before.subarray(at, at + copied), unpacked(tail)]);
}

/** Packed bytes of event `seq`, with the seq of each event that they refer to. */
function settled(packed, seq) {
  if (typeof packed === 'string') return packed;
  if (typeof packed[0] === 'number') return packed.map((part) => (typeof part === 'number' ? part : settled(part, seq)));
  return packed.map((piece) => (typeof piece === 'string' ? piece : [piece[0] < 0 ? piece[0] + seq : piece[0], ...piece.slice(1)]));
}

/** A text as it is in JSON, without its quotes. */
const inJson = (text) => JSON.stringify(text).slice(1, -1);

const ROLES = { human: 'user', ai: 'assistant', AIMessageChunk: 'assistant', system: 'system', tool: 'tool' };

/** A message of LangChain, or an object that is one; undefined if it is none. */
function messageOf(value) {
  if (typeof value !== 'object' || value === null || !('content' in value)) return undefined;
  const role = value.role ?? ROLES[value.type] ?? (typeof value.getType === 'function' ? value.type : undefined);
  if (typeof role !== 'string') return undefined;
  const calls = [];
  for (const call of Array.isArray(value.tool_calls) ? value.tool_calls : []) {
    const { name, args, arguments: given } = call?.function ?? call ?? {};
    if (typeof call?.id === 'string') calls.push([call.id, String(name), plain(args ?? given)]);
  }
  const { input_tokens, output_tokens, input_token_details: details } = value.usage_metadata ?? {};
  const tokens = { input_tokens, output_tokens, cached_input_tokens: details?.cache_read, cache_write_tokens: details?.cache_creation };
  return {
    role, calls, tokens,
    content: plain(value.content),
    id: typeof value.id === 'string' && value.id !== '' ? value.id : undefined,
    resultOf: typeof value.tool_call_id === 'string' ? value.tool_call_id : undefined,
    failed: value.status === 'error',
    model: value.response_metadata?.model_name,
  };
}

/** A value as JSON; a value that JSON cannot express becomes text. */
function plain(value) {
  try {
    return JSON.parse(JSON.stringify(value) ?? 'null');
  } catch {
    return String(value);
  }
}

function hash(content) {
  const bytes = Buffer.from(typeof content === 'string' ? content : JSON.stringify(content));
  return BigInt.asUintN(64, BigInt(native.now('hash', new native.Args(bytes.length + 64).slice(bytes)).next())).toString(16).padStart(16, '0');
}

/** The messages in the channels of a checkpoint, as events of the core pack. */
class Messages {
  #thread;
  #telling;
  #new = new Map(); // by id of a message, its place in the list
  #read = new Map(); // by channel, the last messages

  constructor(thread) {
    this.#thread = thread;
    this.#telling = new meaning.Telling(thread);
    this.list = this.#telling.list;
  }

  /** The messages of a channel, the last first, with their ids; a message without an id receives one. */
  *#backwards(found, channel) {
    const given = Array.isArray(found) ? found : [found];
    if (!this.#read.has(channel)) this.#read.set(channel, []);
    const read = this.#read.get(channel);
    yield* read;
    for (let place = given.length - read.length - 1; place >= 0; place--) {
      const message = messageOf(given[place]);
      if (message === undefined) return;
      read.push([message.id ?? `~${channel}.${place}.${hash(message.content)}`, message]);
      yield read.at(-1);
    }
  }

  /** Add the messages that are new. */
  tell(found, channel) {
    const fresh = [];
    for (const [key, message] of this.#backwards(found, channel)) {
      if (this.#thread.said.has(key)) break; // the messages before it are known, too
      if (!this.#new.has(key)) fresh.push([key, message]);
    }
    const [, last] = fresh[0] ?? [];
    for (const [key, message] of fresh.reverse()) this.#add(key, message);
    if (last?.role === 'assistant' && last.calls.length === 0) this.#telling.answer();
  }

  #add(key, { role, content, calls, resultOf, failed, model, tokens }) {
    const telling = this.#telling;
    if (role === 'user') telling.ask();
    const before = this.list.length;
    if (resultOf !== undefined) telling.result(resultOf, failed, { output: content, message_id: key });
    else if (calls.length === 0 || (content !== '' && content?.length !== 0)) telling.add('message.added', { id: key, role, content });
    for (const [callId, tool, input] of calls) telling.call(callId, tool, { input, message_id: key });
    if (this.list.length > before) this.#new.set(key, before);
    telling.usage(model, tokens);
  }

  /** The event of a message, and its texts. `isKnown`: also of earlier events. */
  #texts(key, isKnown) {
    const place = this.#new.get(key);
    if (place !== undefined) return [place - this.list.length, meaning.texts(this.list[place][1])];
    const seq = isKnown ? this.#thread.said.get(key) : undefined;
    return seq === undefined ? [0, []] : [seq, this.#thread.texts.get(seq) ?? []];
  }

  /**
   * Bytes of a value as base64; if texts of messages are in them, as a list of base64 and references [event, place], or
   * [event, place, "json"] if the text has the form of JSON. An event is a seq or, below 0, the number of events back.
   */
  pack(bytes, found, channel, isKnown) {
    if (bytes.length <= SHORT) return encoded(bytes);
    const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const pieces = [];
    let end = content.length;
    let misses = 0;
    for (const [key] of this.#backwards(found, channel)) {
      const [event, said] = this.#texts(key, isKnown);
      misses += 1;
      for (let place = said.length - 1; place >= 0; place--) {
        if (said[place].length <= SHORT) continue;
        const form = inJson(said[place]);
        const text = Buffer.from(form);
        const at = end < text.length ? -1 : content.lastIndexOf(text, end - text.length);
        if (at < 0) continue;
        pieces.push(encoded(content.subarray(at + text.length, end)), form === said[place] ? [event, place] : [event, place, 'json']);
        end = at;
        misses = 0;
      }
      if (misses > MISSES) break;
    }
    const first = encoded(content.subarray(0, end));
    return pieces.length === 0 ? first : [first, ...pieces.reverse()];
  }
}

/** A value of a channel: whole, or how it differs from the version before it. */
class Value {
  constructor(type, content, base, unpacked) {
    this.type = type;
    this.unpacked = unpacked;
    this.content = content;
    this.base = base;
    this.depth = base === null ? 0 : base.depth + 1;
    this.made = null; // what read() returns, for the newest version alone
  }

  read() {
    const chain = [this];
    while (chain.at(-1).made === null && chain.at(-1).base !== null) chain.push(chain.at(-1).base);
    const first = chain.pop();
    let found = first.made ?? this.unpacked(first.content);
    while (chain.length > 0) found = decodeDelta(found, chain.pop().content, this.unpacked);
    return found;
  }
}

/** A thread: its checkpoints by namespace and id, and the values of its channels by version. */
class Thread extends meaning.Told {
  /** The bytes that Messages.pack() packed. */
  #unpacked = (packed) =>
    typeof packed === 'string'
      ? Buffer.from(packed, 'base64')
      : Buffer.concat(packed.map((piece) => (typeof piece === 'string' ? Buffer.from(piece, 'base64') : this.#text(...piece))));

  #text(seq, place, form) {
    const text = this.texts.get(seq)[place];
    return Buffer.from(form === 'json' ? inJson(text) : text);
  }

  get agent() {
    return 'langgraph';
  }

  reset() {
    super.reset();
    this.said = new Map(); // by id of a message, its event
    this.texts = new Map(); // by event
    this.saved = new Map(); // namespace: id: checkpoint
    this.values = new Map(); // [namespace, channel, version]: Value
    this.last = new Map(); // [namespace, channel]: the version that was saved last
  }

  value(space, channel, version) {
    const value = this.values.get(JSON.stringify([space, channel, version]));
    if (value === undefined || value.type === 'empty') return undefined;
    const content = value.read();
    if (this.last.get(JSON.stringify([space, channel])) === version) value.made = content;
    return [value.type, content];
  }

  /** A value as [version that it differs from, how]; null: write it whole. */
  difference(space, channel, [, after], packed) {
    const version = this.last.get(JSON.stringify([space, channel]));
    const before = this.value(space, channel, version);
    if (before === undefined || this.values.get(JSON.stringify([space, channel, version])).depth >= DEPTH) return null;
    const how = encodeDelta(before[1], Buffer.from(after), packed);
    return how === null ? null : [version, how];
  }

  #keep(space, channel, version, type, packed) {
    const place = JSON.stringify([space, channel]);
    const before = this.values.get(JSON.stringify([space, channel, this.last.get(place)]));
    const base = packed.length === 1 ? null : this.values.get(JSON.stringify([space, channel, packed[0]]));
    const value = new Value(type, packed.at(-1), base, this.#unpacked);
    if (base !== null && base === before && base.made !== null) value.made = decodeDelta(base.made, value.content, this.#unpacked);
    if (before !== undefined) before.made = null;
    this.values.set(JSON.stringify([space, channel, version]), value);
    this.last.set(place, version);
  }

  hear(event) {
    super.hear(event);
    this.heard.clear();
    const { type, data, seq } = event;
    if (!/^(message\.added|tool\.(called|returned|failed|output))$/.test(type)) return;
    const of = type === 'message.added' ? data?.id : data?.message_id;
    if (typeof of !== 'string') return;
    if (!this.said.has(of)) this.said.set(of, seq);
    this.texts.set(seq, meaning.texts(data));
  }

  apply(event) {
    const { type, data, seq } = event;
    if (type === 'checkpoint.saved') {
      for (const [channel, version, kind, ...packed] of data.values)
        this.#keep(data.ns, channel, version, kind, [...packed.slice(0, -1), settled(packed.at(-1), seq)]);
      if (!this.saved.has(data.ns)) this.saved.set(data.ns, new Map());
      const before = this.saved.get(data.ns).get(data.id);
      const { checkpoint, metadata, parent } = data;
      this.saved.get(data.ns).set(data.id, { checkpoint, metadata, parent, writes: before?.writes ?? new Map() });
    } else if (type === 'checkpoint.writes') {
      const found = this.saved.get(data.ns)?.get(data.id);
      for (const [index, channel, ...packed] of found ? data.writes : []) {
        const key = JSON.stringify([data.task, index]);
        if (index >= 0 && found.writes.has(key)) continue; // the first write of a task at an index stays
        found.writes.set(key, { key: writesSortKey(data.path, data.task, index), task: data.task, channel, packed });
      }
    } else if (type === 'checkpoint.deleted') {
      for (const [space, id] of data.checkpoints) this.saved.get(space)?.delete(id);
    } else {
      this.hear(event);
    }
  }

  /** Ids of a namespace, the latest first. */
  ids(space) {
    return [...(this.saved.get(space)?.keys() ?? [])].sort().reverse();
  }

  latest(space) {
    let latest;
    for (const id of this.saved.get(space)?.keys() ?? []) if (latest === undefined || id > latest) latest = id;
    return latest;
  }

  /** Writes to a checkpoint in the order in which LangGraph applies them. */
  ordered(saved) {
    return [...saved.writes.values()].sort((a, b) => compareWritesSortKeys(a.key, b.key));
  }
}

const configOf = (thread_id, checkpoint_ns, checkpoint_id) => ({ configurable: { thread_id, checkpoint_ns, checkpoint_id } });

function placeOf(config, ...wanted) {
  const place = config?.configurable ?? {};
  for (const field of wanted)
    if (place[field] === undefined) throw new TypeError(`the config has no "${field}" in "configurable": give it one`);
  return { ...place, thread_id: String(place.thread_id), checkpoint_ns: place.checkpoint_ns ?? '' };
}

/** Checkpoints in a store; every method is durable when it resolves. The store stays the caller's. */
export class AnnalSaver extends BaseCheckpointSaver {
  #threads;
  #hasOwnSerde;

  constructor(store, { serde, adapter = 'langgraph', level = 'sync' } = {}) {
    super(serde);
    this.#hasOwnSerde = serde !== undefined;
    this.store = store;
    this.#threads = new named.Named(store, adapter, Thread, level);
  }

  #thread(id) {
    return this.#threads.get(String(id));
  }

  /** The next version of a channel: a number, and what tells two branches of a thread apart. */
  getNextVersion(current) {
    const number = current === undefined ? 0 : Number.parseInt(String(current), 10);
    return `${String(number + 1).padStart(32, '0')}.${String(Math.random()).padEnd(18, '0')}`;
  }

  // ---- Writing ----

  async put(config, checkpoint, metadata, newVersions) {
    const place = placeOf(config, 'thread_id');
    const { channel_values: values, ...rest } = checkpoint;
    const typed = await Promise.all(
      Object.entries(newVersions ?? {}).map(async ([channel, version]) => [
        channel, version, Object.hasOwn(values, channel) ? await this.serde.dumpsTyped(values[channel]) : ['empty', ''],
      ]),
    );
    const data = {
      ns: place.checkpoint_ns,
      id: checkpoint.id,
      checkpoint: pack(await this.serde.dumpsTyped(rest)),
      metadata: pack(await this.serde.dumpsTyped(metadata)),
    };
    const asked = { parent: getCheckpointId(config) || undefined, step: metadata?.step, source: metadata?.source, run_id: metadata?.run_id };
    for (const [key, value] of Object.entries(asked)) if (value !== undefined && value !== null) data[key] = value;
    const thread = this.#thread(place.thread_id);
    await thread.locked(() => this.#save(thread, data, typed, values));
    return configOf(place.thread_id, place.checkpoint_ns, checkpoint.id);
  }

  /**
   * Append a checkpoint with its values, as differences from existing values and with references to earlier events, if
   * nothing was appended in between.
   */
  async #save(thread, data, typed, values) {
    for (let tries = 0; ; tries++) {
      const isAlone = tries === TRIES; // whole values, wherever the thread ends
      await thread.refresh();
      const { seq } = thread;
      const messages = new Messages(thread);
      for (const [channel] of typed)
        if (Object.hasOwn(values, channel) && !channel.startsWith('__')) messages.tell(values[channel], channel);
      data.values = typed.map(([channel, version, value]) => {
        const pack = (bytes) => messages.pack(bytes, values[channel], channel, !isAlone);
        const how = isAlone || value[0] === 'empty' ? null : thread.difference(data.ns, channel, value, pack);
        return [channel, version, value[0], ...(how ?? [value[0] === 'empty' ? '' : pack(value[1])])];
      });
      try {
        await thread.append([...messages.list, ['checkpoint.saved', data]], isAlone ? undefined : seq);
        return;
      } catch (error) {
        if (isAlone || !(error instanceof Conflict)) throw error;
      }
    }
  }

  async putWrites(config, writes, taskId, taskPath = '') {
    const place = placeOf(config, 'thread_id', 'checkpoint_id');
    const packed = await Promise.all(
      writes.map(async ([channel, value], index) => [
        WRITES_IDX_MAP[channel] ?? index, channel, ...pack(await this.serde.dumpsTyped(value)),
      ]),
    );
    const thread = this.#thread(place.thread_id);
    const data = { ns: place.checkpoint_ns, id: place.checkpoint_id, task: taskId, path: taskPath, writes: packed };
    await thread.locked(() => thread.append([['checkpoint.writes', data]]));
  }

  async deleteThread(threadId) {
    const thread = this.#thread(threadId);
    await thread.locked(() => named.remove(thread.session));
  }

  // ---- Reading ----

  /** The serializer of LangGraph looks at every part of a value for objects to make; many values have none. */
  #loads([type, bytes]) {
    if (type === 'bytes') return new Uint8Array(bytes); // the caller's own
    if (type !== 'json' || this.#hasOwnSerde) return this.serde.loadsTyped(type, bytes);
    const text = utf8.decode(bytes);
    return MAKES.test(text) ? this.serde.loadsTyped(type, text) : JSON.parse(text);
  }

  async getTuple(config) {
    if (config?.configurable?.thread_id === undefined) return undefined;
    const place = placeOf(config);
    const thread = this.#thread(place.thread_id);
    return thread.locked(async () => {
      await thread.refresh();
      const id = getCheckpointId(config) || thread.latest(place.checkpoint_ns);
      return this.#tuple(thread, place.thread_id, place.checkpoint_ns, id);
    });
  }

  async #tuple(thread, threadId, space, id) {
    const saved = thread.saved.get(space)?.get(id);
    if (saved === undefined) return undefined;
    const rest = await this.#loads(unpack(saved.checkpoint));
    const values = {};
    for (const [channel, version] of Object.entries(rest.channel_versions)) {
      const typed = thread.value(space, channel, version);
      if (typed !== undefined) values[channel] = await this.#loads(typed);
    }
    const checkpoint = { ...rest, channel_values: values };
    if (checkpoint.v < 4 && saved.parent) await this.#migrateSends(thread, space, saved.parent, checkpoint);
    const tuple = {
      config: configOf(threadId, space, id),
      checkpoint,
      metadata: await this.#loads(unpack(saved.metadata)),
      pendingWrites: await this.#writes(thread, saved),
    };
    if (saved.parent) tuple.parentConfig = configOf(threadId, space, saved.parent);
    return tuple;
  }

  async #writes(thread, saved) {
    const ordered = thread.ordered(saved);
    return Promise.all(ordered.map(async ({ task, channel, packed }) => [task, channel, await this.#loads(unpack(packed))]));
  }

  /** Checkpoints before version 4 had the sends of their parent as its pending writes. */
  async #migrateSends(thread, space, parent, checkpoint) {
    const before = thread.saved.get(space)?.get(parent);
    const writes = before === undefined ? [] : await this.#writes(thread, before);
    checkpoint.channel_values[TASKS] = writes.filter(([, channel]) => channel === TASKS).map(([, , value]) => value);
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }

  async *list(config, { limit, before, filter } = {}) {
    const place = config?.configurable ?? {};
    const end = before ? getCheckpointId(before) : '';
    let left = limit ?? Infinity;
    const threads = place.thread_id !== undefined ? [[String(place.thread_id)]] : this.#threads.all();
    for await (const [threadId] of threads) {
      const thread = this.#thread(threadId);
      await thread.locked(() => thread.refresh());
      const spaces = place.checkpoint_ns !== undefined ? [place.checkpoint_ns] : [...thread.saved.keys()];
      for (const space of spaces)
        for (const id of thread.ids(space)) {
          if (left <= 0) return;
          if ((place.checkpoint_id && id !== place.checkpoint_id) || (end && id >= end)) continue;
          const tuple = await thread.locked(() => this.#tuple(thread, threadId, space, id));
          if (tuple === undefined) continue;
          if (filter && !Object.entries(filter).every(([key, value]) => tuple.metadata[key] === value)) continue;
          left -= 1;
          yield tuple;
        }
    }
  }

  /** For each channel the nearest value of an ancestor, and the writes since. Other values are not read. */
  async getDeltaChannelHistory({ config, channels }) {
    const place = placeOf(config, 'thread_id');
    const thread = this.#thread(place.thread_id);
    const found = Object.fromEntries(channels.map((channel) => [channel, { writes: [] }]));
    const left = new Set(channels);
    await thread.locked(async () => {
      await thread.refresh();
      const saved = thread.saved.get(place.checkpoint_ns) ?? new Map();
      const target = saved.get(getCheckpointId(config) || thread.latest(place.checkpoint_ns));
      for (let at = saved.get(target?.parent); at !== undefined && left.size > 0; at = saved.get(at.parent)) {
        for (const { task, channel, packed } of thread.ordered(at).reverse())
          if (left.has(channel)) found[channel].writes.unshift([task, channel, await this.#loads(unpack(packed))]);
        const versions = (await this.#loads(unpack(at.checkpoint))).channel_versions;
        for (const channel of [...left]) {
          const value = Object.hasOwn(versions, channel) ? thread.value(place.checkpoint_ns, channel, versions[channel]) : undefined;
          if (value === undefined) continue;
          found[channel].seed = await this.#loads(value);
          left.delete(channel);
        }
      }
    });
    return found;
  }
}
