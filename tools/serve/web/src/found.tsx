/* SPDX-License-Identifier: Apache-2.0 */
/* A store without sessions: the logs that this machine has, and their import. How far the logs of a store are read. */
import { useEffect, useState } from 'preact/hooks';
import type { Import } from './api';
import * as format from './format';
import { Agent, Ago, Empty, Failure, useAnswer, useApp } from './ui';

const ASK_MS = 500;

/* The import that the server runs, and a function that starts one. The page asks again while it runs. */
export function useImport(wanted: boolean): { value: Import | null; error: string; start: () => void } {
  const { server, info } = useApp();
  const [value, setValue] = useState<Import | null>(null);
  const [error, setError] = useState('');
  const may = !!info?.imports && wanted;
  const take = (answer: Promise<Import>): void =>
    void answer.then(
      (next) => {
        setValue(next);
        setError('');
      },
      (e: Error) => setError(e.message),
    );
  useEffect(() => {
    if (may) take(server!.imported());
  }, [may]);
  useEffect(() => {
    if (value?.state !== 'running') return;
    const timer = setTimeout(() => take(server!.imported()), ASK_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return { value, error, start: () => take(server!.startImport()) };
}

export function ImportProgress({ value }: { value: Import | null }) {
  if (value?.state !== 'running') return null;
  return (
    <p class="reading" role="status">
      <progress max={value.of || 1} value={value.of ? value.logs : undefined} aria-label="Imported logs" />
      {value.of
        ? `${format.count(value.logs)} of ${format.plural(value.of, 'log')} imported, ${format.plural(value.events, 'event')}`
        : 'Looking for logs…'}
    </p>
  );
}

/* The two commands, for who may not import from here. */
const Commands = () => (
  <>
    <p>
      <code>annal import</code> imports the logs of this machine's agents; <code>annal watch</code> continues while
      they write.
    </p>
    <p>Sessions appear here at once.</p>
  </>
);

export function NoSessions({ running, start, error }: { running: Import | null; start: () => void; error: string }) {
  const { server, info } = useApp();
  const places = useAnswer(info?.imports ? (signal) => server!.places(signal) : null, [info?.imports]);
  const watch = useAnswer(() => server!.watch(), []);
  const found = places.value ?? [];
  const busy = running?.state === 'running';
  const ended = running && running.state !== 'none' && !busy;
  return (
    <Empty title="No sessions yet">
      {watch.value?.watch && <p>The logs of this machine's agents are being watched; what they write appears here.</p>}
      {places.busy && <p class="wait">Looking for logs on this machine…</p>}
      {(places.error || error) && <Failure text={places.error || error} />}
      {ended && (running.state === 'failed' || running.events === 0) && (
        <p>{running.message || 'The import has ended without an event.'}</p>
      )}
      {found.length > 0 && (
        <>
          <p>This machine has logs of agents:</p>
          <div class="table-box">
            <table class="data">
              <thead>
                <tr>
                  <th scope="col">Agent</th>
                  <th scope="col">Place</th>
                  <th scope="col">Logs</th>
                  <th scope="col">Size</th>
                  <th scope="col">Newest</th>
                </tr>
              </thead>
              <tbody>
                {found.map((row) => (
                  <tr>
                    <td>
                      <Agent name={row.agent} />
                    </td>
                    <td title={row.place}>{row.place}</td>
                    <td class="number">{format.count(row.logs)}</td>
                    <td class="number">{format.bytes(row.bytes)}</td>
                    <td>
                      <Ago time={row.newest_at} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <button class="button main" disabled={busy} onClick={start}>
            {busy ? 'Importing…' : `Import ${format.plural(found.reduce((sum, row) => sum + row.logs, 0), 'log')}`}
          </button>
          <p>
            They are only read. <code>annal serve --watch</code> continues while the agents write.
          </p>
        </>
      )}
      {places.value && found.length === 0 && (
        <p>
          No agent has logs in its usual place here. <code>annal import auto PATH</code> reads logs elsewhere.
        </p>
      )}
      {(!info?.imports || places.error) && <Commands />}
    </Empty>
  );
}

/* Whether the logs are watched, since when, and how much of each is not imported yet. */
export function Watching() {
  const { server } = useApp();
  const [minute, setMinute] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setMinute((m) => m + 1), 60_000);
    return () => clearInterval(timer);
  }, []);
  const { value } = useAnswer(() => server!.watch(), [minute]);
  if (!value) return null;
  const [oldest] = value.unread;
  const state = value.watch ? (
    <>
      <code>annal watch</code> runs since {format.moment(Date.parse(value.watch.since))}
    </>
  ) : (
    <>
      No <code>annal watch</code> runs
    </>
  );
  if (!oldest)
    return (
      <p class="watching">
        {state}
        {value.watch && '; all logs are imported'}
      </p>
    );
  return (
    <details class="watching">
      <summary>
        {state}
        {`; ${format.bytes(value.bytes)} of ${format.plural(value.sources, 'log')} not imported yet, the oldest of `}
        {format.moment(Date.parse(oldest.since))}
      </summary>
      <ul>
        {value.unread.map((source) => (
          <li>
            {`${format.bytes(source.bytes)} since ${format.moment(Date.parse(source.since))}: `}
            <code>{source.path}</code>
          </li>
        ))}
        {value.sources > value.unread.length && <li>{format.count(value.sources - value.unread.length)} more</li>}
      </ul>
    </details>
  );
}
