// SPDX-License-Identifier: Apache-2.0
// A session of the OpenAI Agents SDK that keeps its items in a store. Items are events. Taking items back is an event, too:
// it is gone from the conversation and stays in the history; annalSession.delete() removes it for good.
import { createHash, randomUUID } from 'node:crypto';
import { Conflict, Invalid } from './index.mjs';
import named from './named.cjs';

const UNSUPPORTED = 'Session history transaction items contain invalid or unsupported data.'; // the sentence of the SDK

/** The value if JSON gives back all of it; anything else is refused before it is stored. */
function plain(value, above = new Set()) {
  if (value === null || ['string', 'boolean', 'undefined'].includes(typeof value) || Number.isFinite(value)) return value;
  const isArray = Array.isArray(value);
  const prototype = typeof value === 'object' ? Object.getPrototypeOf(value) : undefined;
  if ((!isArray && prototype !== Object.prototype && prototype !== null) || above.has(value)) throw new Invalid(UNSUPPORTED);
  const members = Object.keys(value);
  const all = Reflect.ownKeys(value).length - (isArray ? 1 : 0); // without length
  if (members.length !== all || (isArray && members.length !== value.length)) throw new Invalid(UNSUPPORTED);
  above.add(value);
  for (const member of members) plain(value[member], above);
  above.delete(value);
  return value;
}

function items(value) {
  if (!Array.isArray(value)) throw new Invalid(UNSUPPORTED);
  let copied;
  try {
    copied = structuredClone(plain(value));
  } catch {
    throw new Invalid(UNSUPPORTED); // without the value: it may be a secret
  }
  for (const item of copied) if (typeof item !== 'object' || item === null || Array.isArray(item)) throw new Invalid(UNSUPPORTED);
  return copied;
}

/** JSON in which the order of members does not matter. */
const canonical = (value) =>
  JSON.stringify(value, (_, member) =>
    member !== null && typeof member === 'object' && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );

// The members of a call that the Python package wrote as its tool and its input.
const CALLS = {
  function_call: { tool: 'name', input: 'arguments' },
  custom_tool_call: { tool: 'name' },
  computer_call: { input: 'action' },
  local_shell_call: { input: 'action' },
  shell_call: { input: 'action' },
  apply_patch_call: { input: 'operation' },
};

/** The item of an event of the core pack, as the Python package writes items. */
function itemOf(type, data) {
  let names = {};
  if (type === 'tool.called') names = { tool: undefined, ...CALLS[data.type] };
  else if (data.type === 'reasoning') names = { role: undefined, content: 'summary' };
  const isMade = typeof data.id === 'string' && data.id.startsWith('~');
  const kept = Object.entries(data).filter(([member]) => member !== 'item' && !(member === 'id' && isMade));
  return Object.fromEntries(
    kept
      .map(([member, value]) => [member in names ? names[member] : member, value])
      .filter(([member]) => member !== undefined),
  );
}

/** The items of a conversation, oldest first, each with the seq of its event, and the operations that changed them. */
class Items extends named.Folded {
  reset() {
    this.items = [];
    this.operations = new Map(); // id: digest of the transaction
  }

  apply({ type, data, seq }) {
    if (type === 'item.added') {
      this.items.push({ seq, item: data });
    } else if (data?.item === true && /^(message\.added|tool\.(called|returned|failed))$/.test(type)) {
      this.items.push({ seq, item: itemOf(type, data) });
    } else if (type === 'item.removed') {
      if (this.items.at(-1)?.seq === data.seq) this.items.pop();
    } else if (type === 'items.cleared') {
      this.items = this.items.filter((item) => item.seq > data.seq);
      this.operations.clear();
    } else if (type === 'items.changed') {
      const gone = new Set(data.removed ?? []);
      const replaced = new Map(data.replaced ?? []);
      this.items = this.items
        .filter((item) => !gone.has(item.seq))
        .map((item) => (replaced.has(item.seq) ? { seq: item.seq, item: replaced.get(item.seq) } : item));
      if (data.operation !== undefined) this.operations.set(data.operation, data.digest);
    }
  }

  /** Append what `make` wants, made again if another process appended in between; nothing if it wants nothing. */
  change(make) {
    return this.locked(async () => {
      for (;;) {
        await this.refresh();
        const { drafts, answer } = make();
        if (drafts.length === 0) return answer;
        try {
          await this.append(drafts, this.seq);
          return answer;
        } catch (error) {
          if (!(error instanceof Conflict)) throw error;
        }
      }
    });
  }
}

/** A conversation in a store. The store stays the caller's. */
export class AnnalSession {
  #items;
  #id;

  constructor(store, { sessionId = randomUUID(), level = 'sync' } = {}) {
    this.#id = sessionId;
    this.#items = new named.Named(store, 'openai-agents', Items, level).get(sessionId);
  }

  /** The session of the store that belongs to it. */
  get annalSession() {
    return this.#items.session;
  }

  async getSessionId() {
    return this.#id;
  }

  /** The latest `limit` items, oldest first; without a limit, all. */
  async getItems(limit) {
    if (limit !== undefined && limit <= 0) return [];
    return this.#items.locked(async () => {
      await this.#items.refresh();
      const found = limit === undefined ? this.#items.items : this.#items.items.slice(-limit);
      return found.map(({ item }) => structuredClone(item));
    });
  }

  /** Add items: all of them, or none. */
  async addItems(added) {
    const drafts = items(added).map((item) => ['item.added', item]);
    if (drafts.length > 0) await this.#items.locked(() => this.#items.append(drafts));
  }

  /** Take the most recent item back. Two callers never get the same. */
  popItem() {
    return this.#items.change(() => {
      const last = this.#items.items.at(-1);
      if (last === undefined) return { drafts: [] };
      return { drafts: [['item.removed', { seq: last.seq }]], answer: structuredClone(last.item) };
    });
  }

  /** Take all items back, and forget the operations. */
  clearSession() {
    return this.#items.change(() => {
      const { items: all, operations, seq } = this.#items;
      return { drafts: all.length > 0 || operations.size > 0 ? [['items.cleared', { seq }]] : [] };
    });
  }

  /** Replace calls of functions: all requested calls, or none. */
  async applyHistoryMutations({ mutations }) {
    const wanted = items(mutations);
    await this.#items.change(() => {
      const removed = [];
      const replaced = [];
      for (const { type, callId, expected, replacement } of wanted) {
        if (type !== 'replace_function_call') throw new Invalid(`session history: ${type} is not a mutation`);
        const calls = this.#items.items.filter(({ item }) => item.type === 'function_call' && item.callId === callId);
        const found = expected === undefined ? calls : calls.filter(({ item }) => canonical(item) === canonical(expected));
        if (expected !== undefined && found.length === 0) throw new Conflict(`session history: call ${callId} is not the one that is expected`);
        if (found.length > 0) replaced.push([found[0].seq, replacement]);
        if (expected === undefined) removed.push(...found.slice(1).map(({ seq }) => seq));
      }
      return { drafts: replaced.length > 0 ? [['items.changed', { removed, replaced }]] : [] };
    });
  }

  /** Apply a transaction once, even if another process repeats it. */
  async applyHistoryTransaction(args) {
    let operationId;
    let transaction;
    try {
      ({ operationId, transaction } = args);
    } catch {
      throw new Invalid('Session history transaction arguments are invalid.');
    }
    if (typeof operationId !== 'string' || operationId.trim() === '')
      throw new Invalid('session history: operationId must be a non-empty string');
    if (typeof transaction !== 'object' || transaction === null) throw new Invalid('session history: the transaction must be an object');
    if (!['append_items', 'replace_suffix'].includes(transaction.type))
      throw new Invalid(`Unsupported session history transaction type: ${String(transaction.type)}`);
    const { type } = transaction;
    const fields = type === 'append_items' ? ['items', 'type'] : ['expectedSuffix', 'replacement', 'type'];
    if (Object.keys(transaction).sort().join() !== fields.join())
      throw new Invalid(`Session history ${type === 'append_items' ? 'append' : 'suffix'} transaction fields are invalid.`);
    const suffix = type === 'append_items' ? [] : items(transaction.expectedSuffix);
    const added = items(type === 'append_items' ? transaction.items : transaction.replacement);
    const digest = createHash('sha256').update(canonical([type, suffix, added])).digest('hex');
    await this.#items.change(() => {
      const before = this.#items.operations.get(operationId);
      if (before === digest) return { drafts: [] };
      if (before !== undefined) throw new Conflict(`session history: operation '${operationId}' was already applied with a different transaction`);
      const last = suffix.length > 0 ? this.#items.items.slice(-suffix.length) : [];
      if (canonical(last.map(({ item }) => item)) !== canonical(suffix))
        throw new Conflict('session history: the suffix no longer matches the transaction');
      const removed = last.map(({ seq }) => seq);
      return { drafts: [['items.changed', { operation: operationId, digest, removed }], ...added.map((item) => ['item.added', item])] };
    });
  }
}
