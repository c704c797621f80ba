// SPDX-License-Identifier: Apache-2.0
// Workflows for server.mjs; `workflow build` of 4.x compiles them.
import { createHook, FatalError, getStepMetadata, getWritable, sleep } from 'workflow';

async function add(a: number, b: number) {
  'use step';
  return a + b;
}

async function retried() {
  'use step';
  const { attempt } = getStepMetadata();
  if (attempt < 2) throw new Error('no wind');
  return attempt;
}

async function fatal() {
  'use step';
  throw new FatalError('no wings');
}

async function say(text: string) {
  'use step';
  const writer = getWritable<string>().getWriter();
  await writer.write(text);
  await writer.close();
}

export async function fly(a: number, b: number) {
  'use workflow';
  const [x, y] = await Promise.all([add(a, b), add(b, 1)]);
  await sleep('1s');
  let failed = '';
  try {
    await fatal();
  } catch (error) {
    failed = (error as Error).message;
  }
  await say('home');
  return { sum: await add(x, y), attempt: await retried(), failed };
}

export async function collect(token: string) {
  'use workflow';
  let sum = 0;
  for await (const { n, isLast } of createHook<{ n: number; isLast?: boolean }>({ token })) {
    sum = await add(sum, n);
    if (isLast) break;
  }
  return sum;
}
