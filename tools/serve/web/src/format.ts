/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, money and times in readable form. */

const whole = new Intl.NumberFormat('en');

export const count = (n: number | null | undefined): string => whole.format(n ?? 0);

/* 42,731,466 as 42.7M */
export function compact(n: number | null | undefined): string {
  if (n == null) return '–';
  const size = Math.abs(n);
  if (size < 1000) return String(n);
  const [divisor, unit] =
    size < 999_500 ? [1e3, 'k'] : size < 999.5e6 ? [1e6, 'M'] : size < 999.5e9 ? [1e9, 'G'] : [1e12, 'T'];
  const value = n / divisor;
  return `${Math.abs(value) < 9.95 ? value.toFixed(1) : Math.round(value)}${unit}`;
}

/* If no token usage was ever reported, usage is unknown, not 0. */
export const tokens = (n: number | null | undefined): string => (n ? compact(n) : '–');

export function money(usd: number | null | undefined): string {
  if (usd == null) return '–';
  if (usd !== 0 && Math.abs(usd) < 0.01) return usd < 0 ? '–$0.01' : '<$0.01';
  if (Math.abs(usd) >= 1e7) return usd < 1e16 ? `$${compact(usd)}` : `$${usd.toExponential(0)}`;
  return `$${usd >= 1000 ? whole.format(Math.round(usd)) : usd.toFixed(2)}`;
}

/* ~ for a cost that was computed from list prices, at least in part. */
export const cost = (usd: number | null | undefined, computed: boolean): string =>
  usd == null ? '–' : `${computed ? '~' : ''}${money(usd)}`;

/* 27% for 0.279: rounded down, so that 100% means all, but at least 1% if it is not 0. */
export const share = (part: number, whole: number): string =>
  whole > 0 ? `${part > 0 ? Math.max(1, Math.floor((100 * part) / whole)) : 0}%` : '–';

export const plural = (n: number, word: string): string => `${count(n)} ${word}${n === 1 ? '' : 's'}`;

export function duration(ms: number | null | undefined): string {
  if (ms == null || !Number.isFinite(ms)) return '';
  if (ms < 0) ms = 0;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 59.95) return `${s < 9.95 ? s.toFixed(1) : Math.round(s)} s`;
  const minutes = Math.round(s / 60);
  if (s < 3600) {
    const m = Math.floor(s / 60);
    return `${m} min ${Math.floor(s % 60)} s`;
  }
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.round(minutes / 1440)} days`;
}

export function bytes(n: number): string {
  return n < 1024 ? `${n} B` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`;
}

/* The days from one time to another on the calendar: 1 for yesterday. */
const daysBetween = (time: number, now: number): number =>
  Math.round((new Date(now).setHours(0, 0, 0, 0) - new Date(time).setHours(0, 0, 0, 0)) / 86_400_000);

const weekday = new Intl.DateTimeFormat('en', { weekday: 'short' });

/* An age of today; else yesterday, a day of the last week or a date, as on a calendar. */
export function ago(time: number, now = Date.now()): string {
  const s = (now - time) / 1000;
  const days = daysBetween(time, now);
  if (s < 5) return 'now';
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (days === 0) return `${Math.floor(s / 3600)} h ago`;
  if (days < 7) return `${days === 1 ? 'yesterday' : weekday.format(time)} ${clock(time).slice(0, 5)}`;
  return day(time);
}

/* Remove colours from terminal text; a snippet may begin or end inside an escape sequence. */
// eslint-disable-next-line no-control-regex
const ESCAPES = /\u001b\[[0-9;?]*[A-Za-z]?|\u001b\][^\u0007]*\u0007|\u001b/g;
export const plain = (text: string): string => text.replace(ESCAPES, '').replaceAll('\r\n', '\n');

/* The parts of a terminal text, each with the number of its colour (0 to 15), or -1, and whether it is bold. */
export function coloured(text: string): { text: string; colour: number; bold: boolean }[] {
  const parts: { text: string; colour: number; bold: boolean }[] = [];
  let [colour, bold, last] = [-1, false, 0];
  const add = (to: number) => {
    const part = plain(text.slice(last, to));
    if (part) parts.push({ text: part, colour, bold });
  };
  // eslint-disable-next-line no-control-regex
  for (const found of text.matchAll(/\u001b\[([\d;]*)m/g)) {
    add(found.index);
    last = found.index + found[0].length;
    const codes = found[1]!.split(';').map(Number);
    for (let i = 0; i < codes.length; i++) {
      const code = codes[i]!;
      if (code === 0) [colour, bold] = [-1, false];
      else if (code === 1) bold = true;
      else if (code === 22) bold = false;
      else if (code === 39) colour = -1;
      else if (code >= 30 && code <= 37) colour = code - 30;
      else if (code >= 90 && code <= 97) colour = code - 82;
      else if (code === 38 || code === 48) {
        /* Of 256 colours the first 16 have names; other ones are left as they are. */
        if (code === 38 && codes[i + 1] === 5 && codes[i + 2]! < 16) colour = codes[i + 2]!;
        i += codes[i + 1] === 5 ? 2 : 4;
      }
    }
  }
  add(text.length);
  return parts;
}

const two = (n: number): string => String(n).padStart(2, '0');

export function day(time: number): string {
  const d = new Date(time);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
}

export function clock(time: number): string {
  const d = new Date(time);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/* Format a time on an axis, with the precision that its range needs. */
export function ticks(times: number[]): string[] {
  const step = times.length > 1 ? times[1]! - times[0]! : 0;
  return times.map((time, i) => {
    if (step >= 86_400_000) return day(time).slice(5);
    const at = clock(time).slice(0, step < 60_000 ? 8 : 5);
    return i === 0 || day(time) !== day(times[i - 1]!) ? `${at}\n${day(time)}` : at;
  });
}

export const moment = (time: number): string => (Number.isFinite(time) ? `${day(time)} ${clock(time)}` : '');

/* /home/ada/tide-table as tide-table. */
export const lastPart = (path: string | null): string => path?.replace(/\/+$/, '').split('/').pop() ?? '';

/* Return a stable hue for a name of an agent or lane. */
export function hue(name: string): number {
  let h = 2166136261;
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 16777619);
  return (h >>> 0) % 360;
}

/* A path of which only the end is shown if it is long. */
export const shortPath = (path: string): string => (path.length > 48 ? `…${path.slice(-46)}` : path);
