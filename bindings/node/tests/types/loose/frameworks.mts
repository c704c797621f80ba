// SPDX-License-Identifier: Apache-2.0
// As ../module.mts, for packages whose own types do not compile with the options there.
import { open } from 'libannal';
import type { MastraCompositeStore } from '@mastra/core/storage';
import type { ResumableStreamContext } from 'resumable-stream/generic';
import type { World } from '@workflow/world';
import { AnnalStorage } from 'libannal/mastra';
import { createResumableStreamContext } from 'libannal/resumable-stream';
import { createWorld } from 'libannal/workflow';

const store = await open('store');
const storage: MastraCompositeStore = new AnnalStorage(store);
(await (await storage.getStore('memory'))?.getThreadById({ threadId: 't' }))?.title satisfies string | undefined;
const context: ResumableStreamContext = createResumableStreamContext(store, { waitUntil: null, idleMs: 1000 });
await context.hasExistingStream('s');
const world: World = createWorld({ store, recover: false });
await world.streams.close('wrun_1', 's');
