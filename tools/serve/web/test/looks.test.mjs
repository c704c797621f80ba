/* SPDX-License-Identifier: Apache-2.0 */
/* Both colour schemes and a phone: what axe-core says, what the console says, and whether all fits. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, frames, launch, open, quiet, serve, Store, TIDES } from './support.mjs';

let store, server, browser;

before(async () => {
  store = new Store().importFixtures();
  server = await serve(store);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await server?.stop();
  store?.remove();
});

for (const [name, options] of [
  ['light', { colorScheme: 'light', viewport: { width: 1280, height: 800 } }],
  ['dark', { colorScheme: 'dark', viewport: { width: 1280, height: 800 } }],
  ['a phone', { colorScheme: 'light', viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true }],
])
  test(`axe-core finds nothing, and nothing is wider than the window: ${name}`, async () => {
    const own = await browser.newContext(options);
    const page = await open(own, server);
    for (const [hash, wait] of [
      ['', '.row-link'],
      ['search?q=summer', '.hit'],
      [`s/${TIDES}`, '.item .tool'],
      [`s/${TIDES}?tab=state&at=25`, '.state'],
      [`s/${TIDES}?tab=charts`, '.chart canvas'],
      [`s/${TIDES}?tab=failures`, '.failures'],
      ['failures', '.failed-group'],
      [`compare?a=${TIDES}&b=${TIDES}`, '.compare .turns'],
      ['usage?range=all', '.usage .bar-row'],
      ['sql?q=SELECT%20*%20FROM%20turns', '.answer [role=cell]'],
    ]) {
      await page.evaluate((to) => (location.hash = `#/${to}`), hash);
      await page.waitForSelector(wait);
      await frames(page);
      await accessible(page);
      const top = await page.locator('.top').evaluate((bar) => [bar.offsetHeight, bar.scrollHeight]);
      assert.ok(top[0] >= 48 && top[1] <= top[0], `${hash}: the bar at the top is cut off: ${top}`);
      await page.evaluate(() => document.querySelector('.skip').click());
      assert.ok(await page.evaluate(() => document.activeElement.matches('.panel') || (!document.querySelector('.panel')?.checkVisibility() && document.activeElement.closest('main'))), `${hash}: the skip link leads nowhere`);
      /* A phone makes its window wider for a page that does not fit. */
      const widest = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, innerWidth));
      const wide = widest - options.viewport.width;
      assert.ok(wide <= 0, `${hash}: ${wide} pixels too wide`);
      quiet(page);
    }
    await own.close();
  });
