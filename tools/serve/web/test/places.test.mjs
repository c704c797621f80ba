/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a person finds what a link, a key or a heading promises, and finds it again after a reload, Back and Esc. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, frames, launch, open, quiet, serve, Store } from './support.mjs';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

let store, server, browser, context;

const say = (role, content, more = {}) => ({ type: 'message.added', data: { role, content, ...more } });
const call = (id, tool, input) => ({ type: 'tool.called', data: { call_id: id, tool, input } });
const result = (id, output, success = true) => ({
  type: success ? 'tool.returned' : 'tool.failed',
  data: { call_id: id, success, output },
});

/* 40 turns; the rows of edits and failed calls are far taller than they are expected to be. */
function longSession() {
  const events = [{ type: 'session.created', data: { title: 'Long', agent_id: 'a', model: 'claude-opus-4-5' } }];
  for (let n = 1; n <= 40; n++) {
    const lines = (word) => Array.from({ length: 12 }, (_, i) => `${word} ${n}.${i}`).join('\n');
    events.push(
      { type: 'turn.started', data: { turn_id: `t${n}`, sequence: n } },
      say('user', `Prompt number ${n}`),
      say('assistant', `Answer ${n}. ${'Some words that fill lines. '.repeat((n * 7) % 40)}`),
      call(`e${n}`, 'Edit', { file_path: `/a/${n}.py`, old_string: lines('old'), new_string: lines('new') }),
      result(`e${n}`, 'Done.'),
      call(`b${n}`, 'Bash', { command: `make ${n}` }),
      result(`b${n}`, `line ${n}\n`.repeat(10), n % 10 !== 5),
      n === 12 ? { type: 'provider.failed', data: { error: 'Overloaded' } } : say('assistant', 'And so on.'),
      n === 20
        ? { type: 'turn.failed', data: { turn_id: `t${n}`, error: 'Login expired' } }
        : { type: 'turn.completed', data: { turn_id: `t${n}` } },
    );
  }
  return events;
}

before(async () => {
  store = new Store();
  store.append('long', longSession());
  for (let n = 0; n < 60; n++)
    store.append(`row-${n}`, [
      { type: 'session.created', data: { title: `Row ${n}`, agent_id: n % 2 ? 'odd' : 'even' } },
      say('user', `Common word, number ${n}`),
    ]);
  server = await serve(store);
  browser = await launch();
  context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(15_000);
});

after(async () => {
  await browser?.close();
  await server?.stop();
  store?.remove();
});

const session = async (hash) => {
  const page = await open(context, server, `s/${hash}`);
  await page.waitForSelector('.item[data-seq] :is(.said, .tool, .raw, .run)');
  return page;
};

/* Where a row is in the conversation: pixels from its upper edge, and the height of the view. */
const placeOf = (page, seq) =>
  page.evaluate((n) => {
    const box = document.querySelector('.conversation .scroller').getBoundingClientRect();
    const row = document.querySelector(`.item[data-seq="${n}"]`)?.getBoundingClientRect();
    return row && { top: row.top - box.top, bottom: row.bottom - box.top, height: box.height };
  }, seq);

/* The same, once nothing moves any more. */
async function settled(page, seq) {
  for (let last = ''; ; await page.waitForTimeout(150)) {
    const place = JSON.stringify(await placeOf(page, seq));
    if (place === last && place) return JSON.parse(place);
    last = place;
  }
}

test('the page says how many sessions are still being read, and completes the list by itself', async () => {
  const page = await context.newPage();
  let left = 12;
  await page.route('**/api/v1/**', async (route) => {
    if (route.request().url().includes('/stream')) return route.continue();
    const answer = await route.fetch();
    const headers = { ...answer.headers(), ...(left > 0 && { 'annal-unread': `${left} of 61` }) };
    if (!/\/sessions\?/.test(route.request().url())) return route.fulfill({ response: answer, headers });
    const list = await answer.json();
    list.sessions.splice(0, left);
    await route.fulfill({ response: answer, headers, json: { ...list, total: list.total - left, unread: left > 0 ? { sessions: left, of: 61 } : null } });
  });
  await page.goto(`${server.url}/#token=${server.token}&/`);
  await page.waitForSelector('.reading >> text=12 of 61 sessions are still being read');
  assert.equal(await page.locator('.reading progress').getAttribute('value'), '49');
  assert.equal(await page.locator('.list-head .total').innerText(), '49');
  left = 1;
  await page.waitForSelector('.reading >> text=1 of 61 sessions is still being read');
  left = 0;
  await page.waitForSelector('.reading', { state: 'detached' });
  await page.waitForFunction(() => document.querySelector('.list-head .total')?.innerText === '61');
  await page.close();
});

test('a store without sessions shows the logs of this machine, and imports them', async (t) => {
  const own = new Store();
  const home = path.join(own.directory, 'home');
  own.environment = { HOME: home };
  const place = path.join(home, '.claude/projects/p');
  mkdirSync(place, { recursive: true });
  const line = { type: 'user', uuid: 'u', sessionId: 's', timestamp: '2026-03-01T10:00:00.000Z', message: { role: 'user', content: 'One' } };
  writeFileSync(path.join(place, 's.jsonl'), `${JSON.stringify(line)}\n`);
  const other = await serve(own);
  t.after(async () => {
    await other.stop();
    own.remove();
  });
  const page = await open(context, other);
  await page.waitForSelector('.empty td >> text=.claude/projects');
  await accessible(page);
  await page.click('.empty >> text=Import 1 log');
  await page.waitForSelector('.row-link');
  await page.waitForSelector('.reading', { state: 'detached' });
  quiet(page);
});

test('a quotation mark at the begin of a title stays', async () => {
  store.append('quoted', [{ type: 'turn.started', data: { turn_id: 't' } }, say('user', '"quoted first" then text')]);
  const page = await session('quoted');
  assert.equal(await page.locator('h1').innerText(), '"quoted first" then text');
  assert.match(await page.locator('.prompts').innerText(), /^"quoted first" then text/);
  await page.close();
});

test('a cost that was computed is marked, and a session tells its cost with and without sub-agents', async () => {
  const use = (cost_usd) => ({
    type: 'agent.turn.usage',
    data: { model: 'claude-opus-4-5', input_tokens: 200_000, output_tokens: 0, cost_usd },
  });
  store.append('costs', [{ type: 'session.created', data: { title: 'Costs' } }, say('user', 'Hi'), use(0.5)]);
  store.append('costs-below', [
    { type: 'session.created', data: { title: 'Costs below', parent_session_id: 'costs' } },
    say('user', 'Hi'),
    use(undefined),
  ]);
  const list = await open(context, server);
  const row = list.locator('.row', { has: list.locator('[href="#/s/costs"]') });
  await row.waitFor();
  assert.equal(await row.locator('.c-cost').innerText(), '~$1.50');
  assert.match(await row.locator('.c-cost').getAttribute('title'), /computed from list prices; itself \$0\.50/);
  await list.close();
  const page = await session('costs');
  await page.waitForSelector('.children >> text=Costs below');
  const facts = await page.locator('.numbers').innerText();
  assert.match(facts, /tokens\s+200k\s+with sub-agents 400k/i);
  assert.match(facts, /cost\s+\$0\.50\s+with sub-agents ~\$1\.50/i);
  assert.match(await page.locator('.children').innerText(), /200k tokens · ~\$1\.00/);
  assert.match(await page.locator('.moment').innerText(), /(^|\s)\$0\.50/);
  await page.goto(`${server.url}/#/s/costs-below`);
  await page.waitForSelector('.moment >> text=~$1.00');
  quiet(page);
  await page.close();
});

test('results of an earlier search do not stand under a new heading as if they were its own', async () => {
  const page = await open(context, server, 'search?q=Common');
  await page.waitForSelector('.hit mark');
  let release;
  const wait = new Promise((done) => (release = done));
  await page.route('**/api/v1/search?*', async (route) => {
    await wait;
    await route.continue();
  });
  await page.fill('input[type=search]', 'nothingmatchesxyz');
  await page.waitForSelector('.search-page.stale[aria-busy=true] >> text=Searching for “nothingmatchesxyz”');
  await page.waitForSelector('.wait >> text=The first search of a store reads all of it, once');
  release();
  await page.waitForSelector('.search-page[aria-busy=false] >> text=No results');
  assert.equal(await page.locator('.stale').count(), 0);
  await page.close();
});

test('all rows of a session are printed', async () => {
  const page = await session('long');
  await page.evaluate(() => (window.print = () => dispatchEvent(new Event('beforeprint'))));
  await page.locator('h1').click();
  await page.keyboard.press('Control+p');
  await page.waitForSelector('.conversation.printing');
  await page.emulateMedia({ media: 'print' });
  await frames(page);
  const text = await page.locator('.conversation').innerText();
  for (let n = 1; n <= 40; n++) assert.ok(text.includes(`Prompt number ${n}\n`), `prompt ${n}`);
  assert.equal(await page.locator('.skeleton').count(), 0);
  assert.equal(await page.locator('.print-only').count(), 0);
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  assert.ok(height > 8000, `${height} pixels are printed`);
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  await page.waitForSelector('.conversation:not(.printing)');
  await page.close();
});

test('the event of a link is in the middle of the view', async () => {
  for (const seq of [40, 153, 205, 291]) {
    const page = await session(`long?see=${seq}`);
    await page.waitForSelector(`.item.flash[data-seq="${seq}"]`);
    const { top, bottom, height } = await settled(page, seq);
    const off = Math.abs((top + bottom) / 2 - height / 2);
    assert.ok(off < 20, `event ${seq} is ${off} pixels off the middle`);
    await page.close();
  }
  /* A message without content has no row: the one before it is shown. */
  store.append('blank', [say('user', 'One'), say('assistant', []), say('assistant', [])]);
  const page = await session('blank?see=3');
  await page.waitForSelector('.item.flash[data-seq="1"] >> text=One');
  await page.close();
});

test('an error that a log tells three times is shown once, in line with the other rows', async () => {
  store.append('told', [
    { type: 'turn.started', data: { turn_id: 't' } },
    say('user', 'Go'),
    say('assistant', 'Login expired'),
    { type: 'provider.failed', data: { error: 'Login expired' } },
    { type: 'turn.failed', data: { turn_id: 't', error: 'Login expired' } },
  ]);
  const page = await session('told');
  await page.waitForSelector('.note.bad-text >> text=The provider failed');
  const text = await page.locator('.conversation .inner').innerText();
  assert.equal(text.split('Login expired').length, 2, text);
  const left = async (selector) => Math.round((await page.locator(selector).boundingBox()).x);
  assert.equal(await left('.note.bad-text'), await left('.said.assistant'));
  await page.close();
});

test('sub-agents are in the order of their start and of their calls, in the session, its lanes and the list', async () => {
  const names = ['first', 'second', 'third'];
  const ts = '2026-03-02T10:00:00Z';
  const task = (name) => ({ ...call(name, 'Task', { prompt: `Do the ${name}` }), ts });
  store.append('order', [
    { type: 'session.created', ts, data: { title: 'Order', agent_id: 'order' } },
    { ...say('user', 'Go'), ts },
    ...names.map(task),
  ]);
  for (const [n, name] of names.entries())
    store.append(`order-${9 - n}`, [
      { type: 'session.created', ts: '2026-03-02T10:00:01Z', data: { title: `The ${name}`, parent_session_id: 'order' } },
      { ...say('user', `Do the ${name}`), ts },
    ]);
  store.append('order-0', [
    { type: 'session.created', ts: '2026-03-02T10:00:09Z', data: { title: 'Last', parent_session_id: 'order' } },
  ]);
  const expected = ['The first', 'The second', 'The third', 'Last'];
  const page = await session('order');
  /* Both are put in order when the prompts of the calls were read. */
  const inOrder = ([links, all]) => [...document.querySelectorAll(links)].map((a) => a.innerText).join() === all;
  for (const links of ['.children li > a', '.lane-names a']) await page.waitForFunction(inOrder, [links, expected.join()]);
  await page.goto(`${server.url}/#/?agent=order`);
  await page.locator('button.twist').click();
  await page.waitForSelector('.row >> text=Last');
  assert.equal((await page.locator('.row-link').allInnerTexts()).at(-1), 'Last');
  quiet(page);
  await page.close();
});

test('f leads to each failure: of a call, of a request, of a turn', async () => {
  const page = await session('long?at=3');
  const seen = [];
  for (let n = 1; n <= 6; n++) {
    await page.keyboard.press('f');
    await page.waitForSelector(`.moment >> text=failure ${n} of 6`);
    seen.push(await page.locator('.slider').getAttribute('aria-valuenow'));
  }
  const types = (await server.get('/sessions/long/events?limit=500')).events;
  assert.deepEqual(
    seen.map((seq) => types.find((event) => event.seq === Number(seq)).type),
    ['tool.failed', 'provider.failed', 'tool.failed', 'turn.failed', 'tool.failed', 'tool.failed'],
  );
  await page.keyboard.press('F');
  await page.waitForSelector('.moment >> text=failure 5 of 6');
  await page.close();
});

test('a reload and Back return to the same place, event and open calls', async () => {
  const page = await session('long?see=205');
  await settled(page, 205);
  await page.locator('.item[data-seq="205"] .tool-head, .item[data-seq="204"] .tool-head').first().click();
  const head = page.locator('.tool-head[aria-expanded=true]', { hasText: 'make' });
  await head.first().waitFor();
  await page.locator('.conversation .scroller').hover();
  await page.mouse.wheel(0, 700);
  await page.waitForFunction(() => history.state?.view?.seq > 200);
  await page.waitForTimeout(400);
  const row = () =>
    page.evaluate(() => {
      const edge = document.querySelector('.conversation .scroller').getBoundingClientRect().top;
      const rows = [...document.querySelectorAll('.item')].filter((r) => r.getBoundingClientRect().bottom > edge + 1);
      rows.sort((a, b) => a.dataset.index - b.dataset.index);
      return { seq: rows[0].dataset.seq, top: rows[0].getBoundingClientRect().top - edge };
    });
  const { seq: inView } = await row();
  await page.$eval(`.item[data-seq="${inView}"] .gutter`, (gutter) => gutter.click()); /* without scrolling */
  await page.waitForSelector('.event .code');
  const [was, event] = [await row(), await page.locator('.event .code').innerText()];
  assert.match(page.url(), /event=\d+/);
  await page.evaluate(() => (location.hash = location.hash.replace(/see=\d+&?/, '')));
  await page.waitForSelector('.event .code');
  await page.goBack();
  await page.waitForSelector('.event .code');
  for (const back of [() => page.reload(), async () => (await page.goto(`${server.url}/#/sql`), page.goBack())]) {
    await back();
    await page.waitForSelector('.event .code');
    const seq = Number(was.seq);
    await page.waitForSelector(`.item[data-seq="${seq}"]`);
    await settled(page, seq);
    const now = await row();
    assert.equal(now.seq, was.seq);
    assert.ok(Math.abs(now.top - was.top) < 12, `${now.top} instead of ${was.top}`);
    assert.equal(await page.locator('.event .code').innerText(), event);
    const opened = await page.evaluate(() => history.state.view.opened);
    assert.equal(opened.length, 1);
  }
  quiet(page);
  await page.close();
});

test('Esc and Back return to the list as it was: filter, place, and the chosen row', async () => {
  const page = await open(context, server, '?agent=even');
  await page.waitForSelector('.row-link');
  assert.equal(await page.locator('.filters >> text=Any status').count(), 0); /* all have the same */
  for (let n = 0; n < 20; n++) await page.keyboard.press('j');
  const title = await page.locator('.row.chosen .row-link').innerText();
  const top = () => page.$eval('.list .scroller', (s) => s.scrollTop);
  await page.waitForFunction(() => history.state?.view?.top > 100);
  const was = await top();
  const isSame = async () => {
    await page.waitForSelector('.row.chosen');
    assert.match(page.url(), /agent=even/);
    assert.equal(await page.locator('.row.chosen .row-link').innerText(), title);
    assert.equal(await top(), was);
  };
  const enter = async () => {
    await page.keyboard.press('Enter');
    await page.waitForSelector('.session-title');
  };
  await enter();
  await page.keyboard.press('Escape');
  await isSame();
  await enter();
  await page.goBack();
  await isSame();
  await page.reload();
  await isSame();
  quiet(page);
  await page.close();
});

test('a moment that is not a number is ignored, and the begin of an id is enough', async () => {
  const page = await session('long?at=abc&see=x&event=-1&tab=none');
  assert.equal(await page.locator('.slider').getAttribute('aria-valuetext'), 'now');
  assert.match(await page.locator('.moment').innerText(), /event 361 of 361/);
  await page.goto('about:blank');
  store.append('long.agent-1', [say('user', 'Below')]);
  await page.goto(`${server.url}/#/s/lon?at=30`);
  await page.waitForSelector('.slider[aria-valuenow="30"]');
  assert.match(page.url(), /#\/s\/long\?at=30$/);
  await page.goto('about:blank');
  await page.goto(`${server.url}/#/s/row-1`);
  await page.waitForSelector('h1 >> text="Row 1"');
  await page.goto('about:blank');
  await page.goto(`${server.url}/#/s/row`);
  await page.waitForSelector('.failure >> text=60 sessions begin with row');
  await page.close();
});

test('a call whose output is a picture does not claim to have none, and shows it large', async () => {
  store.append('picture', [
    call('c1', 'Read', { file_path: '/a/before.png' }),
    result('c1', [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } }]),
    call('c2', 'Bash', { command: 'true' }),
    result('c2', ''),
  ]);
  const page = await session('picture');
  await page.waitForSelector('.tool', { hasText: '1 picture' });
  await page.$$eval('.tool-head', (heads) => heads.forEach((head) => head.click()));
  await page.waitForSelector('img.picture');
  assert.equal(await page.locator('text=No output').count(), 1);
  await page.click('.picture-button');
  await page.waitForSelector('.picture-dialog[open] img');
  await page.keyboard.press('Escape');
  await page.waitForSelector('.picture-dialog[open]', { state: 'detached' });
  quiet(page);
  await page.close();
});

test('an output of one long line is shown in parts, each without a pause', async () => {
  const text = '0123456789abcde\u{1f980}'.repeat(20_000);
  store.append('one-line', [
    say('assistant', '### Third\n\n###### Sixth\n\n# First'), /* no level is left out */
    call('c1', 'Bash', { command: 'cat' }),
    result('c1', text),
  ]);
  const page = await session('one-line');
  assert.equal((await page.locator('.said.assistant :is(h2, h3, h4, h5)').evaluateAll((all) => all.map((one) => one.tagName))).join(), 'H2,H3,H2');
  await page.click('.tool-head');
  const long = page.locator('.tool-output pre');
  const lengths = [];
  for (const name of ['Show 136.0 KiB more of', 'Show 136.0 KiB more of', 'Show all']) {
    lengths.push((await long.textContent()).length);
    await page.click(`.tool-output button.link:has-text("${name}")`);
    await page.waitForFunction((n) => document.querySelector('.tool-output pre').textContent.length > n, lengths.at(-1));
  }
  assert.ok(lengths[1] === 139_264, String(lengths));
  assert.equal(await long.textContent(), text);
  assert.equal(await page.locator('.tool-output > button').count(), 0);
  quiet(page);
  await page.close();
});

test('notices of programs are no prompts', async () => {
  const notice = '<task-notification>\n<task-id>b1</task-id>\n<summary>Done</summary>\n</task-notification>';
  store.append('notices', [
    { type: 'turn.started', data: { turn_id: 't1', sequence: 1 } },
    say('user', 'Wait for the build'),
    { type: 'turn.completed', data: { turn_id: 't1' } },
    { type: 'turn.started', data: { turn_id: 't2', sequence: 2 } },
    say('user', notice, { said: '' }),
    { type: 'turn.completed', data: { turn_id: 't2' } },
    { type: 'turn.started', data: { turn_id: 't3', sequence: 3 } },
    say('user', 'Now deploy'),
  ]);
  const page = await session('notices?at=4');
  await page.waitForSelector('.prompts button');
  await page.keyboard.press('Shift+ArrowRight');
  await page.waitForSelector('.slider[aria-valuetext=now]');
  await page.waitForSelector('.prompts >> text=Now deploy');
  assert.equal(await page.locator('.prompts li').count(), 2);
  const writer = store.writer('notices');
  await page.waitForSelector('.stream.live');
  await writer.send({ type: 'turn.started', data: { turn_id: 't4', sequence: 4 } });
  await writer.send(say('user', notice, { said: '' }));
  await writer.send({ type: 'turn.started', data: { turn_id: 't5', sequence: 5 } });
  await writer.send(say('user', 'And undo it'));
  await page.waitForSelector('.prompts >> text=And undo it');
  assert.equal(await page.locator('.prompts li').count(), 3);
  await writer.close();
  quiet(page);
  await page.close();
});

test('the prompt that is in view is marked', async () => {
  const page = await session('long');
  await page.waitForSelector('.prompts .current');
  await page.evaluate(() => (location.hash = '/s/long?see=102'));
  await page.waitForFunction(() => /Prompt number 1[012]\b/.test(document.querySelector('.prompts .current')?.innerText));
  await page.close();
});

test('what failed is marked in the list, listed in the session, and grouped over all sessions', async () => {
  for (const [id, port] of [['fails-1', 8080], ['fails-2', 9090]])
    store.append(id, [
      { type: 'session.created', data: { title: `Fails ${port}` } },
      { type: 'turn.started', data: { turn_id: 't' } },
      call('c', 'Bash', { command: 'serve' }),
      result('c', [{ type: 'text', text: `Exit code 1\n== begin ==\nError: port ${port} is in use\n1 failed` }], false),
      { type: 'turn.failed', data: { turn_id: 't', error: { type: 'overloaded', message: 'Overloaded again' } } },
    ]);
  const page = await open(context, server, 'failures');
  const group = page.locator('.failed-group', { hasText: 'is in use' });
  await group.waitFor();
  assert.match(await group.innerText(), /^2× Error: port (8080|9090) is in use\s+Bash\s+2 sessions\s+Fails \d+\s+serve/);
  await page.waitForSelector('.failed-group >> text=4× line');
  await page.locator('.failed-group', { hasText: 'Overloaded again' }).locator('a', { hasText: 'Fails 8080' }).click();
  await page.waitForSelector('.item.flash[data-seq="5"]');
  await page.keyboard.press('5');
  assert.match(await page.locator('.failures').innerText(), /port 8080 is in use\s+Bash serve .*\s+overloaded Overloaded again\s+turn /);
  await page.locator('.failures button').first().click();
  await page.waitForSelector('.item.flash[data-seq="3"]'); /* the call, which shows its result */
  await page.goto(`${server.url}/#/`);
  await page.locator('.filters >> text=Something failed').click();
  await page.waitForFunction(() => document.querySelector('.list-head .total')?.innerText === '4');
  assert.match(page.url(), /failed=1/);
  const row = page.locator('.row', { hasText: 'Fails 9090' });
  assert.equal(await row.locator('.tag.bad').innerText(), '2 failed');
  assert.equal(await row.locator('.tag.bad').getAttribute('title'), '1 call, 1 turn failed');
  quiet(page);
  await page.close();
});

test('a line that a later import could read is no failure, in the list, in the session, and live', async () => {
  const torn = (line) => ({ type: 'import.unreadable', data: { reason: `line ${line} is cut`, text: '{' } });
  const recovered = (lines) => ({ type: 'import.recovered', data: { lines, layouts: 0 } });
  const begin = (title) => ({ type: 'session.created', data: { title, agent_id: 'torn' } });
  store.append('torn-1', [begin('Mended'), torn(1), torn(2), recovered(2)]);
  store.append('torn-2', [begin('Half mended'), torn(1), torn(2), recovered(1)]);
  const page = await open(context, server, '?agent=torn&failed=1');
  await page.waitForSelector('.row >> text=Half mended');
  assert.equal(await page.locator('.list-head .total').innerText(), '1');
  assert.equal(await page.locator('.row .tag.bad').innerText(), '1 unreadable');
  await page.evaluate(() => (location.hash = '/s/torn-2?tab=failures'));
  await page.waitForSelector('.failures >> text=line 1 is cut');
  assert.equal(await page.locator('.failures li').count(), 1);
  await page.evaluate(() => (location.hash = '/s/torn-1?tab=failures'));
  await page.waitForSelector('text=Nothing failed');
  await page.waitForSelector('.stream.live');
  const writer = store.writer('torn-1');
  await writer.send(torn(3));
  await page.waitForSelector('.failures >> text=line 3 is cut');
  await writer.send(recovered(1));
  await page.waitForSelector('text=Nothing failed');
  await writer.close();
  quiet(page);
  await page.close();
});

test('commands, outputs, messages and links are copied', async () => {
  const own = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await own.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: server.url });
  store.append('copies', [
    { type: 'session.created', data: { agent_id: 'claude-code', working_directory: "/a/it's here" } },
    say('assistant', 'Some *Markdown* text'),
    call('c', 'Bash', { command: 'make all' }),
    result('c', Array.from({ length: 40 }, (_, n) => `line ${n}`).join('\n')),
  ]);
  const page = await open(own, server, 's/copies');
  await page.waitForSelector('.said');
  const copied = async (button) => {
    await button.click();
    await page.waitForFunction(async () => (await navigator.clipboard.readText()) !== '');
    const text = await page.evaluate(() => navigator.clipboard.readText());
    await page.evaluate(() => navigator.clipboard.writeText(''));
    return text;
  };
  await page.evaluate(() => navigator.clipboard.writeText(''));
  const message = page.locator('.item', { hasText: 'Some Markdown text' });
  await message.hover();
  assert.equal(await copied(message.locator('[aria-label="Copy this message as Markdown"]')), 'Some *Markdown* text');
  assert.equal(await copied(message.locator('[aria-label^="Copy a link to event"]')), `${server.url}/#/s/copies?see=2`);
  await page.locator('.tool-head').click();
  await page.locator('.tool .code-box').first().hover();
  assert.equal(await copied(page.locator('.tool .code-box .copy').first()), 'make all');
  await page.locator('.tool-output .code-box').hover();
  assert.match(await copied(page.locator('.tool-output .copy')), /^line 0\n[^]*\nline 39$/);
  const about = page.locator('.about');
  assert.equal(
    await copied(about.locator('[aria-label="Copy the command: resume"]')),
    "cd '/a/it'\\''s here' && claude --resume copies",
  );
  assert.equal(await copied(about.locator('[aria-label="Copy the command: read"]')), 'annal cat copies');
  await page.goto(`${server.url}/#/s/copies?at=3&tab=event&event=2`);
  await page.waitForSelector('.event .code');
  assert.equal(
    await copied(page.locator('[aria-label="Copy link to this event"]')),
    `${server.url}/#/s/copies?see=2&event=2&tab=event`,
  );
  quiet(page);
  await own.close();
});

test('a search finds the begin of a word while one types, by session, and asks once for titles', async () => {
  store.append('begins', [
    { type: 'session.created', data: { title: 'Begins' } },
    ...Array.from({ length: 5 }, (_, n) => say('user', `Regression number ${n}`)),
  ]);
  store.append('begins-2', [{ type: 'session.created', data: { title: 'Begins, too' } }, say('user', 'A regression')]);
  const page = await open(context, server);
  await page.waitForSelector('.row-link');
  const asked = [];
  page.on('request', (request) => {
    const filters = request.postData()?.includes('FROM tool_calls'); /* the names of tools */
    if (/\/(sql|sessions\/)/.test(request.url()) && !filters) asked.push(request.url());
  });
  await page.keyboard.press('Control+k');
  await page.keyboard.type('regress');
  await page.waitForSelector('.session-hits h3 >> text="Begins"');
  assert.equal(await page.locator('.session-hits').count(), 2);
  const group = page.locator('.session-hits', { has: page.locator('[href="#/s/begins"]') });
  assert.equal(await group.locator('.hit').count(), 3);
  assert.equal(await group.locator('.hit-facts').first().innerText(), 'regress in 5 events');
  assert.equal(asked.length, 1, asked.join());
  await group.locator('text=2 more in this session').click();
  await page.waitForSelector('h1 >> text=Found in this session for “regress”');
  assert.equal(await page.locator('.hit').count(), 5);
  quiet(page);
  await page.close();
});

test('a search is limited to a role, a tool, a project, and days', async () => {
  store.append('limits', [
    { type: 'session.created', ts: '2026-03-02T10:00:00Z', data: { title: 'Limits' } },
    { ...say('user', 'Zebra of the user'), ts: '2026-03-02T10:00:00Z' },
    { ...say('assistant', 'Zebra of the agent'), ts: '2026-03-05T10:00:00Z' },
    { ...call('z', 'ZebraTool', { command: 'zebra' }), ts: '2026-03-08T10:00:00Z' },
  ]);
  const page = await open(context, server, 'search?q=zebra');
  /* The results before a change of the address may be as many, so wait for their texts, too. */
  const hits = (wanted) =>
    page.waitForFunction((wanted) => {
      const texts = [...document.querySelectorAll('.hits .hit')].map((hit) => hit.innerText);
      const found = wanted.every((text) => texts.some((t) => t.includes(text)));
      return document.querySelector('.search-page[aria-busy=false]') && texts.length === wanted.length && found;
    }, wanted);
  await hits(['Zebra of the user', 'Zebra of the agent', 'zebra']);
  await page.locator('.filters select').nth(0).selectOption('assistant');
  await hits(['Zebra of the agent', 'zebra']);
  assert.match(page.url(), /role=assistant/);
  await page.reload();
  await hits(['Zebra of the agent', 'zebra']);
  await page.click('.filters >> text=Clear');
  await hits(['Zebra of the user', 'Zebra of the agent', 'zebra']);
  await page.locator('.filters select').nth(1).selectOption('ZebraTool');
  await hits(['zebra']);
  await page.click('.filters >> text=Clear');
  await page.locator('.filters input[type=date]').nth(0).fill('2026-03-04');
  await page.locator('.filters input[type=date]').nth(1).fill('2026-03-06');
  await hits(['Zebra of the agent']);
  for (const project of ['one', 'two'])
    store.append(`project-${project}`, [
      { type: 'session.created', data: { title: project, working_directory: `/home/zoe/${project}` } },
      say('user', `Giraffe of project ${project}`),
    ]);
  await page.evaluate(() => (location.hash = '#/search?q=giraffe&dir=/home/zoe/one'));
  await hits(['Giraffe of project one']);
  await page.reload();
  await hits(['Giraffe of project one']);
  await page.locator('.filters select').nth(2).selectOption('/home/zoe/two');
  await hits(['Giraffe of project two']);
  quiet(page);
  await page.close();
});

test('a list of things to do is shown as one', async () => {
  store.append('todos', [
    call('c', 'TodoWrite', {
      todos: [
        { content: 'Read the code', status: 'completed' },
        { content: 'Mend it', status: 'in_progress' },
        { content: 'Test it', status: 'pending' },
      ],
    }),
    result('c', 'Todos have been modified'),
  ]);
  const page = await session('todos');
  assert.match(await page.locator('.tool-head').innerText(), /1 of 3 done: Mend it/);
  await page.locator('.tool-head').click();
  assert.deepEqual(await page.$$eval('.todos li', (all) => all.map((li) => li.innerText)), [
    '☑ Read the code',
    '▶ Mend it',
    '☐ Test it',
  ]);
  await page.close();
});

test('text from right to left is set so, in titles, messages and outputs', async () => {
  store.append('rtl', [
    { type: 'session.created', data: { title: 'كيف أصلح هذا؟' } },
    say('user', 'كيف أصلح هذا؟'),
    say('assistant', 'Left to right\n\n- واحد\n\n| عربي | b |\n|-|-|\n| x | y |'),
  ]);
  const page = await session('rtl');
  const direction = (selector) => page.$eval(selector, (node) => getComputedStyle(node).direction);
  assert.equal(await direction('h1'), 'rtl');
  assert.equal(await direction('.said.user .md p'), 'rtl');
  assert.equal(await direction('.said.assistant .md p'), 'ltr');
  assert.equal(await direction('.said.assistant .md li'), 'rtl');
  assert.equal(await direction('.said.assistant .md th'), 'rtl');
  await page.close();
});

test('numbers of one column of an answer are written alike', async () => {
  const sql = "SELECT 1060 AS tokens, 2.5 AS cost_usd, 2026 AS year UNION ALL SELECT 2573467013, 1234.5, 1999";
  const page = await open(context, server, `sql?q=${encodeURIComponent(sql)}`);
  await page.waitForSelector('.answer [role=cell]');
  const cells = await page.$$eval('.answer [role=cell]', (all) => all.map((cell) => cell.innerText.trim()));
  assert.deepEqual(cells.filter(Boolean), ['1,060', '$2.50', '2026', '2,573,467,013', '$1,235', '1999']);
  await page.close();
});

test('usage has the numbers of a report, by day, week, model, project and agent, and leads to the sessions', async (t) => {
  const own = new Store();
  const use = (ts, model, tokens, cost_usd) => ({
    type: 'agent.turn.usage',
    ts: `${ts}T10:00:00Z`,
    data: { model, input_tokens: tokens, cached_input_tokens: tokens / 2, output_tokens: 0, cost_usd },
  });
  const begin = (ts, title, agent_id, directory) => ({
    type: 'session.created',
    ts: `${ts}T09:00:00Z`,
    data: { title, agent_id, working_directory: directory },
  });
  own.append('u1', [begin('2026-03-02', 'First', 'ant', '/p/one'), use('2026-03-02', 'claude-opus-4-5', 1_000_000)]);
  own.append('u2', [
    begin('2026-03-08', 'Second', 'bee', '/p/two'),
    use('2026-03-08', 'other-model', 4000, 2.25),
    use('2026-03-09', 'other-model', 4000, 1),
  ]);
  const there = await serve(own);
  t.after(() => there.stop().then(() => own.remove()));
  const page = await open(context, there, 'usage?range=all&by=day');
  const bars = (title) => page.locator('.bars', { has: page.locator('h2', { hasText: title }) });
  const texts = async (title) => {
    await bars(title).locator('.bar-row').first().waitFor();
    return (await bars(title).locator('.bar-row').allInnerTexts()).map((text) => text.replace(/\s+/g, ' ').trim());
  };
  const rows = own.run('report', '--json', '--by', 'week').trim().split('\n').map((line) => JSON.parse(line));
  const { cost_microusd, computed_microusd } = rows.find((row) => row.section === 'total');
  assert.match(
    await page.locator('.numbers').innerText(),
    new RegExp(`cost\\s+~\\$${(cost_microusd / 1e6).toFixed(2)}\\s+${Math.floor((100 * computed_microusd) / cost_microusd)}% computed`, 'i'),
  );
  assert.match(await page.locator('.numbers').innerText(), /input from cache\s+50%\s+sessions\s+2/i);
  const first = `~$${(computed_microusd / 1e6).toFixed(2)} · 1.0M tokens`;
  assert.deepEqual(await texts('Over time'), [`2026-03-02 Mon ${first}`, '2026-03-08 Sun $2.25 · 4.0k tokens', '2026-03-09 Mon $1.00 · 4.0k tokens']);
  assert.deepEqual((await texts('By project')).sort(), [`/p/one ${first}`, '/p/two $3.25 · 8.0k tokens']);
  assert.equal((await texts('By model')).length, 2);
  assert.equal((await texts('By agent')).length, 2);
  await page.click('.units >> text=Weeks');
  await page.waitForSelector('.bar-name >> text=2026-W10');
  const weeks = rows.filter((row) => row.section === 'weeks');
  assert.deepEqual(
    (await texts('Over time')).map((text) => [text.split(' ')[0], Number(/\$([\d.]+)/.exec(text)[1])]),
    weeks.map((row) => [row.week, Number((row.cost_microusd / 1e6).toFixed(2))]),
  );
  await page.click('.filters >> text=Last week');
  await page.waitForSelector('.empty >> text=No tokens were counted in these days');
  await page.click('.filters >> text=All');
  await page.waitForSelector('.bar-name >> text=2026-W10');
  await page.fill('input[type=date] >> nth=0', '2026-03-08');
  await page.waitForFunction(() => !document.querySelector('.usage').innerText.includes('/p/one'));
  assert.match(page.url(), /from=2026-03-08/);
  await bars('By project').locator('a').first().click();
  await page.waitForSelector('.row-link >> text=Second');
  assert.equal(await page.locator('.row-link').count(), 1);
  await page.goBack();
  await page.locator('.bars', { hasText: 'Over time' }).locator('a', { hasText: '2026-W10' }).click();
  await page.waitForSelector('.row-link >> text=First');
  assert.match(page.url(), /since=2026-03-02&until=2026-03-08/);
  quiet(page);
  await page.close();
});

test('a search in a session leads from place to place and stays there', async () => {
  const page = await session('long');
  await page.keyboard.press('/');
  await page.keyboard.type('nothingmatches');
  await page.waitForSelector('.find >> text=“nothingmatches” was not found');
  await page.fill('input[type=search]', 'prompt numb');
  await page.waitForSelector('.find >> text=1 of 40 places');
  const inView = async (seq) => {
    await page.waitForSelector(`.item.flash[data-seq="${seq}"]`);
    const { top, bottom, height } = await settled(page, seq);
    assert.ok(top >= 0 && bottom <= height, `${top} to ${bottom} of ${height}`);
  };
  await inView(3);
  await page.keyboard.press('Enter');
  await page.waitForSelector('.find >> text=2 of 40 places');
  await inView(12);
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.press('Shift+Enter');
  await page.waitForSelector('.find >> text=40 of 40 places');
  await inView(354);
  await page.waitForFunction(() => CSS.highlights.get('found')?.size > 0);
  assert.match(page.url(), /#\/s\/long\?q=prompt\+numb$/);
  await page.keyboard.press('Escape');
  await page.waitForSelector('.find', { state: 'detached' });
  assert.match(page.url(), /#\/s\/long$/);
  quiet(page);
  await page.close();
});

test('the first messages are shown before the outline of the session has arrived', async () => {
  const page = await context.newPage();
  let release;
  const wait = new Promise((done) => (release = done));
  await page.route('**/outline?*', async (route) => {
    await wait;
    await route.continue();
  });
  await page.goto(`${server.url}/#token=${server.token}&/s/long`);
  await page.waitForSelector('.early >> text=Prompt number 1');
  release();
  await page.waitForSelector('.item:not(.early)'); /* the last ones, while the session counts as active */
  assert.equal(await page.locator('.early').count(), 0);
  await page.close();
});

test('a session is read as prompts and answers, with runs of calls as a line, and with days and colours', async () => {
  const at = (ts, event) => ({ ...event, ts });
  store.append('read', [
    at('2026-03-02T10:00:00Z', { type: 'turn.started', data: { turn_id: 't' } }),
    at('2026-03-02T10:00:01Z', say('user', 'First prompt')),
    ...['Read', 'Bash', 'Bash'].flatMap((tool, n) => [
      at('2026-03-02T10:00:02Z', call(`r${n}`, tool, { command: `${tool} ${n}` })),
      at('2026-03-02T10:00:03Z', result(`r${n}`, n ? '\u001b[31mred\u001b[0m and \u001b[1;32mgreen\u001b[m' : 'x', n !== 2)),
    ]),
    at('2026-03-04T10:00:00Z', say('assistant', 'First answer')),
    at('2026-03-04T10:00:01Z', call('r4', 'Edit', { command: 'alone' })),
    at('2026-03-04T10:00:02Z', { type: 'turn.failed', data: { turn_id: 't', error: 'Out of luck' } }),
  ]);
  const page = await session('read');
  assert.deepEqual(await page.locator('.item .day').allInnerTexts(), ['2026-03-04']);
  assert.equal(await page.locator('.item .tool').count(), 4);
  const red = page.locator('.tool.failed .ansi-1');
  assert.equal(await red.innerText(), 'red');
  assert.equal(await page.locator('.tool.failed .ansi-2.ansi-bold').innerText(), 'green');
  await page.keyboard.press('R');
  const run = page.locator('.run');
  await run.waitFor();
  assert.match((await run.innerText()).replace(/\s+/g, ' '), /^3 calls Read, 2 Bash 1 failed$/);
  assert.equal(await page.locator('.item .tool').count(), 1);
  assert.match(page.url(), /view=runs/);
  await run.click();
  assert.equal(await page.locator('.item .tool').count(), 4);
  await page.keyboard.press('r');
  await page.waitForFunction(() => !document.querySelector('.item .tool'));
  assert.match(await page.locator('.conversation .inner').innerText(), /First prompt[^]*First answer[^]*Out of luck/);
  await page.reload();
  await page.waitForSelector('.said.assistant');
  assert.equal(await page.locator('.item .tool').count(), 0);
  await page.selectOption('.session-buttons select', 'all');
  await page.waitForSelector('.item .tool');
  quiet(page);
  await page.close();
});

test('the state tells people what is to do, which calls are open, which files changed, and the context', async () => {
  const use = (input_tokens) => ({ type: 'agent.turn.usage', data: { model: 'm', input_tokens, output_tokens: 1 } });
  store.append('work', [
    { type: 'turn.started', data: { turn_id: 't' } },
    use(1000),
    call('t1', 'TodoWrite', { todos: [{ content: 'Mend it', status: 'in_progress' }] }),
    result('t1', 'ok'),
    call('e1', 'Edit', { file_path: '/a/one.py', old_string: 'old', new_string: 'new\nlines' }),
    result('e1', 'ok'),
    call('e2', 'Write', { file_path: '/a/two.py', content: 'text' }),
    result('e2', 'refused', false),
    use(2500),
    call('t2', 'TodoWrite', { todos: [{ content: 'Mend it', status: 'completed' }] }),
    result('t2', 'ok'),
    call('e3', 'Edit', { file_path: '/a/one.py', old_string: 'lines', new_string: 'words' }),
    result('e3', 'ok'),
    call('b1', 'Bash', { command: 'make everything' }),
  ]);
  const page = await session('work?tab=state');
  const text = () => page.locator('.work-done').innerText();
  await page.waitForSelector('.file');
  assert.match(await text(), /☑ Mend it/);
  assert.match(await text(), /Calls without a result 1\s+Bash make everything/i);
  assert.match(await text(), /Files 1\s+\/a\/one\.py\+3 −2/i);
  assert.match(await text(), /Context 2\.5k tokens/i);
  assert.equal(await page.locator('.tables .facts').isVisible(), false);
  await page.click('.file summary');
  assert.equal(await page.locator('.file .diff').count(), 2);
  await page.locator('.file .link', { hasText: 'event 5' }).click();
  await page.waitForSelector('.item.flash[data-seq="5"]');
  await page.goto(`${server.url}/#/s/work?tab=state&at=6`);
  await page.waitForSelector('.state[data-seq="6"]');
  assert.match(await text(), /▶ Mend it/);
  assert.doesNotMatch(await text(), /without a result|Context/i);
  assert.match(await text(), /\/a\/one\.py\+2 −1/);
  quiet(page);
  await page.close();
});

test('a link to a call within a run of calls unfolds the run', async () => {
  store.append('run', ['1', '2', '3', '4'].flatMap((n) => [call(n, 'Bash', { command: `make ${n}` }), result(n, 'x')]));
  const page = await session('run?view=runs&see=5');
  await page.waitForSelector('.run[aria-expanded=true]');
  await page.waitForSelector('.item.flash .tool >> text=make 3');
  quiet(page);
  await page.close();
});

test('two sessions are compared turn by turn, also a session with its fork', async () => {
  const turn = (n, prompt, tools, failed) => [
    { type: 'turn.started', data: { turn_id: `t${n}`, sequence: n } },
    say('user', prompt),
    ...tools.flatMap((tool, i) => [call(`c${n}${i}`, tool, { command: `${tool} ${n}` }), result(`c${n}${i}`, 'x', !failed)]),
    { type: 'turn.completed', data: { turn_id: `t${n}` } },
  ];
  const begin = (title, agent_id) => ({ type: 'session.created', data: { title, agent_id, working_directory: '/compared' } });
  const edit = [
    call('e', 'Edit', { file_path: '/compared/a.c', old_string: 'x\n', new_string: 'y\nz\n' }),
    result('e', 'done', true),
    say('assistant', 'I changed a.c.'),
  ];
  const first = turn(1, 'Look at it', ['Read']);
  store.append('cmp-a', [begin('Attempt', 'ant'), ...first, ...turn(2, 'Mend it', ['Bash']), ...turn(3, 'Test it', ['Bash'])]);
  store.append('cmp-b', [
    begin('Attempt', 'bee'),
    ...first,
    ...turn(2, 'Think first', []),
    ...turn(3, 'Mend it', ['Bash'], true),
    ...turn(4, 'Test it', ['Bash']),
    ...edit,
  ]);
  store.append('cmp-c', [begin('Something else', 'ant')]);
  const page = await session('cmp-a');
  await page.click('.session-buttons >> text=Compare');
  await page.waitForSelector('h1 >> text=Compare with which session?');
  await page.waitForSelector('.hit >> nth=0 >> text=same task');
  await page.click('.hit-link >> nth=0');
  await page.waitForSelector('.compare .turns');
  assert.equal(await page.locator('.compare h2', { hasText: 'Turns' }).innerText(), 'Turns 3 of 4 differ');
  const rows = (await page.locator('.compare .turns tbody').allInnerTexts()).map((text) => text.replace(/\s+/g, ' ').replace(/ \d+ ms/g, '').trim());
  assert.match(rows[0], /^Look at it Read/);
  assert.match(rows[1], /^no such turn Think first no calls/);
  assert.match(rows[2], /^Mend it Bash.*Bash · 1 failed/);
  assert.match(rows[3], /^Test it Bash/);
  const cells = await page.locator('.compare .data >> nth=0').innerText();
  assert.match(cells, /turns\s+3\s+4\s/);
  assert.match(cells, /failed\s+0\s+1\s/);
  assert.match(cells, /agent\s+ant\s+bee\s/);
  assert.match(cells, /a\.c\s+not changed\s+\+2 −1/);
  assert.match(await page.locator('.compare section', { hasText: 'How they ended' }).innerText(), /A\s[^]*B\s+I changed a\.c\./);
  assert.match(await page.locator('.compare section', { hasText: 'The first calls that differ' }).innerText(), /call 2, Bash\s+Bash 2[^]*call 2, Bash\s+Bash 3/);
  await page.click('text=Only what differs');
  await page.waitForFunction(() => document.querySelectorAll('.compare .turns tbody').length === 3);
  assert.match(page.url(), /only=1/);
  await page.locator('.compare .turns a', { hasText: '1 failed' }).click();
  await page.waitForSelector('.item.flash[data-seq]');
  store.run('fork', 'cmp-a', 'cmp-fork', '--at', '6');
  store.append('cmp-fork', turn(9, 'Mend it otherwise', ['Edit']));
  await page.goto('about:blank');
  await page.goto(`${server.url}/#/s/cmp-fork`);
  await page.click('.session-buttons >> text=Compare');
  await page.waitForSelector('.compare .turns');
  assert.match(page.url(), /compare\?a=cmp-a&b=cmp-fork$/);
  const text = await page.locator('.compare .turns').innerText();
  assert.match(text, /Mend it\s[^]*Mend it otherwise/);
  quiet(page);
  await page.close();
});
