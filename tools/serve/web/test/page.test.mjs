/* SPDX-License-Identifier: Apache-2.0 */
/* The page as people use it. A run takes less than half a minute. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { accessible, frames, launch, open, quiet, serve, Store, TIDES } from './support.mjs';

const HARM = `<img src=x onerror="window.harm=1"><script>window.harm=1</script><svg onload="window.harm=1">[x](javascript:window.harm=1) <a href="javascript:window.harm=1">`;

let store, server, browser, context;

before(async () => {
  store = new Store().importFixtures();
  store.append('harm', [
    {
      type: 'session.created',
      data: {
        agent_id: HARM,
        provider: HARM,
        model: HARM,
        title: HARM,
        status: HARM,
        working_directory: `/${HARM}`,
        git_branch: HARM,
      },
    },
    { type: 'turn.started', data: { turn_id: HARM, sequence: 1 } },
    { type: 'message.added', data: { id: 'a', role: 'user', content: HARM } },
    {
      type: 'message.added',
      data: {
        id: 'b',
        role: HARM,
        content: [
          { type: HARM, value: HARM },
          { type: 'thinking', thinking: HARM },
        ],
      },
    },
    {
      type: 'message.added',
      data: {
        id: 'c',
        role: 'assistant',
        content: [
          {
            type: 'text',
            text: `# ${HARM}\n\n- ${HARM}\n\n\`\`\`${HARM}\n${HARM}\n\`\`\`\n\n|a|b|\n|-|-|\n|${HARM}|x|`,
          },
          { type: 'image', source: { type: 'base64', media_type: `png"${HARM}`, data: HARM } },
        ],
      },
    },
    {
      type: 'tool.called',
      data: { call_id: 'x', tool: HARM, input: { command: HARM, old_string: HARM, new_string: HARM } },
    },
    { type: 'tool.failed', data: { call_id: 'x', success: false, output: HARM, exit_code: HARM } },
    { type: 'tool.called', data: { call_id: 'y', tool: 'Read', input: HARM } },
    { type: 'checkpoint.noted', data: { note: HARM } },
    { type: 'provider.failed', data: { provider: HARM, error: HARM } },
    { type: 'harm.done', data: { [HARM]: HARM } },
    { type: 'turn.failed', data: { turn_id: HARM, error: HARM } },
  ]);
  server = await serve(store);
  browser = await launch();
  context = await newContext({ viewport: { width: 1280, height: 800 } });
});

after(async () => {
  await browser?.close();
  await server?.stop();
  store?.remove();
});

const newContext = async (options) => {
  const made = await browser.newContext(options);
  made.setDefaultTimeout(15_000);
  return made;
};

const session = async (query = '', ctx = context, id = TIDES) => {
  const page = await open(ctx, server, `s/${id}${query}`);
  await page.waitForSelector('.item[data-seq] :is(.said, .tool, .raw)');
  return page;
};

const shown = (page) => page.$$eval('.item', (items) => items.map((item) => Number(item.dataset.seq)));

/* The moment that is shown: seq, Infinity for now. */
const moment = (page) =>
  page.$eval('.slider', (slider) =>
    slider.getAttribute('aria-valuetext') === 'now' ? Infinity : Number(slider.getAttribute('aria-valuenow')),
  );

/* Where the timeline is, once it is drawn and nothing moves it any more. */
const timelineBox = async (page) => {
  await page.waitForFunction(() => document.querySelector('.slider').ariaValueMax > 1);
  for (let last = ''; ; await page.waitForTimeout(100)) {
    const box = await page.locator('.timeline-box').boundingBox();
    if (JSON.stringify(box) === last) return box;
    last = JSON.stringify(box);
  }
};

const dragTo = async (page, share) => {
  const box = await timelineBox(page);
  await page.mouse.move(box.x + box.width - 4, box.y + 15);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * share, box.y + 15, { steps: 6 });
  await page.mouse.up();
  await frames(page);
};

test('the list shows sessions with what is below them, and opens one by keys', async () => {
  const page = await open(context, server);
  await page.waitForSelector('.row-link');
  const tides = page.locator('.row', { hasText: 'High water printed an hour late' });
  await tides.locator('.twist').click();
  await page.waitForSelector('text=List every caller of clock.local()');
  const tree = (await server.get('/sessions?tree=1&limit=100')).sessions.find((s) => s.session_id === TIDES);
  assert.equal(tree.tree.events, 60);
  assert.equal(await tides.locator('.c-events').innerText(), '60');
  /* Enter before the frame in which the chosen row takes the focus: the button above has it no longer. */
  await page.evaluate(() => (globalThis.requestAnimationFrame = () => 0));
  await page.keyboard.press('j');
  const first = await page.locator('.row.chosen .row-link').innerText();
  await page.keyboard.press('Enter');
  await page.waitForSelector('.session-title');
  assert.equal(await page.locator('h1').innerText(), first);
  quiet(page);
  await page.close();
});

test('filters narrow the list, and the link contains them', async () => {
  const page = await open(context, server);
  await page.waitForSelector('.row-link');
  await page.locator('.filters select').first().selectOption('codex');
  await page.waitForFunction(() => !document.querySelector('.list').innerText.includes('claude-code'));
  assert.match(page.url(), /agent=codex/);
  await page.reload();
  await page.waitForSelector('.row-link');
  assert.ok((await page.$$eval('.agent', (all) => all.map((a) => a.innerText))).every((agent) => agent === 'codex'));
  await page.click('.list-head >> text=Tokens');
  await page.waitForSelector('.c-tokens[aria-sort=descending]');
  quiet(page);
  await page.close();
});

test('a search result leads to its event', async () => {
  const page = await open(context, server);
  await page.waitForSelector('.row-link');
  await page.keyboard.press('/');
  await page.keyboard.type('summer time');
  await page.waitForSelector('.hit mark');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.activeElement.matches('.hit-link'));
  await page.locator('.hit', { hasText: 'local times are made' }).locator('a').click();
  await page.waitForSelector('.item.flash[data-seq="10"]');
  assert.match(await page.locator('.item.flash').innerText(), /summer time/);
  quiet(page);
  await page.close();
});

test('a session is shown as the conversation that it was', async () => {
  const page = await session();
  assert.match(await page.locator('.said.user').first().innerText(), /tide table prints high water one hour late/);
  await page.click('text=Thinking');
  await page.waitForSelector('.fold.thought.open >> text=Look at how times are made');
  const failed = page.locator('.tool.failed').first();
  assert.match(await failed.innerText(), /pytest[\s\S]*1 failed, 1 passed/);
  assert.equal(
    await page
      .locator('.diff .removed')
      .first()
      .innerText()
      .then((t) => t.trim()),
    '-return utc + OFFSET',
  );
  await page.locator('.tool', { hasText: 'Task' }).locator('.tool-head').click();
  await page.keyboard.press('G');
  await page.waitForSelector('img.picture');
  await page.waitForFunction(() => document.querySelector('img.picture').naturalWidth > 0);
  await page.waitForSelector('.turn-end >> text=Turn 2 done');
  quiet(page);
  await page.close();
});

test('turns that were taken back are marked, and others are not', async () => {
  store.append('taken-back', [
    { type: 'turn.started', data: { turn_id: 't1', sequence: 1 } },
    { type: 'message.added', data: { id: 'm1', role: 'user', content: 'Tie a bowline.' } },
    { type: 'turn.completed', data: { turn_id: 't1' } },
    { type: 'turn.abandoned', data: { turn_id: 't1' } },
    { type: 'turn.started', data: { turn_id: 't2', sequence: 2 } },
    { type: 'message.added', data: { id: 'm2', role: 'user', content: 'Tie a reef knot.' } },
  ]);
  const page = await session('', context, 'taken-back');
  assert.equal(await page.locator('.taken-from').innerText(), 'Turn 1 · abandoned');
  assert.match(await page.locator('.item.taken .said').innerText(), /Tie a bowline/);
  assert.ok(await page.locator('.item:not(.taken) .said', { hasText: 'reef knot' }).isVisible());
  quiet(page);
  await page.close();
});

test('at a moment of the past only what was known then is shown', async () => {
  const page = await session('?tab=state');
  await dragTo(page, 0.3);
  const seq = await moment(page);
  await page.waitForFunction((n) => location.hash.includes(`at=${n}`), seq);
  assert.ok(seq > 5 && seq < 30, `${seq}`);
  assert.ok((await shown(page)).every((n) => n <= seq));
  await page.waitForSelector(`.state[data-seq="${seq}"]`);
  await page.click('.tables > summary');
  await page.waitForSelector('.facts');
  const { sessions } = JSON.parse(store.run('replay', TIDES, '--at', String(seq), '--json'));
  const table = await page.$eval('.facts', (t) =>
    Object.fromEntries([...t.rows].map((r) => [r.cells[0].innerText, r.cells[1].innerText])),
  );
  assert.equal(table.total_tokens, sessions[0].total_tokens.toLocaleString('en'));
  assert.equal(table.title, sessions[0].title);
  await page.keyboard.press('ArrowRight');
  await page.waitForSelector(`.state-head >> text=changed since event ${seq}`);
  assert.ok((await page.locator('.cell-changed').count()) > 0);
  quiet(page);
  await page.close();
});

test('a call is running until the moment of its result', async () => {
  const page = await session('?at=16');
  assert.equal(await page.locator('.tool', { hasText: 'Bash' }).locator('.tool-took').innerText(), 'running');
  await page.waitForSelector('.moment >> text=29k tokens');
  await page.keyboard.press('f');
  await page.waitForSelector('.tool.failed');
  assert.equal(await moment(page), 20);
  quiet(page);
  await page.close();
});

test('the keys step by event, turn and prompt, and play to the end', async () => {
  const page = await session('?at=6');
  await page.waitForSelector('.prompts button');
  const at = () => frames(page).then(() => moment(page));
  await page.keyboard.press('ArrowRight');
  assert.equal(await at(), 8);
  await page.keyboard.press('Shift+ArrowRight');
  assert.equal(await at(), 35);
  await page.keyboard.press('[');
  assert.equal(await at(), 33);
  await page.keyboard.press('Shift+ArrowLeft');
  assert.equal(await at(), 6);
  await page.locator('.speed select').selectOption('100');
  await page.locator('h1').click();
  await page.keyboard.press(' ');
  await page.waitForFunction(() => document.querySelector('.slider').getAttribute('aria-valuetext') === 'now', null, {
    timeout: 20_000,
  });
  await page.keyboard.press('Home');
  assert.equal(await at(), 6);
  await page.keyboard.press('End');
  assert.equal(await at(), Infinity);
  quiet(page);
  await page.close();
});

test('lanes are zoomed by a drag', async () => {
  const page = await session();
  await page.waitForSelector('.lane-names >> text=List every caller');
  const box = await page.locator('.timeline-box').boundingBox();
  await page.mouse.move(box.x + 100, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, box.y + 50, { steps: 4 });
  await page.mouse.up();
  await page.click('text=Whole session');
  await page.waitForSelector('text=Whole session', { state: 'detached' });
  quiet(page);
  await page.close();
});

test('usage belongs to the moment, and an event is shown unchanged', async () => {
  const page = await session('?tab=charts');
  await page.waitForSelector('.chart canvas');
  assert.match(await page.locator('.bars', { hasText: 'By tool' }).innerText(), /Bash\s*2 \(2 failed\)/);
  await page.locator('.item[data-seq="10"] .gutter').click();
  await page.waitForSelector('.event .code');
  const event = JSON.parse(await page.locator('.event .code').innerText());
  const [line] = store.run('query', TIDES, '--seq', '10..10', '--json').trim().split('\n');
  assert.deepEqual(event, JSON.parse(line));
  await page.waitForSelector('.proof >> text=Proved');
  quiet(page);
  await page.close();
});

test('a live session is followed until one scrolls', async () => {
  const text = (n) => ({
    type: 'message.added',
    data: { id: `m${n}`, role: 'assistant', content: `Line ${n}. ${'Words that fill some lines. '.repeat(12)}` },
  });
  store.append(
    'live',
    Array.from({ length: 30 }, (_, n) => text(n)),
  );
  const list = await open(context, server);
  await list.waitForSelector('.row-link');
  const page = await session('', context, 'live');
  await page.waitForSelector('text=Line 29.');
  await page.waitForSelector('.stream.live');
  const writer = store.writer('live');
  await writer.send(text(30));
  await page.waitForSelector('text=Line 30.', { timeout: 15_000 });
  await frames(page);
  await page.locator('.conversation .scroller').hover();
  await page.mouse.wheel(0, -900);
  await page.waitForFunction(() => {
    const s = document.querySelector('.conversation .scroller');
    return s.scrollHeight - s.scrollTop - s.clientHeight > 300;
  });
  await writer.send(text(31));
  await page.waitForSelector('.to-end >> text=1 new');
  await page.click('.to-end');
  await page.waitForSelector('text=Line 31.');
  await page.mouse.wheel(0, -900);
  await writer.send(text(32));
  await page.waitForSelector('.to-end >> text=1 new');
  await page.keyboard.press('End');
  await page.waitForSelector('text=Line 32.');
  await list.waitForFunction(
    () =>
      [...document.querySelectorAll('.row')].some(
        (row) => row.innerText.includes('live') && row.innerText.includes('33'),
      ),
    null,
    { timeout: 15_000 },
  );
  await writer.close();
  quiet(page);
  quiet(list);
  await page.close();
  await list.close();
});

test('a tab that is hidden reads nothing, and has everything when it is seen again', async () => {
  const own = await newContext();
  store.append('hidden', [{ type: 'message.added', data: { id: 'h0', role: 'assistant', content: 'The begin.' } }]);
  const page = await session('', own, 'hidden');
  await page.waitForSelector('.stream.live');
  const hide = (hidden) =>
    page.evaluate((value) => {
      Object.defineProperty(document, 'hidden', { value, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);
  await hide(true);
  await page.waitForSelector('.stream.paused');
  store.append('hidden', [
    { type: 'message.added', data: { id: 'h1', role: 'assistant', content: 'Said while nobody looked.' } },
  ]);
  await page.waitForTimeout(200);
  assert.ok(!(await page.locator('.conversation').innerText()).includes('Said while'));
  await hide(false);
  await page.waitForSelector('.stream.live');
  await page.keyboard.press('G');
  await page.waitForSelector('text=Said while nobody looked.');
  await own.close();
});

test('new events since the last visit are marked, in the list and in the session', async () => {
  const own = await newContext();
  const text = (n) => ({ type: 'message.added', data: { id: `v${n}`, role: 'assistant', content: `Visit ${n}.` } });
  store.append('visited', [text(1), text(2)]);
  const page = await session('', own, 'visited');
  await page.waitForSelector('text=Visit 2.');
  await page.waitForFunction(() => localStorage.getItem('annal.seen.visited') === '2 2');
  await page.goto(`${server.url}/#/`);
  await page.waitForSelector('.row-link');
  await page.waitForSelector('.stream.live');
  store.append('visited', [text(3)]);
  await page.waitForSelector('.row >> text=1 new');
  await page.locator('.row', { hasText: '1 new' }).locator('.row-link').click();
  await page.waitForSelector('.item[data-seq="3"] .new-from');
  assert.equal(await page.locator('.new-from').count(), 1);
  quiet(page);
  await own.close();
});

test('a session whose log was deleted is marked, and the list tells whether a watch runs', async () => {
  const own = await newContext();
  store.append('lost', [
    { type: 'message.added', data: { id: 'l1', role: 'user', content: 'Where is the log?' } },
    {
      type: 'source.deleted',
      data: { path: '/logs/lost.jsonl', bytes_before: 2048, bytes_after: 0, noticed_at: '2026-03-04T07:02:11.380214Z' },
    },
  ]);
  const page = await open(own, server);
  await page.waitForSelector('.watching >> text=No annal watch runs');
  const row = page.locator('.row', { has: page.locator('[href="#/s/lost"]') });
  assert.equal(await row.locator('.tag.bad').innerText(), 'log deleted');
  await row.locator('.row-link').click();
  await page.waitForSelector('.session-head .tag.bad');
  assert.match(await page.locator('.note:not(.item)').innerText(), /^Its log was deleted, noticed /);
  quiet(page);
  await own.close();
});

test('all tabs share one stream, and another takes over', async () => {
  const own = await newContext();
  const streams = [];
  own.on('request', (request) => request.url().includes('/stream') && streams.push(request));
  const one = await session('', own, 'live');
  await one.waitForSelector('.stream.live');
  const two = await own.newPage();
  await two.goto(`${server.url}/#/s/live`); /* without a token: the other tab has it */
  await two.waitForSelector('.item[data-seq] .said');
  await two.waitForSelector('.stream.live');
  assert.equal(streams.length, 1);
  await one.close();
  await two.waitForFunction(() => document.querySelector('.stream.live'));
  for (let i = 0; i < 50 && streams.length < 2; i++) await new Promise((done) => setTimeout(done, 50));
  assert.equal(streams.length, 2);
  store.append('live', [
    { type: 'message.added', data: { id: 'last', role: 'assistant', content: 'The other tab reads on.' } },
  ]);
  await two.keyboard.press('G');
  await two.waitForSelector('text=The other tab reads on.');
  await own.close();
});

test('without a token the page asks for one', async () => {
  const own = await newContext();
  const page = await own.newPage();
  await page.goto(server.url);
  await page.waitForSelector('text=Token');
  await accessible(page);
  await page.fill('input', server.token);
  await page.keyboard.press('Enter');
  await page.waitForSelector('.row-link');
  await own.close();
});

test('SQL is answered as a table and as a chart, and the link has the question', async () => {
  const page = await open(context, server, 'sql');
  await page.waitForSelector('.schema summary');
  await page.fill('textarea', 'SELECT type, count(*) AS n FROM events GROUP BY type ORDER BY n DESC');
  await page.keyboard.press('Control+Enter');
  await page.waitForSelector('.answer [role=cell]');
  assert.match(await page.locator('.answer').innerText(), /message\.added/);
  await page.click('text=Chart');
  await page.waitForSelector('.bar-row');
  const link = page.url();
  await page.fill('textarea', 'SELEC');
  await page.keyboard.press('Control+Enter');
  await page.waitForSelector('.failure >> text=syntax error');
  await page.goto('about:blank');
  await page.goto(link);
  await page.waitForSelector('.bar-row');
  /* The answer 400 is said by the browser itself. */
  page.said = page.said.filter((line) => !/status of 400/.test(line));
  quiet(page);
  await page.close();
});

test('a moment of the past shows no later events', async () => {
  const minute = (n) => new Date(Date.parse('2026-03-02T09:00:00Z') + n * 60_000).toISOString();
  const event = (n, type, data) => ({ type, ts: minute(n), data });
  const usage = (n, tokens) => event(n, 'agent.turn.usage', { input_tokens: tokens, output_tokens: 0 });
  store.append('then', [
    event(0, 'session.created', { title: 'Then', agent_id: 'a' }),
    event(0, 'turn.started', { turn_id: 't1', sequence: 1 }),
    event(0, 'message.added', { id: 'u1', role: 'user', content: 'First prompt' }),
    usage(1, 100),
    event(2, 'message.added', { id: 'm1', role: 'assistant', content: 'Said' }),
    usage(3, 200),
    event(4, 'turn.failed', { turn_id: 't1', error: 'no' }),
    event(5, 'turn.started', { turn_id: 't2', sequence: 2 }),
    event(5, 'message.added', { id: 'u2', role: 'user', content: '<b>Second</b> prompt' }),
  ]);
  store.append('then-below', [
    event(1, 'session.created', { title: 'Below', agent_id: 'b', parent_session_id: 'then' }),
    usage(2, 7),
    usage(4, 5),
  ]);
  const page = await open(context, server, 's/then?at=4');
  /* The totals of a moment arrive by themselves. */
  const overview = async (seq, tokens) => {
    await page.evaluate((at) => (location.hash = `/s/then?at=${at}`), seq);
    await page.waitForFunction((at) => document.querySelector('.slider')?.ariaValueNow === at, String(seq));
    await page.waitForFunction(() => !/…/.test(document.querySelector('.children')?.innerText ?? ''));
    await page.waitForSelector(`.prompts >> text=· ${tokens} tokens`);
    return page.locator('.overview').innerText();
  };
  await page.waitForSelector('.prompts button');
  const early = await overview(4, 100);
  assert.match(early, /First prompt\s+[\d:]+ · 100 tokens\s+1 later/);
  assert.match(early, /First answer after\s+–/i);
  assert.match(early, /Below\s+1 event · – tokens/);
  const later = await overview(6, 300);
  assert.match(later, /· 300 tokens\s+1 later/);
  assert.match(later, /First answer after\s+2 min/i);
  assert.match(later, /Below\s+2 events · 7 tokens/);
  assert.match(await overview(7, 300), /· 300 tokens · failed/);
  await page.click('text=1 later');
  await page.waitForSelector('.prompts >> text=<b>Second</b> prompt');
  quiet(page);
  await page.close();
});

test('a shared file opens without the server', async () => {
  const page = await session();
  await page.evaluate(() => {
    const real = globalThis.fetch;
    globalThis.fetch = async (...all) => {
      const answer = await real(...all);
      if (!String(all[0]).includes('/share')) return answer;
      const late = new TransformStream({ flush: () => new Promise((done) => (globalThis.endFile = done)) });
      return new Response(answer.body.pipeThrough(late));
    };
  });
  await page.click('text=Share');
  await page.waitForSelector('button:has-text("Saving")');
  await page.waitForFunction(() => /Saving… \d+\.\d [KM]iB/.test(document.querySelector('main').textContent));
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.waitForFunction(() => globalThis.endFile).then(() => page.evaluate(() => globalThis.endFile())),
  ]);
  const file = path.join(store.directory, 'shared.html');
  await download.saveAs(file);
  assert.match(readFileSync(file, 'utf8'), / data-packed="1">\nH4sI/); /* an element of events as gzip in base64 */
  await page.close();
  const own = await newContext();
  await own.route(/^http/, (route) => route.abort());
  const shared = await own.newPage();
  const said = [];
  shared.on('console', (message) => said.push(message.text()));
  shared.on('pageerror', (error) => said.push(String(error.stack)));
  await shared.goto(pathToFileURL(file).href);
  await shared.waitForSelector('.item[data-seq] .said');
  assert.equal(await shared.locator('h1').innerText(), 'High water printed an hour late');
  await shared.click('text=State');
  await dragTo(shared, 0.5);
  await shared.click('.tables > summary');
  await shared.waitForSelector('.state .facts');
  await dragTo(shared, 1); /* the sub-agent began later */
  await shared.click('text=Overview');
  await shared.click('.children a');
  await shared.waitForSelector('.said >> text=List every caller');
  assert.deepEqual(said, []);
  await own.close();
});

test('script in any field is text', async () => {
  for (const hash of [
    '',
    'search?q=onerror',
    's/harm?all=1',
    's/harm?tab=state',
    's/harm?tab=charts',
    's/harm?tab=event&at=5',
    `sql?q=${encodeURIComponent("SELECT * FROM sessions WHERE id = 'harm'")}`,
  ]) {
    const page = await open(context, server, hash);
    await page.waitForSelector('.row-link, .hit, .item .fold, .item .said, .answer [role=cell]');
    await page.$$eval('.fold-head[aria-expanded=false], .tool-head[aria-expanded=false]', (heads) =>
      heads.forEach((head) => head.click()),
    );
    await frames(page);
    assert.equal(await page.evaluate(() => window.harm), undefined, hash);
    assert.equal(
      await page.locator('[onerror], [onload], a[href^="javascript"], #app script, .item img').count(),
      0,
      hash,
    );
    assert.deepEqual(page.said, [], hash);
    await page.close();
  }
});

test('? tells the keys, and leads to each page', async () => {
  const page = await open(context, server);
  await page.waitForSelector('.row-link');
  await page.keyboard.press('?');
  await page.waitForSelector('dialog[open] >> text=next, previous failure');
  await accessible(page);
  const heights = await page.$$eval('dialog kbd', (all) => all.map((kbd) => kbd.offsetHeight));
  assert.ok(Math.max(...heights) <= Math.min(...heights) + 2, String(heights));
  const top = async (title) => (await page.locator('dialog h3', { hasText: title }).boundingBox()).y;
  assert.ok((await top(/^A session/)) < (await top(/^Everywhere/))); /* both columns are full */
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog', { state: 'detached' }); /* a closed one still takes the key */
  await page.keyboard.press('?');
  await page.waitForSelector('dialog[open]');
  for (const key of ['Tab', 'Tab', 'Enter']) await page.keyboard.press(key);
  await page.waitForSelector('h1 >> text=What failed');
  await page.waitForSelector('dialog[open]', { state: 'detached' });
  quiet(page);
  await page.close();
});

/* Where, the keys, and what is there then. All else is a control, which has letters. */
const WAYS = [
  ['', '/', 'input[type=search]:focus', 'Escape'],
  ['', '?', 'dialog[open]', 'Escape'],
  ['', 'g u', 'h1 >> text=Usage'],
  ['', 'g w', 'h1 >> text=What failed'],
  ['', 'g q', '.question textarea'],
  ['', 'g c', 'h1 >> text=/Compare/'],
  ['', 'j Enter', '.session-title'],
  [`s/${TIDES}`, '2', '#tab-state[aria-selected=true]'],
  [`s/${TIDES}`, '3', '#tab-charts[aria-selected=true]'],
  [`s/${TIDES}`, '4', '#tab-event[aria-selected=true]'],
  [`s/${TIDES}`, '5', '#tab-failures[aria-selected=true]'],
  [`s/${TIDES}`, 'F', '.moment >> text=failure 3'],
  [`s/${TIDES}`, 'F', '.moment >> text=failure 2'],
  [`s/${TIDES}`, 'f', '.moment >> text=failure 3', 'End'],
  [`s/${TIDES}`, 'Home', '.now:not(.on)', 'End'],
  [`s/${TIDES}`, 'Shift+ArrowLeft ArrowLeft N', '.event .noting textarea:focus', 'Escape'],
  [`s/${TIDES}`, 'n', '.session-title .noting textarea:focus', 'Escape'],
  [`s/${TIDES}`, 'm', '.session-title [aria-label=Name]:focus', 'Escape'],
  [`s/${TIDES}`, '#', '.session-title [aria-label=Tag]:focus', 'Escape'],
  [`s/${TIDES}`, 'i', '.unzoom', 'o'],
  [`s/${TIDES}`, 'r', '.session-buttons .select.on', 'r'],
  [`s/${TIDES}`, 'R', '.session-buttons .select.on', 'R'],
  [`s/${TIDES}`, 'e', '.session-buttons .select.on', 'e'],
  [`s/${TIDES}`, 'Escape', '.row-link'], /* the list, not the session that "j Enter" opened above */
];

/* A control of each kind, and what its letters do. */
const CONTROLS = [
  ['', '.filters select', '.filters select:focus', '.row-link'],
  [`s/${TIDES}`, '.tool-head[aria-expanded=false]', '.tool-head:focus[aria-expanded=true]', '.tool'],
  [`s/${TIDES}?tab=failures`, '.failures button', '.item.flash', '.failures button'],
  ['failures', '.failed-group a', '.session-title', '.failed-group a'],
  ['usage?range=all', 'a.bar-row', '.row-link', 'a.bar-row'],
  ['sql', '.question textarea', '.question textarea:focus', '.schema summary'],
];

test('all that the page can do is at most five keys away', async () => {
  const page = await open(context, server);
  await page.waitForSelector('.row-link');
  const go = async (hash, wait) => {
    await page.evaluate((to) => (location.hash = `#/${to}`), hash);
    await page.waitForSelector(wait);
    await page.evaluate(() => document.activeElement.blur());
  };
  for (const [hash, keys, there, back] of WAYS) {
    const { hash: now } = new URL(page.url());
    if (hash ? !now.startsWith(`#/${hash}`) : now !== '#/') await go(hash, hash ? '.item .tool' : '.row-link');
    const list = keys.split(' ');
    assert.ok(list.length <= 5);
    for (const key of list) await page.keyboard.press(key);
    await page.waitForSelector(there);
    if (!back) continue;
    await page.keyboard.press(back);
    await page.waitForSelector('dialog.keys', { state: 'detached' });
    await frames(page);
  }
  for (const [hash, control, there, wait] of CONTROLS) {
    await go(hash, wait);
    /* until nothing moves any more */
    const places = () => page.$$eval('a, button, summary', (all) => all.map((one) => one.getBoundingClientRect().top).join());
    for (let last = ''; last !== (last = await places());) await page.waitForTimeout(100);
    await page.keyboard.press('.');
    await page.waitForSelector('.hints kbd');
    const { keys, lacking } = await page.evaluate((control) => {
      const labels = [...document.querySelectorAll('.hints kbd')];
      const labelOf = (element) => {
        const { left, top } = element.getBoundingClientRect();
        return labels.find(({ style }) => Math.abs(parseFloat(style.left) - Math.max(0, left)) < 1 && Math.abs(parseFloat(style.top) - Math.max(0, top)) < 1)?.innerText;
      };
      const seen = [...document.querySelectorAll('a, button, input, select, textarea, summary')].filter((element) => {
        const { left, top, width, height } = element.getBoundingClientRect();
        return element.contains(document.elementFromPoint(left + width / 2, top + height / 2)) && !element.disabled;
      });
      const lacking = seen.filter((element) => !labelOf(element)).map((element) => element.outerHTML.slice(0, 200));
      return { keys: labelOf(document.querySelector(control)), lacking };
    }, control);
    assert.deepEqual(lacking, [], hash);
    assert.ok(keys?.length <= 2, `${hash}: ${control} has no letters`);
    await page.keyboard.type(keys);
    await page.waitForSelector(there);
  }
  quiet(page);
  await page.close();
});

test('a session is forked at the moment that is looked at', async () => {
  const page = await session('?at=20');
  await page.click('text=Fork');
  await page.fill('dialog input', 'tides-again');
  await page.click('dialog >> text=Fork >> nth=-1');
  await page.waitForSelector('.up >> text=fork of 7c1d52a0 at 20');
  assert.deepEqual((await server.get('/sessions/tides-again/outline')).seq.at(-1), 20);
  quiet(page);
  await page.close();
});

test('a star, a name, a tag and a note are events, and the list is limited by them', async () => {
  const page = await session();
  await page.click('.noted-facts >> text=☆');
  await page.waitForSelector('.noted-facts [aria-pressed=true]');
  const add = async (kind, text) => {
    await page.click(`.noted-facts button:text-is("${kind}")`);
    await page.fill('.noting :is(input, textarea)', text);
    await page.keyboard.press('Enter');
  };
  await add('name', `tides ${HARM.slice(0, 40)}`);
  await page.waitForSelector('h1 >> text=tides <img');
  await add('tag', 'two words');
  await page.waitForSelector('.noted-facts >> text=a tag is 1 to 64 characters');
  assert.match(page.said.splice(0).join('\n'), /^error: .* 422 [^\n]*$/); /* the browser says that it was refused */
  await page.fill('.noting input', 'ebb');
  await page.keyboard.press('Escape');
  await add('tag', 'flood');
  await page.waitForSelector('.noted-facts .tag >> text=flood');
  await add('note', 'the moon was **forgotten**');
  await page.waitForSelector('.notes strong >> text=forgotten');
  await page.click('.noted-facts .tag a');
  await page.waitForFunction(() => document.querySelectorAll('.row-link').length === 1);
  assert.match(page.url(), /tag=flood$/);
  await page.waitForSelector('.row-title .star');
  await page.click('.filters .tag');
  await page.waitForFunction(() => document.querySelectorAll('.row-link').length > 1);
  await page.click('text=Starred');
  await page.waitForFunction(() => document.querySelectorAll('.row-link').length === 1);
  assert.match(await page.innerText('.row-title'), /tides <img[^]*flood[^]*1 note/);
  for (const type of ['named', 'unstarred'])
    store.append(`notes_${TIDES}`, [{ type: `note.${type}`, data: type === 'named' ? { name: null } : {} }]);
  assert.deepEqual((await server.get(`/sessions/${TIDES}`)).starred, 0);
  quiet(page);
  await page.close();
});

test('an event has notes, by keys, and the last change is undone, also after a reload', async () => {
  const page = await session('?at=20');
  await page.keyboard.press('N'); /* on the event of the moment, a failed result */
  await page.waitForSelector('.event .noting textarea');
  await page.keyboard.type('the **wrong** file');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('again');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.event .note strong >> text=wrong');
  await page.waitForSelector('.item[data-seq="16"] .marks >> text=✎ the **wrong** file'); /* the row of the call */
  const said = () => store.run('query', `notes_${TIDES}`, '--json').trim().split('\n').map((line) => JSON.parse(line)).at(-1);
  const { hash } = await server.get(`/sessions/${TIDES}/events/20/proof`);
  const [event] = (await server.get(`/sessions/${TIDES}/events?from=20&to=20`)).events;
  assert.deepEqual(said().data, { text: 'the **wrong** file\nagain', event_seq: 20, event_id: event.id ?? undefined, event_hash: hash });
  await page.click('.event .note >> text=edit');
  await page.fill('.event .note textarea', 'the right file');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.event .note >> text=the right file');
  await page.click('.event .noted-facts >> text=☆');
  await page.waitForSelector('.item[data-seq="16"] .marks .star');
  await page.keyboard.press('1');
  await page.waitForSelector('.notes .note >> text=event 20');
  await page.waitForSelector('.prompts >> text=✎ 2 noted');
  await page.keyboard.press('ArrowLeft'); /* before the event nothing is noted on it */
  await page.waitForSelector('.item .marks', { state: 'detached' });
  await page.keyboard.press('End');
  await page.reload();
  await page.waitForSelector('.noted-facts [title="Undo: a star was given, on event 20 (z)"]');
  await page.keyboard.press('z');
  await page.waitForSelector('.noted-facts [title="Undo: a note was changed, on event 20 (z)"]');
  assert.equal(said().type, 'note.undone');
  await page.keyboard.press('z');
  await page.waitForSelector('.notes .note strong >> text=wrong');
  await page.click('.notes .note >> text=remove');
  await page.waitForSelector('.noted-facts [title="Undo: a note was removed, on event 20 (z)"]');
  await page.click('.noted-facts >> text=undo');
  await page.waitForSelector('.notes .note strong >> text=wrong');
  /* The tag is not lost, though the star is still being given. */
  let give = () => {};
  await page.route('**/notes_*/events', (route) => (give = () => route.continue()), { times: 1 });
  for (const key of ['*', '#']) await page.keyboard.press(key);
  await page.waitForSelector('.session-title .noting input');
  await page.keyboard.type('ebb');
  await page.keyboard.press('Enter');
  give();
  await page.waitForSelector('.session-title .tag >> text=ebb');
  await page.waitForSelector('.session-title [aria-pressed=true]');
  await page.keyboard.press('z');
  await page.waitForSelector('.session-title .tag >> text=ebb', { state: 'detached' });
  await page.waitForSelector('.session-title [role=status] >> text=Undone: the tag ebb');
  quiet(page);
  await page.close();
});
