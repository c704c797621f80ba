// SPDX-License-Identifier: Apache-2.0
// Content of frameworks as events of the core pack, for the adapters: the same events as in the Python package, whose
// src/libannal/_meaning.py describes them. A value of the framework has null for members that a core event contains, and
// "moved" names their places: [path in the value, events back to the event with the content, its member].
'use strict';

const { Folded } = require('./named.cjs');

const PARTS = new Set(['message.added', 'tool.called', 'tool.returned', 'tool.failed', 'tool.updated', 'tool.output']);
const ENDS = new Set(['turn.completed', 'turn.failed', 'turn.cancelled']);

/** Replace the member at the path; the content that it had. */
function put(value, path, content) {
  const holder = path.slice(0, -1).reduce((part, step) => part[step], value);
  const before = holder[path.at(-1)];
  holder[path.at(-1)] = content;
  return before;
}

/** A session with its content in events of the core pack. */
class Told extends Folded {
  /** The name of the framework, `agent_id` of the session. */
  get agent() {
    return this.parts[0];
  }

  reset() {
    this.turnCount = 0;
    this.openTurn = null;
    this.calls = new Map(); // by id of the call, whether its result is known
    this.tokens = new Map(); // by message, its output tokens
    this.model = null;
    this.heard = new Map(); // core events since the last value of the framework
  }

  birth() {
    return [['session.created', { agent_id: this.agent }]];
  }

  /** Take note of a core event. Call it for each event. */
  hear({ type, data, seq }) {
    if (PARTS.has(type)) this.heard.set(seq, data);
    if (type === 'turn.started') {
      this.turnCount += 1;
      this.openTurn = data?.turn_id ?? null;
    } else if (ENDS.has(type)) {
      if ((data?.turn_id ?? this.openTurn) === this.openTurn) this.openTurn = null;
    } else if (type === 'tool.called') {
      if (!this.calls.has(data?.call_id)) this.calls.set(data?.call_id, false);
    } else if (type === 'tool.returned' || type === 'tool.failed') {
      this.calls.set(data?.call_id, true);
    } else if (type === 'agent.turn.usage') {
      this.model ??= data?.model ?? null;
      if (data?.message_id !== undefined)
        this.tokens.set(data.message_id, (this.tokens.get(data.message_id) ?? 0) + (data.output_tokens ?? 0));
    }
  }

  /**
   * The value of the framework that ends with this event; undefined if no value ends here. `own` is the type of values
   * without a meaning for the core.
   */
  whole({ type, data, seq }, own) {
    if (type !== own && !(PARTS.has(type) && data?.extra?.moved)) return undefined;
    const { heard } = this;
    this.heard = new Map();
    if (type === own) return data;
    const { value, moved } = structuredClone(data.extra);
    for (const [path, back = 0, member = path.at(-1)] of moved) put(value, path, structuredClone(heard.get(seq - back)[member]));
    return value;
  }
}

/** The core events of a value, in order. `before`: the events of the previous value, if these are not appended yet. */
class Telling {
  #told;
  #turns;
  #open;
  #calls;
  #tokens;
  #moved = [];

  constructor(told, before) {
    this.#told = told;
    this.list = [];
    this.#turns = before ? before.#turns : told.turnCount;
    this.#open = before ? before.#open : told.openTurn;
    this.#calls = before ? before.#calls : new Map();
    this.#tokens = before ? before.#tokens : new Map();
  }

  /** Add an event; `moved` names the places of its members in the value of the framework. */
  add(type, data, moved = {}) {
    for (const [member, path] of Object.entries(moved)) this.#moved.push([path, this.list.length, member]);
    this.list.push([type, data]);
  }

  /** Begin a turn, before what the user said. */
  ask() {
    if (this.#open !== null) this.add('turn.completed', { turn_id: this.#open, reason: 'next_turn' });
    this.#turns += 1;
    this.#open = `t${this.#turns}`;
    this.add('turn.started', { turn_id: this.#open });
  }

  /** End the turn, after the last answer. */
  answer(error) {
    if (this.#open === null) return;
    const data = { turn_id: this.#open };
    if (error === undefined) this.add('turn.completed', data);
    else this.add('turn.failed', { ...data, error });
    this.#open = null;
  }

  /** Add a call of a tool, unless it is known. */
  call(callId, tool, data, moved) {
    if (this.#told.calls.has(callId) || this.#calls.has(callId)) return;
    this.#calls.set(callId, false);
    this.add('tool.called', { call_id: callId, tool, ...data }, moved);
  }

  /** Add the result of a call; of a call whose result is known, its output. */
  result(callId, failed, data, moved) {
    if (this.#calls.get(callId) || this.#told.calls.get(callId)) {
      if ('output' in data) this.add('tool.output', { call_id: callId, ...data }, moved);
      return;
    }
    this.#calls.set(callId, true);
    this.add(failed ? 'tool.failed' : 'tool.returned', { call_id: callId, success: !failed, ...data }, moved);
  }

  /** The output tokens of a message that were added before; undefined if none of its tokens were. */
  counted(messageId) {
    const added = this.#tokens.get(messageId);
    const known = this.#told.tokens.get(messageId);
    return added === undefined ? known : added + (known ?? 0);
  }

  /** Add tokens, with the id of the message if its tokens are reported again; numbers that are 0 are left out. */
  usage(model, tokens, messageId) {
    const kept = Object.fromEntries(Object.entries(tokens).filter(([, value]) => value > 0));
    if (Object.keys(kept).length === 0) return;
    if (messageId !== undefined) {
      this.#tokens.set(messageId, (this.#tokens.get(messageId) ?? 0) + (kept.output_tokens ?? 0));
      kept.message_id = messageId;
    }
    if (this.#open !== null) kept.turn_id = this.#open;
    if (model && model !== this.#told.model) kept.model = model; // the model of the session is the first one
    this.add('agent.turn.usage', kept);
  }

  /** The events of this append, with the framework's own value, whose moved members become null. */
  drafts(own, value) {
    if (this.#moved.length === 0) return [...this.list, [own, value]];
    const last = Math.max(...this.#moved.map(([, place]) => place));
    const moved = this.#moved.map(([path, place, member]) => {
      this.list[place][1][member] = put(value, path, null);
      return place === last && member === path.at(-1) ? [path] : [path, last - place, member];
    });
    this.list[last][1].extra = { value, moved };
    return this.list;
  }
}

/** The texts of a message or a result, in order. */
function texts({ content, output }) {
  const said = content ?? output;
  if (typeof said === 'string') return [said];
  return Array.isArray(said) ? said.map((part) => part?.text).filter((text) => typeof text === 'string') : [];
}

module.exports = { Told, Telling, texts, ENDS };
