/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page as a file: the document contains the answers of the server. Data is parsed only when it is displayed, so a
 * file of 100 MB opens as fast as a small one.
 *
 * (1) #annal-head contains, for each session, the answers of the routes session, outline, tools, turns and usage.
 * (2) The events are in blocks of about 1 MiB, one line of JSON per event; a large block is gzip in base64.
 * (3) The state at a moment is computed here from (1): the tables sessions, turns, tool_calls and usage.
 */
import {
  objects,
  type Event,
  type Noted,
  type Outline,
  type Session,
  type Source,
  type State,
  type Table,
  type Value,
} from './api';
import { time } from './model';

interface Member {
  session: Session;
  outline: Outline;
  tools: Table;
  turns: Table;
  usage: Table;
}

interface Head {
  version: number;
  made_at: string;
  root: string;
  sessions: Member[];
}

const KEPT = 24; /* blocks */

/* The text of an element, which may be compressed. */
async function textOf(element: HTMLScriptElement): Promise<string> {
  if (!element.dataset.packed) return element.text;
  const bytes = Uint8Array.from(atob(element.text), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
}

const EMPTY: Table = { columns: [], rows: [] };

export class SharedFile implements Source {
  isFile = true;
  readonly root: string;
  private members: Map<string, Member>;
  private blocks = new Map<string, HTMLScriptElement[]>();
  private parsed = new Map<HTMLScriptElement, Promise<Event[]>>();

  constructor(head: Head, elements: Iterable<HTMLScriptElement>) {
    this.root = head.root;
    this.members = new Map(head.sessions.map((m) => [m.session.session_id, m]));
    for (const element of elements) {
      const id = element.dataset.session!;
      this.blocks.set(id, [...(this.blocks.get(id) ?? []), element]);
    }
  }

  private async member(id: string): Promise<Member> {
    const found = this.members.get(id);
    if (!found) throw new Error('This session is not in the file');
    return found;
  }

  async session(id: string): Promise<Session> {
    return (await this.member(id)).session;
  }

  async idsFrom(begin: string): Promise<string[]> {
    return [...this.members.keys()].filter((id) => id.startsWith(begin));
  }

  async children(id: string): Promise<Session[]> {
    return [...this.members.values()]
      .map((member) => member.session)
      .filter((s) => s.session_id !== id && (s.fork_session_id ?? s.parent_session_id) === id);
  }

  async outline(id: string, from: number): Promise<Outline> {
    const { outline } = await this.member(id);
    return from > 1 ? { types: [], seq: [], type: [], time: [], bytes: [] } : outline;
  }

  async tools(id: string, from: number): Promise<Table> {
    return from > 1 ? EMPTY : (await this.member(id)).tools;
  }

  async turns(id: string): Promise<Table> {
    return (await this.member(id)).turns;
  }

  async usage(id: string, from: number): Promise<Table> {
    return from > 1 ? EMPTY : (await this.member(id)).usage;
  }

  private block(element: HTMLScriptElement): Promise<Event[]> {
    let events = this.parsed.get(element);
    if (!events) {
      events = textOf(element).then((text) =>
        text
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line) as Event),
      );
      this.parsed.set(element, events);
      for (const old of this.parsed.keys()) {
        if (this.parsed.size <= KEPT) break;
        this.parsed.delete(old);
      }
    }
    return events;
  }

  async events(id: string, from: number, to: number): Promise<Event[]> {
    const wanted = (this.blocks.get(id) ?? []).filter(
      (element) => Number(element.dataset.to) >= from && Number(element.dataset.from) <= to,
    );
    const events = await Promise.all(wanted.map((element) => this.block(element)));
    return events.flat().filter((event) => event.seq >= from && event.seq <= to);
  }

  async noted(): Promise<{ things: Noted[]; last: Noted | null }> {
    return { things: [], last: null };
  }

  async state(id: string, seq: number): Promise<State> {
    const { session, outline, tools, turns, usage } = await this.member(id);
    const until = outline.time[outline.seq.findLastIndex((n) => n <= seq)] ?? Infinity;
    const began = objects<any>(turns).filter((turn) => turn.seq <= seq);
    const used = objects<any>(usage).filter((use) => use.seq <= seq);
    const called = objects<any>(tools).filter((call) => call.seq <= seq);
    const sum = (name: string, rows = used): number => rows.reduce((total, row) => total + (Number(row[name]) || 0), 0);
    const table = (rows: Record<string, Value>[]): Table => ({
      columns: Object.keys(rows[0] ?? {}),
      rows: rows.map((row) => Object.values(row)),
    });
    const models = [...new Set(used.map((use) => String(use.model ?? '')))];
    return {
      seq,
      tables: {
        sessions: table([
          {
            id,
            agent_id: session.agent_id,
            model: String(used.findLast((use) => use.model)?.model ?? session.model),
            created_at: session.created_at,
            last_activity_at: Number.isFinite(until) ? new Date(until).toISOString() : null,
            total_turns: began.length,
            total_tokens: sum('input_tokens') + sum('output_tokens'),
            input_tokens: sum('input_tokens'),
            output_tokens: sum('output_tokens'),
            cached_input_tokens: sum('cached_input_tokens'),
            cache_write_tokens: sum('cache_write_tokens'),
            cost_usd: used.some((use) => use.cost_microusd != null) ? sum('cost_microusd') / 1e6 : null,
            events: outline.seq.filter((n) => n <= seq).length,
          },
        ]),
        turns: table(
          began.map((turn) => {
            const over = time(turn.completed_at) <= until;
            return {
              id: turn.turn_id,
              sequence: turn.sequence,
              status: over ? turn.status : 'started',
              created_at: turn.created_at,
              completed_at: over ? turn.completed_at : null,
              seq: turn.seq,
            };
          }),
        ),
        tool_calls: table(
          called.map((call) => {
            const known = call.result_seq != null && call.result_seq <= seq;
            return {
              session_id: id,
              call_id: call.call_id,
              seq: call.seq,
              tool: call.tool,
              status: known ? call.status : 'called',
              called_at: call.called_at,
              returned_at: known ? call.returned_at : null,
              result_seq: known ? call.result_seq : null,
            };
          }),
        ),
        usage: table(
          models.map((model) => {
            const rows = used.filter((use) => String(use.model ?? '') === model);
            return {
              session_id: id,
              model,
              requests: rows.length,
              input_tokens: sum('input_tokens', rows),
              output_tokens: sum('output_tokens', rows),
            };
          }),
        ),
      },
    };
  }
}

/* The file that contains the page, if any. */
export function openFile(): SharedFile | null {
  const head = document.getElementById('annal-head');
  if (!head) return null;
  return new SharedFile(
    JSON.parse(head.textContent ?? '') as Head,
    document.querySelectorAll<HTMLScriptElement>('script[data-session]'),
  );
}
