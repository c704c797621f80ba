/* SPDX-License-Identifier: Apache-2.0 */
/* TanStack's Virtualizer as a hook of Preact: only visible rows are in the document. */
import {
  elementScroll,
  measureElement,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from '@tanstack/virtual-core';
import { useLayoutEffect, useReducer, useState } from 'preact/hooks';

type Options = Pick<
  VirtualizerOptions<HTMLElement, HTMLElement>,
  'count' | 'getScrollElement' | 'estimateSize' | 'overscan' | 'getItemKey' | 'anchorTo' | 'followOnAppend'
>;

export type List = Virtualizer<HTMLElement, HTMLElement>;

export function useVirtual(options: Options): List {
  const [, draw] = useReducer((n: number) => n + 1, 0);
  const all = {
    ...options,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    measureElement,
    onChange: () => draw(undefined),
  };
  const [list] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(all));
  list.setOptions(all);
  useLayoutEffect(() => list._didMount(), [list]);
  useLayoutEffect(() => list._willUpdate());
  return list;
}
