// SPDX-License-Identifier: Apache-2.0
// A session of the OpenAI Agents SDK that keeps its items in a store. Items are events: messages, calls of tools and their
// results are events of the core pack, and what the user says begins a turn. Taking items back is an event, too: they are
// gone from the conversation and stay in the history; annalSession.delete() removes them for good.
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { Conflict, Invalid } from './index.mjs';
import meaning from './meaning.cjs';
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
    copied = JSON.parse(JSON.stringify(plain(value)));
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

// How the members of a call and of a result are named in the core pack.
const ID = { call_id: 'callId' };
const NAMES = {
  function_call: { ...ID, tool: 'name', input: 'arguments' },
  computer_call: { ...ID, input: 'action' },
  shell_call: { ...ID, input: 'action' },
  apply_patch_call: { ...ID, input: 'operation' },
  function_call_result: ID,
  computer_call_result: ID,
  shell_call_output: ID,
  apply_patch_call_output: ID,
};
// What the SDK gives to the model as the output of a call that failed.
const FAILED = /^(An error occurred while running the tool\. Please try again\. Error: |Tool execution was not approved\.)/;

/** An item as an event: its members get the names of the core pack, and `item` has their own names. */
function told(item) {
  const { type, role } = item;
  const isClean = !('item' in item || 'tool' in item || item.id === null || String(item.id).startsWith('~'));
  const made = { id: `~${randomBytes(4).toString('hex')}` };
  if (isClean && typeof role === 'string' && 'content' in item) return ['message.added', { ...made, ...item, item: true }];
  if (isClean && type === 'reasoning' && Array.isArray(item.content) && !('role' in item))
    return ['message.added', { ...made, ...item, role: 'assistant', item: { role: null } }];
  const names = Object.hasOwn(NAMES, type) ? NAMES[type] : {};
  const isWhole = typeof item.callId === 'string' && Object.values(names).every((member) => member in item);
  if (!isClean || !isWhole || Object.keys(names).some((member) => member in item)) return ['item.added', item];
  const kept = Object.entries(item).filter(([member]) => !Object.values(names).includes(member));
  const data = Object.fromEntries([...Object.entries(names).map(([ours, theirs]) => [ours, item[theirs]]), ...kept]);
  if (!names.input) {
    const { output } = item;
    const failed = FAILED.test(typeof output === 'string' ? output : (output?.text ?? ''));
    return [failed ? 'tool.failed' : 'tool.returned', { ...data, item: names }];
  }
  if (names.tool) return ['tool.called', { ...data, item: names }];
  return ['tool.called', { ...data, tool: type.replace('_call', ''), item: { ...names, tool: null } }];
}

// The members of a call that the Python package wrote as its tool and its input.
const CALLS = {
  function_call: { tool: 'name', input: 'arguments' },
  custom_tool_call: { tool: 'name' },
  computer_call: { input: 'action' },
  local_shell_call: { input: 'action' },
  shell_call: { input: 'action' },
  apply_patch_call: { input: 'operation' },
};

/** The item of an event of the core pack: in the names that `item` has, or as the Python package writes items. */
function itemOf(type, data) {
  let names = {};
  if (data.item !== true) names = Object.fromEntries(Object.entries(data.item).map(([ours, theirs]) => [ours, theirs ?? undefined]));
  else if (type === 'tool.called') names = { tool: undefined, ...CALLS[data.type] };
  else if (data.type === 'reasoning') names = { role: undefined, content: 'summary' };
  const isMade = typeof data.id === 'string' && data.id.startsWith('~');
  const kept = Object.entries(data).filter(([member]) => member !== 'item' && !(member === 'id' && isMade));
  return Object.fromEntries(
    kept
      .map(([member, value]) => [Object.hasOwn(names, member) ? names[member] : member, value])
      .filter(([member]) => member !== undefined),
  );
}

const isItem = (type, data) =>
  (data?.item === true || (typeof data?.item === 'object' && data.item !== null)) &&
  /^(message\.added|tool\.(called|returned|failed))$/.test(type);

/** The items of a conversation, oldest first, each with the seq of its event, and the operations that changed them. */
class Items extends meaning.Told {
  reset() {
    super.reset();
    this.items = [];
    this.operations = new Map(); // id: digest of the transaction
  }

  apply(event) {
    const { type, data, seq } = event;
    if (type === 'turn.started' || meaning.ENDS.has(type)) {
      this.hear(event);
    } else if (type === 'item.added') {
      this.items.push({ seq, item: data });
    } else if (isItem(type, data)) {
      const turn = type === 'message.added' && data.role === 'user' ? String(data.id) : undefined;
      this.items.push({ seq, turn, item: itemOf(type, data) });
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
        .map((item) => (replaced.has(item.seq) ? { ...item, item: replaced.get(item.seq) } : item));
      if (data.operation !== undefined) this.operations.set(data.operation, data.digest);
    }
  }

  /** The events of new items: a message of the user begins a turn, and an answer at the end ends it. */
  tell(added) {
    const drafts = [];
    let open = this.openTurn;
    let last = null;
    for (const item of added) {
      const [type, data] = (last = told(item));
      if (type === 'message.added' && data.role === 'user') {
        if (open !== null) drafts.push(['turn.completed', { turn_id: open, reason: 'next_turn' }]);
        drafts.push(['turn.started', { turn_id: (open = String(data.id)) }]);
      }
      drafts.push([type, data]);
    }
    const isAnswer = last?.[0] === 'message.added' && last[1].role === 'assistant' && last[1].type !== 'reasoning';
    if (open !== null && isAnswer) drafts.push(['turn.completed', { turn_id: open }]);
    return drafts;
  }

  /** The ends of the turns that began with items that are taken back. */
  back(removed) {
    return removed.filter(({ turn }) => turn !== undefined).map(({ turn }) => ['turn.rolled_back', { turn_id: turn }]);
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
    const wanted = items(added);
    if (wanted.length === 0) return;
    await this.#items.locked(async () => {
      if (this.#items.seq === 0) await this.#items.refresh();
      await this.#items.append(this.#items.tell(wanted));
    });
  }

  /** Take the most recent item back. Two callers never get the same. */
  popItem() {
    return this.#items.change(() => {
      const last = this.#items.items.at(-1);
      if (last === undefined) return { drafts: [] };
      return { drafts: [['item.removed', { seq: last.seq }], ...this.#items.back([last])], answer: structuredClone(last.item) };
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
      const change = ['items.changed', { operation: operationId, digest, removed }];
      return { drafts: [change, ...this.#items.back(last), ...this.#items.tell(added)] };
    });
  }
}
