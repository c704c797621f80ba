// SPDX-License-Identifier: Apache-2.0
// The queue of a World of the Workflow SDK: messages in memory, delivered to the routes of the runtime in this process, or
// wherever baseUrl is. The headers and routes are those of world-local.
import http from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';

const [RETRY_MS, PAUSE_MOST_MS, DELIVERIES] = [5000, 2 ** 31 - 1, 256];
const BYTES = '__type';

const replacer = (_key, value) =>
  value instanceof Uint8Array ? { [BYTES]: 'Uint8Array', data: Buffer.from(value).toString('base64') } : value;
const reviver = (_key, value) =>
  value?.[BYTES] === 'Uint8Array' && typeof value.data === 'string' ? new Uint8Array(Buffer.from(value.data, 'base64')) : value;

/** "__wkf_step_name" and "__namespace_wkf_workflow_name": the prefix, and which of the two it is. */
function parse(queueName) {
  const [prefix, kind] = /^__(?:[a-z][a-z0-9]*_)?wkf_(workflow|step)_/.exec(queueName) ?? [];
  if (prefix === undefined) throw new TypeError(`${JSON.stringify(queueName)} is not the name of a queue of the Workflow SDK`);
  return { prefix, route: kind === 'workflow' ? 'flow' : 'step' };
}

export function createQueue({ baseUrl, newId }) {
  const stopped = new AbortController();
  const { signal } = stopped;
  const agents = { 'http:': new http.Agent({ keepAlive: true, maxSockets: 1000 }), 'https:': new https.Agent({ keepAlive: true, maxSockets: 1000 }) };
  const handlers = new Map(); // by prefix, those that are called without HTTP
  const inFlight = new Map(); // by idempotency key

  function urlOf(route) {
    const { WORKFLOW_LOCAL_BASE_URL, PORT } = process.env;
    const base = baseUrl ?? WORKFLOW_LOCAL_BASE_URL ?? (PORT && `http://localhost:${PORT}`) ?? (handlers.size > 0 ? 'http://localhost' : undefined);
    if (base === undefined) throw new TypeError('the World does not know where workflows are served: pass { baseUrl }, or set PORT');
    return new URL(`${base.replace(/\/+$/, '')}/.well-known/workflow/v1/${route}`);
  }

  /** The status and the body of the answer; a step may take as long as it likes. */
  async function deliver(queueName, headers, body) {
    const { prefix, route } = parse(queueName);
    const url = urlOf(route);
    const handler = handlers.get(prefix);
    if (handler !== undefined) {
      const response = await handler(new Request(url, { method: 'POST', headers, body }));
      return { status: response.status, answer: await response.text() };
    }
    const { protocol } = url;
    const request = (protocol === 'https:' ? https : http).request(url, { method: 'POST', headers, agent: agents[protocol], signal });
    const response = await new Promise((resolve, reject) => request.on('response', resolve).on('error', reject).end(body));
    return { status: response.statusCode, answer: await text(response) };
  }

  /** How long until the message is delivered again, as the handler answered; undefined if it is dealt with. */
  function again(answer) {
    try {
      const { timeoutSeconds } = JSON.parse(answer);
      return typeof timeoutSeconds === 'number' && timeoutSeconds >= 0 ? timeoutSeconds * 1000 : undefined;
    } catch {
      return undefined;
    }
  }

  const wait = (ms) => (ms > 0 ? pause(Math.min(ms, PAUSE_MOST_MS), undefined, { signal }) : undefined);

  async function run(queueName, messageId, body, { headers, delaySeconds = 0 }) {
    await wait(delaySeconds * 1000);
    for (let attempt = 1; attempt <= DELIVERIES; ) {
      const all = {
        ...headers, 'content-type': 'application/json', 'x-vqs-queue-name': queueName, 'x-vqs-message-id': messageId,
        'x-vqs-message-attempt': String(attempt),
      };
      let delivered;
      try {
        delivered = await deliver(queueName, all, body);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof TypeError) throw error;
        console.error(`[libannal] a message of ${queueName} could not be delivered, and is delivered again: ${error.message}`);
        await wait(RETRY_MS);
        continue;
      }
      attempt += 1;
      const isDone = delivered.status >= 200 && delivered.status < 300;
      const ms = isDone ? again(delivered.answer) : RETRY_MS;
      if (ms === undefined) return;
      if (!isDone) console.error(`[libannal] a handler of ${queueName} failed with ${delivered.status}: ${delivered.answer}`);
      await wait(ms);
    }
    console.error(`[libannal] a message of ${queueName} was delivered ${DELIVERIES} times, and is dropped; start() of a new process queues its run again`);
  }

  return {
    getDeploymentId: async () => 'dpl_annal',
    async queue(queueName, message, options = {}) {
      parse(queueName);
      const { idempotencyKey: key } = options;
      if (key !== undefined && inFlight.has(key)) return { messageId: inFlight.get(key) };
      const messageId = `msg_${newId()}`;
      if (key !== undefined) inFlight.set(key, messageId);
      run(queueName, messageId, JSON.stringify(message, replacer), options)
        .catch((error) => {
          if (!signal.aborted) console.error(`[libannal] a message of ${queueName} is dropped: ${error.message}`);
        })
        .finally(() => inFlight.delete(key));
      return { messageId };
    },
    createQueueHandler: (prefix, handler) => async (request) => {
      const [queueName, messageId, attempt] = ['queue-name', 'message-id', 'message-attempt'].map((part) => request.headers.get(`x-vqs-${part}`));
      if (!queueName || !messageId || !(Number(attempt) > 0)) return Response.json({ error: 'Missing required headers' }, { status: 400 });
      if (!queueName.startsWith(prefix)) return Response.json({ error: 'Unhandled queue' }, { status: 400 });
      try {
        const message = JSON.parse(await request.text(), reviver);
        const answer = await handler(message, { attempt: Number(attempt), queueName, messageId });
        const timeoutSeconds = answer?.timeoutSeconds;
        return Response.json(typeof timeoutSeconds === 'number' ? { timeoutSeconds } : { ok: true });
      } catch (error) {
        return Response.json(String(error), { status: 500 });
      }
    },
    /** Deliver messages of queues with this prefix by a call in this process. */
    registerHandler: (prefix, handler) => void handlers.set(prefix, handler),
    async close() {
      stopped.abort();
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}
