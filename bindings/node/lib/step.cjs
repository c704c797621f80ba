// SPDX-License-Identifier: Apache-2.0
// Steps of a run, which run once: docs/steps.md has the rules.
'use strict';

const { randomUUID } = require('node:crypto');
const { setTimeout: pause } = require('node:timers/promises');
const { Conflict, Invalid } = require('./errors.cjs');
const { written } = require('./store.cjs');

const INLINE_BYTES = 48 << 20; // of a result; a longer one becomes an artifact
const [PAUSE_MS, PAUSE_MOST_MS] = [100, 10_000];

/** A step failed, in this process or an earlier one; the message is the message of its error. */
class StepFailed extends Error {
  constructor(message, kind) {
    super(message);
    /** The name of the error's class. */
    this.kind = kind;
  }
}
StepFailed.prototype.name = 'StepFailed';

const kindOf = (error) => (error.name === 'Error' ? error.constructor.name : error.name);
const shown = (error) =>
  error instanceof Error ? { type: kindOf(error), message: error.message } : { type: typeof error, message: String(error) };

/** What a function returns, as JSON; rejects with a TimeoutError if it takes longer. */
async function within(run, timeoutMs) {
  if (timeoutMs === undefined) return written((await run()) ?? null);
  const controller = new AbortController();
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => {
      controller.abort(new DOMException(`the step took longer than ${timeoutMs} ms`, 'TimeoutError'));
      reject(controller.signal.reason);
    }, timeoutMs);
  });
  try {
    return written((await Promise.race([run(controller.signal), late])) ?? null);
  } finally {
    clearTimeout(timer);
  }
}

/** The steps of a session under one owner: its events, read once and then followed. */
class Steps {
  #session;
  #seq = 0;
  #last = '';
  #called = new Map(); // by id of the call, the seq of its tool.called
  #ended = new Map(); // by id of the call, its last event
  #running = new Set();
  #reading = Promise.resolve();
  inlineBytes = INLINE_BYTES;

  constructor(session, owner) {
    this.#session = session;
    this.owner = owner;
    /** Whether another process has resumed the run, or deleted its session, as far as a step of this process knows. */
    this.isLost = false;
  }

  /** Read the events that were appended since; one call at a time. */
  #read() {
    const result = this.#reading.then(async () => {
      for await (const event of this.#session.events({ fromSeq: this.#seq + 1 })) {
        const { type, data, seq } = event;
        const callId = String(data?.call_id);
        if (type === 'session.created' || type === 'session.resumed') this.#last = data?.owner ?? '';
        else if (type === 'tool.called' && !this.#called.has(callId)) this.#called.set(callId, seq);
        else if ((type === 'tool.returned' || type === 'tool.failed') && !this.#ended.has(callId)) this.#ended.set(callId, event);
        this.#seq = seq;
      }
    });
    this.#reading = result.catch(() => {});
    return result;
  }

  /** Append an event of a step, unless the run has another owner, or the step has ended. */
  async #append(type, data) {
    const { call_id: callId } = data;
    for (;;) {
      await this.#read();
      if (this.#last !== this.owner) {
        this.isLost = true;
        throw new Conflict(`session '${this.#session.id}' was resumed by another process: this run cannot continue`);
      }
      if (this.#ended.has(callId)) return;
      const called = this.#called.get(callId);
      const cause = called === undefined ? undefined : `${this.#session.id}:${called}`;
      try {
        await this.#session.append(type, data, { cause, expectedSeq: this.#seq, level: 'sync' });
        return;
      } catch (error) {
        if (!(error instanceof Conflict)) throw error;
        // Usually, another event was appended in the meantime.
        if ((await this.#session.lastSeq()) < this.#seq) {
          this.isLost = true;
          throw new Conflict(`session '${this.#session.id}' was deleted: this run cannot continue`);
        }
      }
    }
  }

  async #answer(event) {
    const { data } = event;
    if (event.type === 'tool.returned') return data.output_ref === undefined ? structuredClone(data.output) : JSON.parse(await event.output());
    const { message = data.output, type = '' } = data.error ?? {};
    throw new StepFailed(String(message), String(type));
  }

  /** The recorded result of the step; if there is none, call the function and record its result. */
  async run(key, run, { retries = 0, timeout } = {}) {
    if (typeof key !== 'string' || key === '') throw new Invalid('the key of a step is a string that is not empty');
    const callId = `step:${key}`;
    if (this.#running.has(callId)) throw new Conflict(`step '${key}' runs already in this process`);
    this.#running.add(callId);
    try {
      await this.#read();
      if (this.#ended.has(callId)) return await this.#answer(this.#ended.get(callId));
      if (this.#called.has(callId)) await this.#append('step.retried', { call_id: callId, reason: 'interrupted' });
      else await this.#append('tool.called', { call_id: callId, tool: key });
      if (this.#ended.has(callId)) return await this.#answer(this.#ended.get(callId));
      const began = performance.now();
      const content = await this.#attempts(callId, run, retries, timeout, began);
      const bytes = Buffer.byteLength(content);
      const result =
        bytes > this.inlineBytes
          ? { output_ref: (await this.#session.putArtifact(content)).ref('application/json') }
          : { output: JSON.parse(content) };
      await this.#append('tool.returned', { call_id: callId, success: true, ...result, duration_ms: since(began) });
      await this.#read();
      return await this.#answer(this.#ended.get(callId));
    } finally {
      this.#running.delete(callId);
    }
  }

  /** What the function returns as JSON, after at most `retries` attempts that failed. */
  async #attempts(callId, run, retries, timeout, began) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await within(run, timeout);
      } catch (error) {
        const what = shown(error);
        if (attempt > retries) {
          const output = `${what.type}: ${what.message}`;
          await this.#append('tool.failed', { call_id: callId, success: false, output, error: what, duration_ms: since(began) });
          throw error;
        }
        await this.#append('step.retried', { call_id: callId, reason: 'error', attempt, error: what });
        await pause(Math.min(PAUSE_MS * 2 ** (attempt - 1), PAUSE_MOST_MS));
      }
    }
  }
}

const since = (began) => Math.round(performance.now() - began);

/**
 * Append session.created, or of a session that exists session.resumed, with this owner. `more`: of session.created. What
 * was in progress when an earlier process left the session; null if the session is new.
 */
async function claim(session, owner, { resume, ...more }) {
  let recovery = null;
  for (;;) {
    try {
      if (recovery === null) await session.append('session.created', { ...more, status: 'running', owner }, { expectedSeq: 0 });
      else await session.append('session.resumed', { status: 'running', owner }, { expectedSeq: recovery.seq });
      return recovery;
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      if (!resume) throw new Conflict(`session '${session.id}' exists: pass { resume: true } to continue it, or another id`);
      recovery = await session.recovery();
    }
  }
}

/** The steps of a session that this object of the session claims when its first step runs. */
async function claimed(session) {
  const steps = new Steps(session, randomUUID().replaceAll('-', ''));
  await claim(session, steps.owner, { resume: true });
  return steps;
}

module.exports = { Steps, StepFailed, claim, claimed, shown };
