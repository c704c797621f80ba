// SPDX-License-Identifier: Apache-2.0
// Recording without a framework: a run, functions that it calls, and steps that run once.
'use strict';

const { AsyncLocalStorage } = require('node:async_hooks');
const { randomUUID } = require('node:crypto');
const { Invalid } = require('./errors.cjs');
const { open, Store, written } = require('./store.cjs');
const { Steps, claim, shown: said } = require('./step.cjs');

const current = new AsyncLocalStorage();
const newId = () => randomUUID().replaceAll('-', '');

/** A value as JSON; a value that JSON cannot express becomes text. */
function shown(value) {
  if (value === undefined) return null;
  try {
    written(value);
    return value;
  } catch {
    return String(value);
  }
}

/** One run of an agent: a session that begins with session.created and ends with session.ended. */
class Run {
  #steps;

  constructor(name, session, owner, recovery) {
    this.name = name;
    this.session = session;
    /** The name of this process for the run, in session.created or session.resumed. */
    this.owner = owner;
    /** What was in progress when an earlier process left this run; null if the run is new. */
    this.recovery = recovery;
    this.#steps = new Steps(session, owner);
  }

  get isLost() {
    return this.#steps.isLost;
  }

  /** Append any event. */
  append(type, data, options) {
    return this.session.append(type, data, options);
  }

  /** Record a message of "user", "assistant" or "system". */
  message(role, content, fields = {}) {
    return this.append('message.added', { id: newId(), role, content: shown(content), ...fields });
  }

  /** Record a call of a tool: the function's result is the result of the tool. */
  async tool(tool, input, run, { callId = `call_${newId()}` } = {}) {
    const seq = await this.append('tool.called', { call_id: callId, tool, input: shown(input) });
    return this.#call(callId, seq, run);
  }

  /** Continue a call of recovery.calls. */
  reopen(call, run) {
    return this.#call(call.callId, call.seq, run);
  }

  async #call(callId, seq, run) {
    const began = performance.now();
    const ended = (type, success, output) => {
      const data = { call_id: callId, success, duration_ms: Math.round(performance.now() - began) };
      if (output !== undefined) data.output = shown(output);
      return this.append(type, data, { cause: `${this.session.id}:${seq}` });
    };
    let output;
    try {
      output = await run();
    } catch (error) {
      const { type, message } = said(error);
      await ended('tool.failed', false, `${type}: ${message}`);
      throw error;
    }
    await ended('tool.returned', true, output);
    return output;
  }

  /** Record used tokens, as an increment. */
  usage({ inputTokens = 0, outputTokens = 0, ...fields } = {}) {
    const total_tokens = inputTokens + outputTokens;
    return this.append('agent.turn.usage', { input_tokens: inputTokens, output_tokens: outputTokens, total_tokens, ...fields });
  }

  /** The recorded result of the step; if there is none, call the function and record its result, durably. */
  step(key, run, options) {
    return this.#steps.run(key, run, options);
  }
}

/** Record one run of an agent: session.created, what `use` does, session.ended. Resolves to what `use` returns. */
async function run(name, options, use) {
  const { store, session: id, resume = false } = options;
  if (resume && id === undefined) throw new Invalid('run() with { resume: true } needs the id of the session that it resumes');
  const parent = current.getStore();
  const given = store ?? parent?.session.store;
  if (given === undefined) throw new Invalid('run() needs a store: an open one, or its directory');
  const opened = given instanceof Store ? given : await open(given);
  try {
    const session = opened.session(id ?? `run_${newId()}`);
    const created = { agent_id: name, title: name, ...(parent && { parent_session_id: parent.session.id }) };
    const owner = newId();
    const one = new Run(name, session, owner, await claim(session, owner, { ...created, resume }));
    return await inside(one, use);
  } finally {
    if (opened !== given) await opened.close();
  }
}

async function inside(one, use) {
  const began = performance.now();
  let failed = {};
  try {
    return await current.run(one, () => use(one));
  } catch (error) {
    failed = { reason: 'error', error: said(error), status: 'failed' };
    throw error;
  } finally {
    if (!one.isLost) await one.append('session.ended', { duration_ms: Math.round(performance.now() - began), ...failed });
  }
}

/** The run that this code is in, also across await; undefined outside of a run. */
const currentRun = () => current.getStore();

/** A function whose calls are recorded: as calls of a tool in the current run, or with a store as runs of their own. */
function record(wrapped, { name = wrapped.name, store } = {}) {
  return async function recorded(...input) {
    const call = () => wrapped.apply(this, input);
    if (store !== undefined)
      return run(name, { store }, async (one) => {
        const result = await call();
        if (result !== undefined && result !== null) await one.message('assistant', typeof result === 'string' ? result : written(shown(result)));
        return result;
      });
    const within = currentRun();
    return within === undefined ? call() : within.tool(name, input, call);
  };
}

module.exports = { Run, run, currentRun, record };
