// SPDX-License-Identifier: Apache-2.0
// failing.mjs STORE: append with 16 in flight while the disk fails; prints what each append answered.
import * as annal from 'libannal';

const store = await annal.open(process.argv[2]);
async function appendAll(name) {
  const session = store.session(`s${name % 5}`);
  for (let n = 0; n < 40; n++) {
    const key = `${name}-${n}`;
    const answer = await session.append('a', { key }, n % 4 === 0 ? { id: key } : undefined).catch((error) => error);
    console.log(JSON.stringify([key, session.id, typeof answer === 'number' ? answer : answer.name]));
  }
}
await Promise.all(Array.from({ length: 16 }, (_, name) => appendAll(name)));
await store.close().catch((error) => console.log(JSON.stringify(['close', error.name])));
