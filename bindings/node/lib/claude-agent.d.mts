// SPDX-License-Identifier: Apache-2.0
// The types of the SDK's SessionStore, as of 0.3.332, so that the package does not need the SDK to compile.
import type { Store } from './index.mjs';

export interface SessionKey {
  projectKey: string;
  sessionId: string;
  subpath?: string;
}

export interface SessionStoreEntry {
  type: string;
  uuid?: string;
  timestamp?: string;
  [member: string]: unknown;
}

/** Transcripts in a store, durable when append() resolves. The store stays the caller's. */
export class AnnalSessionStore<Summary extends object = object> {
  /** With the SDK's foldSessionSummary(), listSessionSummaries() exists. */
  constructor(
    store: Store,
    options?: { foldSessionSummary?: (previous: undefined, key: SessionKey, entries: SessionStoreEntry[]) => Summary },
  );
  append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void>;
  load(key: SessionKey): Promise<SessionStoreEntry[] | null>;
  listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]>;
  listSessionSummaries?(projectKey: string): Promise<(Summary & { mtime: number })[]>;
  delete(key: SessionKey): Promise<void>;
  listSubkeys(key: { projectKey: string; sessionId: string }): Promise<string[]>;
}
