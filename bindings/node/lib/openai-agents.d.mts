// SPDX-License-Identifier: Apache-2.0
import type {
  AgentInputItem, SessionHistoryRewriteArgs, SessionHistoryRewriteAwareSession, SessionHistoryTransactionArgs,
  SessionHistoryTransactionAwareSession,
} from '@openai/agents-core';
import type { Level, Session, Store } from './index.mjs';

/** A conversation in a store; every method is durable when it resolves. The store stays the caller's. */
export class AnnalSession implements SessionHistoryTransactionAwareSession, SessionHistoryRewriteAwareSession {
  constructor(store: Store, options?: { sessionId?: string; level?: Level });
  /** The session of the store that belongs to it. */
  readonly annalSession: Session;
  getSessionId(): Promise<string>;
  getItems(limit?: number): Promise<AgentInputItem[]>;
  addItems(items: AgentInputItem[]): Promise<void>;
  popItem(): Promise<AgentInputItem | undefined>;
  clearSession(): Promise<void>;
  applyHistoryMutations(args: SessionHistoryRewriteArgs): Promise<void>;
  applyHistoryTransaction(args: SessionHistoryTransactionArgs): Promise<void>;
}
