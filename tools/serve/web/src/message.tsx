/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, reasoning and their pictures, from the message formats of the providers. */
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import * as format from './format';
import { Code, Markdown, safeUrl } from './markdown';

export type Block =
  | { kind: 'text'; text: string }
  | { kind: 'thought'; text: string }
  | { kind: 'image'; url: string }
  | { kind: 'other'; name: string; value: unknown };

const texts = (list: unknown): string =>
  Array.isArray(list)
    ? list.map((part) => (typeof part === 'string' ? part : (part?.text ?? ''))).join('\n\n')
    : typeof list === 'string'
      ? list
      : '';

const IMAGE = /^data:image\/(png|jpeg|gif|webp|avif|bmp);base64,[A-Za-z0-9+/=\s]+$/;

function image(block: any): string | null {
  const { source } = block;
  if (source?.type === 'base64') return `data:${source.media_type ?? 'image/png'};base64,${source.data}`;
  if (typeof block.data === 'string' && (block.mimeType ?? block.media_type))
    return `data:${block.mimeType ?? block.media_type};base64,${block.data}`;
  const url = block.image_url?.url ?? block.image_url ?? source?.url ?? block.url;
  return typeof url === 'string' ? url : null;
}

/* In some traces the text is a provider's message as JSON. */
function unwrapped(text: string): string {
  if (!/^\s*\{"/.test(text) || !text.includes('"role"')) return text;
  try {
    const { content, role } = JSON.parse(text);
    return typeof role === 'string' && typeof content === 'string' && content ? content : text;
  } catch {
    return text;
  }
}

function blockOf(block: any): Block | null {
  if (typeof block === 'string') return { kind: 'text', text: unwrapped(block) };
  if (typeof block !== 'object' || block === null) return { kind: 'text', text: String(block) };
  const type = String(block.type ?? '');
  if (/think|reason/.test(type)) {
    const text = [texts(block.thinking ?? block.text), texts(block.summary), texts(block.content)]
      .filter(Boolean)
      .join('\n\n');
    return text.trim() ? { kind: 'thought', text } : null;
  }
  if (/image/.test(type)) {
    const url = image(block);
    if (url) return { kind: 'image', url };
  }
  if (typeof block.text === 'string') return { kind: 'text', text: block.text };
  if (typeof block.content === 'string' && /text|^$/.test(type)) return { kind: 'text', text: block.content };
  return { kind: 'other', name: type || 'data', value: block };
}

export function blocksOf(content: unknown): Block[] {
  if (content == null) return [];
  const list = Array.isArray(content) ? content : [content];
  return list
    .map(blockOf)
    .filter((block): block is Block => block !== null && !(block.kind === 'text' && block.text.trim() === ''));
}

export const textOf = (content: unknown): string =>
  blocksOf(content)
    .map((block) => (block.kind === 'text' ? block.text : block.kind === 'other' ? JSON.stringify(block.value) : ''))
    .filter(Boolean)
    .join('\n');

/* Text that programs add as the user's: environment, reminders, instructions of a repository. */
const CONTEXT =
  /^\s*(<(environment_context|user_instructions|system-reminder|command-name|command-message|local-command-\w+|permissions instructions|INSTRUCTIONS|task-notification|session_context|collaboration_mode|skills_instructions|apps_instructions|plugins_instructions)\b|# AGENTS\.md|Caveat: The messages below)/;

/* The same before the user's own text: split off, so that both can be shown separately. */
const BEFORE =
  /^\s*<(ide_opened_file|ide_selection|system-reminder|environment_context|user_instructions|context|attached_files)>[\s\S]*?<\/\1>\s*/;

export function splitContext(blocks: Block[]): { context: string; said: Block[] } {
  let context = '';
  const said = blocks.flatMap((block): Block[] => {
    if (block.kind !== 'text') return [block];
    let { text } = block;
    for (let found = BEFORE.exec(text); found; found = BEFORE.exec(text)) {
      context += found[0];
      text = text.slice(found[0].length);
    }
    return text.trim() ? [{ kind: 'text', text }] : [];
  });
  return { context, said };
}

export const isContext = (text: string): boolean => CONTEXT.test(text);

export function errorText(error: any): string {
  if (typeof error === 'string') return error;
  const parts = [error?.status, error?.type, error?.message ?? error?.error?.message].filter(
    (x) => typeof x === 'string' || typeof x === 'number',
  );
  return parts.join(' ') || JSON.stringify(error);
}

/* Longer texts are cut until the user expands them. */
const MOST_MARKDOWN = 24_000;

export function Picture({ url }: { url: string }) {
  const dialog = useRef<HTMLDialogElement>(null);
  if (IMAGE.test(url))
    return (
      <>
        <button class="picture-button" title="Show it larger" onClick={() => dialog.current!.showModal()}>
          <img class="picture" src={url} alt="Picture in this message" />
        </button>
        <dialog ref={dialog} class="picture-dialog" aria-label="Picture" onClick={() => dialog.current!.close()}>
          <button aria-label="Close">
            <img src={url} alt="Picture in this message" />
          </button>
        </dialog>
      </>
    );
  const safe = safeUrl(url);
  return safe ? (
    <a href={safe} target="_blank" rel="noopener noreferrer">
      picture at {safe}
    </a>
  ) : (
    <span class="dim">this picture cannot be shown</span>
  );
}

export function Long({ text, children }: { text: string; children: (text: string) => ComponentChildren }) {
  const [whole, setWhole] = useState(false);
  if (text.length <= MOST_MARKDOWN || whole) return <>{children(text)}</>;
  return (
    <>
      {children(text.slice(0, MOST_MARKDOWN))}
      <button class="link" onClick={() => setWhole(true)}>
        Show all of it, {format.bytes(text.length)}
      </button>
    </>
  );
}

export function Fold(props: {
  label: string;
  preview?: string;
  open: boolean;
  toggle: () => void;
  children: ComponentChildren;
  class?: string;
}) {
  return (
    <div class={`fold ${props.class ?? ''} ${props.open ? 'open' : ''}`}>
      <button class="fold-head" aria-expanded={props.open} onClick={props.toggle}>
        <span class="fold-label">{props.label}</span>
        {!props.open && props.preview && <span class="fold-preview">{props.preview}</span>}
      </button>
      {props.open && <div class="fold-body">{props.children}</div>}
    </div>
  );
}

export const preview = (text: string): string =>
  text
    .trim()
    .replace(/[*_`#]+/g, '')
    .replace(/\s+/g, ' ')
    .slice(0, 160);

export function Blocks({
  blocks,
  isOpen,
  toggle,
}: {
  blocks: Block[];
  isOpen: (n: number) => boolean;
  toggle: (n: number) => void;
}) {
  return (
    <>
      {blocks.map((block, n) => {
        if (block.kind === 'text') return <Long text={block.text}>{(text) => <Markdown text={text} />}</Long>;
        if (block.kind === 'image') return <Picture url={block.url} />;
        const [label, text] =
          block.kind === 'thought' ? ['Thinking', block.text] : [block.name, JSON.stringify(block.value, null, 2)];
        return (
          <Fold
            label={label}
            preview={block.kind === 'thought' ? preview(text) : undefined}
            open={isOpen(n)}
            toggle={() => toggle(n)}
            class={block.kind}
          >
            {block.kind === 'thought' ? (
              <Long text={text}>{(t) => <Markdown text={t} />}</Long>
            ) : (
              <Long text={text}>{(t) => <Code text={t} language="json" />}</Long>
            )}
          </Fold>
        );
      })}
    </>
  );
}
