// SPDX-License-Identifier: Apache-2.0
// A World of the Workflow SDK on a store, for @workflow/world 4.5 and 5. A run is a session, and each of its steps a call of a
// tool; a stream is a session below its run.
//
// (1) The state of a run is computed from its events, and an event is appended only if no other was in between: what one of
//     them decides, such as who creates a step or ends it, is decided once for all processes.
// (2) A token of a hook has a session with its claims. A claim holds until the hook is disposed or its run has ended, which
//     the events of the run say; nothing releases it.
// (3) Messages of the queue are in memory. Each only says that a run has work, and what work it is follows from its events: so
//     start() queues every run that has not ended.
import { randomBytes } from 'node:crypto';
import * as errors from '@workflow/errors';
import * as sdk from '@workflow/world';
import { Conflict, Invalid, name, open } from './index.mjs';
import meaning from './meaning.cjs';
import named from './named.cjs';
import payload from './payload.cjs';
import { createQueue } from './workflow-queue.mjs';

const [RUNS, HOOKS, STREAMS] = ['workflow', 'workflow-hook', 'workflow-stream'];
const OWN = 'workflow.';
const PAYLOADS = {
  run_created: 'input', run_completed: 'output', run_failed: 'error', step_created: 'input', step_completed: 'result',
  step_failed: 'error', step_retrying: 'error', hook_created: 'metadata', hook_received: 'payload',
};
const ENDS = { run_completed: 'completed', run_failed: 'failed', run_cancelled: 'cancelled' };
const STATUS = { completed: 'ended' }; // in the table of sessions, where it is another word
const [PAGE, PAGE_MOST] = [100, 1000];
const HAS_STRUCTURED_ERRORS = sdk.SPEC_VERSION_CURRENT < 4; // as 4.x shows the errors of runs and steps

// ---- Ids ----

const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
let lastId = 0n;

const idNumber = (text) => [...text].reduce((sum, letter) => sum * 32n + BigInt(Math.max(0, LETTERS.indexOf(letter))), 0n);

/** A ULID above the ones before it, and above the given one. */
function ulid(above = '') {
  const random = BigInt(`0x${randomBytes(10).toString('hex')}`) >> 1n;
  const fresh = (BigInt(Date.now()) << 80n) | random;
  lastId = fresh > lastId ? fresh : lastId + 1n;
  const floor = above === '' ? 0n : idNumber(above) + 1n;
  let left = lastId > floor ? lastId : floor;
  let text = '';
  for (let at = 0; at < 26; at++, left /= 32n) text = LETTERS[Number(left % 32n)] + text;
  return text;
}

// ---- A run ----

/** An event of the SDK as JSON, with the coding of its payload. */
function frozen({ runId: _, ...event }) {
  const member = PAYLOADS[event.eventType];
  if (event.eventData?.[member] === undefined) return event;
  const [content, coding] = payload.told(event.eventData[member]);
  return { ...event, eventData: { ...event.eventData, [member]: content }, ...(coding && { coding }) };
}

/** The event of which frozen() made this. */
function thawed({ coding, ...event }, runId) {
  const { eventType, eventData } = event;
  const member = PAYLOADS[eventType];
  const whole = { ...event, runId, createdAt: new Date(event.createdAt) };
  if (eventData === undefined) return whole;
  whole.eventData = { ...eventData };
  if (coding) whole.eventData[member] = payload.payloadOf(eventData[member], coding);
  for (const date of ['resumeAt', 'retryAfter']) if (eventData[date]) whole.eventData[date] = new Date(eventData[date]);
  return whole;
}

/** An error as the SDK has it in a row. */
function shownError(error, more) {
  if (!HAS_STRUCTURED_ERRORS || error === undefined) return error;
  return { message: typeof error === 'string' ? error : (error?.message ?? 'Unknown error'), stack: error?.stack, ...more };
}

/** The state of a run: its row and those of its steps, hooks and waits, as the SDK has them. */
class Run extends meaning.Told {
  reset() {
    super.reset();
    this.events = [];
    this.row = undefined;
    this.steps = new Map();
    this.hooks = new Map();
    this.disposed = new Set();
    this.waits = new Map();
    this.written = new Set(); // correlation ids of attributes
  }

  get runId() {
    return this.parts[1];
  }

  get lastId() {
    return this.events.at(-1)?.eventId.replace(/^evnt_/, '') ?? '';
  }

  get isEnded() {
    return Object.values(ENDS).includes(this.row?.status);
  }

  birth() {
    const { workflowName, attributes } = this.first;
    const data = { agent_id: workflowName, title: workflowName.split('//').at(-1), status: 'pending' };
    if (attributes?.$parentRunId) data.parent_session_id = name(RUNS, attributes.$parentRunId);
    return [['session.created', data]];
  }

  apply(event) {
    this.hear(event);
    const whole = this.whole(event, event.type.startsWith(OWN) ? event.type : undefined);
    if (whole?.eventType !== undefined) this.take(thawed(whole, this.runId));
  }

  take(event) {
    this.events.push(event);
    const { eventType, correlationId: id, eventData = {}, createdAt: now, specVersion } = event;
    const change = (map, more) => map.set(id, { ...map.get(id), ...more, updatedAt: now });
    switch (eventType) {
      case 'run_created': {
        const { deploymentId, workflowName, executionContext, input, attributes = {} } = eventData;
        this.row = {
          runId: this.runId, deploymentId, status: 'pending', workflowName, specVersion, executionContext, input,
          output: undefined, error: undefined, startedAt: undefined, completedAt: undefined, attributes, createdAt: now, updatedAt: now,
        };
        break;
      }
      case 'run_started':
        this.row = { ...this.row, status: 'running', startedAt: this.row.startedAt ?? now, updatedAt: now };
        break;
      case 'run_completed':
      case 'run_failed':
      case 'run_cancelled': {
        if (this.isEnded) break;
        const { output, errorCode: code } = eventData;
        const error = shownError(eventData.error, { code });
        const ended = { status: ENDS[eventType], output, error, ...(!HAS_STRUCTURED_ERRORS && code && { errorCode: code }) };
        this.row = { ...this.row, ...ended, completedAt: now, updatedAt: now };
        this.hooks.clear();
        this.waits.clear();
        break;
      }
      case 'attr_set':
        this.row = { ...this.row, attributes: sdk.applyAttributeChanges(this.row.attributes, eventData.changes), updatedAt: now };
        if (id !== undefined && eventData.writer?.type === 'workflow') this.written.add(id);
        break;
      case 'step_created':
        this.steps.set(id, {
          runId: this.runId, stepId: id, stepName: eventData.stepName, status: 'pending', input: eventData.input, output: undefined,
          error: undefined, attempt: 0, startedAt: undefined, completedAt: undefined, createdAt: now, updatedAt: now, specVersion,
        });
        break;
      case 'step_started': {
        const { startedAt = now, attempt } = this.steps.get(id);
        change(this.steps, { status: 'running', startedAt, attempt: attempt + 1, retryAfter: undefined });
        break;
      }
      case 'step_completed':
        change(this.steps, { status: 'completed', output: eventData.result, completedAt: now });
        break;
      case 'step_failed':
        change(this.steps, { status: 'failed', error: shownError(eventData.error, { stack: eventData.stack }), completedAt: now });
        break;
      case 'step_retrying':
        change(this.steps, {
          status: 'pending', error: shownError(eventData.error, { stack: eventData.stack }), retryAfter: eventData.retryAfter,
        });
        break;
      case 'hook_created': {
        const { token, metadata, isWebhook = false, isSystem = false } = eventData;
        const owner = { ownerId: 'annal', projectId: 'annal', environment: 'local' };
        this.hooks.set(id, { runId: this.runId, hookId: id, token, metadata, ...owner, createdAt: now, specVersion, isWebhook, isSystem });
        break;
      }
      case 'hook_disposed':
        this.hooks.delete(id);
        this.disposed.add(id);
        break;
      case 'wait_created': {
        const { resumeAt } = eventData;
        const wait = { waitId: `${this.runId}-${id}`, runId: this.runId, status: 'waiting', resumeAt, completedAt: undefined };
        this.waits.set(id, { ...wait, createdAt: now, updatedAt: now, specVersion });
        break;
      }
      case 'wait_completed':
        change(this.waits, { status: 'completed', completedAt: now });
    }
  }

  /** The drafts of an event of the SDK, with what it means for the core. */
  drafts(event, before) {
    const telling = new meaning.Telling(this, before);
    const value = frozen(event);
    const { eventType, correlationId: id, eventData } = value;
    const type = `${OWN}${eventType}`;
    const moved = (member, ours) => (eventData?.[member] === undefined ? [{}] : [{ [ours]: null }, { [ours]: ['eventData', member] }]);
    if (eventType === 'step_created') telling.call(id, eventData.stepName.split('//').at(-1), ...moved('input', 'input'));
    else if (eventType === 'step_completed') telling.result(id, false, ...moved('result', 'output'));
    else if (eventType === 'step_failed') telling.result(id, true, ...moved('error', 'output'));
    else if (eventType === 'run_started') telling.add('session.status_changed', { from: this.row?.status ?? 'pending', to: 'running' });
    const drafts = telling.drafts(type, value);
    const end = this.isEnded ? undefined : ENDS[eventType];
    if (end !== undefined) drafts.push(['session.ended', { reason: end, ...(end !== 'completed' && { status: end }) }]);
    return [drafts, telling];
  }
}

/** Throw what the runtime expects if the run does not accept the event. */
function check(run, data) {
  const { eventType, correlationId: id, eventData } = data;
  const conflict = (sentence) => {
    throw new errors.EntityConflictError(sentence);
  };
  if (run.row === undefined) throw new errors.WorkflowRunNotFoundError(run.runId);
  const { status, specVersion } = run.row;
  if (sdk.requiresNewerWorld(specVersion)) throw new errors.RunNotSupportedError(specVersion, sdk.SPEC_VERSION_CURRENT);
  const step = run.steps.get(id);
  const isLazy = eventType === 'step_started' && eventData?.input !== undefined;
  if (run.isEnded) {
    if (eventType === 'run_cancelled' && status === 'cancelled') return;
    if (eventType === 'run_started') throw new errors.RunExpiredError(`Workflow run "${run.runId}" is already in terminal state "${status}"`);
    if (eventType in ENDS) conflict(`Cannot transition run from terminal state "${status}"`);
    if (isLazy || ['step_created', 'hook_created', 'wait_created'].includes(eventType))
      conflict(`Cannot create new entities on run in terminal state "${status}"`);
    if (eventType === 'attr_set') conflict(`Cannot set attributes on run in terminal state "${status}"`);
  }
  switch (eventType) {
    case 'attr_set':
      sdk.validateAttributeChanges(eventData.changes, {
        existingKeys: Object.keys(run.row.attributes), allowReservedAttributes: eventData.allowReservedAttributes === true,
      });
      if (id !== undefined && eventData.writer?.type === 'workflow' && run.written.has(id)) conflict(`Attribute event "${id}" already exists`);
      break;
    case 'step_created':
      if (step) conflict(`Step "${id}" already created`);
      break;
    case 'step_started':
    case 'step_completed':
    case 'step_failed':
    case 'step_retrying':
      if (isLazy && step) conflict(`Step "${id}" already created`);
      if (isLazy) break;
      if (!step) throw new errors.WorkflowWorldError(`Step "${id}" not found`);
      if (['completed', 'failed', 'cancelled'].includes(step.status)) conflict(`Cannot modify step in terminal state "${step.status}"`);
      if (run.isEnded && step.status !== 'running')
        throw new errors.RunExpiredError(`Cannot modify non-running step on run in terminal state "${status}"`);
      if (eventType === 'step_started' && step.retryAfter > new Date()) {
        const retryAfter = Math.ceil((step.retryAfter - new Date()) / 1000);
        throw new errors.TooEarlyError(`Cannot start step "${id}": retryAfter timestamp has not been reached yet`, { retryAfter });
      }
      break;
    case 'hook_created':
      if (run.hooks.has(id) || run.disposed.has(id)) conflict(`Hook "${id}" already created`);
      break;
    case 'hook_disposed':
      if (run.disposed.has(id)) conflict(`Hook "${id}" already disposed`);
    // falls through
    case 'hook_received':
      if (!run.hooks.has(id)) throw new errors.HookNotFoundError(id);
      break;
    case 'wait_created':
      if (run.waits.has(id)) conflict(`Wait "${id}" already exists`);
      break;
    case 'wait_completed':
      if (!run.waits.has(id)) throw new errors.WorkflowWorldError(`Wait "${id}" not found`);
      if (run.waits.get(id).status === 'completed') conflict(`Wait "${id}" already completed`);
  }
}

/** A token of hooks: its latest claim. */
class Token extends named.Folded {
  reset() {
    this.claim = null;
  }

  birth() {
    return [['session.created', { agent_id: HOOKS, title: this.parts[1] }]];
  }

  apply({ type, data }) {
    if (type === 'hook.claimed') this.claim = data;
  }
}

/** A stream: the places of its chunks, and of its end. */
class Stream extends named.Folded {
  reset() {
    this.chunks = [];
    this.end = 0;
  }

  birth() {
    const data = { agent_id: STREAMS, title: this.parts[1], status: 'running', parent_session_id: name(RUNS, this.runId) };
    return [['session.created', data]];
  }

  apply({ type, seq }) {
    if (this.end > 0) return; // what is written after the end is kept, and not read
    if (type === 'stream.chunk') this.chunks.push(seq);
    else if (type === 'session.ended') this.end = seq;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }); // the mark of byte order is content

function chunkData(chunk) {
  if (typeof chunk === 'string') return chunk.isWellFormed() ? { text: chunk } : { base64: Buffer.from(chunk).toString('base64') };
  try {
    return { text: utf8.decode(chunk) };
  } catch {
    return { base64: Buffer.from(chunk).toString('base64') };
  }
}

const chunkOf = ({ text, base64 }) => (text === undefined ? new Uint8Array(Buffer.from(base64, 'base64')) : new TextEncoder().encode(text));

/** A part of a list; the cursor is the place of the next value. */
function page(list, { limit = PAGE, cursor, sortOrder } = {}, order = 'asc') {
  const sorted = (sortOrder ?? order) === 'desc' ? list.toReversed() : list;
  const from = cursor === undefined || cursor === null ? 0 : Number(cursor);
  if (!Number.isSafeInteger(from) || from < 0) throw new Invalid(`${JSON.stringify(cursor)} is not a cursor of this world`);
  const data = sorted.slice(from, from + Math.min(limit, PAGE_MOST));
  const to = from + data.length;
  return { data, cursor: to > 0 ? String(to) : null, hasMore: to < sorted.length };
}

const without = (row, wanted, members) =>
  wanted === 'none' ? { ...row, ...Object.fromEntries(members.map((member) => [member, undefined])) } : row;
const shownHook = (hook, wanted) => {
  const { metadata, ...rest } = hook;
  return wanted === 'none' ? rest : { ...rest, metadata };
};

/** The runs, steps, hooks, waits and streams of a store. */
class Sessions {
  constructor(store, level) {
    this.store = store;
    this.runs = new named.Named(store, RUNS, Run, level);
    this.tokens = new named.Named(store, HOOKS, Token, level);
    this.streams = new named.Named(store, STREAMS, Stream, level);
  }

  /** Call `use` with the run, up to date; again if another process appended to it in between. */
  change(runId, use) {
    const run = this.runs.get(runId);
    return run.locked(async () => {
      for (;;) {
        await run.refresh();
        try {
          return await use(run);
        } catch (error) {
          if (!(error instanceof Conflict)) throw error;
        }
      }
    });
  }

  async run(runId) {
    const run = await this.change(runId, (found) => found);
    if (run.row === undefined) throw new errors.WorkflowRunNotFoundError(runId);
    return run;
  }

  /** The ids of the runs whose sessions a query lists. */
  async runsOf(sql, params) {
    const found = [];
    for (const [session] of await this.store.sql(sql, params)) {
      const [adapter, runId] = await named.nameOf(this.store.session(session));
      if (adapter === RUNS) found.push(runId);
    }
    return found;
  }

  /** Claim the token for a hook; the id of the run that has it, if that is another. */
  async claim(token, runId, hookId) {
    const held = this.tokens.get(token);
    return held.locked(async () => {
      for (;;) {
        await held.refresh();
        const { claim } = held;
        if (claim !== null && claim.runId === runId && claim.hookId === hookId) return undefined;
        if (claim !== null && (claim.runId === runId ? !this.runs.get(runId).disposed.has(claim.hookId) : await this.holds(claim))) return claim.runId;
        try {
          await held.append([['hook.claimed', { runId, hookId }]], held.seq);
          return undefined;
        } catch (error) {
          if (!(error instanceof Conflict)) throw error;
        }
      }
    });
  }

  /** Whether a claim of another run holds: that run has not ended, and has not disposed of the hook. */
  async holds({ runId, hookId }) {
    const other = new Run(this.store.session(name(RUNS, runId)), [RUNS, runId]); // without its lock: it may wait for ours
    await other.refresh();
    return other.row !== undefined && !other.isEnded && !other.disposed.has(hookId);
  }

  async hook({ runId, hookId }, id) {
    const hook = (await this.change(runId, (found) => found)).hooks.get(hookId);
    if (hook === undefined) throw new errors.HookNotFoundError(id);
    return hook;
  }
}

const bare = (data, runId, eventId, now) => ({
  ...data, runId, eventId: `evnt_${eventId}`, createdAt: now, specVersion: data.specVersion ?? sdk.SPEC_VERSION_CURRENT,
});

/** The events that this event of the runtime becomes. */
async function toAppend(sessions, run, data) {
  const now = new Date();
  let id = run.lastId;
  const stamp = (event) => bare(event, run.runId, (id = ulid(id)), now);
  const { eventType, correlationId, specVersion, eventData } = data;
  if (eventType === 'run_created' || (eventType === 'run_started' && run.row === undefined && eventData?.workflowName)) {
    const { attributes, allowReservedAttributes } = eventData;
    const changes = Object.entries(attributes ?? {}).map(([key, value]) => ({ key, value }));
    sdk.validateAttributeChanges?.(changes, { allowReservedAttributes: allowReservedAttributes === true });
    run.first = eventData;
    const created = stamp({ ...data, eventType: 'run_created' });
    return eventType === 'run_created' ? [created] : [created, stamp({ eventType, specVersion })];
  }
  if (eventType === 'run_started') return [stamp({ ...data, eventData: undefined })];
  if (eventType === 'step_started' && eventData?.input !== undefined) {
    const { input, ...started } = eventData;
    const { stepName } = eventData;
    return [
      stamp({ eventType: 'step_created', correlationId, specVersion, eventData: { stepName, input } }),
      stamp({ ...data, eventData: started }),
    ];
  }
  if (eventType === 'hook_created') {
    const conflictingRunId = await sessions.claim(eventData.token, run.runId, correlationId);
    if (conflictingRunId !== undefined)
      return [stamp({ eventType: 'hook_conflict', correlationId, specVersion, eventData: { token: eventData.token, conflictingRunId } })];
  }
  return [stamp(data)];
}

/** storage.events.create() of the SDK. */
async function create(sessions, wantedId, data, params = {}) {
  if (!wantedId && data.eventType !== 'run_created') throw new errors.WorkflowWorldError('runId is required for non-run_created events');
  const runId = wantedId || `wrun_${ulid()}`;
  const invalid = data.eventType === 'run_created' && wantedId ? sdk.validateUlidTimestamp?.(runId, 'wrun_') : null;
  if (invalid) throw new errors.WorkflowWorldError(invalid);
  return sessions.change(runId, async (run) => {
    const isNew = run.row === undefined;
    if (data.eventType === 'run_created' && !isNew) throw new errors.EntityConflictError(`Workflow run "${runId}" already exists`);
    if (data.eventType === 'run_started' && run.row?.status === 'running') return { run: run.row };
    const makes = data.eventType === 'run_created' || (data.eventType === 'run_started' && data.eventData?.workflowName);
    if (!(isNew && makes)) check(run, data);
    const events = await toAppend(sessions, run, data);
    const drafts = [];
    let before;
    for (const event of events) {
      const [list, telling] = run.drafts(event, before);
      drafts.push(...list);
      before = telling;
    }
    await run.append(drafts, run.seq);
    if (run.lastId !== events.at(-1).eventId.slice(5)) await run.refresh();
    return result(run, events, data, params);
  });
}

function result(run, events, data, { resolveData, sinceCursor }) {
  const event = run.events.findLast(({ eventId }) => eventId === events.at(-1).eventId);
  const id = data.correlationId;
  const of = data.eventType.split('_')[0];
  const answer = {
    event: sdk.stripEventDataRefs(event, resolveData ?? 'all'),
    run: of === 'run' || of === 'attr' ? run.row : undefined,
    step: of === 'step' ? run.steps.get(id) : undefined,
    hook: event.eventType === 'hook_created' ? run.hooks.get(id) : undefined,
    wait: of === 'wait' ? run.waits.get(id) : undefined,
  };
  if (data.eventType === 'step_started' && events.length > 1) answer.stepCreated = true;
  const isDelta = ['step_completed', 'step_failed'].includes(data.eventType) && typeof sinceCursor === 'string';
  if (data.eventType !== 'run_started' && !isDelta) return answer;
  const { data: list, ...more } = page(run.events, isDelta ? { cursor: sinceCursor } : { limit: PAGE_MOST });
  return { ...answer, events: list.map((one) => sdk.stripEventDataRefs(one, resolveData ?? 'all')), ...more };
}

/** Storage of the SDK. `ready` resolves to the sessions. */
function createStorage(ready) {
  const stripped = ({ data, ...more }, resolveData = 'all') => ({ data: data.map((event) => sdk.stripEventDataRefs(event, resolveData)), ...more });
  return {
    runs: {
      async get(runId, { resolveData } = {}) {
        return without((await (await ready()).run(runId)).row, resolveData, ['input', 'output']);
      },
      async list({ workflowName = null, status = null, resolveData, pagination: { limit = PAGE, cursor, sortOrder = 'desc' } = {} } = {}) {
        const sessions = await ready();
        const [most, isDown] = [Math.min(limit, PAGE_MOST), sortOrder === 'desc'];
        const rows = await sessions.store.sql(
          `SELECT id FROM sessions WHERE id GLOB '${RUNS}.*' AND (?1 IS NULL OR agent_id = ?1) AND (?2 IS NULL OR status = ?2)
             AND (?3 IS NULL OR id ${isDown ? '<' : '>'} ?3) ORDER BY id ${isDown ? 'DESC' : ''} LIMIT ?4`,
          [workflowName, STATUS[status] ?? status, cursor, most + 1],
        );
        const ids = rows.slice(0, most).map(([id]) => id);
        const names = await Promise.all(ids.map((id) => named.nameOf(sessions.store.session(id))));
        const runs = await Promise.all(names.filter(([adapter]) => adapter === RUNS).map(([, id]) => sessions.change(id, (run) => run)));
        const data = runs.filter(({ row }) => row !== undefined).map(({ row }) => without(row, resolveData, ['input', 'output']));
        return { data, cursor: ids.at(-1) ?? null, hasMore: rows.length > most };
      },
      async experimentalSetAttributes(runId, changes, { allowReservedAttributes } = {}) {
        const eventData = { changes, writer: { type: 'step', stepId: '', attempt: 0 }, ...(allowReservedAttributes && { allowReservedAttributes }) };
        const { run } = await create(await ready(), runId, { eventType: 'attr_set', eventData });
        return { attributes: run.attributes };
      },
    },
    steps: {
      async get(runId, stepId, { resolveData } = {}) {
        const sessions = await ready();
        const all = runId ? [runId] : await sessions.runsOf(`SELECT session_id FROM tool_calls WHERE call_id = ?1 AND session_id GLOB '${RUNS}.*'`, [stepId]);
        for (const id of all) {
          const step = (await sessions.run(id)).steps.get(stepId);
          if (step) return without(step, resolveData, ['input', 'output']);
        }
        throw new Error(`Step ${stepId} in run ${runId} not found`);
      },
      async list({ runId, resolveData, pagination }) {
        const { data, ...more } = page([...(await (await ready()).run(runId)).steps.values()], pagination, 'desc');
        return { data: data.map((step) => without(step, resolveData, ['input', 'output'])), ...more };
      },
    },
    events: {
      create: async (runId, data, params) => create(await ready(), runId, data, params),
      async get(runId, eventId, { resolveData } = {}) {
        const event = (await (await ready()).run(runId)).events.find((one) => one.eventId === eventId);
        if (event === undefined) throw new Error(`Event ${eventId} in run ${runId} not found`);
        return sdk.stripEventDataRefs(event, resolveData ?? 'all');
      },
      list: async ({ runId, resolveData, pagination }) =>
        stripped(page((await (await ready()).change(runId, (run) => run)).events, pagination), resolveData),
      async listByCorrelationId({ correlationId, resolveData, pagination }) {
        const sessions = await ready();
        const ids = await sessions.runsOf(
          `SELECT DISTINCT session_id FROM events WHERE session_id GLOB '${RUNS}.*'
             AND coalesce(data->>'$.extra.value.correlationId', data->>'$.correlationId') = ?1`,
          [correlationId],
        );
        const runs = await Promise.all(ids.map((id) => sessions.run(id)));
        const all = runs.flatMap(({ events }) => events.filter((event) => event.correlationId === correlationId));
        return stripped(page(all.sort((a, b) => (a.eventId < b.eventId ? -1 : 1)), pagination), resolveData);
      },
    },
    hooks: {
      async get(hookId, { resolveData } = {}) {
        const sessions = await ready();
        const rows = await sessions.store.sql(
          `SELECT data FROM events WHERE type = 'hook.claimed' AND session_id GLOB '${HOOKS}.*' AND data->>'$.hookId' = ?1`,
          [hookId],
        );
        if (rows.length === 0) throw new errors.HookNotFoundError(hookId);
        return shownHook(await sessions.hook(JSON.parse(rows.at(-1)[0]), hookId), resolveData);
      },
      async getByToken(token, { resolveData } = {}) {
        const sessions = await ready();
        const held = sessions.tokens.get(token);
        await held.locked(() => held.refresh());
        if (held.claim === null) throw new errors.HookNotFoundError(token);
        return shownHook(await sessions.hook(held.claim, token), resolveData);
      },
      async list({ runId, resolveData, pagination } = {}) {
        const sessions = await ready();
        const claims = `SELECT DISTINCT data->>'$.runId' FROM events WHERE type = 'hook.claimed' AND session_id GLOB '${HOOKS}.*'`;
        const ids = runId ? [runId] : (await sessions.store.sql(claims)).flat();
        const runs = await Promise.all(ids.map((id) => sessions.change(id, (run) => run)));
        const { data, ...more } = page(runs.flatMap(({ hooks }) => [...hooks.values()]), pagination, 'desc');
        return { data: data.map((hook) => shownHook(hook, resolveData)), ...more };
      },
    },
  };
}

/** Streams of the SDK. */
function createStreams(ready) {
  const lasts = new Map(); // by stream, the last write: they are appended in the order of the calls

  function inOrder(streamName, use) {
    const result = (lasts.get(streamName) ?? Promise.resolve()).catch(() => {}).then(use);
    lasts.set(streamName, result);
    result.catch(() => {}).then(() => lasts.get(streamName) === result && lasts.delete(streamName));
    return result;
  }

  async function fold(streamName) {
    const stream = (await ready()).streams.get(streamName);
    await stream.locked(() => stream.refresh());
    return stream;
  }

  const append = (runId, streamName, make) =>
    inOrder(streamName, async () => {
      const stream = (await ready()).streams.get(streamName);
      stream.runId = await runId;
      await stream.locked(async () => {
        await stream.refresh();
        const drafts = make(stream);
        if (drafts.length > 0) await stream.append(drafts);
      });
    });

  const writeMulti = (runId, streamName, chunks) => append(runId, streamName, () => chunks.map((chunk) => ['stream.chunk', chunkData(chunk)]));

  return {
    write: (runId, streamName, chunk) => writeMulti(runId, streamName, [chunk]),
    writeMulti,
    close: (runId, streamName) => append(runId, streamName, ({ end }) => (end > 0 ? [] : [['session.ended', { reason: 'done' }]])),
    async get(_runId, streamName, startIndex = 0) {
      const stream = await fold(streamName);
      const { chunks, end, seq } = stream;
      const index = startIndex < 0 ? Math.max(0, chunks.length + startIndex) : startIndex;
      let skip = Math.max(0, index - chunks.length);
      const tail = stream.session.tail({ fromSeq: chunks[index] ?? (end > 0 ? end : seq + 1), types: ['stream.chunk', 'session.ended'] });
      await tail.opened;
      return new ReadableStream({
        async pull(controller) {
          for (;;) {
            const { type, data } = await tail.next();
            if (type === 'session.ended') {
              await tail.close();
              return controller.close();
            }
            if (skip-- > 0) continue;
            const chunk = chunkOf(data);
            if (chunk.length > 0) return controller.enqueue(chunk);
          }
        },
        cancel: () => tail.close(),
      });
    },
    async list(runId) {
      const rows = await (await ready()).store.sql(
        `SELECT title FROM sessions WHERE parent_session_id = ?1 AND agent_id = '${STREAMS}' ORDER BY created_at, id`,
        [name(RUNS, runId)],
      );
      return rows.flat();
    },
    async getChunks(_runId, streamName, { limit = PAGE, cursor } = {}) {
      const { session, chunks, end } = await fold(streamName);
      const { data: seqs, cursor: next, hasMore } = page(chunks, { limit, cursor });
      const data = [];
      if (seqs.length > 0)
        for await (const event of session.events({ fromSeq: seqs[0], toSeq: seqs.at(-1) }))
          if (event.type === 'stream.chunk') data.push({ index: chunks.indexOf(event.seq), data: chunkOf(event.data) });
      return { data, cursor: hasMore ? next : null, hasMore, done: end > 0 && !hasMore };
    },
    async getInfo(_runId, streamName) {
      const { chunks, end } = await fold(streamName);
      return { tailIndex: chunks.length - 1, done: end > 0 };
    },
  };
}

/**
 * A World for the Workflow SDK. `store`: an open store, or a directory; default: $ANNAL_STORE. `baseUrl`: where this process
 * serves its workflows; default: as world-local's. With `recover: false`, start() does not queue runs of earlier processes.
 */
export function createWorld({ store = process.env.ANNAL_STORE, baseUrl, recover = true, level } = {}) {
  if (!store) throw new Invalid('createWorld() needs the store: pass { store }, or set ANNAL_STORE to its directory');
  let opened;
  const ready = () => (opened ??= (async () => new Sessions(typeof store === 'string' ? await open(store) : store, level))());
  const queue = createQueue({ baseUrl, newId: ulid });
  const storage = createStorage(ready);
  const streams = createStreams(ready);

  async function recoverRuns() {
    const prefix = sdk.getQueueTopicPrefix?.('workflow', sdk.resolveQueueNamespace?.()) ?? '__wkf_workflow_';
    for (const status of ['pending', 'running'])
      for (let cursor, more = true; more; ) {
        const { data, ...next } = await storage.runs.list({ status, resolveData: 'none', pagination: { cursor, limit: PAGE_MOST } });
        for (const { runId, workflowName } of data) await queue.queue(`${prefix}${workflowName}`, { runId });
        [cursor, more] = [next.cursor, next.hasMore];
      }
  }

  return {
    specVersion: sdk.SPEC_VERSION_CURRENT,
    ...storage,
    ...queue,
    streams,
    // The names that 4.x has for the methods of streams.
    writeToStream: (streamName, runId, chunk) => streams.write(runId, streamName, chunk),
    writeToStreamMulti: (streamName, runId, chunks) => streams.writeMulti(runId, streamName, chunks),
    closeStream: (streamName, runId) => streams.close(runId, streamName),
    readFromStream: (streamName, startIndex) => streams.get(undefined, streamName, startIndex),
    listStreamsByRunId: (runId) => streams.list(runId),
    getStreamChunks: (streamName, runId, options) => streams.getChunks(runId, streamName, options),
    getStreamInfo: (streamName, runId) => streams.getInfo(runId, streamName),
    async start() {
      await ready();
      if (recover) await recoverRuns();
    },
    async close() {
      await queue.close();
      if (opened !== undefined && typeof store === 'string') await (await opened).store.close();
    },
  };
}

export default createWorld;
