// SPDX-License-Identifier: Apache-2.0
// The garbage collector closes a store without references; its events of level batch are stored.
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { once } from 'node:events';
import * as annal from 'libannal';

const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'annal-node-'));
async function forget() {
  const session = (await annal.open(folder)).session('s1');
  await session.append('a');
  session.tail();
  await session.state();
  await session.append('a', null, { level: 'batch' });
}
await forget();
const warned = once(process, 'warning');
const timer = setInterval(gc, 20);
const [warning] = await warned;
clearInterval(timer);
console.log(`${warning.name}: ${warning.message}`);
const store = await annal.open(folder, { batchMs: 11 });
while ((await store.session('s1').lastSeq()) < 2) await setTimeout(5);
console.log(await store.session('s1').lastSeq(), 'events');
await store.close();
await fs.rm(folder, { recursive: true });
