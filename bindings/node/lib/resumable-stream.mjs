// SPDX-License-Identifier: Apache-2.0
// The interface of resumable-stream, for streams of the AI SDK, on a store. A stream is a session, a chunk an event: a reader
// that resumes it reads the chunks from the journal, also if the process that produced them does not exist any more.
import { Conflict } from './index.mjs';
import named from './named.cjs';

const DONE = 'DONE';

/** A stream: where its chunks begin, and whether it has ended. */
class Stream extends named.Folded {
  reset() {
    this.begin = 0;
    this.isDone = false;
  }

  birth() {
    return [['session.created', { agent_id: this.parts[0], title: this.parts.at(-1), status: 'running' }]];
  }

  apply({ type, seq }) {
    if (type === 'stream.started') this.begin = seq;
    if (type === 'stream.started' || type === 'session.ended') this.isDone = type === 'session.ended';
  }

  /** null if it does not exist. */
  state() {
    return this.locked(async () => ((await this.refresh()) && this.begin > 0 ? (this.isDone ? DONE : true) : null));
  }
}

/**
 * A context of resumable streams. `waitUntil` is called with a promise for the end of each new stream. With `replayDone`, a
 * stream that has ended is replayed; without it, the answer is null, as in resumable-stream. `idleMs`: a resumed stream
 * fails if no chunk arrives for this time.
 */
export function createResumableStreamContext(store, options = {}) {
  const { keyPrefix = 'resumable-stream', waitUntil = null, replayDone = false, idleMs } = options;
  const streams = new named.Named(store, 'resumable-stream', Stream, 'batch');
  const streamOf = (id) => streams.get(keyPrefix, id);

  async function resume(stream, skip = 0) {
    await stream.state();
    let left = skip;
    const tail = stream.session.tail({ fromSeq: stream.begin + 1 });
    await tail.opened;
    return new ReadableStream({
      async pull(controller) {
        for (;;) {
          const event = await tail.next({ timeout: idleMs });
          if (event === null) {
            await tail.close();
            throw new Error(`stream '${stream.parts.at(-1)}': no chunk was appended for ${idleMs} ms`);
          }
          if (event.type === 'session.ended') {
            await tail.close();
            const { error } = event.data;
            return error === undefined ? controller.close() : controller.error(new Error(error.message));
          }
          const text = event.type === 'stream.chunk' ? event.data.text.slice(left) : '';
          if (event.type === 'stream.chunk') left -= Math.min(left, event.data.text.length);
          if (text !== '') return controller.enqueue(text);
        }
      },
      cancel: () => tail.close(),
    });
  }

  /** Record what a source produces, whether its reader continues or not. */
  async function record(stream, source, controller) {
    const offer = (use) => {
      try {
        use();
      } catch {
        // Its reader is gone; those that resume it read the journal.
      }
    };
    const { session } = stream;
    const reader = source.getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        await session.append('stream.chunk', { text: value }, { level: 'batch' });
        offer(() => controller.enqueue(value));
      }
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      await session.append('session.ended', { status: 'failed', reason: 'error', error: { message } });
      offer(() => controller.error(error));
      return;
    }
    await session.append('session.ended', { reason: 'done' });
    offer(() => controller.close());
  }

  function produce(stream, makeStream, skip = 0) {
    let left = skip;
    let ended;
    const end = new Promise((resolve, reject) => (ended = [resolve, reject]));
    waitUntil?.(end);
    end.catch(() => {}); // the stream fails with it
    return new ReadableStream({
      start(controller) {
        const skipping = {
          enqueue: (text) => {
            const rest = text.slice(left);
            left -= Math.min(left, text.length);
            if (rest !== '') controller.enqueue(rest);
          },
          close: () => controller.close(),
          error: (error) => controller.error(error),
        };
        record(stream, makeStream(), skipping).then(ended[0], (error) => {
          controller.error(error);
          ended[1](error);
        });
      },
    });
  }

  /** Begin the stream, unless it exists and `again` is not wanted; whether this call began it. */
  function begin(stream, again) {
    return stream.locked(async () => {
      for (;;) {
        if ((await stream.refresh()) && stream.begin > 0 && !again) return false;
        try {
          await stream.append([['stream.started', {}]], stream.seq);
          await stream.session.sync();
          return true;
        } catch (error) {
          if (!(error instanceof Conflict)) throw error; // another process began it
        }
      }
    });
  }

  async function resumeExistingStream(streamId, skipCharacters) {
    const stream = streamOf(streamId);
    const state = await stream.state();
    if (state === null) return undefined;
    return state === DONE && !replayDone ? null : resume(stream, skipCharacters);
  }

  return {
    hasExistingStream: (streamId) => streamOf(streamId).state(),
    resumeExistingStream,
    async createNewResumableStream(streamId, makeStream, skipCharacters) {
      await begin(streamOf(streamId), true);
      return produce(streamOf(streamId), makeStream, skipCharacters);
    },
    async resumableStream(streamId, makeStream, skipCharacters) {
      const stream = streamOf(streamId);
      if (await begin(stream, false)) return produce(stream, makeStream, skipCharacters);
      return (await resumeExistingStream(streamId, skipCharacters)) ?? null;
    },
  };
}
