// SPDX-License-Identifier: Apache-2.0
// mastra.counter.mjs STORE COUNT: add one to a number in the metadata of thread t, and to the steps of run r, COUNT times.
import * as annal from 'libannal';
import { AnnalStorage } from 'libannal/mastra';

const [at, count] = process.argv.slice(2);
const store = await annal.open(at);
const { memory, workflows } = new AnnalStorage(store).stores;
for (let n = 0; n < Number(count); n++) {
  await memory.updateThreadMetadata({ id: 't', update: ({ metadata }) => ({ count: metadata.count + 1 }) });
  const result = { status: 'success', output: n };
  await workflows.updateWorkflowResults({ workflowName: 'fly', runId: 'r', stepId: `${process.pid}.${n}`, result, requestContext: {} });
}
await store.close();
