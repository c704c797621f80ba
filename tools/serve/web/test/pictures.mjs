/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pictures of the README and the guide: docs/serve/*.webp. Of the project's own fixtures, so they show what a reader of
 * the demo sees, too.
 *
 *   node test/pictures.mjs
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { frames, launch, open, root, serve, Store, TIDES } from './support.mjs';

const store = new Store().importFixtures();
const server = await serve(store);
const browser = await launch();
const directory = path.join(root, 'docs/serve');
mkdirSync(directory, { recursive: true });

async function picture(name, hash, { width = 1200, height = 720, dark = false, wait, act } = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: dark ? 'dark' : 'light',
    timezoneId: 'UTC',
    reducedMotion: 'reduce',
  });
  const page = await open(context, server, hash);
  await page.waitForSelector(wait);
  await page.waitForSelector('.stream.live');
  await act?.(page);
  await page.waitForTimeout(400);
  await frames(page);
  /* PNG of few colours would be larger: this is text on plain ground, which WebP keeps sharp. */
  const { data } = await (
    await context.newCDPSession(page)
  ).send('Page.captureScreenshot', { format: 'webp', quality: 82 });
  writeFileSync(path.join(directory, `${name}.webp`), Buffer.from(data, 'base64'));
  await context.close();
}

await picture('session', `s/${TIDES}?at=25&tab=overview`, { wait: '.tool.failed' });
await picture('state', `s/${TIDES}?at=21&tab=state`, {
  dark: true,
  wait: '.state',
  act: async (page) => {
    await page.keyboard.press('ArrowRight');
    await page.waitForSelector('.cell-changed');
  },
});
await picture('sessions', '', {
  height: 560,
  wait: '.row-link',
  act: async (page) => {
    for (const twist of await page.locator('button.twist').all()) await twist.click();
  },
});
await browser.close();
await server.stop();
store.remove();
