// SPDX-License-Identifier: Apache-2.0
// The suite of the Workflow SDK for worlds; in the short form, two of its parts. It starts a server of its own for each test,
// which loads workflow.world.mjs.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll } from 'vitest';
import { createTestSuite } from '@workflow/world-testing';
import { addition } from '@workflow/world-testing/dist/src/addition.mjs';
import { nullByte } from '@workflow/world-testing/dist/src/null-byte.mjs';

const world = './tests/workflow.world.mjs';
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'annal-workflow-'));
process.env.ANNAL_STORE = path.join(folder, 'store');
afterAll(() => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

if (process.env.LIBANNAL_FULL === '1') createTestSuite(world);
else for (const part of [addition, nullByte]) part(world);
