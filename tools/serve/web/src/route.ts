/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fragment selects the page: #/s/ID?at=12. On the first visit it also contains the token, #token=…, which is
 * removed at once, so that it stays out of the history and of copied links.
 */
import { useEffect, useState } from 'preact/hooks';

export interface Route {
  page: string;
  id: string;
  query: URLSearchParams;
}

export function parse(fragment: string): Route {
  const [path = '', query = ''] = fragment.replace(/^#\/?/, '').split('?', 2);
  const [page = '', ...rest] = path.split('/');
  let id = rest.join('/');
  try {
    id = decodeURIComponent(id);
  } catch {
    /* unchanged */
  }
  return { page, id, query: new URLSearchParams(query) };
}

export function link(page: string, id = '', query: Record<string, string | number | undefined> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#/${page}${id ? `/${encodeURIComponent(id)}` : ''}${text ? `?${text}` : ''}`;
}

/*
 * What a page shows beside its address, such as its place and its open rows. It is kept with the entry of the history, so
 * that it survives a reload and Back; a link that is opened again begins without it.
 */
export function keepView(view: unknown): void {
  history.replaceState({ view }, '');
}

export const keptView = <T>(): Partial<T> => history.state?.view ?? {};

export function go(to: string, view?: unknown): void {
  if (view === undefined) location.hash = to;
  else {
    history.pushState({ view }, '', to);
    dispatchEvent(new window.Event(CHANGED));
  }
}

/* Return a whole number from 1 in the link, or null. */
export function numberIn(query: URLSearchParams, name: string): number | null {
  const text = query.get(name) ?? '';
  return /^[1-9]\d{0,15}$/.test(text) ? Number(text) : null;
}

const CHANGED = 'annal-route';

/* Change the fragment without a step in the history. */
export function replace(to: string): void {
  if (location.hash !== to) {
    history.replaceState(history.state, '', to);
    dispatchEvent(new window.Event(CHANGED));
  }
}

export function takeToken(): string | null {
  const found = /^#token=([^&/]*)&?(.*)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, '', `${location.pathname}${location.search}${found[2] ? `#${found[2]}` : ''}`);
  return decodeURIComponent(found[1]!);
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = () => setRoute(parse(location.hash));
    addEventListener('hashchange', changed);
    addEventListener(CHANGED, changed);
    return () => {
      removeEventListener('hashchange', changed);
      removeEventListener(CHANGED, changed);
    };
  }, []);
  return route;
}
