// SPDX-License-Identifier: Apache-2.0
// append.mjs DIR [BENCH_APPEND]: durable appends a second with 16 in flight, a session each: this package, better-sqlite3 with
// synchronous=FULL if it is installed, and C (tests/bench/bench_append.c) if its path is given. In rounds, so that the
// neighbours of a shared machine disturb all alike; prints the medians as one JSON object.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import * as annal from 'libannal';

const [dir = '.', benchAppend] = process.argv.slice(2);
const ROUNDS = 7;
const SECONDS = 0.5;
const IN_FLIGHT = 16;
const data = { role: 'user', text: 'x'.repeat(970) }; // 1000 bytes of JSON, the median of real events
const Database = await import('better-sqlite3').then((module) => module.default, () => null);
const folder = fs.mkdtempSync(path.join(dir, 'bench-'));

async function ours(store, inFlight) {
  const until = performance.now() + SECONDS * 1000;
  let count = 0;
  const appendAll = async (session) => {
    while (performance.now() < until) {
      await session.append('message.added', data);
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, n) => appendAll(store.session(`s${n}`))));
  return count / SECONDS;
}

function theirs(insert) {
  const until = performance.now() + SECONDS * 1000;
  let count = 0;
  while (performance.now() < until) {
    insert.run(`s${count % IN_FLIGHT}`, 'message.added', JSON.stringify(data));
    count += 1;
  }
  return count / SECONDS;
}

const store = await annal.open(path.join(folder, 'store'));
let insert = null;
if (Database !== null) {
  const database = new Database(path.join(folder, 'events.db'));
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  database.exec('CREATE TABLE events (seq INTEGER PRIMARY KEY, session TEXT, type TEXT, data TEXT)');
  insert = database.prepare('INSERT INTO events (session, type, data) VALUES (?, ?, ?)');
}
await ours(store, IN_FLIGHT); // warm
const seen = { node_16: [], node_1: [], better_sqlite3: [], c_16: [], c_1: [] };
for (let round = 0; round < ROUNDS; round++) {
  seen.node_16.push(await ours(store, IN_FLIGHT));
  if (benchAppend) {
    const said = JSON.parse(execFileSync(benchAppend, [folder, '4']));
    seen.c_16.push(said.threads);
    seen.c_1.push(said.writer);
  }
  if (insert !== null) seen.better_sqlite3.push(theirs(insert));
  seen.node_1.push(await ours(store, 1));
}
await store.close();
fs.rmSync(folder, { recursive: true });
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const answer = Object.fromEntries(Object.entries(seen).filter(([, v]) => v.length > 0).map(([k, v]) => [k, Math.round(median(v))]));
console.log(JSON.stringify(answer));
