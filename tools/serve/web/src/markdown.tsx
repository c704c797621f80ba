/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renders Markdown as elements. Text from a model or a tool becomes text nodes and attributes that are checked here,
 * never HTML. Unknown syntax is shown unchanged.
 */
import { Copy } from './ui';
import type { ComponentChildren, JSX } from 'preact';

const INLINE =
  /(`+)([\s\S]+?)\1(?!`)|\*\*(?=\S)([\s\S]+?\S)\*\*|(?<!\w)__(?=\S)([\s\S]+?\S)__(?!\w)|\*(?=[^\s*])([^*\n]+?)\*(?!\*)|(?<![\w/])_(?=[^\s_])([^_\n]+?)_(?!\w)|~~(?=\S)([\s\S]+?\S)~~|!?\[([^\]\n]*)\]\(([^)\s]+)(?:\s+"[^"]*")?\)|<(https?:\/\/[^>\s]+)>|(?<![\w/])(https?:\/\/[^\s<>()\]"'`]+[^\s<>()\]"'`.,;:!?])/g;

const DEEPEST = 6;

export function safeUrl(url: string): string | null {
  return /^(https?:|mailto:)/i.test(url) ? url : null;
}

function anchor(url: string, text: ComponentChildren): ComponentChildren {
  const safe = safeUrl(url);
  return safe ? (
    <a href={safe} target="_blank" rel="noopener noreferrer">
      {text}
    </a>
  ) : (
    text
  );
}

export function inline(text: string, depth = 0): ComponentChildren[] {
  if (depth > DEEPEST) return [text];
  const parts: ComponentChildren[] = [];
  let last = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > last) parts.push(text.slice(last, found.index));
    last = found.index + found[0].length;
    const [whole, , code, bold1, bold2, em1, em2, struck, label, url, pointed, bare] = found;
    const bold = bold1 ?? bold2;
    const em = em1 ?? em2;
    if (code !== undefined) parts.push(<code>{code.replace(/^ (.*) $/s, '$1')}</code>);
    else if (bold !== undefined) parts.push(<strong>{inline(bold, depth + 1)}</strong>);
    else if (em !== undefined) parts.push(<em>{inline(em, depth + 1)}</em>);
    else if (struck !== undefined) parts.push(<s>{inline(struck, depth + 1)}</s>);
    else if (url !== undefined) parts.push(safeUrl(url) ? anchor(url, label ? inline(label, depth + 1) : url) : whole);
    else parts.push(anchor(pointed ?? bare!, pointed ?? bare!));
  }
  if (last < text.length) parts.push(text.slice(last));
  return parts;
}

const FENCE = /^(\s*)(`{3,}|~{3,})\s*([^\s`]*).*$/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const RULE = /^\s*([-*_])(\s*\1){2,}\s*$/;
const TABLE_LINE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$/;

const cells = (line: string): string[] =>
  line
    .trim()
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));

function table(lines: string[]): JSX.Element {
  const [head, , ...rows] = lines;
  return (
    <div class="md-table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {cells(head!).map((cell) => (
              <th dir="auto">{inline(cell)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {cells(row).map((cell) => (
                <td dir="auto">{inline(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function list(lines: string[], depth: number): JSX.Element {
  const first = ITEM.exec(lines[0]!)!;
  const items: string[][] = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && item[1]!.length <= first[1]!.length + 1) items.push([item[3]!]);
    else items.at(-1)!.push(line.slice(Math.min(line.length - line.trimStart().length, first[1]!.length + 2)));
  }
  const content = items.map((item) => {
    const task = /^\[([ xX])\]\s+(.*)$/.exec(item[0]!);
    if (task) item[0] = `${task[1] === ' ' ? '☐' : '☑'} ${task[2]}`;
    const simple = item.length === 1;
    return <li dir="auto">{simple ? inline(item[0]!) : blocks(item, depth + 1, true)}</li>;
  });
  return /\d/.test(first[2]!) ? <ol start={parseInt(first[2]!, 10)}>{content}</ol> : <ul>{content}</ul>;
}

let above = 1; /* the level of the heading before this one: no level is left out below the page's h1 */

function blocks(lines: string[], depth: number, tight = false): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let paragraph: string[] = [];
  const flush = () => {
    if (!paragraph.length) return;
    const text = inline(paragraph.join('\n'));
    out.push(tight ? <div dir="auto">{text}</div> : <p dir="auto">{text}</p>);
    paragraph = [];
  };
  const take = (from: number, more: (line: string) => boolean): string[] => {
    let to = from;
    while (to < lines.length && more(lines[to]!)) to++;
    return lines.slice(from, to);
  };
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!;
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (fence) {
      flush();
      const body = lines.slice(i + 1).findIndex((l) => l.trim().startsWith(fence[2]!));
      const end = body < 0 ? lines.length : i + 1 + body;
      out.push(<Code text={lines.slice(i + 1, end).join('\n')} language={fence[3]} />);
      i = end;
    } else if (heading) {
      flush();
      above = Math.min(6, heading[1]!.length + 1, above + 1);
      const Tag = `h${above}` as 'h3';
      out.push(<Tag dir="auto">{inline(heading[2]!)}</Tag>);
    } else if (RULE.test(line)) {
      flush();
      out.push(<hr />);
    } else if (/^\s*>/.test(line) && depth < DEEPEST) {
      flush();
      const quoted = take(i, (l) => /^\s*>/.test(l));
      out.push(
        <blockquote>
          {blocks(
            quoted.map((l) => l.replace(/^\s*> ?/, '')),
            depth + 1,
          )}
        </blockquote>,
      );
      i += quoted.length - 1;
    } else if (ITEM.test(line) && depth < DEEPEST) {
      flush();
      const items = take(i, (l) => ITEM.test(l) || /^\s+\S/.test(l));
      out.push(list(items, depth));
      i += items.length - 1;
    } else if (line.includes('|') && TABLE_LINE.test(lines[i + 1] ?? '')) {
      flush();
      const rows = take(i, (l) => l.includes('|'));
      out.push(table(rows));
      i += rows.length - 1;
    } else if (line.trim() === '') {
      flush();
    } else {
      paragraph.push(line);
    }
  }
  flush();
  return out;
}

/* `copied` is the whole text, if only its begin is shown; the children are the text with its colours. */
export function Code(props: { text: string; language?: string; copied?: string; children?: ComponentChildren }) {
  const { text, language, copied } = props;
  return (
    <div class="code-box">
      <pre class="code" tabIndex={0} data-language={language || undefined}>
        {props.children ?? text}
      </pre>
      <Copy text={copied ?? text} label="Copy" />
    </div>
  );
}

export function Markdown({ text }: { text: string }) {
  above = 1;
  return <div class="md">{blocks(text.replaceAll('\r\n', '\n').split('\n'), 0)}</div>;
}
