/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of time by name, in the time zone of the browser; weeks begin on Monday. */
import * as format from './format';
import { FRESH_MS } from './model';

export const DAY = /^\d{4}-\d\d-\d\d$/;

export const shifted = (day: string, days: number): string => {
  const at = new Date(`${day}T12:00`);
  at.setDate(at.getDate() + days);
  return format.day(at.getTime());
};

const HOUR_MS = 3_600_000;
const SPANS: Record<string, number> = {
  now: FRESH_MS,
  '1h': HOUR_MS,
  '1d': 24 * HOUR_MS,
  '7d': 7 * 24 * HOUR_MS,
  '30d': 30 * 24 * HOUR_MS,
};

/* The first and the last day of today, yesterday, this week and last week; else null. */
export function namedDays(name: string, now = Date.now()): { from: string; to: string } | null {
  const monday = (new Date(now).getDay() + 6) % 7; /* the days since then */
  const ago = { today: [0, 0], yesterday: [1, 1], week: [monday, 0], lastweek: [monday + 7, monday + 1] }[name];
  const today = format.day(now);
  return ago ? { from: shifted(today, -ago[0]!), to: shifted(today, -ago[1]!) } : null;
}

/* The ranges that lists offer, with words that follow "active" or "failed". */
export const RANGES: [string, string][] = [
  ['now', 'now'],
  ['1h', 'in the last hour'],
  ['today', 'today'],
  ['yesterday', 'yesterday'],
  ['1d', 'in the last 24 hours'],
  ['week', 'this week'],
  ['lastweek', 'last week'],
  ['7d', 'in the last 7 days'],
  ['30d', 'in the last 30 days'],
];

const midnight = (day: string): string | undefined => {
  const at = Date.parse(DAY.test(day) ? `${day}T00:00` : '');
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
};

/* The times of a range: since is its name or its first day, until its last day. */
export function times(since: string, until = ''): { since?: string; until?: string } {
  const span = SPANS[since];
  const days = namedDays(since);
  const last = until || days?.to;
  return {
    since: span ? new Date(Date.now() - span).toISOString() : midnight(days?.from ?? since),
    until: last && DAY.test(last) ? midnight(shifted(last, 1)) : undefined,
  };
}
