/* SPDX-License-Identifier: Apache-2.0 */
/* What failed: in a session, and over all sessions, grouped by message. */
import { useState } from 'preact/hooks';
import { objects } from './api';
import * as format from './format';
import { errorText } from './message';
import type { Model } from './model';
import { RANGES, times } from './range';
import { link, replace, type Route } from './route';
import { Select } from './sessions';
import { gist, inputOf, outputOf } from './tool';
import { Ago, Empty, Failure, useAnswer, useApp } from './ui';

const KINDS: Record<string, string> = {
  'turn.failed': 'turn',
  'provider.failed': 'request',
  provider_error: 'request',
  'import.unreadable': 'line of the log',
  line: 'line of the log',
};

/* An error with its message, as compilers, tests and languages write it. */
const TELLING = /^E {2,}\S|(^|[\s[(.])(\w*(error|exception)( \w+)?|fatal|panic|fail(ed|ure)?)(\[\w+\])?:.*\w|\bpanicked at\b|\bfailed \(/i;

/* The line of a text that names the error, else its first one with words, without the code or the heading before it. */
export function tellingLine(text: string): string {
  const lines = text
    .replace(/<\/?[\w-]+>/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => /\p{L}{2}/u.test(line) && !/^(exit code \d+|error:?|<\w+>|traceback.*:)$/i.test(line));
  return (
    lines.find((line) => TELLING.test(line)) ?? lines[0] ?? text.trim().split('\n')[0]!.replace(/^[{}[\]\s]*$/, '')
  );
}

const textOf = (data: any): string =>
  data?.error !== undefined && data.output === undefined
    ? errorText(data.error)
    : outputOf(data).text || String(data?.reason ?? '');

const SHOWN = 100;

export function FailuresPanel({ model, at, see }: { model: Model; at: number; see: (seq: number) => void }) {
  const [whole, setWhole] = useState(false);
  const all = model.failures();
  const known = all.filter((seq) => seq <= at);
  const later = all.length - known.length;
  if (!all.length)
    return (
      <Empty title="Nothing failed">
        <p>No call, turn or request of this session failed, and all lines of its log could be read.</p>
      </Empty>
    );
  return (
    <section>
      <h2>
        Failures <span class="total">{format.count(known.length)}</span>
      </h2>
      <ol class="failures">
        {(whole ? known : known.slice(0, SHOWN)).map((seq) => {
          const event = model.event(seq);
          const call = model.callOfResult.get(seq) ?? model.callAt.get(seq);
          const command = call && gist(inputOf(model.event(call.seq)?.data));
          return (
            <li>
              <button onClick={() => see(seq)} title="Show it">
                <span class="failure-text" dir="auto">
                  {event ? tellingLine(textOf(event.data)).slice(0, 300) || 'no message' : '…'}
                </span>
                <span class="dim">
                  {call?.tool || KINDS[model.typeAt(model.index(seq))]} {command && <code>{command}</code>}
                  {' · '}
                  {format.clock(model.timeOf(seq))}
                </span>
              </button>
            </li>
          );
        })}
      </ol>
      {!whole && known.length > SHOWN && (
        <button class="link" onClick={() => setWhole(true)}>
          Show all {format.count(known.length)}
        </button>
      )}
      {later > 0 && <p class="dim">{format.count(later)} later</p>}
    </section>
  );
}

const MOST = 2000;

const OUTPUT_MAX = 1200;
const INPUT_MAX = 4000;

/* The last failures of all sessions, with the input of the call. Codex puts the output of a command in JSON. */
const sqlOf = ({ since = '', until = '9999' }: ReturnType<typeof times>): string => {
  return `SELECT e.session_id, e.seq, coalesce(f.tool, f.what) AS what, e.timestamp AS time,
  coalesce(s.title, e.session_id) AS title,
  substr(coalesce(e.data ->> '$.output[0].text',
    CASE WHEN json_valid(e.data ->> '$.output') THEN e.data ->> '$.output' ->> '$.output' END,
    e.data ->> '$.output', e.data ->> '$.error.message', e.data ->> '$.error', e.data ->> '$.reason'), 1, ${OUTPUT_MAX})
    AS text,
  CASE WHEN length(i.data ->> '$.input') < ${INPUT_MAX} THEN i.data -> '$.input' END AS input
FROM (SELECT * FROM failures WHERE timestamp >= '${since}' AND timestamp < '${until}' ORDER BY timestamp DESC LIMIT ${MOST}) f
JOIN events e ON e.session_id = f.session_id AND e.seq = f.seq
LEFT JOIN sessions s ON s.id = e.session_id
LEFT JOIN tool_calls c ON c.session_id = e.session_id AND c.call_id = e.data ->> '$.call_id'
LEFT JOIN events i ON i.session_id = c.session_id AND i.seq = c.seq
ORDER BY e.timestamp DESC`;
};

interface Failed {
  session_id: string;
  seq: number;
  what: string;
  time: string;
  title: string;
  text: string | null;
  input: string | null; /* of the call, as JSON */
}

const commandOf = (one: Failed): string =>
  one.input === null ? '' : gist(inputOf({ input: JSON.parse(one.input) }));

interface Group {
  what: string;
  text: string;
  list: Failed[]; /* the newest first */
  sessions: number;
}

/* Messages that differ only in numbers, ids, paths and quoted names are one. */
export function grouped(list: Failed[]): Group[] {
  const groups = new Map<string, Group>();
  for (const one of list) {
    const text = tellingLine(format.plain(one.text ?? '')).slice(0, 300);
    const key = `${one.what} ${text.replace(/[0-9a-f]{7,}|\d+|'[^']*'|"[^"]*"|\/[\w./-]+/gi, '#')}`;
    const group = groups.get(key);
    if (group) group.list.push(one);
    else groups.set(key, { what: KINDS[one.what] ?? one.what, text, list: [one], sessions: 0 });
  }
  for (const group of groups.values()) group.sessions = new Set(group.list.map((one) => one.session_id)).size;
  return [...groups.values()].sort((a, b) => b.list.length - a.list.length);
}

const PLACES = 5;
const MOST_PLACES = 100;

function GroupRow({ group }: { group: Group }) {
  const [whole, setWhole] = useState(false);
  const shown = group.list.slice(0, whole ? MOST_PLACES : PLACES);
  return (
    <li class="hit failed-group">
      <p class="hit-text" dir="auto">
        <span class="tag bad">{format.count(group.list.length)}×</span> {group.text || 'no message'}
      </p>
      <p class="hit-facts">
        <span>{group.what}</span>
        <span>{format.plural(group.sessions, 'session')}</span>
      </p>
      <ul>
        {shown.map((one) => (
          <li>
            <a href={link('s', one.session_id, { see: one.seq })}>{one.title}</a>{' '}
            {commandOf(one) && <code>{commandOf(one)}</code>}{' '}
            <span class="dim">
              event {format.count(one.seq)}, <Ago time={one.time} />
            </span>
          </li>
        ))}
      </ul>
      {!whole && group.list.length > shown.length && (
        <button class="link" onClick={() => setWhole(true)}>
          {format.count(group.list.length - shown.length)} more
        </button>
      )}
    </li>
  );
}

export function Failures({ route }: { route: Route }) {
  const { server } = useApp();
  const since = route.query.get('since') ?? '';
  const { value, error, busy } = useAnswer(
    (signal) => server!.sql(sqlOf(times(since)), MOST, signal).then((table) => objects<any>(table) as Failed[]),
    [since],
  );
  const groups = grouped(value ?? []);
  return (
    <main class="search-page" aria-busy={busy}>
      <h1>What failed</h1>
      <div class="filters" role="group" aria-label="Filters">
        <Select
          label="At any time"
          value={since}
          options={RANGES}
          choose={(v) => replace(link('failures', '', { since: v }))}
        />
        {value && (
          <span class="dim">
            {value.length === MOST ? `the last ${format.count(MOST)} failures` : format.plural(value.length, 'failure')}
          </span>
        )}
        <a href={link('', '', { failed: 1 })}>Sessions in which something failed</a>
      </div>
      {error && <Failure text={error} />}
      {!value && busy && <p class="wait">Reading what failed…</p>}
      {value && !groups.length && <Empty title="Nothing failed" />}
      <ul class="hits">
        {groups.slice(0, 200).map((group) => (
          <GroupRow key={`${group.what} ${group.text}`} group={group} />
        ))}
      </ul>
    </main>
  );
}
