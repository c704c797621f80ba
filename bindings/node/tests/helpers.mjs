// SPDX-License-Identifier: Apache-2.0
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as annal from 'libannal';

/** A path for a store; its files are removed after the test. */
export async function place(t, close = () => {}) {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'annal-node-'));
  t.after(async () => {
    await close();
    await fs.rm(folder, { recursive: true, force: true });
  });
  return path.join(folder, 'store');
}

/** An open store, closed after the test. */
export async function openStore(t, options) {
  const store = await annal.open(await place(t, () => store.close()), options);
  return store;
}

export async function collect(events) {
  const all = [];
  for await (const event of events) all.push(event);
  return all;
}

export const seqs = async (events) => (await collect(events)).map((event) => event.seq);

/** Run a module of this folder in a process of its own; its standard output. */
export async function run(file, ...args) {
  const child = start(file, ...args);
  let out = '';
  child.stdout.on('data', (data) => (out += data));
  const [code, signal] = await once(child, 'close');
  if (code !== 0) throw new Error(`${file} ended with ${code ?? signal}: ${out}${child.said}`);
  return out;
}

export function start(file, ...args) {
  const child = spawn(process.execPath, ['--expose-gc', path.join(import.meta.dirname, file), ...args.map(String)]);
  child.said = '';
  child.stderr.on('data', (data) => (child.said += data));
  return child;
}

/** Bytes that are in use, in the heap of V8 and outside of it. */
export function memory() {
  gc();
  const { rss, heapTotal, heapUsed } = process.memoryUsage();
  return { native: rss - heapTotal, heap: heapUsed };
}
