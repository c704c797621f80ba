/* SPDX-License-Identifier: Apache-2.0 */
/* A tool call as a card: its input on one line, its result, and all details when it is open. */
import { useState } from 'preact/hooks';
import type { Event } from './api';
import { diffLines, parsePatch, type Line } from './diff';
import * as format from './format';
import { Code } from './markdown';
import { blocksOf, Picture } from './message';
import type { Call } from './model';
import { Copy } from './ui';

const SHOWN_LINES = 14;
const SHOWN_BYTES = 8_000;
const PART = /[^]{1,131072}/gu; /* of a long output: more at once stops the page */

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/* In Codex logs and traces the input is often a string that contains JSON. */
export function inputOf(data: any): any {
  const { input } = data ?? {};
  if (typeof input !== 'string') return input;
  const value = /^\s*[{[]/.test(input) ? parseJson(input) : undefined;
  return value !== undefined ? value : input;
}

const first = (input: any, names: string[]): string | undefined => {
  for (const name of names) if (typeof input?.[name] === 'string' && input[name]) return input[name];
  return undefined;
};

const PATH = ['file_path', 'filePath', 'path', 'absolute_path', 'notebook_path', 'filename'];
const COMMAND = ['command', 'cmd', 'script', 'code'];
const BEFORE = ['old_string', 'oldText', 'old_str', 'oldString'];
const AFTER = ['new_string', 'newText', 'new_str', 'newString'];
const WRITTEN = ['content', 'file_text', 'contents'];

export function commandOf(input: any): string | undefined {
  const list = input?.command ?? input?.cmd;
  if (Array.isArray(list)) return (list[1] === '-lc' || list[1] === '-c' ? list.slice(2) : list).join(' ');
  return first(input, COMMAND);
}

export function patchOf(input: any): Line[] | null {
  if (typeof input === 'string') return parsePatch(input);
  const before = first(input, BEFORE);
  const after = first(input, AFTER);
  if (before !== undefined || after !== undefined) return diffLines(before ?? '', after ?? '');
  if (Array.isArray(input?.edits))
    return input.edits.flatMap(
      (edit: any) =>
        [{ mark: '@', text: '' }, ...diffLines(first(edit, BEFORE) ?? '', first(edit, AFTER) ?? '')] as Line[],
    );
  const text = first(input, ['patch', 'diff', 'input']);
  if (text !== undefined) return parsePatch(text);
  const written = first(input, PATH) && first(input, WRITTEN);
  return written
    ? written
        .replace(/\n$/, '')
        .split('\n')
        .map((line) => ({ mark: '+' as const, text: line }))
    : null;
}

/* The file that a call changes; in a patch, the first one. */
export const pathOf = (input: any): string | undefined =>
  typeof input === 'string'
    ? /^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?:b\/)?)(.*)$/m.exec(input)?.[1]
    : (first(input, PATH) ?? (first(input, ['patch', 'diff', 'input']) && pathOf(first(input, ['patch', 'diff', 'input']))));

const shortPath = (path: string): string => path.split('/').slice(-3).join('/');

export function gist(input: any): string {
  if (typeof input === 'string') {
    const file = /^\*\*\* (?:Update|Add|Delete) File: (.*)$/m.exec(input);
    return file ? shortPath(file[1]!) : input.split('\n')[0]!.slice(0, 200);
  }
  const command = commandOf(input);
  if (command) return command.split('\n')[0]!.slice(0, 300);
  const path = first(input, PATH);
  const what = first(input, [
    'pattern',
    'query',
    'description',
    'url',
    'prompt',
    'title',
    'name',
    'skill',
    'task',
    'thought',
    'message',
    'text',
  ]);
  if (Array.isArray(input?.todos)) return todosGist(input.todos);
  if (path && first(input, ['pattern', 'query'])) return `${what} in ${shortPath(path)}`;
  if (path) return shortPath(path);
  if (what) return what.split('\n')[0]!.slice(0, 300);
  const values = Object.values(input ?? {}).filter((value) => typeof value !== 'object');
  return values.join(' ').slice(0, 200);
}

/* ---- Lists of things to do ---- */

const MARKS: Record<string, string> = { completed: '☑', in_progress: '▶', cancelled: '☒' };

export const todosOf = (input: any): any[] | null => {
  const list = input?.todos ?? input?.plan;
  return Array.isArray(list) && list.every((todo: any) => typeof todo === 'object' && todo !== null) ? list : null;
};

const wordsOf = (todo: any): string => String(todo.content ?? todo.step ?? todo.title ?? todo.text ?? '');

function todosGist(list: any[]): string {
  const now = list.find((todo) => todo?.status === 'in_progress');
  const done = list.filter((todo) => todo?.status === 'completed').length;
  return `${done} of ${list.length} done${now ? `: ${wordsOf(now)}` : ''}`;
}

export function Todos({ list }: { list: any[] }) {
  return (
    <ul class="todos">
      {list.map((todo) => (
        <li class={String(todo.status ?? '')} dir="auto">
          <span aria-label={String(todo.status ?? 'pending').replace('_', ' ')}>{MARKS[todo.status] ?? '☐'}</span>{' '}
          {wordsOf(todo)}
        </li>
      ))}
    </ul>
  );
}

/* The text and the pictures of an output. */
export function outputOf(data: any): { text: string; raw: string; images: string[] } {
  let output = data?.output ?? data?.error;
  if (output === undefined && data?.output_ref)
    return { text: `stored as artifact ${JSON.stringify(data.output_ref)}`, raw: '', images: [] };
  if (typeof output === 'string' && /^\s*\{/.test(output)) {
    const value = parseJson(output) as any;
    if (typeof value?.output === 'string') output = value.output;
    else if (value !== undefined) output = JSON.stringify(value, null, 2);
  }
  const blocks = blocksOf(
    typeof output === 'object' && output !== null && !Array.isArray(output) && !output.type && !output.text
      ? JSON.stringify(output, null, 2)
      : output,
  );
  const text = blocks
    .flatMap((b) => (b.kind === 'text' ? [b.text] : b.kind === 'other' ? [JSON.stringify(b.value, null, 2)] : []))
    .join('\n');
  return { text: format.plain(text), raw: text, images: blocks.flatMap((b) => (b.kind === 'image' ? [b.url] : [])) };
}

export function Diff({ lines }: { lines: Line[] }) {
  const [whole, setWhole] = useState(false);
  const shown = whole ? lines : lines.slice(0, SHOWN_LINES * 2);
  const name = { '+': 'added', '-': 'removed', '@': 'hunk', ' ': '' };
  return (
    <div class="diff-box">
      <pre class="diff" tabIndex={0}>
        {shown.map((line) => (
          <span class={`line ${name[line.mark]}`}>
            <i aria-hidden="true">{line.mark === '@' ? ' ' : line.mark}</i>
            {line.text}
            {'\n'}
          </span>
        ))}
      </pre>
      <Copy text={lines.map((line) => `${line.mark === '@' ? '' : line.mark}${line.text}`).join('\n')} label="Copy the diff" />
      {lines.length > shown.length && (
        <button class="link" onClick={() => setWhole(true)}>
          Show all {format.count(lines.length)} lines
        </button>
      )}
    </div>
  );
}

const Colours = ({ text }: { text: string }) => (
  <>
    {format.coloured(text).map((part) =>
      part.colour < 0 && !part.bold ? (
        part.text
      ) : (
        <span class={`${part.colour < 0 ? '' : `ansi-${part.colour}`} ${part.bold ? 'ansi-bold' : ''}`}>{part.text}</span>
      ),
    )}
  </>
);

/* `raw` is the text with the colours of a terminal. */
export function Output({ text, raw }: { text: string; raw?: string }) {
  const [parts, setParts] = useState(0);
  if (!text.trim()) return <p class="dim">No output</p>;
  const lines = text.split('\n');
  const cut = lines.slice(0, SHOWN_LINES).join('\n').slice(0, SHOWN_BYTES);
  const all = text.replace(/\n+$/, '');
  const pieces = cut.length < all.length ? all.match(PART)! : [all];
  const drawn = cut.length < all.length && !parts ? [cut] : pieces.slice(0, parts || 1);
  const shown = drawn.join('');
  const count = shown.split('\n').length;
  const ends = lines.slice(0, count).join('\n') === shown; /* not within a line */
  const colours =
    raw?.includes('\u001b[') && ends ? (
      <Colours text={raw.replaceAll('\r\n', '\n').split('\n').slice(0, count).join('\n')} />
    ) : undefined;
  const patch = parsePatch(text);
  if (patch && /^(diff --git|--- )/m.test(text)) return <Diff lines={patch} />;
  return (
    <>
      <Code text={shown} copied={text}>
        {colours ?? (drawn.length > 1 ? drawn : undefined)}
      </Code>
      {shown.length < all.length && (
        <button class="link" onClick={() => setParts(parts + 1)}>
          {parts + 1 < pieces.length ? `Show ${format.bytes(pieces[parts]!.length)} more of` : 'Show all'}{' '}
          {pieces.length === 1 && lines.length > SHOWN_LINES ? plural(lines.length) : format.bytes(all.length)}
        </button>
      )}
    </>
  );
}

const plural = (n: number): string => `${format.count(n)} lines`;

interface CardProps {
  call: Call;
  event: Event | undefined;
  result: Event | undefined;
  known: boolean; /* the result is known at this moment */
  lost: boolean; /* the result will never arrive */
  open: boolean | undefined;
  toggle: (open: boolean) => void;
  child?: { href: string; title: string };
}

export function ToolCard({ call, event, result, known, lost, open, toggle, child }: CardProps) {
  const input = event && inputOf(event.data);
  const patch = input !== undefined ? patchOf(input) : null;
  const failed = known && call.failed;
  const isOpen = open ?? (failed || (patch !== null && patch.length <= 40));
  const state = lost ? 'lost' : !known ? 'running' : failed ? 'failed' : 'done';
  const command = input !== undefined ? commandOf(input) : undefined;
  const todos = todosOf(input);
  const added = patch?.filter((line) => line.mark === '+').length ?? 0;
  const removed = patch?.filter((line) => line.mark === '-').length ?? 0;
  const output = known && result ? outputOf(result.data) : null;
  const exit = result?.data?.exit_code;
  return (
    <div class={`tool ${state} ${isOpen ? 'open' : ''}`}>
      <button class="tool-head" aria-expanded={isOpen} onClick={() => toggle(!isOpen)}>
        <i class="tool-state" role="img" aria-label={lost ? 'no result' : state} />
        <span class="tool-name">{call.tool || 'tool'}</span>
        <span class="tool-gist" dir="auto">
          {event ? gist(input) : ''}
        </span>
        {patch && (
          <span class="tool-lines">
            {added > 0 && <b class="plus">+{added}</b>} {removed > 0 && <b class="minus">−{removed}</b>}
          </span>
        )}
        {!isOpen && output !== null && output.images.length > 0 && (
          <span class="tag">{format.plural(output.images.length, 'picture')}</span>
        )}
        {failed && typeof exit === 'number' && exit !== 0 && <span class="tag bad">exit {exit}</span>}
        <span class="tool-took">{known ? format.duration(call.took) : lost ? 'no result' : 'running'}</span>
      </button>
      {isOpen && event && (
        <div class="tool-body">
          {todos ? <Todos list={todos} /> : patch ? <Diff lines={patch} /> : command ? <Code text={command} language="sh" /> : <Input input={input} />}
          {child && (
            <p>
              <a href={child.href}>Open the sub-agent: {child.title}</a>
            </p>
          )}
          {known && !result && <span class="skeleton" />}
          {output && (
            <div class={failed ? 'tool-output bad' : 'tool-output'}>
              {(output.text.trim() || !output.images.length) && (!patch || failed || output.text.length > 200) && (
                <Output text={output.text} raw={output.raw} />
              )}
              {output.images.map((url) => (
                <Picture url={url} />
              ))}
            </div>
          )}
        </div>
      )}
    </div>
  );
}

function Input({ input }: { input: any }) {
  if (typeof input === 'string') return <Output text={input} />;
  const entries = Object.entries(input ?? {});
  if (!entries.length) return null;
  return (
    <dl class="input">
      {entries.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>
            {typeof value === 'string' ? (
              value.length > 120 || value.includes('\n') ? (
                <Output text={value} />
              ) : (
                value
              )
            ) : (
              JSON.stringify(value, null, 1)
            )}
          </dd>
        </>
      ))}
    </dl>
  );
}
