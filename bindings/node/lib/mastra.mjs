// SPDX-License-Identifier: Apache-2.0
// Storage of Mastra for threads, messages, resources and runs of workflows. A thread is a session: its messages are messages,
// calls of tools and results of the core pack, with turns. A run of a workflow is a session, and each of its steps a call.
//
// What a method does to rows is computed by Mastra's own storage in memory, from the rows that the sessions have; the rows
// that it changed are appended if no other process appended in between, else all of it is computed again.
import { isDeepStrictEqual as isSame } from 'node:util';
import { MessageList } from '@mastra/core/agent';
import {
  InMemoryDB, InMemoryMemory, MastraCompositeStore, MemoryStorage, WorkflowsInMemory, WorkflowsStorage,
} from '@mastra/core/storage';
import { Conflict, name } from './index.mjs';
import meaning from './meaning.cjs';
import named from './named.cjs';

const THREADS = 'mastra';
const RESOURCES = 'mastra-resource';
const RUNS = 'mastra-workflow';
const SEARCHED = ['message.added', 'tool.called', 'tool.returned', 'tool.failed', 'tool.output', 'message.saved'];

const json = (row) => JSON.parse(JSON.stringify(row));
const dated = (row) => ({ ...row, createdAt: new Date(row.createdAt), ...(row.updatedAt && { updatedAt: new Date(row.updatedAt) }) });
const isObject = (value) => typeof value === 'object' && value !== null;

/** A thread: its row, and the rows of its messages. */
class Thread extends meaning.Told {
  reset() {
    super.reset();
    this.row = undefined;
    this.messages = new Map();
  }

  apply(event) {
    this.hear(event);
    const { type, data } = event;
    const message = this.whole(event, 'message.saved');
    if (message !== undefined) this.messages.set(message.id, message);
    else if (type === 'thread.saved') this.row = data;
    else if (type === 'messages.deleted') for (const id of data.ids) this.messages.delete(id);
  }

  fill(db) {
    if (this.row) db.threads.set(this.row.id, dated(structuredClone(this.row)));
    for (const row of this.messages.values()) db.messages.set(row.id, dated({ ...row, content: JSON.stringify(row.content) }));
  }

  /** The drafts for what differs in the rows of the database. */
  changes(db) {
    const id = this.parts[1];
    const drafts = [];
    const row = db.threads.has(id) ? json(db.threads.get(id)) : undefined;
    const { title } = row ?? {};
    if (title && title !== this.row?.title) drafts.push(['session.updated', { set: { title } }]);
    if (row && !isSame(row, this.row)) drafts.push(['thread.saved', row]);
    let telling;
    for (const found of db.messages.values()) {
      if (found.thread_id !== id) continue;
      const message = json({ ...found, content: parsed(found.content) });
      const before = this.messages.get(found.id);
      if (isSame(message, before)) continue;
      telling = new meaning.Telling(this, telling);
      if (before === undefined) tell(telling, message);
      else tellParts(telling, message, before);
      drafts.push(...telling.drafts('message.saved', message));
    }
    const gone = [...this.messages.keys()].filter((key) => db.messages.get(key)?.thread_id !== id);
    if (gone.length > 0) drafts.push(['messages.deleted', { ids: gone }]);
    return drafts;
  }
}

function parsed(content) {
  try {
    return JSON.parse(content);
  } catch {
    return content;
  }
}

/** The events of a new message. */
function tell(telling, { id, role, content }) {
  const said = { id, role };
  const parts = isObject(content) && Array.isArray(content.parts) ? content.parts : [];
  if (role === 'user') telling.ask();
  if (typeof content === 'string') telling.add('message.added', { ...said, content: null }, { content: ['content'] });
  else if (!parts.some((part) => typeof part?.text === 'string') && typeof content?.content === 'string')
    telling.add('message.added', { ...said, content: null }, { content: ['content', 'content'] });
  parts.forEach((part, place) => {
    if (part?.type === 'text' && typeof part.text === 'string')
      telling.add('message.added', { ...said, content: null }, { content: ['content', 'parts', place, 'text'] });
  });
  const isWaiting = tellCalls(telling, id, parts);
  if (role === 'assistant' && !isWaiting && parts.at(-1)?.type === 'text') telling.answer();
}

/** The events of a message that exists: calls and results that are new in it. */
function tellParts(telling, { id, content }, before) {
  const parts = isObject(content) && Array.isArray(content.parts) ? content.parts : [];
  const known = before.content?.parts ?? [];
  tellCalls(telling, id, parts, (part) => !known.some((other) => isSame(part, other)));
}

function tellCalls(telling, id, parts, isNew = () => true) {
  let isWaiting = false;
  parts.forEach((part, place) => {
    const call = part?.type === 'tool-invocation' ? part.toolInvocation : undefined;
    if (!isObject(call) || typeof call.toolCallId !== 'string' || !isNew(part)) return;
    const at = ['content', 'parts', place, 'toolInvocation'];
    const input = 'args' in call ? [{ message_id: id, input: null }, { input: [...at, 'args'] }] : [{ message_id: id }];
    telling.call(call.toolCallId, String(call.toolName), ...input);
    if (call.state === 'result')
      telling.result(call.toolCallId, Boolean(call.isError), { message_id: id, output: null }, { output: [...at, 'result'] });
    else isWaiting = true;
  });
  return isWaiting;
}

/** The row of a resource, or of a run of a workflow. */
class Row extends meaning.Told {
  static resource = { type: 'resource.saved', table: 'resources', key: (row) => row.id };
  static run = { type: 'workflow.saved', table: 'workflows', key: (row) => `${row.workflow_name}-${row.run_id}` };

  get kind() {
    return this.parts[0] === RUNS ? Row.run : Row.resource;
  }

  get agent() {
    return this.parts[0] === RUNS ? this.parts[1] : this.parts[0];
  }

  reset() {
    super.reset();
    this.row = undefined;
  }

  apply(event) {
    this.hear(event);
    const row = this.whole(event, this.kind.type);
    if (row !== undefined) this.row = filled(row, this.row);
  }

  fill(db) {
    if (this.row) db[this.kind.table].set(this.kind.key(this.row), dated(structuredClone(this.row)));
  }

  changes(db) {
    const rows = [...db[this.kind.table].values()];
    const found = rows.find((row) => name(this.parts[0], ...keyOf(row)) === this.session.id);
    const row = found && json(found);
    if (!row || isSame(row, this.row)) return [];
    const telling = new meaning.Telling(this);
    if (this.kind === Row.run) tellSteps(telling, row, this.row);
    return telling.drafts(this.kind.type, lean(row, this.row));
  }
}

/** A row of a run without the members of its snapshot, and without the steps, that are as before: `same` has their names. */
function lean(row, before) {
  const [now, then] = [row.snapshot, before?.snapshot];
  if (!isObject(now) || !isObject(then)) return row;
  const same = Object.keys(now).filter((key) => isSame(now[key], then[key]));
  const snapshot = Object.fromEntries(Object.entries(now).filter(([key]) => !same.includes(key)));
  const isMore = isObject(snapshot.context) && isObject(then.context);
  const steps = isMore ? Object.keys(now.context).filter((key) => isSame(now.context[key], then.context[key])) : [];
  if (steps.length > 0) snapshot.context = Object.fromEntries(Object.entries(now.context).filter(([key]) => !steps.includes(key)));
  return { ...row, snapshot, same, steps };
}

/** The whole row. */
function filled({ same = [], steps = [], ...row }, before) {
  const from = (holder, keys) => Object.fromEntries(keys.map((key) => [key, holder[key]]));
  if (steps.length > 0) row.snapshot.context = { ...from(before.snapshot.context, steps), ...row.snapshot.context };
  if (same.length > 0) row.snapshot = { ...from(before.snapshot, same), ...row.snapshot };
  return row;
}

const keyOf = (row) => ('run_id' in row ? [row.workflow_name, row.run_id] : [row.id]);

/** The steps of a workflow that began or ended, and its end. */
function tellSteps(telling, { snapshot }, before) {
  const context = isObject(snapshot?.context) ? snapshot.context : {};
  for (const [step, result] of Object.entries(context)) {
    if (step === 'input' || !isObject(result) || isSame(result, before?.snapshot?.context?.[step])) continue;
    const at = ['snapshot', 'context', step];
    const moved = (member, ours) => (member in result ? [{ [ours]: null }, { [ours]: [...at, member] }] : [{}]);
    if (!['success', 'failed', 'running', 'suspended', 'waiting', 'paused'].includes(result.status)) continue;
    telling.call(step, step, ...moved('payload', 'input'));
    if (result.status === 'success') telling.result(step, false, ...moved('output', 'output'));
    else if (result.status === 'failed') telling.result(step, true, ...moved('error', 'output'));
  }
  const [now, then] = [snapshot?.status, before?.snapshot?.status];
  if (now === then) return;
  if (now === 'failed') telling.add('session.ended', { reason: now, status: 'failed' });
  else if (now === 'success' || now === 'canceled') telling.add('session.ended', { reason: now });
}

/** Rows of sessions, changed as one by a storage in memory. */
class Rows {
  constructor(store, adapter, kind) {
    this.store = store;
    this.adapter = adapter;
    this.sessions = new named.Named(store, adapter, kind);
  }

  /** Call `use` with a database that has the rows of these sessions, and append what it changed in them. */
  async change(names, use) {
    const unique = [...new Map(names.map((parts) => [JSON.stringify(parts), parts])).values()].sort();
    const folds = unique.map((parts) => this.sessions.get(...parts));
    const locked = (at, inner) => (at === folds.length ? inner() : folds[at].locked(() => locked(at + 1, inner)));
    return locked(0, async () => {
      for (;;) {
        const db = new InMemoryDB();
        for (const fold of folds) if (await fold.refresh()) fold.fill(db);
        const answer = await use(db);
        try {
          for (const fold of folds) {
            const drafts = fold.changes(db);
            if (drafts.length > 0) await fold.append(drafts, fold.seq);
          }
          return answer;
        } catch (error) {
          if (!(error instanceof Conflict)) throw error; // another process appended: compute it again
        }
      }
    });
  }

  async names(isWanted = () => true) {
    const found = [];
    for await (const parts of this.sessions.all()) if (isWanted(parts)) found.push(parts);
    return found;
  }

  async remove(parts) {
    const fold = this.sessions.get(...parts);
    await fold.locked(() => named.remove(fold.session));
  }

  async clear() {
    for (const parts of await this.names()) await this.remove(parts);
  }
}

/** Threads, messages and resources in a store; every method is durable when it resolves. */
export class AnnalMemory extends MemoryStorage {
  supportsPartialThreadUpdate = true;
  #store;
  #threads;
  #resources;

  constructor(store) {
    super();
    this.#store = store;
    this.#threads = new Rows(store, THREADS, Thread);
    this.#resources = new Rows(store, RESOURCES, Row);
  }

  #in(ids, use) {
    const names = ids.filter((id) => typeof id === 'string' && id !== '').map((id) => [id]);
    return this.#threads.change(names, (db) => use(new InMemoryMemory({ db }), db));
  }

  /** The threads with a message that has one of these values in this member. */
  async #threadsOf(member, values) {
    if (values.length === 0) return [];
    const [first, second] = member === 'id' ? ['message_id', 'id'] : [`extra.value.${member}`, member];
    const types = SEARCHED.map((type) => `'${type}'`).join();
    const rows = await this.#store.sql(
      `SELECT DISTINCT session_id FROM events WHERE type IN (${types}) AND session_id GLOB 'mastra.*'
         AND coalesce(data->>'$.${first}', data->>'$.${second}') IN (SELECT value FROM json_each(?1))`,
      [JSON.stringify(values)],
    );
    const parts = await Promise.all(rows.map(([session]) => named.nameOf(this.#store.session(session))));
    return parts.filter(([adapter]) => adapter === THREADS).map(([, id]) => id);
  }

  /** The latest row of each thread. */
  async #rows() {
    const rows = await this.#store.sql(
      "SELECT data, max(seq) FROM events WHERE type = 'thread.saved' AND session_id GLOB 'mastra.*' GROUP BY session_id",
    );
    return rows.map(([data]) => dated(JSON.parse(data)));
  }

  async dangerouslyClearAll() {
    await this.#threads.clear();
    await this.#resources.clear();
  }

  getThreadById({ threadId, resourceId }) {
    return this.#in([threadId], (memory) => memory.getThreadById({ threadId, resourceId }));
  }

  async saveThread({ thread }) {
    await this.#in([thread.id], (memory) => memory.saveThread({ thread: structuredClone(thread) }));
    return thread;
  }

  updateThread(args) {
    return this.#in([args.id], (memory) => memory.updateThread(args));
  }

  patchThread(args) {
    return this.updateThread(args);
  }

  /** Change the metadata of a thread, atomically for all processes. */
  updateThreadMetadata({ id, resourceId, update }) {
    return this.#in([id], async (memory, db) => {
      const thread = await memory.getThreadById({ threadId: id, resourceId });
      const metadata = thread && update(structuredClone(thread));
      if (!metadata) return thread;
      const changed = { ...thread, metadata, updatedAt: new Date() };
      db.threads.set(id, changed);
      return structuredClone(changed);
    });
  }

  async deleteThread({ threadId }) {
    await this.#threads.remove([threadId]);
  }

  async listMessages(args) {
    const ids = Array.isArray(args.threadId) ? args.threadId : [args.threadId];
    const included = await this.#threadsOf('id', (args.include ?? []).map(({ id }) => id));
    return this.#in([...ids, ...included], (memory) => memory.listMessages(args));
  }

  async listMessagesByResourceId(args) {
    const included = await this.#threadsOf('id', (args.include ?? []).map(({ id }) => id));
    const found = await this.#threadsOf('resourceId', [args.resourceId]);
    return this.#in([...found, ...included], (memory) => memory.listMessagesByResourceId(args));
  }

  async listMessagesById({ messageIds }) {
    return this.#in(await this.#threadsOf('id', messageIds), (memory) => memory.listMessagesById({ messageIds }));
  }

  async saveMessages({ messages }) {
    if (messages.some(({ threadId, resourceId }) => !threadId || resourceId === null))
      throw new TypeError('saveMessages: each message needs a threadId, and a resourceId that is not null');
    const ids = messages.map(({ threadId }) => threadId);
    const earlier = await this.#threadsOf('id', messages.map(({ id }) => id)); // a message moves if its thread changes
    return this.#in([...ids, ...earlier], async (memory, db) => {
      for (const id of ids) if (db.threads.has(id)) db.threads.get(id).updatedAt = new Date();
      for (const { id, threadId, content, role = 'user', type = 'text', createdAt, resourceId = null } of messages)
        db.messages.set(id, { id, thread_id: threadId, content: JSON.stringify(content), role, type, createdAt, resourceId });
      return { messages: new MessageList().add(messages, 'memory').get.all.db() };
    });
  }

  async updateMessages({ messages }) {
    const now = await this.#threadsOf('id', messages.map(({ id }) => id));
    return this.#in([...now, ...messages.map(({ threadId }) => threadId)], (memory) => memory.updateMessages({ messages }));
  }

  async deleteMessages(messageIds) {
    if (!messageIds?.length) return;
    await this.#in(await this.#threadsOf('id', messageIds), (memory) => memory.deleteMessages(messageIds));
  }

  async listThreads(args) {
    const db = new InMemoryDB();
    for (const row of await this.#rows()) db.threads.set(row.id, row);
    return new InMemoryMemory({ db }).listThreads(args);
  }

  copyThread(args) {
    const newThreadId = args.newThreadId || crypto.randomUUID();
    return this.#in([args.sourceThreadId, newThreadId], (memory) => memory.copyThread({ ...args, newThreadId }));
  }

  #resource(id, use) {
    return this.#resources.change([[id]], (db) => use(new InMemoryMemory({ db })));
  }

  getResourceById({ resourceId }) {
    return this.#resource(resourceId, (memory) => memory.getResourceById({ resourceId }));
  }

  saveResource({ resource }) {
    return this.#resource(resource.id, (memory) => memory.saveResource({ resource }));
  }

  updateResource(args) {
    return this.#resource(args.resourceId, (memory) => memory.updateResource(args));
  }
}

/** Runs of workflows in a store; every method is durable when it resolves. Several processes may update a run. */
export class AnnalWorkflows extends WorkflowsStorage {
  #runs;

  constructor(store) {
    super();
    this.#runs = new Rows(store, RUNS, Row);
  }

  #in(names, use) {
    return this.#runs.change(names, (db) => use(new WorkflowsInMemory({ db })));
  }

  supportsConcurrentUpdates() {
    return true;
  }

  async dangerouslyClearAll() {
    await this.#runs.clear();
  }

  updateWorkflowResults(args) {
    return this.#in([[args.workflowName, args.runId]], (runs) => runs.updateWorkflowResults(structuredClone(args)));
  }

  updateWorkflowState(args) {
    return this.#in([[args.workflowName, args.runId]], (runs) => runs.updateWorkflowState(args));
  }

  persistWorkflowSnapshot(args) {
    return this.#in([[args.workflowName, args.runId]], (runs) => runs.persistWorkflowSnapshot(args));
  }

  loadWorkflowSnapshot(args) {
    return this.#in([[args.workflowName, args.runId]], (runs) => runs.loadWorkflowSnapshot(args));
  }

  async listWorkflowRuns(args = {}) {
    const names = await this.#runs.names(([workflow]) => args.workflowName === undefined || workflow === args.workflowName);
    return this.#in(names, (runs) => runs.listWorkflowRuns(args));
  }

  async getWorkflowRunById({ runId, workflowName }) {
    const names = workflowName ? [[workflowName, runId]] : await this.#runs.names(([, id]) => id === runId);
    return this.#in(names, (runs) => runs.getWorkflowRunById({ runId, workflowName }));
  }

  async deleteWorkflowRunById({ runId, workflowName }) {
    await this.#runs.remove([workflowName, runId]);
  }
}

/** Storage for `new Mastra({ storage })`: memory and workflows in a store; other domains from `default`. */
export class AnnalStorage extends MastraCompositeStore {
  constructor(store, { id = 'annal', default: others } = {}) {
    super({ id, default: others, domains: { memory: new AnnalMemory(store), workflows: new AnnalWorkflows(store) } });
  }
}
