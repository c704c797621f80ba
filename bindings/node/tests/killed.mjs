// SPDX-License-Identifier: Apache-2.0
// killed.mjs KILLS SEED: a job of ten steps, each with an effect outside of the store, killed with SIGKILL at random moments
// and resumed until it ends; then the next job. No step is recorded twice, none is lost. An effect is a file, created once.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import * as annal from 'libannal';

const STEPS = 10;
const JOBS = 40; // in one store
const [kills, seed, folder] = process.argv.slice(2);

/** Steps of the job: one line for each that is answered. */
async function child() {
  const store = await annal.open(path.join(folder, 'store'));
  for (let job = Number(kills); ; job++) {
    await annal.run('job', { store, session: `job-${job}`, resume: true }, async (run) => {
      for (let n = 0; n < STEPS; n++) {
        const answer = await run.step(`step ${n}`, () => {
          fs.appendFileSync(path.join(folder, 'effects'), `${job} ${n}\n`); // how often it ran
          return { n, file: `${job}-${n}` };
        });
        assert.deepEqual(answer, { n, file: `${job}-${n}` });
        fs.writeSync(1, `${job} ${n}\n`);
      }
    });
    fs.writeSync(1, `${job} done\n`);
  }
}

/** Each step of a job that ended has one call and one result, and ran at most once more than it was interrupted. */
async function check(store, job, effects, answered) {
  const session = store.session(`job-${job}`);
  const events = [];
  for await (const event of session) events.push(event);
  for (let n = 0; n < STEPS; n++) {
    const of = events.filter(({ data }) => data?.call_id === `step:step ${n}`).map(({ type }) => type);
    const count = (type) => of.filter((one) => one === type).length;
    assert.deepEqual([count('tool.called'), count('tool.returned'), count('tool.failed')], [1, 1, 0], `job ${job}, step ${n}: ${of}`);
    const ran = effects.get(`${job} ${n}`) ?? 0;
    assert.ok(ran >= 1 && ran <= 1 + count('step.retried'), `job ${job}, step ${n} ran ${ran} times: ${of}`);
    assert.ok(answered.has(`${job} ${n}`));
  }
  assert.equal(events.filter(({ type }) => type === 'session.created').length, 1);
  assert.deepEqual(await session.verify(), []);
}

async function main() {
  let state = Number(seed);
  const chance = () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
  let killed = 0;
  let jobs = 0;
  while (killed < Number(kills)) {
    const place = fs.mkdtempSync(path.join(os.tmpdir(), 'annal-killed-'));
    const answered = new Set();
    let job = 0;
    while (job < JOBS && killed < Number(kills)) {
      const work = spawn(process.execPath, [import.meta.filename, String(job), seed, place], { stdio: ['ignore', 'pipe', 'inherit'] });
      const ended = once(work, 'close');
      let left = 1 + Math.floor(chance() * 14); // lines until it is killed, some microseconds later
      const wait = chance() * 3;
      for await (const line of createInterface({ input: work.stdout })) {
        answered.add(line);
        if (line.endsWith('done')) job += 1;
        if (--left === 0) setTimeout(() => work.kill('SIGKILL'), wait);
      }
      const [code, signal] = await ended;
      assert.equal(signal, 'SIGKILL', `a child ended with ${code}`);
      killed += 1;
    }
    const effects = new Map();
    for (const line of fs.readFileSync(path.join(place, 'effects'), 'utf8').split('\n')) effects.set(line, (effects.get(line) ?? 0) + 1);
    const store = await annal.open(path.join(place, 'store'));
    for (let n = 0; n < job; n++) await check(store, n, effects, answered);
    await store.close();
    jobs += job;
    fs.rmSync(place, { recursive: true });
  }
  console.log(`${killed} kills, ${jobs} jobs`);
}

await (folder === undefined ? main() : child());
