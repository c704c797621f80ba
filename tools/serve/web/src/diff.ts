/* SPDX-License-Identifier: Apache-2.0 */
/* Compares lines, for the cards of edits. */

export interface Line {
  mark: '+' | '-' | ' ' | '@';
  text: string;
}

/* The maximum number of pairs of lines to compare; larger texts are shown one below the other. */
const MOST_PAIRS = 400_000;

export function diffLines(before: string, after: string): Line[] {
  const a = before === '' ? [] : before.split('\n');
  const b = after === '' ? [] : after.split('\n');
  /* The end of the last line is not a line. */
  if (a.at(-1) === '' && b.at(-1) === '') {
    a.pop();
    b.pop();
  }
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const same = (text: string): Line => ({ mark: ' ', text });
  return [
    ...a.slice(0, head).map(same),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...a.slice(a.length - tail).map(same),
  ];
}

function middle(a: string[], b: string[]): Line[] {
  const lines: Line[] = [];
  if (a.length * b.length > MOST_PAIRS) {
    for (const text of a) lines.push({ mark: '-', text });
    for (const text of b) lines.push({ mark: '+', text });
    return lines;
  }
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ mark: ' ', text: a[i]! });
      i++;
      j++;
    } else if (i < a.length && (j === b.length || common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) {
      lines.push({ mark: '-', text: a[i++]! });
    } else {
      lines.push({ mark: '+', text: b[j++]! });
    }
  }
  return lines;
}

/* Parse a patch from git, diff or Codex's apply_patch; null if it is not a patch. */
export function parsePatch(text: string): Line[] | null {
  if (!/^(diff --git |--- |\*\*\* Begin Patch|@@ )/m.test(text) || !/^[+-]/m.test(text)) return null;
  return text
    .replace(/\n$/, '')
    .split('\n')
    .filter((line) => !/^\*\*\* (Begin|End) Patch$/.test(line))
    .map((line) => {
      if (/^(@@|\*\*\* |diff --git|index [0-9a-f]|--- |\+\+\+ )/.test(line))
        return { mark: '@', text: line.replace(/^\*\*\* /, '') };
      if (line[0] === '+' || line[0] === '-') return { mark: line[0], text: line.slice(1) };
      return { mark: ' ', text: line.replace(/^ /, '') };
    });
}
