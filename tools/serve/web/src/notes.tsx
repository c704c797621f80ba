/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people note on a session and on its events: stars, tags, notes, and a name of the session. Each change is an event
 * of the session notes_ID, and can be undone.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Event, Noted, Session } from './api';
import * as format from './format';
import { Markdown } from './markdown';
import type { Model } from './model';
import { link } from './route';
import { Ago, Failure, useApp, useKeys } from './ui';

export const titleOf = (s: Session): string => s.name || s.title || s.session_id;

export const tagsOf = (s: Session): string[] => (s.tags ?? '').split(' ').filter(Boolean);

export const Star = ({ session: s }: { session: Session }) =>
  s.starred ? <span class="star" role="img" aria-label="starred" title="starred">★</span> : null;

/* A click on a tag lists all sessions with this tag. */
export function Tags({ tags, remove }: { tags: string[]; remove?: (tag: string) => (() => void) | undefined }) {
  return (
    <>
      {tags.map((tag) => {
        const removeThis = remove?.(tag);
        return (
          <span class="tag noted" key={tag}>
            <a href={link('', '', { tag })} title={`Sessions with the tag ${tag}`} dir="auto">{tag}</a>
            {removeThis && (
              <button aria-label={`Remove the tag ${tag}`} title="Remove this tag" onClick={removeThis}>×</button>
            )}
          </span>
        );
      })}
    </>
  );
}

type Append = (type: string, data: object, seq?: number, waits?: boolean) => Promise<void>;

/* A function that appends a change, or null if this user may not write; and what the server refused. While a change is
 * being appended, one that waits follows it, and others are dropped: a second press of a key is no second change. */
function useNote(model: Model): { note: Append | null; error: string | null } {
  const { server, info } = useApp();
  const [error, setError] = useState<string | null>(null);
  const running = useRef<Promise<unknown> | null>(null);
  if (!server || !info || info.read_only || info.rights === 'read') return { note: null, error };
  const note: Append = async (type, data, seq = 0, waits = false) => {
    while (running.current) {
      if (!waits) return;
      await running.current.catch(ignore);
    }
    running.current = server.note(model.id, type, data, seq);
    try {
      await running.current;
      setError(null);
    } catch (e) {
      setError((e as Error).message);
      throw e;
    } finally {
      running.current = null;
    }
    await model.readNoted();
  };
  return { note, error };
}

const ignore = () => {}; /* a refusal is shown */

type Kind = 'name' | 'tag' | 'note';

const KINDS: Record<Kind, [label: string, type: string, field: string, most: number]> = {
  name: ['Name', 'note.named', 'name', 200],
  tag: ['Tag', 'note.tagged', 'tag', 64],
  note: ['Note', 'note.written', 'text', 65_536],
};

interface FormProps {
  kind: Kind;
  initial?: string;
  save: (text: string) => Promise<void>;
  close: () => void;
}

function Form({ kind, initial = '', save, close }: FormProps) {
  const [label, , , most] = KINDS[kind];
  const [text, setText] = useState(initial);
  const input = useRef<any>(null);
  useEffect(() => input.current.focus(), []);
  const submit = (e: { preventDefault(): void }) => {
    e.preventDefault();
    const value = text.trim();
    if (value || kind === 'name') save(value).then(close, ignore);
  };
  const field = {
    ref: input,
    'aria-label': label,
    placeholder: label,
    title: kind === 'note' ? 'Enter saves, Shift Enter begins a line, Esc cancels' : 'Enter saves, Esc cancels',
    value: text,
    maxLength: most,
    dir: 'auto' as const,
    onInput: (e: { currentTarget: { value: string } }) => setText(e.currentTarget.value),
    onKeyDown: (e: KeyboardEvent) => {
      if (e.key === 'Escape') {
        e.stopPropagation();
        close();
      } else if (e.key === 'Enter' && kind === 'note' && !e.shiftKey && !e.isComposing) submit(e);
    },
  };
  return (
    <form class="noting" onSubmit={submit}>
      {kind === 'note' ? <textarea rows={2} {...field} /> : <input {...field} />}
      <button class="link">save</button>
      <button class="link" type="button" onClick={close}>cancel</button>
    </form>
  );
}

/* What a change did. */
function changeText({ kind, value, item, seq, event_seq }: Noted): string {
  const gone = value === null;
  const what = {
    star: gone ? 'the star was removed' : 'a star was given',
    name: gone ? 'the name was removed' : `the name ${value}`,
    tag: `the tag ${item}${gone ? ' was removed' : ''}`,
    note: gone ? 'a note was removed' : seq === Number(item) ? 'a note was written' : 'a note was changed',
  }[kind];
  return event_seq ? `${what}, on event ${format.count(event_seq)}` : what;
}

interface NotingProps {
  model: Model;
  seq?: number; /* of an event; 0 for the session */
  asked?: boolean; /* the user wants to write a note */
  end?: () => void; /* and has done so, or not */
}

/* The star, the tags, and inputs for a name, a tag and a note: of the session, or of an event. */
export function Noting({ model, seq = 0, asked = false, end }: NotingProps) {
  const { note, error } = useNote(model);
  const [chosen, setChosen] = useState<Kind | null>(null);
  const [told, setTold] = useState('');
  const buttons = useRef<HTMLSpanElement>(null);
  const clicked = useRef<Kind | null>(null);
  const { session: s, lastChange } = model;
  const kind = chosen ?? (asked ? 'note' : null);
  const own = model.things.filter((thing) => thing.event_seq === seq);
  const tags = own.filter((thing) => thing.kind === 'tag').map((thing) => thing.item);
  const starred = seq ? own.some((thing) => thing.kind === 'star') : !!s.starred;
  const change = (type: string, data: object = {}) => note?.(type, data, seq).catch(ignore);
  const star = () => void change(starred ? 'note.unstarred' : 'note.starred');
  const undo = () =>
    lastChange &&
    void note?.('note.undone', { undoes: lastChange.seq }).then(() => setTold(`Undone: ${changeText(lastChange)}`), ignore);
  useKeys(
    seq || !note
      ? {}
      : { '*': star, '#': () => setChosen('tag'), m: () => setChosen('name'), n: () => setChosen('note'), z: undo },
  );
  if (!note) return seq ? <Tags tags={tags} /> : <><Star session={s} /><Tags tags={tagsOf(s)} /></>;
  const close = () => {
    setChosen(null);
    end?.();
    const back = clicked.current;
    clicked.current = null;
    if (back) requestAnimationFrame(() => buttons.current?.querySelector<HTMLElement>(`[data-kind=${back}]`)?.focus());
  };
  const begin = (next: Kind) => ({ 'data-kind': next, onClick: () => setChosen((clicked.current = next)) });
  const save = (text: string) => {
    const [, type, field] = KINDS[kind!];
    return note(type, { [field]: text || null }, seq, true);
  };
  return (
    <>
      <button
        class="link"
        aria-pressed={starred}
        onClick={star}
        title={`${starred ? 'Remove the star' : `Give this ${seq ? 'event' : 'session'} a star`}${seq ? '' : ' (*)'}`}
      >
        <span class="star" aria-hidden="true">{starred ? '★' : '☆'}</span> star
      </button>
      {/* A tag of an event is removed there. */}
      <Tags
        tags={seq ? tags : tagsOf(s)}
        remove={(tag) => (tags.includes(tag) ? () => void change('note.untagged', { tag }) : undefined)}
      />
      {kind ? (
        <Form key={kind} kind={kind} initial={kind === 'name' ? (s.name ?? '') : ''} save={save} close={close} />
      ) : (
        <span class="noting" ref={buttons}>
          {!seq && <button class="link" {...begin('name')} title="Name this session (m)">{s.name ? 'rename' : 'name'}</button>}
          <button class="link" {...begin('tag')} title={seq ? undefined : 'Add a tag (#)'}>tag</button>
          <button class="link" {...begin('note')} title={`Write a note (${seq ? 'N' : 'n'})`}>note</button>
          {!seq && lastChange && (
            <button class="link" onClick={undo} title={`Undo: ${changeText(lastChange)} (z)`}>undo</button>
          )}
        </span>
      )}
      {!seq && <span role="status" class="hidden-label">{told}</span>}
      {error && <Failure text={error} />}
    </>
  );
}

/* A note with what can be done with it. */
function Note({ model, thing, see, other }: { model: Model; thing: Noted; see?: (seq: number) => void; other?: boolean }) {
  const { note, error } = useNote(model);
  const [edits, setEdits] = useState(false);
  const data = { note: Number(thing.item) };
  return (
    <div class="note">
      {edits ? (
        <Form
          kind="note"
          initial={thing.value!}
          save={(text) => note!('note.written', { ...data, text }, 0, true)}
          close={() => setEdits(false)}
        />
      ) : (
        <Markdown text={thing.value!} />
      )}
      <p class="dim">
        {thing.by && <span dir="auto">{thing.by} · </span>}
        <Ago time={thing.changed_at} />
        {see && thing.event_seq > 0 && (
          <> · <button class="link" onClick={() => see(thing.event_seq)}>event {format.count(thing.event_seq)}</button></>
        )}
        {note && !edits && (
          <>
            {' · '}
            <button class="link" onClick={() => setEdits(true)}>edit</button>
            {' · '}
            <button class="link" onClick={() => void note('note.removed', data).catch(ignore)}>remove</button>
          </>
        )}
      </p>
      {other && <p class="bad-text">It was written on another version of this event.</p>}
      {error && <Failure text={error} />}
    </div>
  );
}

/* All that is noted on the session and its events, the newest first. */
export function Notes({ model, see }: { model: Model; see: (seq: number) => void }) {
  const notes = model.things.filter((thing) => thing.kind === 'note');
  const marked = model.things.filter((thing) => thing.kind !== 'note' && thing.event_seq > 0);
  if (!notes.length && !marked.length) return null;
  return (
    <section class="notes">
      <h2>Notes <span class="total">{format.count(notes.length)}</span></h2>
      {notes.map((thing) => (
        <Note key={thing.item} model={model} thing={thing} see={see} />
      ))}
      {marked.length > 0 && <Marks things={marked} choose={see} names />}
    </section>
  );
}

/* The notes on an event. Its hash tells whether they were written on this version of it; after another import its id does. */
export function EventNotes({ model, event, hash }: { model: Model; event: Event; hash?: string }) {
  const notes = model.things.filter((thing) => thing.kind === 'note' && thing.event_seq === event.seq);
  const other = (thing: Noted) =>
    !!hash && !!thing.event_hash && thing.event_hash !== hash && (!thing.event_id || thing.event_id !== event.id);
  return (
    <>
      {notes.map((thing) => (
        <Note key={thing.item} model={model} thing={thing} other={other(thing)} />
      ))}
    </>
  );
}

/* A line with what is noted on events. */
export function Marks({ things, choose, names }: { things: Noted[]; choose: (seq: number) => void; names?: boolean }) {
  return (
    <p class="marks">
      {things.map((thing) => (
        <button
          class="link"
          key={`${thing.kind} ${thing.event_seq} ${thing.item}`}
          title={`Noted on event ${thing.event_seq}`}
          onClick={() => choose(thing.event_seq)}
          dir="auto"
        >
          {thing.kind === 'star' ? (
            <span class="star" role="img" aria-label="starred">★</span>
          ) : thing.kind === 'tag' ? (
            <span class="tag">{thing.item}</span>
          ) : (
            `✎ ${thing.value!.trim().split('\n')[0]!.slice(0, 200)}`
          )}
          {names && ` event ${format.count(thing.event_seq)}`}
        </button>
      ))}
    </p>
  );
}
