/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent had done at a moment: the list of things to do, calls without a result, files with their changes, and
 * the size of its context. */
import { Chart } from './charts';
import * as format from './format';
import { upTo, type Call, type Model } from './model';
import { toolClass } from './timeline';
import { Diff, gist, inputOf, patchOf, pathOf, Todos, todosOf } from './tool';

const MOST_EDITS = 400; /* the newest */

interface File {
  path: string;
  edits: { seq: number; input: any }[];
  added: number;
  removed: number;
}

const isEdit = (call: Call): boolean => toolClass(call.tool) === 'edit' && !/todo/i.test(call.tool);

/* The files that calls changed, the newest first; null while events are on their way. */
function filesOf(model: Model, calls: Call[]): File[] | null {
  const files = new Map<string, File>();
  let waits = false;
  for (const call of calls.slice(-MOST_EDITS)) {
    const event = model.event(call.seq);
    if (!event) {
      waits = true;
      continue;
    }
    const input = inputOf(event.data);
    const path = pathOf(input);
    const lines = path && patchOf(input);
    if (!lines) continue;
    const file = files.get(path) ?? { path, edits: [], added: 0, removed: 0 };
    files.delete(path);
    files.set(path, file);
    file.edits.push({ seq: call.seq, input });
    file.added += lines.filter((line) => line.mark === '+').length;
    file.removed += lines.filter((line) => line.mark === '-').length;
  }
  return waits ? null : [...files.values()].reverse();
}

export function Work({ model, at, see }: { model: Model; at: number; see: (seq: number) => void }) {
  const until = Math.min(at, model.last);
  const calls = model.calls.filter((call) => call.seq <= until);
  const open = calls.filter((call) => !model.known(call, until) && !model.lost(call, until));
  const list = calls.findLast((call) => /todo|plan/i.test(call.tool));
  const todos = list && todosOf(inputOf(model.event(list.seq)?.data));
  const files = filesOf(model, calls.filter((call) => isEdit(call) && model.known(call, until) && !call.failed));
  const used = model.usage.slice(0, upTo(model.usageSeq, until)).filter((use) => use.input > 0);
  return (
    <div class="work-done">
      {todos && (
        <section>
          <h2>To do</h2>
          <Todos list={todos} />
        </section>
      )}
      {open.length > 0 && (
        <section>
          <h2>
            Calls without a result <span class="total">{format.count(open.length)}</span>
          </h2>
          <ol class="failures">
            {open.slice(-20).map((call) => (
              <li>
                <button onClick={() => see(call.seq)} title="Show it">
                  <span class="failure-text" dir="auto">
                    {call.tool || 'tool'} {gist(inputOf(model.event(call.seq)?.data))}
                  </span>
                  <span class="dim">since {format.clock(call.began)}</span>
                </button>
              </li>
            ))}
          </ol>
        </section>
      )}
      <section>
        <h2>
          Files <span class="total">{files ? format.count(files.length) : '…'}</span>
        </h2>
        {files?.length === 0 && <p class="dim">No call changed a file</p>}
        {files?.map((file) => (
          <details class="file" key={file.path}>
            <summary>
              <span class="file-path" title={file.path}>
                {file.path}
              </span>
              <b class="plus">+{file.added}</b> <b class="minus">−{file.removed}</b>
            </summary>
            {file.edits.map(({ seq, input }) => (
              <>
                <button class="link" onClick={() => see(seq)}>
                  event {format.count(seq)}
                </button>
                <Diff lines={patchOf(input) ?? []} />
              </>
            ))}
          </details>
        ))}
      </section>
      {used.length > 1 && (
        <section>
          <h2>
            Context <span class="total">{format.compact(used.at(-1)!.input)} tokens</span>
          </h2>
          <Chart
            title="Context"
            x={used.map((use) => use.seq)}
            y={used.map((use) => use.input)}
            show={format.compact}
            time={false}
          />
        </section>
      )}
    </div>
  );
}
