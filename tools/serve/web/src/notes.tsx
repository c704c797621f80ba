/* SPDX-License-Identifier: Apache-2.0 */
/* What people note on a session: a star, a name, tags and notes. Each change is an event of the session notes_ID. */
import { useRef, useState } from 'preact/hooks';
import { objects, type Session } from './api';
import { Markdown } from './markdown';
import type { Model } from './model';
import { link } from './route';
import { Ago, Failure, useAnswer, useApp } from './ui';

export const titleOf = (s: Session): string => s.name || s.title || s.session_id;

export const Star = ({ session: s }: { session: Session }) =>
  s.starred ? <span class="star" role="img" aria-label="starred" title="starred">★</span> : null;

/* A click on a tag lists all sessions with this tag. */
export function Tags({ session: s, remove }: { session: Session; remove?: (tag: string) => void }) {
  return (
    <>
      {(s.tags ?? '').split(' ').filter(Boolean).map((tag) => (
        <span class="tag noted" key={tag}>
          <a href={link('', '', { tag })} title={`Sessions with the tag ${tag}`} dir="auto">{tag}</a>
          {remove && (
            <button aria-label={`Remove the tag ${tag}`} title="Remove this tag" onClick={() => remove(tag)}>×</button>
          )}
        </span>
      ))}
    </>
  );
}

type Kind = 'name' | 'tag' | 'note';

const KINDS: Record<Kind, [label: string, type: string, field: string, most: number]> = {
  name: ['Name', 'note.named', 'name', 200],
  tag: ['Tag', 'note.tagged', 'tag', 64],
  note: ['Note', 'note.written', 'text', 65_536],
};

/* The star, the tags, and an input for a name, a tag or a note. */
export function Noting({ model }: { model: Model }) {
  const { server, info } = useApp();
  const { session: s } = model;
  const [kind, setKind] = useState<Kind | null>(null);
  const [text, setText] = useState('');
  const [error, setError] = useState<string | null>(null);
  const busy = useRef(false);
  if (!server || !info || info.read_only || info.rights === 'read') return <><Star session={s} /><Tags session={s} /></>;
  const note = async (type: string, data: object) => {
    if (busy.current) return;
    busy.current = true;
    try {
      await server.note(model.id, type, data);
      setKind(null);
      setError(null);
      await model.readNoted();
    } catch (e) {
      setError((e as Error).message);
    }
    busy.current = false;
  };
  const begin = (next: Kind) => {
    setKind(next);
    setText(next === 'name' ? (s.name ?? '') : '');
    setError(null);
  };
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    const [, type, field] = KINDS[kind!];
    const value = text.trim();
    if (value || kind === 'name') void note(type, { [field]: value || null });
  };
  return (
    <>
      <button
        class="link"
        aria-pressed={!!s.starred}
        onClick={() => void note(s.starred ? 'note.unstarred' : 'note.starred', {})}
        title={s.starred ? 'Remove the star' : 'Give this session a star'}
      >
        <span class="star" aria-hidden="true">{s.starred ? '★' : '☆'}</span> star
      </button>
      <Tags session={s} remove={(tag) => void note('note.untagged', { tag })} />
      {kind ? (
        <form class="noting" onSubmit={submit}>
          <input
            ref={(input) => { if (input && document.activeElement !== input) input.focus(); }}
            aria-label={KINDS[kind][0]}
            placeholder={KINDS[kind][0]}
            title="Enter saves, Esc cancels"
            value={text}
            maxLength={KINDS[kind][3]}
            onInput={(e) => setText(e.currentTarget.value)}
            onKeyDown={(e) => {
              if (e.key !== 'Escape') return;
              e.stopPropagation();
              setKind(null);
              setError(null);
            }}
          />
        </form>
      ) : (
        <>
          <button class="link" onClick={() => begin('name')}>{s.name ? 'rename' : 'name'}</button>
          <button class="link" onClick={() => begin('tag')}>tag</button>
          <button class="link" onClick={() => begin('note')}>note</button>
        </>
      )}
      {error && <Failure text={error} />}
    </>
  );
}

interface Note {
  note: number;
  event_seq: number;
  text: string;
  by: string | null;
  written_at: string;
}

export function Notes({ model, see }: { model: Model; see: (seq: number) => void }) {
  const { server } = useApp();
  const n = model.session.notes ?? 0;
  const { value, error } = useAnswer(server && n > 0 ? () => server.notes(model.id) : null, [model.id, n, model.noted]);
  if (!n) return null;
  return (
    <section class="notes">
      <h2>Notes <span class="total">{n}</span></h2>
      {error && <Failure text={error} />}
      {value && objects<any>(value).map((row: Note) => (
        <div class="note" key={row.note}>
          <Markdown text={row.text} />
          <p class="dim">
            {row.by && <span dir="auto">{row.by} · </span>}
            <Ago time={row.written_at} />
            {row.event_seq > 0 && <> · <button class="link" onClick={() => see(row.event_seq)}>event {row.event_seq}</button></>}
          </p>
        </div>
      ))}
    </section>
  );
}
