// SPDX-License-Identifier: Apache-2.0
// server.mjs STORE: run the workflows of fly.ts on a World of this package, with the runtime of 4.x.
import assert from 'node:assert/strict';
import http from 'node:http';
import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import * as annal from 'libannal';
import { createWorld } from 'libannal/workflow';
import { resumeHook, start } from 'workflow/api';
import { setWorld } from 'workflow/runtime';

const require = createRequire(import.meta.url);
const store = await annal.open(process.argv[2]);
const world = createWorld({ store });
setWorld(world);
const routes = Object.fromEntries(['flow', 'step'].map((route) => [route, require(`./.well-known/workflow/v1/${route}.js`).POST]));
const server = http.createServer(async (request, response) => {
  const { method, headers, url } = request;
  const answer = await routes[url.split('/').at(-1)](new Request(`http://localhost${url}`, { method, headers, body: await text(request) }));
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(Buffer.from(await answer.arrayBuffer()));
});
await new Promise((resolve) => server.listen(0, resolve));
process.env.PORT = String(server.address().port);
await world.start();

const fly = await start({ workflowId: 'workflow//./workflows/fly//fly' }, [1, 2]);
assert.deepEqual(await fly.returnValue, { sum: 6, attempt: 2, failed: 'no wings' });
assert.deepEqual(await Array.fromAsync(fly.readable), ['home']);
const collect = await start({ workflowId: 'workflow//./workflows/fly//collect' }, ['token']);
for (const payload of [{ n: 1 }, { n: 2 }, { n: 3, isLast: true }]) {
  for (let tries = 0; ; tries++) {
    try {
      await resumeHook('token', payload);
      break;
    } catch (error) {
      if (error.name !== 'HookNotFoundError' || tries === 500) throw error; // it is not created yet
      await pause(20);
    }
  }
}
assert.equal(await collect.returnValue, 6);
assert.deepEqual([...(await store.sql("SELECT count(*) FROM sessions WHERE id GLOB 'workflow.*' AND status = 'ended'"))], [[2]]);
console.log('two workflows of the Workflow SDK 4');
await world.close();
await store.close();
server.closeAllConnections();
server.close();
