/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stream for all tabs, because a browser opens at most six connections to a server, and each stream occupies one.
 *
 * (1) The tab that holds the Web Lock reads the stream of all sessions, and sends each event to the other tabs through
 *     a BroadcastChannel. When it is closed or hidden, it releases the lock, and a visible tab takes over.
 * (2) While no tab is visible, nothing is read. A tab that becomes visible, or takes over, sends `resync`, and pages
 *     then fetch missing events.
 * (3) Pages request their data after the stream has started (`ready`), so that no event is missed in between. With
 *     thousands of sessions the start takes a while: pages do not wait for it, and receive `resync` afterwards.
 * (4) After an interruption the stream continues from the last event id, so no event is missed or repeated.
 */
import type { Event, Server } from './api';

export type Status = 'live' | 'connecting' | 'paused' | 'lost';

interface Message {
  events?: Event[];
  resync?: boolean;
  status?: Status;
  ask?: 'token' | 'status';
  token?: string;
}

const LOCK = 'annal-stream';
const LONGEST_RETRY_MS = 15_000;
const LONGEST_WAIT_MS = 50; /* for the stream; then pages request data without it */

/* Read an event stream line by line. */
export async function readStream(
  body: ReadableStream<Uint8Array>,
  take: (field: string, value: string) => void,
): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as any).getReader() as ReadableStreamDefaultReader<string>;
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop()!;
    for (const line of lines) {
      const colon = line.indexOf(':');
      if (line === '') take('', '');
      else if (colon !== 0)
        take(colon < 0 ? line : line.slice(0, colon), colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, ''));
      else take('comment', '');
    }
  }
}

export class Live {
  status: Status = 'connecting';
  private channel = new BroadcastChannel('annal');
  private onEvents = new Set<(events: Event[]) => void>();
  private onResync = new Set<() => void>();
  private onStatus = new Set<() => void>();
  private stop: AbortController | null = null;
  private lastId = '';
  private queue: Event[] = [];
  private retryMs = 1000;
  private began = () => {};
  private behind = false; /* data was requested before the stream started, or the stream was interrupted */
  readonly ready = new Promise<void>((done) => (this.began = done));

  constructor(private server: Server) {
    this.channel.onmessage = ({ data }: MessageEvent<Message>) => this.hear(data);
  }

  start(): void {
    document.addEventListener('visibilitychange', () => this.visibility());
    addEventListener('pagehide', () => this.stop?.abort());
    setTimeout(() => {
      if (this.status !== 'live') this.behind = true;
      this.began();
    }, LONGEST_WAIT_MS);
    this.visibility();
  }

  private visibility(): void {
    if (document.hidden) {
      this.stop?.abort();
      this.stop = null;
      this.setStatus('paused');
    } else if (!this.stop) {
      this.stop = new AbortController();
      const { signal } = this.stop;
      this.setStatus('connecting');
      this.channel.postMessage({ ask: 'status' } satisfies Message);
      this.resync();
      navigator.locks.request(LOCK, { signal }, () => this.lead(signal)).catch(() => {});
    }
  }

  /* Read until the signal tells that another tab is to lead. */
  private async lead(signal: AbortSignal): Promise<void> {
    this.lastId = '';
    while (!signal.aborted) {
      try {
        const headers: Record<string, string> = { Accept: 'text/event-stream' };
        if (this.lastId) headers['Last-Event-ID'] = this.lastId;
        const answer = await this.server.request('/stream', { headers, signal });
        const missing = !this.lastId && this.behind;
        this.tell('live');
        if (missing) {
          this.channel.postMessage({ resync: true } satisfies Message);
          this.resync();
        }
        await this.read(answer.body!);
      } catch {
        /* interrupted: retried below */
      }
      if (signal.aborted) return;
      this.tell('lost');
      await new Promise((done) => setTimeout(done, this.retryMs));
      this.retryMs = Math.min(this.retryMs * 2, LONGEST_RETRY_MS);
    }
  }

  private async read(body: ReadableStream<Uint8Array>): Promise<void> {
    let type = '';
    let data = '';
    await readStream(body, (field, value) => {
      if (field === 'event') type = value;
      else if (field === 'data') data += data ? `\n${value}` : value;
      else if (field === 'id') this.lastId = value;
      else if (field === 'retry') this.retryMs = Math.min(Number(value) || 1000, LONGEST_RETRY_MS);
      else if (field === '') {
        if (type === 'resync') {
          this.channel.postMessage({ resync: true } satisfies Message);
          this.resync();
        } else if (data && (type === 'append' || type === 'large')) {
          this.queueEvent(JSON.parse(data));
        }
        type = data = '';
      }
    });
  }

  /* Events of one moment are sent together. */
  private queueEvent(event: Event): void {
    if (this.queue.push(event) > 1) return;
    setTimeout(() => {
      const events = this.queue;
      this.queue = [];
      this.channel.postMessage({ events } satisfies Message);
      this.hand(events);
    }, 10);
  }

  private hear(message: Message): void {
    if (message.ask === 'token') this.channel.postMessage({ token: this.server.token } satisfies Message);
    if (message.ask === 'status' && this.status === 'live')
      this.channel.postMessage({ status: 'live' } satisfies Message);
    if (document.hidden) return;
    if (message.events) this.hand(message.events);
    if (message.resync) this.resync();
    if (message.status) this.setStatus(message.status);
  }

  private tell(status: Status): void {
    this.channel.postMessage({ status } satisfies Message);
    this.setStatus(status);
  }

  private setStatus(status: Status): void {
    this.status = status;
    if (status === 'live') {
      this.began();
      this.behind = true;
    }
    for (const listener of this.onStatus) listener();
  }

  private hand(events: Event[]): void {
    for (const listener of this.onEvents) listener(events);
  }

  private resync(): void {
    for (const listener of this.onResync) listener();
  }

  listen(events: (events: Event[]) => void, resync: () => void): () => void {
    this.onEvents.add(events);
    this.onResync.add(resync);
    return () => {
      this.onEvents.delete(events);
      this.onResync.delete(resync);
    };
  }

  watchStatus(listener: () => void): () => void {
    this.onStatus.add(listener);
    return () => this.onStatus.delete(listener);
  }
}

/* A tab that was opened without a token requests it from the other tabs. */
export function askOthers(): Promise<string | null> {
  const channel = new BroadcastChannel('annal');
  return new Promise((done) => {
    const end = (token: string | null) => {
      channel.close();
      done(token);
    };
    channel.onmessage = ({ data }: MessageEvent<Message>) => data.token && end(data.token);
    channel.postMessage({ ask: 'token' } satisfies Message);
    setTimeout(end, 150, null);
  });
}
