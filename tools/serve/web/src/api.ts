/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of the page's data: the server's /api/v1, or the file that contains the page (share.ts).
 */

export interface Session {
  session_id: string;
  status: string;
  events: number;
  total_turns: number;
  total_tokens: number;
  total_cost_usd: number | null;
  computed_cost_usd?: number | null;
  costed_tokens?: number;
  last_activity_at: string;
  created_at: string;
  agent_id: string;
  model: string;
  provider?: string;
  parent_session_id: string | null;
  fork_session_id: string | null;
  fork_seq: number | null;
  title: string | null;
  name?: string | null; /* what people note: notes.tsx */
  starred?: 0 | 1;
  tags?: string | null; /* with spaces between them */
  notes?: number;
  time_from: string | null;
  findings: number;
  failed_requests?: number;
  failed_calls?: number;
  failed_turns?: number;
  unreadable_lines?: number;
  source_state?: SourceState | null;
  source_noticed_at?: string | null;
  source_path?: string | null;
  working_directory?: string | null;
  git_branch?: string | null;
  input_tokens?: number;
  output_tokens?: number;
  cached_input_tokens?: number;
  cache_write_tokens?: number;
  tree?: Rollup;
}

/* A star, a name, a tag or a note of the pack annotations: the change that decides it. */
export interface Noted {
  seq: number; /* of the change, in the session of notes */
  changed_at: string;
  kind: 'star' | 'name' | 'tag' | 'note';
  event_seq: number; /* 0: the session itself */
  item: string; /* the tag, or the number of the note */
  value: string | null; /* null: the change removed it */
  by: string | null;
  event_id: string | null;
  event_hash: string | null;
}

/* The worst that happened to the logs of a session. */
export type SourceState = 'deleted' | 'shrank' | 'replaced' | 'returned';

/* A session with all its descendants. */
export interface Rollup {
  sessions: number;
  events: number;
  total_tokens: number;
  cost_usd: number | null;
  computed_cost_usd?: number | null;
  first_at: string;
  last_at: string;
}

export interface Event {
  session_id: string;
  seq: number;
  timestamp: string;
  type: string;
  id?: string | null;
  data: any;
}

export interface Outline {
  types: string[];
  seq: number[];
  type: number[];
  time: number[];
  bytes: number[];
}

export type Value = string | number | null;

export interface Table {
  columns: string[];
  rows: Value[][];
  truncated?: boolean;
  total?: number; /* number of existing rows, of which these are the last */
  elapsed_ms?: number;
}

export interface State {
  seq: number;
  tables: Record<string, Table>;
}

export interface Hit {
  session: string;
  seq: number;
  time: string;
  type: string;
  role?: string;
  tool?: string;
  snippet: [string, boolean][];
}

export interface Found {
  hits: Hit[];
  sessions: { session: string; events: number; why: string }[];
}

/* The limits of a search: role, tool, project, range of times. */
export type Filter = Partial<Record<'role' | 'tool' | 'dir' | 'since' | 'until', string>>;

export interface Info {
  version: string;
  store: string;
  read_only: boolean;
  rights: string;
  imports: boolean; /* whether this browser may import the logs of the server's machine */
}

/* A place where an agent has logs. */
export interface Place {
  agent: string;
  place: string;
  logs: number;
  bytes: number;
  newest_at: string;
}

/* An import of the logs of the server's machine, which this page started. */
export interface Import {
  state: 'none' | 'running' | 'done' | 'failed';
  logs: number;
  of: number;
  events: number;
  message: string;
}

export interface Watch {
  watch: { process: string; since: string } | null;
  unread: { path: string; bytes: number; since: string }[];
  sources: number;
  bytes: number;
}

export interface SchemaTable {
  table: string;
  kind: string;
  columns: { name: string; type: string }[];
}

export interface SessionPage {
  sessions: Session[];
  next: string | null;
  total: number;
  unread: Unread | null;
}

/* The sessions that the server has not read into its index yet. */
export interface Unread {
  sessions: number;
  of: number;
}

export interface Proof {
  line: string;
  hash?: string;
  previous?: string;
  offset?: number;
  bytes?: number;
  proved?: boolean;
  why?: string;
}

export type Facets = Record<'status' | 'agent' | 'model' | 'dir', [string, number][]>;

export interface Source {
  isFile: boolean;
  session(id: string): Promise<Session>;
  idsFrom(begin: string): Promise<string[]>; /* of sessions whose id begins so */
  children(id: string): Promise<Session[]>;
  outline(id: string, from: number): Promise<Outline>;
  tools(id: string, from: number): Promise<Table>;
  turns(id: string): Promise<Table>;
  usage(id: string, from: number): Promise<Table>;
  events(id: string, from: number, to: number): Promise<Event[]>;
  state(id: string, seq: number, signal?: AbortSignal): Promise<State>;
  /* Stars, names, tags and notes, the newest first; and the last change, for undo. */
  noted(id: string): Promise<{ things: Noted[]; last: Noted | null }>;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/* Convert the rows of a table to objects. */
export function objects<T = Record<string, Value>>(table: Table): T[] {
  return table.rows.map((row) => Object.fromEntries(table.columns.map((name, i) => [name, row[i]])) as T);
}

const path = (id: string): string => `/sessions/${encodeURIComponent(id)}`;

/* The maximum number of events per answer. */
const MOST_EVENTS = 500;

const MOST_NOTED = 5000;

/* The maximum number of rows per table of a state, counted from the end. */
const MOST_ROWS = 120;

export class Server implements Source {
  isFile = false;
  onUnauthorized: () => void = () => {};
  unread: Unread | null = null;
  private onUnread = new Set<() => void>();

  constructor(public token: string) {}

  private zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

  async request(url: string, options: RequestInit = {}): Promise<Response> {
    let answer: Response;
    try {
      answer = await fetch(`/api/v1${url}`, {
        ...options,
        headers: { ...options.headers, Authorization: `Bearer ${this.token}` },
      });
    } catch (e) {
      if ((e as Error).name === 'AbortError') throw e;
      throw new ApiError(0, 'unreachable', 'The server does not answer. Is `annal serve` still running?');
    }
    const unread = /^(\d+) of (\d+)$/.exec(answer.headers.get('Annal-Unread') ?? '');
    this.noteUnread(unread && { sessions: Number(unread[1]), of: Number(unread[2]) });
    if (answer.ok) return answer;
    if (answer.status === 401) this.onUnauthorized();
    let code = 'failed';
    let message = `The server answered ${answer.status}`;
    try {
      const { error, refused } = await answer.json();
      if (typeof error?.message === 'string') ({ code, message } = error);
      else if (typeof refused === 'string') message = refused.replace(/^line 1: /, '');
    } catch {
      /* not JSON: the status is enough */
    }
    throw new ApiError(answer.status, code, message);
  }

  /* Each answer says how many sessions it may lack. */
  private noteUnread(unread: Unread | null): void {
    if (unread?.sessions === this.unread?.sessions && unread?.of === this.unread?.of) return;
    this.unread = unread;
    for (const listener of this.onUnread) listener();
  }

  watchUnread(listener: () => void): () => void {
    this.onUnread.add(listener);
    return () => this.onUnread.delete(listener);
  }

  async get<T>(url: string, query: Record<string, string | number | undefined> = {}, signal?: AbortSignal): Promise<T> {
    const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
    const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
    return (await this.request(text ? `${url}?${text}` : url, { signal })).json();
  }

  async post<T>(url: string, body: unknown, signal?: AbortSignal): Promise<T> {
    const headers = { 'Content-Type': 'application/json' };
    return (await this.request(url, { method: 'POST', body: JSON.stringify(body), headers, signal })).json();
  }

  async sessions(query: Record<string, string | number | undefined>, signal?: AbortSignal): Promise<SessionPage> {
    const page: SessionPage = await this.get('/sessions', query, signal);
    this.noteUnread(page.unread);
    return page;
  }

  session(id: string): Promise<Session> {
    return this.get(path(id));
  }

  async idsFrom(begin: string): Promise<string[]> {
    const { sessions } = await this.sessions({ q: begin, limit: 200 });
    return sessions.map((s) => s.session_id).filter((id) => id.startsWith(begin));
  }

  async children(id: string): Promise<Session[]> {
    return (await this.get<{ sessions: Session[] }>(`${path(id)}/children`)).sessions;
  }

  facets(): Promise<Facets> {
    return this.get('/facets');
  }

  watch(): Promise<Watch> {
    return this.get('/watch');
  }

  async places(signal?: AbortSignal): Promise<Place[]> {
    return (await this.get<{ places: Place[] }>('/logs', {}, signal)).places;
  }

  startImport(): Promise<Import> {
    return this.post('/import', {});
  }

  imported(): Promise<Import> {
    return this.get('/import');
  }

  info(): Promise<Info> {
    return this.get('/info');
  }

  outline(id: string, from: number): Promise<Outline> {
    return this.get(`${path(id)}/outline`, { from });
  }

  tools(id: string, from: number): Promise<Table> {
    return this.get(`${path(id)}/tools`, { from });
  }

  turns(id: string): Promise<Table> {
    return this.get(`${path(id)}/turns`);
  }

  usage(id: string, from: number): Promise<Table> {
    return this.get(`${path(id)}/usage`, { from });
  }

  /* An answer may end early: `next` is the start of the next one. */
  async events(id: string, from: number, to: number): Promise<Event[]> {
    const events: Event[] = [];
    for (let next: number | null = from; next !== null && next <= to;) {
      const page: { events: Event[]; next: number | null } = await this.get(`${path(id)}/events`, {
        from: next,
        to,
        limit: MOST_EVENTS,
      });
      events.push(...page.events);
      next = page.next;
    }
    return events;
  }

  state(id: string, seq: number, signal?: AbortSignal): Promise<State> {
    return this.get(`${path(id)}/state`, { seq, rows: MOST_ROWS }, signal);
  }

  proof(id: string, seq: number): Promise<Proof> {
    return this.get(`${path(id)}/events/${seq}/proof`);
  }

  /* The best sessions, and the best events of each. */
  search(q: string, limit: number, filter: Filter, signal?: AbortSignal): Promise<Found> {
    return this.get('/search', { ...filter, q, limit }, signal);
  }

  /* The events of a session that contain every word. */
  async searchIn(session: string, q: string, limit: number, filter: Filter, signal?: AbortSignal): Promise<Hit[]> {
    return (await this.get<Found>('/search', { ...filter, q, session, limit, order: 'events' }, signal)).hits;
  }

  /* Tokens and costs of days from `since` to before `until`, both YYYY-MM-DD in the browser's time zone. */
  async usageBy(by: string, since?: string, until?: string, signal?: AbortSignal): Promise<Record<string, any>[]> {
    const ask = (zone?: string) => this.get<Table>('/usage', { by, since, until, zone }, signal);
    try {
      return objects(await ask(this.zone));
    } catch (e) {
      if (!(e instanceof ApiError) || e.code !== 'zone') throw e;
      this.zone = '';
      return objects(await ask());
    }
  }

  /* The sections of `annal diff A B`. */
  diff(a: string, b: string, signal?: AbortSignal): Promise<Record<string, Table>> {
    return this.get('/diff', { a, b }, signal);
  }

  async titles(ids: string[], signal?: AbortSignal): Promise<Map<string, string>> {
    const list = [...new Set(ids)].map((id) => `'${id.replaceAll("'", "''")}'`).join();
    const sql = `SELECT s.id, coalesce(s.title, p.title, s.id) FROM sessions s LEFT JOIN forks f ON f.session_id = s.id
      LEFT JOIN sessions p ON p.id = f.parent_session_id WHERE s.id IN (${list})`;
    const { rows } = await this.sql(sql, ids.length, signal);
    return new Map(rows.map(([id, title]) => [String(id), String(title)]));
  }

  /* Days use the time zone of the browser, or of the server if the server does not know that zone. */
  async sql(sql: string, limit: number, signal?: AbortSignal): Promise<Table> {
    const body = { sql, limit, timeout_ms: 20_000 };
    if (this.zone) {
      try {
        return await this.post(`/sql?zone=${encodeURIComponent(this.zone)}`, body, signal);
      } catch (e) {
        if (!(e instanceof ApiError) || e.code !== 'zone') throw e;
        this.zone = '';
      }
    }
    return this.post('/sql', body, signal);
  }

  async schema(): Promise<SchemaTable[]> {
    const answer = await this.get<{ tables: SchemaTable[] } | SchemaTable[]>('/schema');
    return Array.isArray(answer) ? answer : answer.tables;
  }

  fork(id: string, at: number, name: string): Promise<unknown> {
    return this.post(`${path(id)}/fork`, { at, name });
  }

  /* Append a change to the notes on a session, or on one of its events. */
  async note(id: string, type: string, data: object, seq: number): Promise<void> {
    const about = seq && Promise.all([this.events(id, seq, seq), this.proof(id, seq)]);
    const subject = about && (([[event], { hash }]) => ({ event_seq: seq, event_id: event?.id, event_hash: hash }))(await about);
    const body = JSON.stringify({ type, data: { ...data, ...(subject || {}) } });
    await this.request(`${path(`notes_${id}`)}/events`, { method: 'POST', body });
  }

  async noted(id: string): Promise<{ things: Noted[]; last: Noted | null }> {
    const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
    const columns = 'seq, changed_at, kind, event_seq, item, value, by, event_id, event_hash';
    const of = `WHERE session_id = ${quoted(id)}`;
    /* Without a note the tables may not exist. */
    const some = await this.sql(`SELECT 1 FROM events WHERE session_id = ${quoted(`notes_${id}`)} LIMIT 1`, 1);
    if (!some.rows.length) return { things: [], last: null };
    const table = await this.sql(
      `SELECT 0 AS holds, ${columns} FROM (SELECT * FROM annotations.note_changes ${of} AND undone IS NULL
         ORDER BY seq DESC LIMIT 1)
       UNION ALL SELECT 1, ${columns} FROM annotations.note_things ${of} ORDER BY 1, 2 DESC`,
      MOST_NOTED,
    );
    const rows = objects<any>(table);
    return { things: rows.filter((row) => row.holds), last: rows.find((row) => !row.holds) ?? null };
  }

  async share(id: string, arrived: (bytes: number) => void): Promise<Blob> {
    const answer = await this.request(`${path(id)}/share?tree=1`);
    const reader = answer.body!.getReader();
    const parts: BlobPart[] = [];
    let bytes = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return new Blob(parts, { type: 'text/html' });
      parts.push(value);
      arrived((bytes += value.length));
    }
  }
}
