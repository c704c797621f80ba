/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of all pages: data sources, small components, and keys. */
import { createContext, type ComponentChildren } from 'preact';
import { useContext, useEffect, useReducer, useRef, useState } from 'preact/hooks';
import type { Info, Server, Session, Source, Unread } from './api';
import * as format from './format';
import type { Live } from './live';

export interface App {
  source: Source;
  server: Server | null; /* null in a shared file */
  live: Live | null;
  info: Info | null;
}

export const AppContext = createContext<App>(null as unknown as App);
export const useApp = (): App => useContext(AppContext);

export function useRedraw(): () => void {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  return () => redraw(undefined);
}

/* The state of the stream of new events; undefined in a file, which has no stream. */
export function useStream(): Live['status'] | undefined {
  const { live } = useApp();
  const redraw = useRedraw();
  useEffect(() => live?.watchStatus(redraw), [live]);
  return live?.status;
}

/* The sessions that the server still reads into its index. */
export function useUnread(): Unread | null {
  const { server } = useApp();
  const redraw = useRedraw();
  useEffect(() => server?.watchUnread(redraw), [server]);
  return server?.unread ?? null;
}

/* The answer to a request; a newer request cancels it. The last answer is kept until the next one arrives. */
export function useAnswer<T>(
  ask: ((signal: AbortSignal) => Promise<T>) | null,
  on: unknown[],
): { value?: T; error?: string; busy: boolean } {
  const [answer, setAnswer] = useState<{ value?: T; error?: string; busy: boolean }>({ busy: ask !== null });
  useEffect(() => {
    if (!ask) return setAnswer({ busy: false });
    const stop = new AbortController();
    setAnswer((old) => ({ ...old, busy: true }));
    ask(stop.signal).then(
      (value) => !stop.signal.aborted && setAnswer({ value, busy: false }),
      (e: Error) => !stop.signal.aborted && setAnswer((old) => ({ value: old.value, error: e.message, busy: false })),
    );
    return () => stop.abort();
  }, on);
  return answer;
}

export function useLater<T>(value: T, ms: number): T {
  const [later, setLater] = useState(value);
  useEffect(() => {
    const timer = setTimeout(setLater, ms, value);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return later;
}

/* Limit how often a value changes, in milliseconds; the last value is always delivered. */
export function useSeldom<T>(value: T, ms: number): T {
  const [seldom, setSeldom] = useState(value);
  const last = useRef({ at: 0, value });
  last.current.value = value;
  useEffect(() => {
    if (Object.is(value, seldom)) return;
    const wait = Math.max(0, last.current.at + ms - performance.now());
    const timer = setTimeout(() => {
      last.current.at = performance.now();
      setSeldom(last.current.value);
    }, wait);
    return () => clearTimeout(timer);
  }, [value, seldom, ms]);
  return seldom;
}

/* Redraw as time passes, so that "3 min ago" stays true. */
export function useClock(ms: number): void {
  const redraw = useRedraw();
  useEffect(() => {
    const timer = setInterval(redraw, ms);
    return () => clearInterval(timer);
  }, [ms]);
}

export type Keys = Record<string, (event: KeyboardEvent) => void>;

const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable) &&
  (target as HTMLInputElement).type !== 'range';

/* The keys of a page, by name. In an input field they are text. */
export function useKeys(keys: Keys): void {
  const now = useRef(keys);
  now.current = keys;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (typing(event.target) || document.querySelector('dialog[open]')) return;
      const onButton = event.target instanceof HTMLElement && event.target.closest('button, a, summary');
      if (onButton && (event.key === ' ' || event.key === 'Enter')) return;
      const act = now.current[event.shiftKey && event.key.startsWith('Arrow') ? `Shift+${event.key}` : event.key];
      if (!act) return;
      event.preventDefault();
      act(event);
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

export function Ago({ time }: { time: string }) {
  const at = Date.parse(time);
  return (
    <time dateTime={time} title={format.moment(at)}>
      {format.ago(at)}
    </time>
  );
}

/* The first and the last day of a range; a range that is not of days is shown as none. */
export function Days(props: { from?: string; to?: string; set: (name: 'from' | 'to', day: string) => void }) {
  return (
    <span class="days">
      {(['from', 'to'] as const).map((name) => (
        <label>
          {name}{' '}
          <input
            type="date"
            value={/^\d{4}-/.test(props[name] ?? '') ? props[name] : ''}
            onChange={(e) => props.set(name, e.currentTarget.value)}
          />
        </label>
      ))}
    </span>
  );
}

const GONE: Record<string, [label: string, title: string]> = {
  deleted: ['log deleted', 'The log that it was imported from is gone. annal source restore writes it again'],
  shrank: ['log cut short', 'Its log was cut short. annal source generations lists what it was before'],
  replaced: ['log replaced', 'Its log has other content now. annal source generations lists what it was before'],
};

/* A mark for a session to whose log something happened. */
export function LogMark({ session: s }: { session: Session }) {
  const gone = GONE[s.source_state ?? ''];
  return gone ? (
    <span class="tag bad" title={`${gone[1]} (noticed ${format.moment(Date.parse(s.source_noticed_at ?? ''))})`}>
      {gone[0]}
    </span>
  ) : null;
}

export function Failure({ text, retry }: { text: string; retry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <span>{text}</span>
      {retry && <button onClick={retry}>Try again</button>}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

export function Agent({ name }: { name: string }) {
  return name ? (
    <span class="agent">
      <i class="agent-mark" style={{ '--hue': format.hue(name) }} />
      {name}
    </span>
  ) : null;
}

const ICONS: Record<string, string> = {
  play: 'M5 3.5v9l7.5-4.5z',
  pause: 'M4.5 3.5h2.6v9H4.5zM8.9 3.5h2.6v9H8.9z',
  next: 'M5.5 3.5 10 8l-4.5 4.5',
  back: 'M10.5 3.5 6 8l4.5 4.5',
  nextTurn: 'M3.5 3.5 8 8l-4.5 4.5M8.5 3.5 13 8l-4.5 4.5',
  backTurn: 'M12.5 3.5 8 8l4.5 4.5M7.5 3.5 3 8l4.5 4.5',
  search: 'M7 2.8a4.2 4.2 0 1 1 0 8.4 4.2 4.2 0 0 1 0-8.4zM10.2 10.2l3.3 3.3',
  open: 'M5.5 3.5 10 8l-4.5 4.5',
  share: 'M8 10V2.5M5 5l3-3 3 3M3.5 9v4h9V9',
  fork: 'M5 3v10M5 9c0-3 6-2 6-5.5M9.3 4.8 11 3l1.7 1.8',
  copy: 'M5.5 5.5V3h7.5v7.5h-2.5M3 5.5h7.5V13H3z',
  link: 'M6.3 9.7l3.4-3.4M7.2 4.6 9 2.8a2.9 2.9 0 0 1 4.1 4.1l-1.8 1.8M8.8 11.4 7 13.2a2.9 2.9 0 0 1-4.1-4.1l1.8-1.8',
  theme: 'M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11',
  close: 'M4 4l8 8M12 4l-8 8',
  compare: 'M3 3h4v10H3zM9 3h4v10H9z',
  tree: 'M3 3.5h4M3 8h7M3 12.5h10',
};

export function Icon({ name }: { name: keyof typeof ICONS }) {
  const solid = name === 'play' || name === 'pause';
  return (
    <svg class={solid ? 'icon solid' : 'icon'} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}

export function Button(props: {
  label: string;
  icon: keyof typeof ICONS;
  onClick: () => void;
  disabled?: boolean;
  pressed?: boolean;
  hint?: string;
}) {
  return (
    <button
      class="icon-button"
      aria-label={props.label}
      title={props.hint ? `${props.label} (${props.hint})` : props.label}
      aria-pressed={props.pressed}
      disabled={props.disabled}
      onClick={props.onClick}
    >
      <Icon name={props.icon} />
    </button>
  );
}

export function Copy(props: { text: string; label: string; tabIndex?: number; children?: ComponentChildren }) {
  const { text, label, children } = props;
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text).catch(() => {});
    setDone(true);
    setTimeout(setDone, 1200, false);
  };
  return (
    <button class="link copy" tabIndex={props.tabIndex} onClick={copy} aria-label={label} title={label}>
      {done ? 'copied' : (children ?? <Icon name="copy" />)}
    </button>
  );
}

export function useStored(key: string, initial: string): [string, (value: string) => void] {
  const [value, setValue] = useState(() => read(key) ?? initial);
  return [
    value,
    (next) => {
      write(key, next);
      setValue(next);
    },
  ];
}

const dark = matchMedia('(prefers-color-scheme: dark)');

/* Light or dark: the user's choice, or else the system setting. */
export function applyTheme(): void {
  const chosen = read('theme');
  document.documentElement.dataset.theme =
    chosen === 'light' || chosen === 'dark' ? chosen : dark.matches ? 'dark' : 'light';
  dispatchEvent(new window.Event('annal-theme'));
}

dark.addEventListener('change', applyTheme);

/* Redraw when the colours change, because canvases read them from the style. */
export function useTheme(): string | undefined {
  const redraw = useRedraw();
  useEffect(() => {
    addEventListener('annal-theme', redraw);
    return () => removeEventListener('annal-theme', redraw);
  }, []);
  return document.documentElement.dataset.theme;
}

/* In some browsers a file has no storage. */
export function read(key: string): string | null {
  try {
    return localStorage.getItem(`annal.${key}`);
  } catch {
    return null;
  }
}

export function write(key: string, value: string): void {
  try {
    localStorage.setItem(`annal.${key}`, value);
  } catch {
    /* not saved */
  }
}
