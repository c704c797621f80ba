/* SPDX-License-Identifier: Apache-2.0 */
/* A store of the project's own fixtures, the real `annal serve` on it, and Chromium. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

export const root = fileURLToPath(new URL('../../../..', import.meta.url));
export const annal = path.resolve(process.env.ANNAL ?? path.join(root, 'build/release/tools/annal'));

/* Of tests/data/claude-code: one with a sub-agent, failures, an edit and a picture. */
export const TIDES = '7c1d52a0-3f0e-4b52-9a61-0d6c2f4be811';

export class Store {
  writers = [];

  constructor() {
    this.directory = mkdtempSync(path.join(tmpdir(), 'annal-web-'));
    this.store = path.join(this.directory, 'store');
  }

  run(...words) {
    const { status, stdout, stderr } = this.try(...words);
    assert.equal(status, 0, `annal ${words.join(' ')}: ${stderr}`);
    return stdout;
  }

  try(...words) {
    return spawnSync(annal, ['--store', this.store, ...words], { encoding: 'utf8', maxBuffer: 1 << 30 });
  }

  importFixtures() {
    const kinds = ['claude-code', 'codex', 'pi', 'gemini-cli', 'opencode/export.json', 'autogen/messages.jsonl'];
    this.run('import', 'auto', ...kinds.map((kind) => path.join(root, 'tests/data', kind)));
    return this;
  }

  append(session, events) {
    const input = events.map((event) => JSON.stringify(event)).join('\n') + '\n';
    const { status, stderr } = spawnSync(annal, ['--store', this.store, 'append', session, '--level', 'batch'], {
      input,
      maxBuffer: 1 << 30,
    });
    assert.equal(status, 0, String(stderr));
  }

  /* A program that goes on appending; `send` writes one event. */
  writer(session) {
    const child = spawn(annal, ['--store', this.store, 'append', session], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.writers.push(child);
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return {
      async send(event) {
        child.stdin.write(`${JSON.stringify(event)}\n`);
        return JSON.parse((await lines.next()).value).seq;
      },
      close: () => new Promise((done) => child.on('close', done) && child.stdin.end()),
    };
  }

  /* A test that failed left its writer. */
  remove() {
    for (const child of this.writers) child.kill();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export async function serve(store, ...words) {
  const child = spawn(annal, ['--store', store.store, 'serve', '--listen', '127.0.0.1:0', ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...store.environment },
  });
  let said = '';
  const url = await new Promise((done, failed) => {
    const hear = (text) => {
      said += text;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said);
      if (found) done(found[0]);
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.on('exit', () => failed(new Error(`annal serve ended: ${said}`)));
  });
  const file = path.join(store.store, 'serve.token');
  const token = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n')[0].trim().split(/\s+/).pop() : 'dev';
  return {
    url,
    token,
    pid: child.pid,
    get: async (route) =>
      (await fetch(`${url}/api/v1${route}`, { headers: { Authorization: `Bearer ${token}` } })).json(),
    stop: () =>
      new Promise((done) => child.removeAllListeners('exit') && child.on('exit', done) && child.kill('SIGTERM')),
  };
}

export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--font-render-hinting=none'],
  });

/* A page in which nothing may be said on the console, and no error may be thrown. */
export async function open(context, server, hash = '') {
  const page = await context.newPage();
  page.said = [];
  page.on('console', (message) => page.said.push(`${message.type()}: ${message.text()} ${message.location().url}`));
  page.on('pageerror', (error) => page.said.push(String(error.stack)));
  await page.goto(`${server.url}/#token=${server.token}&/${hash}`);
  return page;
}

export const quiet = (page) => assert.deepEqual(page.said, []);

/* Draws the picture that a person would see: two frames later everything that was asked is drawn. */
export const frames = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

export const axeSource = readFileSync(
  fileURLToPath(new URL('../node_modules/axe-core/axe.min.js', import.meta.url)),
  'utf8',
);

/* What axe-core finds. evaluate() is not held by the page's policy, as a script element is. */
export async function accessible(page, options = {}) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(async (options) => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'], ...options });
    return violations
      .map(
        (v) =>
          `${v.id}: ${v.nodes
            .slice(0, 3)
            .map((n) => `${n.html.slice(0, 160)} (${n.any.map((a) => a.message).join('; ')})`)
            .join(' | ')}`,
      );
  }, options);
  assert.deepEqual(found, []);
}
