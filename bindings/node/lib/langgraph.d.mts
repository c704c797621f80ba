// SPDX-License-Identifier: Apache-2.0
import type { RunnableConfig } from '@langchain/core/runnables';
import { BaseCheckpointSaver } from '@langchain/langgraph-checkpoint';
import type {
  ChannelVersions, Checkpoint, CheckpointListOptions, CheckpointMetadata, CheckpointTuple, DeltaChannelHistory, PendingWrite,
  SerializerProtocol,
} from '@langchain/langgraph-checkpoint';
import type { Level, Store } from './index.mjs';

/** Checkpoints in a store; every method is durable when it resolves. The store stays the caller's. */
export class AnnalSaver extends BaseCheckpointSaver<string> {
  constructor(
    store: Store,
    options?: {
      serde?: SerializerProtocol;
      /** The first part of the names of its sessions: savers with different ones do not see each other. */
      adapter?: string;
      /** With "batch", no method waits for the disk. */
      level?: Level;
    },
  );
  readonly store: Store;
  getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined>;
  list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple>;
  put(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, newVersions: ChannelVersions): Promise<RunnableConfig>;
  putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath?: string): Promise<void>;
  deleteThread(threadId: string): Promise<void>;
  getDeltaChannelHistory(options: { config: RunnableConfig; channels: string[] }): Promise<Record<string, DeltaChannelHistory>>;
  getNextVersion(current: string | undefined): string;
}
