// SPDX-License-Identifier: Apache-2.0
import type { Store } from './index.js';

/** As in the package resumable-stream, whose context it replaces. */
export interface ResumableStreamContext {
  /** Begin a stream, or resume it if it exists; null if it has ended. */
  resumableStream(
    streamId: string,
    makeStream: () => ReadableStream<string>,
    skipCharacters?: number,
  ): Promise<ReadableStream<string> | null>;
  /** Resume a stream; null if it has ended, undefined if it does not exist. */
  resumeExistingStream(streamId: string, skipCharacters?: number): Promise<ReadableStream<string> | null | undefined>;
  createNewResumableStream(
    streamId: string,
    makeStream: () => ReadableStream<string>,
    skipCharacters?: number,
  ): Promise<ReadableStream<string> | null>;
  hasExistingStream(streamId: string): Promise<null | true | 'DONE'>;
}

export interface ResumableStreamOptions {
  keyPrefix?: string;
  /** Called with a promise for the end of each new stream. */
  waitUntil?: ((promise: Promise<unknown>) => void) | null;
  /** Replay streams that have ended, instead of the answer null; default: false. */
  replayDone?: boolean;
  /** A resumed stream fails if no chunk arrives within this number of milliseconds; default: it waits. */
  idleMs?: number;
}

export function createResumableStreamContext(store: Store, options?: ResumableStreamOptions): ResumableStreamContext;
