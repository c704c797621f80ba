// SPDX-License-Identifier: Apache-2.0
import { MastraCompositeStore, MemoryStorage, WorkflowsStorage } from '@mastra/core/storage';
import type { Store } from './index.js';

/** Threads, messages and resources in a store; every method is durable when it resolves. The store stays the caller's. */
export class AnnalMemory extends MemoryStorage {
  constructor(store: Store);
  dangerouslyClearAll(): Promise<void>;
  getThreadById: MemoryStorage['getThreadById'];
  saveThread: MemoryStorage['saveThread'];
  updateThread: MemoryStorage['updateThread'];
  deleteThread: MemoryStorage['deleteThread'];
  listMessages: MemoryStorage['listMessages'];
  listMessagesById: MemoryStorage['listMessagesById'];
  saveMessages: MemoryStorage['saveMessages'];
  updateMessages: MemoryStorage['updateMessages'];
  listThreads: MemoryStorage['listThreads'];
}

/** Runs of workflows in a store. Several processes may update a run. */
export class AnnalWorkflows extends WorkflowsStorage {
  constructor(store: Store);
  dangerouslyClearAll(): Promise<void>;
  supportsConcurrentUpdates(): boolean;
  updateWorkflowResults: WorkflowsStorage['updateWorkflowResults'];
  updateWorkflowState: WorkflowsStorage['updateWorkflowState'];
  persistWorkflowSnapshot: WorkflowsStorage['persistWorkflowSnapshot'];
  loadWorkflowSnapshot: WorkflowsStorage['loadWorkflowSnapshot'];
  listWorkflowRuns: WorkflowsStorage['listWorkflowRuns'];
  getWorkflowRunById: WorkflowsStorage['getWorkflowRunById'];
  deleteWorkflowRunById: WorkflowsStorage['deleteWorkflowRunById'];
}

/** Storage for `new Mastra({ storage })`: memory and workflows in a store; other domains from `default`. */
export class AnnalStorage extends MastraCompositeStore {
  constructor(store: Store, options?: { id?: string; default?: MastraCompositeStore });
}
