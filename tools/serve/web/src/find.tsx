/* SPDX-License-Identifier: Apache-2.0 */
/* The places in a session where a text was found: a bar that leads from one to the next, and marks of the words. */
import { useEffect, useRef, useState } from 'preact/hooks';
import * as format from './format';
import { link } from './route';
import { begun } from './search';
import { Button, useAnswer, useApp } from './ui';

const MOST = 200; /* what the server answers at most */
const MARK_MS = 250;
const STEP = 'annal-find';

/* Enter in the search box leads to the next place, with Shift to the one before. */
export const findNext = (by: number): boolean => dispatchEvent(new CustomEvent(STEP, { detail: by }));

const highlights = (): Map<string, unknown> | undefined => (CSS as any).highlights;

/* Mark the words in the rows that are in the document. */
function mark(words: string[]): void {
  const ranges: Range[] = [];
  for (const body of document.querySelectorAll('.conversation .item-body')) {
    const walk = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      const text = node.nodeValue!.toLowerCase();
      if (text.length !== node.nodeValue!.length) continue; /* an offset would be wrong */
      for (const word of words)
        for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
          const range = document.createRange();
          range.setStart(node, at);
          range.setEnd(node, at + word.length);
          ranges.push(range);
        }
    }
  }
  highlights()?.set('found', new (globalThis as any).Highlight(...ranges));
}

export function FindBar({ id, q, see, close }: { id: string; q: string; see: (seq: number) => void; close: () => void }) {
  const { server } = useApp();
  const [place, setPlace] = useState(0);
  const now = useRef(0); /* the same, also for a second key before the next drawing */
  const { value, error, busy } = useAnswer((signal) => server!.searchIn(id, begun(q), MOST, {}, signal), [q, id]);
  const seqs = [...new Set(value?.map((hit) => hit.seq))].sort((a, b) => a - b);
  const go = (to: number) => {
    if (!seqs.length) return;
    const next = (to + seqs.length) % seqs.length;
    setPlace((now.current = next));
    see(seqs[next]!);
  };
  useEffect(() => go(0), [value]);
  useEffect(() => {
    const step = (e: globalThis.Event) => go(now.current + (e as CustomEvent<number>).detail);
    addEventListener(STEP, step);
    return () => removeEventListener(STEP, step);
  });
  useEffect(() => {
    const words = q.toLowerCase().split(/[\s"*]+/).filter((word) => word.length > 1);
    if (!highlights() || !words.length) return;
    const timer = setInterval(mark, MARK_MS, words);
    return () => {
      clearInterval(timer);
      highlights()?.delete('found');
    };
  }, [q]);
  return (
    <div class="find" role="search" aria-label="Places in this session">
      <span role="status">
        {error ??
          (busy
            ? 'Searching…'
            : seqs.length
              ? `${format.count(place + 1)} of ${format.plural(seqs.length, 'place')} for “${q}”`
              : `“${q}” was not found in this session`)}
      </span>
      <Button icon="back" label="Previous place" hint="Shift Enter" onClick={() => go(place - 1)} disabled={!seqs.length} />
      <Button icon="next" label="Next place" hint="Enter" onClick={() => go(place + 1)} disabled={!seqs.length} />
      <a href={link('search', '', { q, session: id })}>as a list</a>
      <a href={link('search', '', { q })}>in all sessions</a>
      <Button icon="close" label="Close" hint="Esc" onClick={close} />
    </div>
  );
}
