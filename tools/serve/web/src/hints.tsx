/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key "." shows letters at all controls in view; typing the letters of a control presses it, or goes into it. So no
 * control is more than three keys away.
 */
import { useLayoutEffect, useState } from 'preact/hooks';
import { useKeys } from './ui';

const CONTROLS = 'a[href], button:not(:disabled), input, select, textarea, summary, [role=slider], [tabindex="0"]';
const FIELDS = 'input:not([type=checkbox]), select, textarea, [role=slider], [tabindex="0"]';
const LETTERS = 'asdfghjklqwertyuiopzxcvbnm';
const INSET = 3; /* pixels */

interface Hint {
  keys: string;
  element: HTMLElement;
  left: number;
  top: number;
}

/* Whether a click at a place of the control would reach it. */
function isInView(element: HTMLElement): boolean {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  if (right - left < 2 || bottom - top < 2) return false;
  const places: [number, number][] = [
    [(left + right) / 2, (top + bottom) / 2],
    [left + INSET, top + INSET],
    [right - INSET, bottom - INSET],
  ];
  return places.some(([x, y]) => {
    const hit = document.elementFromPoint(x, y);
    return hit && (element.contains(hit) || hit.closest('label')?.contains(element));
  });
}

export function hintsOf(): Hint[] {
  const all = [...document.querySelectorAll<HTMLElement>(CONTROLS)].filter(isInView).slice(0, LETTERS.length ** 2);
  return all.map((element, i) => {
    const { left, top } = element.getBoundingClientRect();
    const second = all.length > LETTERS.length ? LETTERS[Math.floor(i / LETTERS.length)]! : '';
    return { keys: LETTERS[i % LETTERS.length]! + second, element, left: Math.max(0, left), top: Math.max(0, top) };
  });
}

export function Hints() {
  const [hints, setHints] = useState<Hint[]>([]);
  const [typed, setTyped] = useState('');
  useKeys({
    '.': () => {
      setHints(hintsOf());
      setTyped('');
    },
  });
  useLayoutEffect(() => {
    if (!hints.length) return;
    let now = ''; /* a second letter may arrive before the next drawing */
    const close = () => setHints([]);
    const press = (e: KeyboardEvent) => {
      if (e.key === 'Shift' || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      e.stopImmediatePropagation();
      now += e.key.toLowerCase();
      if (!hints.some((hint) => hint.keys.startsWith(now))) return close();
      setTyped(now);
      const found = hints.find((hint) => hint.keys === now);
      if (!found) return;
      close();
      found.element.focus();
      if (!found.element.matches(FIELDS)) found.element.click();
    };
    addEventListener('keydown', press, true);
    for (const name of ['pointerdown', 'wheel', 'resize']) addEventListener(name, close);
    return () => {
      removeEventListener('keydown', press, true);
      for (const name of ['pointerdown', 'wheel', 'resize']) removeEventListener(name, close);
    };
  }, [hints]);
  if (!hints.length) return null;
  return (
    <div class="hints" aria-hidden="true">
      {hints.map(
        ({ keys, left, top }) =>
          keys.startsWith(typed) && <kbd style={{ left: `${left}px`, top: `${top}px` }}>{keys.slice(typed.length)}</kbd>,
      )}
    </div>
  );
}
