// SPDX-License-Identifier: Apache-2.0
// producer.mjs PATH: a stream that begins and does not end.
import * as annal from 'libannal';
import { createResumableStreamContext } from 'libannal/resumable-stream';

const store = await annal.open(process.argv[2]);
const parts = async function* () {
  yield 'one ';
  yield 'two ';
  await store.sync();
  console.log('written');
  await new Promise(() => setInterval(() => {}, 1000));
};
const stream = await createResumableStreamContext(store).resumableStream('a', () => ReadableStream.from(parts()));
for await (const part of stream) void part;
