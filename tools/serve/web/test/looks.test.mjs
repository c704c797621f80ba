/* SPDX-License-Identifier: Apache-2.0 */
/* Both colour schemes and all sizes: what axe-core says, what the console says, and whether all fits. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, frames, launch, open, quiet, serve, Store, TIDES } from './support.mjs';

let store, server, browser;

before(async () => {
  store = new Store().importFixtures();
  for (const words of [['star', TIDES], ['tag', TIDES, 'ebb'], ['add', TIDES, 'A *note*'], ['add', `${TIDES}:10`, 'On an event'], ['star', `${TIDES}:10`]])
    store.run('note', ...words);
  server = await serve(store);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await server?.stop();
  store?.remove();
});

const PAGES = [
  ['', '.row-link'],
  ['search?q=summer', '.hit'],
  [`s/${TIDES}`, '.item .tool', 'n'], /* a note is written */
  [`s/${TIDES}?tab=state&at=25`, '.state'],
  [`s/${TIDES}?tab=charts`, '.chart canvas'],
  [`s/${TIDES}?tab=failures`, '.failures'],
  [`s/${TIDES}?tab=overview`, '.notes .note'],
  [`s/${TIDES}?tab=event&event=10`, '.event .note', 'N'],
  ['failures', '.failed-group'],
  [`compare?a=${TIDES}&b=${TIDES}`, '.compare .turns'],
  ['usage?range=all', '.usage .bar-row'],
  ['sql?q=SELECT%20*%20FROM%20turns', '.answer [role=cell]'],
];

const PHONE = { width: 320, height: 640 };
const SIZES = [{ width: 1280, height: 800 }, PHONE, ...(process.env.ALL_SIZES ? [{ width: 1024, height: 768 }] : [])];

for (const viewport of SIZES)
  test(`axe-core finds nothing, and nothing is wider than the window: ${viewport.width} pixels`, async () => {
    const phone = viewport === PHONE;
    const own = await browser.newContext({ colorScheme: 'light', viewport, hasTouch: phone, isMobile: phone });
    const page = await open(own, server);
    for (const [hash, wait, key] of PAGES) {
      await page.evaluate((to) => (location.hash = `#/${to}`), hash);
      await page.waitForSelector(wait);
      if (key && !phone) {
        await page.keyboard.press(key);
        await page.waitForSelector('.noting textarea');
      }
      await frames(page);
      const top = await page.locator('.top').evaluate((bar) => [bar.offsetHeight, bar.scrollHeight]);
      assert.ok(top[0] >= 48 && top[1] <= top[0], `${hash}: the bar at the top is cut off: ${top}`);
      await accessible(page, { rules: { 'target-size': { enabled: phone } } });
      await page.emulateMedia({ colorScheme: 'dark' });
      await page.waitForSelector('html[data-theme=dark]');
      await accessible(page, { runOnly: ['color-contrast'] });
      await page.emulateMedia({ colorScheme: 'light' });
      if (key && !phone) await page.keyboard.press('Escape');
      await page.evaluate(() => document.querySelector('.skip').click());
      assert.ok(await page.evaluate(() => document.activeElement.matches('.panel') || (!document.querySelector('.panel')?.checkVisibility() && document.activeElement.closest('main'))), `${hash}: the skip link leads nowhere`);
      /* A phone makes its window wider for a page that does not fit. */
      const widest = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, innerWidth));
      const wide = widest - viewport.width;
      assert.ok(wide <= 0, `${hash}: ${wide} pixels too wide`);
      const cut = await page.evaluate(() =>
        [...document.querySelectorAll('.search-page, .table-box:has(.totals)')].find((box) => box.scrollWidth > box.clientWidth)?.className,
      );
      assert.equal(cut, undefined, `${hash}: a part is cut off`);
      quiet(page);
    }
    await own.close();
  });

test('on a phone an event is chosen by a tap, and half of the window is left for the conversation', async () => {
  const own = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const page = await open(own, server, `s/${TIDES}?tab=event`);
  await page.waitForSelector('text=Tap a message or a call, then “event”');
  const { height } = await page.locator('.conversation').boundingBox();
  assert.ok(height > 844 * 0.36, `${height} pixels`);
  const row = page.locator('.item[data-seq="10"]');
  await row.tap();
  await row.locator('.item-actions >> text=event').tap();
  await page.waitForSelector('.event-head >> text=event 10');
  await page.locator('.search svg').tap();
  await page.waitForFunction(() => document.activeElement.type === 'search' && document.activeElement.offsetWidth > 200);
  quiet(page);
  await own.close();
});
