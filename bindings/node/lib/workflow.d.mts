// SPDX-License-Identifier: Apache-2.0
import type { World } from '@workflow/world';
import type { Level, Store } from './index.js';

export interface WorldOptions {
  /** An open store, which stays the caller's, or a directory; default: $ANNAL_STORE. */
  store?: Store | string;
  /** Where this process serves its workflows; default: $WORKFLOW_LOCAL_BASE_URL, else http://localhost:$PORT. */
  baseUrl?: string;
  /** Whether start() queues the runs that have not ended; default: true. */
  recover?: boolean;
  /** Of appends; default: "sync". */
  level?: Level;
}

/** A World of the Workflow SDK: runs, steps, hooks and streams in a store; every method is durable when it resolves. */
export function createWorld(options?: WorldOptions): World & {
  /** Deliver messages of queues with this prefix by a call in this process, and not by HTTP. */
  registerHandler(prefix: string, handler: (request: Request) => Promise<Response>): void;
};
export default createWorld;
