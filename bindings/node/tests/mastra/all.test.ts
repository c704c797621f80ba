// SPDX-License-Identifier: Apache-2.0
// Mastra's tests of memory and workflows, which mastra.sh copies to suites/.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe } from 'vitest';
import * as annal from 'libannal';
import { AnnalStorage } from 'libannal/mastra';
// @ts-ignore
import { createMemoryTest } from './suites/domains/memory';
// @ts-ignore
import { createWorkflowsTests } from './suites/domains/workflows';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'annal-mastra-'));
const store = await annal.open(path.join(folder, 'store'));
const storage = new AnnalStorage(store);
await storage.init();
afterAll(async () => {
  await store.close();
  fs.rmSync(folder, { recursive: true });
});

describe('memory', () => createMemoryTest({ storage }));
describe('workflows', () => createWorkflowsTests({ storage }));
