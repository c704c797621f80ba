// SPDX-License-Identifier: Apache-2.0
// The package as a whole: what it shows, its documentation, its installation.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import * as annal from 'libannal';
import { openStore, place } from './helpers.mjs';

const exec = promisify(execFile);
const require = createRequire(import.meta.url);
const here = import.meta.dirname;

/** The examples of a page, and what each says that it prints. */
async function examples(page) {
  const text = await fs.readFile(path.join(here, page), 'utf8');
  return [...text.matchAll(/^```js\n(.*?)^```/gms)].map(([, code]) => ({
    code,
    prints: [...code.matchAll(/^\/\/ prints (.*)$/gm)].map(([, line]) => line),
  }));
}

async function runExample({ code, prints }, folder) {
  await fs.writeFile(path.join(folder, 'example.mjs'), code);
  const { stdout, stderr } = await exec(process.execPath, ['example.mjs'], { cwd: folder });
  assert.equal(stderr, '');
  let rest = stdout;
  for (const line of prints) {
    assert.ok(rest.includes(line), `${line} is not in ${rest}`);
    rest = rest.slice(rest.indexOf(line) + line.length);
  }
}

for (const page of ['node.md', 'node-frameworks.md', 'README.md'])
  test(`the examples of ${page} run as they are written`, async (t) => {
    const all = await examples(page);
    assert.ok(all.length > 0);
    for (const example of all) {
      const folder = await fs.mkdtemp(path.join(here, 'example-')); // below node_modules
      t.after(() => fs.rm(folder, { recursive: true, force: true }));
      await runExample(example, folder);
    }
  });

test('a fresh folder: install without scripts and network, and run the first example', async (t) => {
  const folder = await fs.mkdtemp(path.join(require('node:os').tmpdir(), 'annal-fresh-'));
  t.after(() => fs.rm(folder, { recursive: true, force: true }));
  const [tarball] = (await fs.readdir(process.env.LIBANNAL_TARBALL)).filter((name) => name.endsWith('.tgz'));
  const options = ['--ignore-scripts', '--offline', '--no-audit', '--no-fund', '--engine-strict'];
  await fs.writeFile(path.join(folder, 'package.json'), '{"private":true}');
  await exec('npm', ['install', ...options, path.join(process.env.LIBANNAL_TARBALL, tarball)], { cwd: folder });
  const installed = JSON.parse(await fs.readFile(path.join(folder, 'node_modules/libannal/package.json'), 'utf8'));
  assert.equal(installed.scripts, undefined);
  const [first] = await examples('node.md');
  await runExample(first, folder);
  assert.ok((await fs.readFile(path.join(folder, 'store/events/s1.jsonl'), 'utf8')).includes('"tool":"bash"'));
});

test('import and require give the same', () => {
  const required = require('libannal');
  assert.deepEqual(Object.keys(required).sort(), Object.keys(annal).filter((name) => name !== 'default').sort());
  for (const name of Object.keys(required)) assert.equal(required[name], annal[name]);
  assert.equal(annal.version, require('libannal/package.json').version);
});

test('every status has a class', () => {
  const classes = Object.values(annal).filter((kind) => kind?.prototype instanceof annal.Error);
  assert.deepEqual(classes.map((kind) => kind.status).sort((a, b) => b - a), Array.from({ length: 16 }, (_, n) => -1 - n));
  const error = new annal.IOFailed('no space', 28);
  assert.deepEqual([error.name, error.code, error.status, error.osErrno, `${error}`], ['IOFailed', 'ANNAL_IOFAILED', -2, 28, 'IOFailed: no space']);
});

test('names are the same in every language', async () => {
  for (const line of (await fs.readFile(path.join(here, 'names.tsv'), 'utf8')).trimEnd().split('\n')) {
    const [wanted, ...parts] = line.split('\t');
    assert.equal(annal.name(...parts), wanted);
  }
});

test('the addon shows its entry alone, and needs the C library alone', async () => {
  const addon = path.join(path.dirname(require.resolve('libannal')), `../prebuilds/linux-${process.arch}-glibc/annal.node`);
  const { stdout: shown } = await exec('nm', ['--dynamic', '--defined-only', addon]);
  assert.deepEqual(shown.trim().split('\n').map((line) => line.split(' ')[2]).sort(), ['napi_register_module_v1', 'node_api_module_get_api_version_v1']);
  const { stdout: needed } = await exec('readelf', ['--dynamic', addon]);
  // In the short form the library is libannal.a of build/release, which was compiled for the shared library.
  const shared = process.env.LIBANNAL_BUILT ? '|libxxhash' : '';
  const allowed = new RegExp(`^(libc|libm|libpthread|ld-linux.*${shared})\\.so`);
  for (const [, library] of needed.matchAll(/Shared library: \[(.*?)\]/g)) assert.match(library, allowed);
});

test("SQLite of Node and ours do not take each other's locks", async (t) => {
  const { DatabaseSync } = await import('node:sqlite').catch(() => ({}));
  if (DatabaseSync === undefined) return t.skip('this Node has no SQLite');
  for (let turn = 0; turn < 3; turn++) {
    const store = await openStore(t);
    const session = store.session('s1');
    for (let events = 1; events < 12; events++) {
      await session.append('message.added', { role: 'user' });
      assert.equal((await store.sql('SELECT seq FROM events')).length, events);
      const theirs = new DatabaseSync(`${store.path}/sessions.db`, { readOnly: true });
      assert.equal(theirs.prepare('SELECT events FROM sessions').get().events, events);
      theirs.close();
    }
    await store.close();
  }
});

test('the addon is chosen by the C library, and a package without it says what it needs', async (t) => {
  const { libc, libcOf } = require(path.join(path.dirname(require.resolve('libannal')), 'libc.cjs'));
  const line = '7f0 r-xp 0 08:01 1 ';
  for (const file of ['/lib/ld-musl-x86_64.so.1', '/lib/libc.musl-aarch64.so.1', '/usr/lib/x86_64-linux-musl/libc.so'])
    assert.equal(libcOf(`${line}/usr/bin/node\n${line}${file}\n`), 'musl');
  assert.equal(libcOf(`${line}/lib/x86_64-linux-gnu/libc.so.6\n${line}/home/ld-musl-x.so.1/a\n`), 'glibc');
  const folder = path.dirname(await place(t));
  await fs.cp(path.dirname(require.resolve('libannal')), path.join(folder, 'lib'), { recursive: true });
  const sentence = new RegExp(`for ${process.platform}-${process.arch} with ${libc()}: Cannot find module .*; the package has it for Linux`);
  assert.throws(() => require(path.join(folder, 'lib', 'index.cjs')), sentence);
});
