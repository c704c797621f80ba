// SPDX-License-Identifier: Apache-2.0
// worker.mjs STORE NAME COUNT SESSIONS: append COUNT events of a name, 16 in flight, to several sessions; in a process or a worker.
import { parentPort, workerData } from 'node:worker_threads';
import * as annal from 'libannal';

const [path, name, count, sessions] = workerData ?? process.argv.slice(2);
const say = (seq) => (parentPort ? parentPort.postMessage(seq) : process.stdout.write(`${seq}\n`));
const store = await annal.open(path);
let next = 0;
async function appendAll() {
  while (next < Number(count)) {
    const n = next++;
    const session = store.session(`s${n % Number(sessions)}`);
    const seq = await session.append('a', { name, n }, n % 5 === 0 ? { id: `${name}-${n}` } : undefined);
    say(`${session.id} ${seq} ${n}`);
  }
}
await Promise.all(Array.from({ length: 16 }, appendAll));
await store.close();
