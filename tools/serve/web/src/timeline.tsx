/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slider with the timeline below it. The axis shows the whole session with shortened pauses (model.ts), so that a
 * session of several days is readable. Each agent has a lane. Dragging the slider selects a moment, dragging in the
 * lanes zooms.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Session } from './api';
import * as format from './format';
import { time, upTo, type Model } from './model';
import { link } from './route';
import { objects } from './api';
import { useApp, useKeys, useTheme } from './ui';

const SLIDER = 34;
const LANE = 26;
const MOST_LANES = 8;

interface Bar {
  from: number; /* on the axis */
  to: number;
  row: number;
  tool: string;
  failed: boolean;
  took: number | null;
  seq: number; /* in this session; 0 for a sub-agent */
  known: number; /* on the axis: time when its end was known */
}

interface Lane {
  name: string;
  href?: string;
  bars: Bar[];
  spans: { from: number; to: number; first: number }[];
}

const ROWS = 3;

type ToolClass = 'shell' | 'edit' | 'read' | 'agent' | 'tool';

const classes = new Map<string, ToolClass>();

export function toolClass(tool: string): ToolClass {
  let found = classes.get(tool);
  if (!found) classes.set(tool, (found = classify(tool)));
  return found;
}

function classify(tool: string): ToolClass {
  if (/bash|shell|exec|terminal|command|python/i.test(tool)) return 'shell';
  if (/edit|write|patch|replace|create/i.test(tool)) return 'edit';
  if (/read|grep|glob|search|find|fetch|ls|list|view|cat/i.test(tool)) return 'read';
  if (/task|agent/i.test(tool)) return 'agent';
  return 'tool';
}

/* Map a time to the axis. Times of imported logs may decrease, so the maximum is used. */
function timeScale(model: Model): (at: number) => number {
  const greatest: number[] = [];
  for (const at of model.time) greatest.push(Math.max(greatest.at(-1) ?? -Infinity, Number.isNaN(at) ? -Infinity : at));
  return (at) => {
    const i = upTo(greatest, at) - 1;
    if (i < 0) return 0;
    const here = model.axis[i]!;
    return Math.min(here + (at - greatest[i]!), model.axis[i + 1] ?? here);
  };
}

/* Put overlapping bars into separate rows, as long as rows are free. */
function stack(bars: Bar[]): Bar[] {
  const ends: number[] = new Array(ROWS).fill(-1);
  for (const bar of bars) {
    let row = ends.findIndex((end) => end <= bar.from);
    if (row < 0) row = ends.indexOf(Math.min(...ends));
    bar.row = row;
    ends[row] = bar.to;
  }
  return bars;
}

function mainLane(model: Model): Lane {
  const end = model.axis.at(-1) ?? 0;
  const place = (seq: number): number => model.axis[Math.max(0, model.index(seq))] ?? end;
  const bars = model.calls.map((call) => {
    const next = call.result === Infinity ? model.turns.find((turn) => turn.seq > call.seq) : undefined;
    const to = next ? place(next.seq - 1) : call.result === Infinity ? end : place(call.result);
    return {
      from: place(call.seq),
      to,
      row: 0,
      tool: call.tool,
      failed: call.failed,
      took: call.took,
      seq: call.seq,
      known: to,
    };
  });
  const spans = model.turns.map((turn, i) => {
    const next = model.turns[i + 1];
    const last = next ? place(next.seq - 1) : end;
    return { from: place(turn.seq), to: last, first: place(turn.answer === Infinity ? turn.seq : turn.answer) };
  });
  return { name: model.session.agent_id || 'agent', bars: stack(bars), spans };
}

function useLanes(model: Model): Lane[] {
  const { source } = useApp();
  const [below, setBelow] = useState<Map<string, any[]>>(new Map());
  const children = model.children.slice(0, MOST_LANES - 1);
  useEffect(() => {
    let current = true;
    for (const child of children)
      source.tools(child.session_id, 1).then(
        (table) => current && setBelow((old) => new Map(old).set(child.session_id, objects(table))),
        () => {},
      );
    return () => {
      current = false;
    };
  }, [children.map((c) => c.session_id).join()]);
  return useMemo(() => {
    const scale = children.length ? timeScale(model) : () => 0;
    const childLane = (s: Session): Lane => {
      const bars = (below.get(s.session_id) ?? []).map((row: any) => {
        const [from, to] = [scale(time(row.called_at)), scale(time(row.returned_at ?? row.called_at))];
        return {
          from,
          to,
          row: 0,
          tool: row.tool ?? '',
          failed: row.status === 'failed',
          took: row.duration_ms ?? time(row.returned_at) - time(row.called_at),
          seq: 0,
          known: to,
        };
      });
      const [from, to] = [scale(time(s.created_at)), scale(time(s.last_activity_at))];
      return {
        name: s.title ?? s.session_id,
        href: link('s', s.session_id),
        bars: stack(bars),
        spans: [{ from, to, first: from }],
      };
    };
    return model.seq.length ? [mainLane(model), ...children.filter((c) => !c.fork_session_id).map(childLane)] : [];
  }, [model, model.shape, below, children.length]);
}

type Colors = (name: string) => string;

/* The colours of the style, each read once. */
function colors(element: Element): Colors {
  const style = getComputedStyle(element);
  const known = new Map<string, string>();
  return (name) => {
    let color = known.get(name);
    if (color === undefined) known.set(name, (color = style.getPropertyValue(`--${name}`).trim()));
    return color;
  };
}

interface Props {
  model: Model;
  at: number; /* seq; Infinity for now */
  reading: number | null; /* seq of the first row in view */
  choose: (seq: number) => void;
  lanesOpen: boolean;
}

interface View {
  from: number;
  to: number;
}

export function Timeline({ model, at, reading, choose, lanesOpen }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [zoom, setZoom] = useState<View | null>(null);
  const [drag, setDrag] = useState<{ kind: 'moment' | 'zoom'; from: number; to: number } | null>(null);
  const [hover, setHover] = useState<{ x: number; text: string } | null>(null);
  const lanes = useLanes(model);
  const shownLanes = lanesOpen ? lanes : [];
  const end = Math.max(1, model.axis.at(-1) ?? 1);
  const view = zoom ?? { from: 0, to: end };
  const height = SLIDER + shownLanes.length * LANE;
  const x = (place: number): number => ((place - view.from) / (view.to - view.from)) * width;
  const place = (px: number): number => view.from + (px / Math.max(1, width)) * (view.to - view.from);
  const cursor = at === Infinity ? end : (model.axis[Math.max(0, model.index(at))] ?? end);

  useLayoutEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(entry!.contentRect.width));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);

  const theme = useTheme();
  /* The whole session as known and as unknown: a moment shows a part of each. */
  const layers = useRef<{ key: unknown[]; known: HTMLCanvasElement; later: HTMLCanvasElement } | null>(null);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context || !width) return;
    const scale = devicePixelRatio || 1;
    const key = [width, height, model, model.shape, view.from, view.to, lanes, lanesOpen, theme, scale];
    const old = layers.current;
    if (!old || old.key.some((part, i) => part !== key[i])) {
      const make = (known: boolean): HTMLCanvasElement => {
        const layer = document.createElement('canvas');
        [layer.width, layer.height] = [width * scale, height * scale];
        const c = layer.getContext('2d')!;
        c.scale(scale, scale);
        drawAll(c, known, colors(box.current!));
        return layer;
      };
      layers.current = { key, known: make(true), later: make(false) };
    }
    if (canvas.current!.width !== Math.floor(width * scale) || canvas.current!.height !== Math.floor(height * scale)) {
      canvas.current!.width = width * scale;
      canvas.current!.height = height * scale;
    }
    context.setTransform(scale, 0, 0, scale, 0, 0);
    drawMoment(context, layers.current!, colors(box.current!));
  }, [width, height, model.shape, model.noted, view.from, view.to, cursor, reading, drag, lanes, theme]);

  function drawMoment(
    c: CanvasRenderingContext2D,
    { known, later }: { known: HTMLCanvasElement; later: HTMLCanvasElement },
    color: Colors,
  ): void {
    const px = Math.round(Math.min(width - 1, Math.max(0, x(cursor))));
    const part = (layer: HTMLCanvasElement, from: number, to: number) => {
      if (to <= from) return;
      c.save();
      c.beginPath();
      c.rect(from, 0, to - from, height);
      c.clip();
      c.drawImage(layer, 0, 0, width, height);
      c.restore();
    };
    c.clearRect(0, 0, width, height);
    part(known, 0, px + 1);
    part(later, px + 1, width);
    /* A call that is still running at this moment has not failed. */
    shownLanes.forEach((lane, n) => {
      for (const bar of lane.bars) {
        if (!bar.failed || bar.from > cursor || bar.known <= cursor || bar.known < view.from) continue;
        c.fillStyle = color(toolClass(bar.tool));
        c.fillRect(x(bar.from), SLIDER + n * LANE + 5 + bar.row * 6, Math.max(2, x(cursor) - x(bar.from)), 5);
      }
    });
    if (drag?.kind === 'zoom') {
      c.fillStyle = color('select');
      c.fillRect(Math.min(x(drag.from), x(drag.to)), SLIDER, Math.abs(x(drag.to) - x(drag.from)), height - SLIDER);
    }
    for (const { event_seq } of model.things) {
      if (!event_seq || event_seq > at) continue;
      const noted = x(model.axis[Math.max(0, model.index(event_seq))] ?? 0);
      c.fillStyle = color('accent');
      c.beginPath();
      c.moveTo(noted - 4, 0);
      c.lineTo(noted + 4, 0);
      c.lineTo(noted, 7);
      c.fill();
    }
    if (reading !== null) {
      c.fillStyle = color('dim');
      c.fillRect(x(model.axis[Math.max(0, model.index(reading))] ?? 0), 0, 1, height);
    }
    c.fillStyle = color('accent');
    c.fillRect(px - 1, 2, 2, height - 2);
    c.beginPath();
    c.arc(Math.min(width - 5, Math.max(5, px)), 7, 5, 0, 7);
    c.fill();
  }

  function drawAll(c: CanvasRenderingContext2D, known: boolean, color: Colors): void {
    /* The density of events, in columns of four pixels. */
    const columns = new Float32Array(Math.ceil(width / 4));
    const [begin, stop] = [Math.max(0, upTo(model.axis, view.from) - 1), upTo(model.axis, view.to)];
    for (let i = begin; i < stop; i++) {
      const column = Math.floor(x(model.axis[i]!) / 4);
      if (model.kinds[model.type[i]!] !== 'hidden' && column >= 0 && column < columns.length) columns[column]!++;
    }
    const most = Math.sqrt(Math.max(...columns, 1));
    c.fillStyle = color(known ? 'bar' : 'bar-later');
    columns.forEach((n, i) => {
      const tall = 3 + (Math.sqrt(n) / most) * (SLIDER - 14);
      if (n) c.fillRect(i * 4, SLIDER - 5 - tall, 3, tall);
    });
    c.fillStyle = color('line');
    c.fillRect(0, SLIDER - 4, width, 1);
    /* Prompts, unless they are too dense to be distinguished. */
    c.fillStyle = color('user');
    c.globalAlpha = known ? 1 : 0.35;
    const ticks = model.turns
      .map((turn) => x(model.axis[Math.max(0, model.index(turn.seq))] ?? 0))
      .filter((px) => px > -2 && px < width + 1);
    if (ticks.length < width / 6) for (const px of ticks) c.fillRect(px, SLIDER - 9, 2, 9);
    shownLanes.forEach((lane, n) => drawLane(c, lane, SLIDER + n * LANE, known, color));
  }

  function drawLane(c: CanvasRenderingContext2D, lane: Lane, top: number, known: boolean, color: Colors): void {
    c.globalAlpha = 1;
    c.fillStyle = color('line');
    c.fillRect(0, top, width, 1);
    c.globalAlpha = known ? 1 : 0.28;
    const fill = (from: number, to: number, y: number, tall: number, name: string, least: number) => {
      if (to < view.from || from > view.to) return;
      const [a, b] = [Math.max(-2, x(from)), Math.min(width + 2, x(to))];
      c.fillStyle = color(name);
      c.fillRect(a, y, Math.max(least, b - a), tall);
    };
    for (const span of lane.spans) {
      fill(span.from, span.to, top + 3, LANE - 5, 'span', 1);
      if (span.first > span.from) fill(span.from, span.first, top + 3, LANE - 5, 'first', 0);
    }
    /* One call per pixel is enough, unless a call failed. */
    const last = new Array(ROWS).fill(-9);
    for (const bar of lane.bars) {
      const px = Math.round(x(bar.from));
      if (px === last[bar.row] && !(known && bar.failed) && x(bar.to) - px < 2) continue;
      last[bar.row] = px;
      fill(bar.from, bar.to, top + 5 + bar.row * 6, 5, known && bar.failed ? 'bad' : toolClass(bar.tool), 2);
    }
  }

  const seqAt = (px: number): number => {
    const where = place(px);
    if (where >= end) return Infinity;
    return model.seq[Math.max(0, upTo(model.axis, where) - 1)] ?? Infinity;
  };
  const where = (e: PointerEvent): [number, number] => {
    const rect = box.current!.getBoundingClientRect();
    return [e.clientX - rect.left, e.clientY - rect.top];
  };

  function down(e: PointerEvent): void {
    if (e.button !== 0) return;
    const [px, py] = where(e);
    box.current!.setPointerCapture(e.pointerId);
    setHover(null);
    if (py < SLIDER) {
      setDrag({ kind: 'moment', from: px, to: px });
      choose(seqAt(px));
    } else setDrag({ kind: 'zoom', from: place(px), to: place(px) });
  }
  function move(e: PointerEvent): void {
    const [px, py] = where(e);
    if (drag?.kind === 'moment') choose(seqAt(Math.min(width, Math.max(0, px))));
    else if (drag) setDrag({ ...drag, to: Math.min(end, Math.max(0, place(px))) });
    else setHover({ x: px, text: tip(px, py) });
  }
  function up(e: PointerEvent): void {
    const [px] = where(e);
    if (drag?.kind === 'zoom') {
      const [from, to] = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
      if (x(to) - x(from) > 6) setZoom({ from, to });
      else choose(seqAt(px));
    }
    setDrag(null);
  }
  function zoomBy(factor: number, center: number): void {
    const span = view.to - view.from;
    const next = Math.min(end, Math.max(50, span * factor));
    const from = Math.max(0, Math.min(end - next, center - ((center - view.from) / span) * next));
    setZoom(next >= end ? null : { from, to: from + next });
  }
  useKeys({ i: () => zoomBy(1 / 2, cursor), o: () => zoomBy(2, cursor) });
  function wheel(e: WheelEvent): void {
    if (!e.ctrlKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY)) return;
    e.preventDefault();
    const rect = box.current!.getBoundingClientRect();
    const span = view.to - view.from;
    if (e.ctrlKey) {
      zoomBy(Math.exp(e.deltaY / 300), place(e.clientX - rect.left));
    } else if (zoom) {
      const from = Math.max(0, Math.min(end - span, view.from + (e.deltaX / width) * span));
      setZoom({ from, to: from + span });
    }
  }
  useEffect(() => {
    const node = box.current!;
    node.addEventListener('wheel', wheel, { passive: false });
    return () => node.removeEventListener('wheel', wheel);
  });

  function tip(px: number, py: number): string {
    const index = Math.max(0, upTo(model.axis, place(px)) - 1);
    const lane = shownLanes[Math.floor((py - SLIDER) / LANE)];
    const near = place(3) - place(0);
    const bar =
      py >= SLIDER
        ? lane?.bars.find((b) => b.from - near <= place(px) && place(px) <= Math.max(b.to, b.from + near))
        : undefined;
    if (bar && bar.known > cursor) return bar.from > cursor ? bar.tool : `${bar.tool}, running`;
    if (bar) return `${bar.tool} ${format.duration(bar.took)}${bar.failed ? ', failed' : ''}`;
    const span =
      py >= SLIDER
        ? lane?.spans.find((s) => s.first > s.from && s.first <= cursor && s.from <= place(px) && place(px) <= s.first)
        : undefined;
    if (span)
      return `waiting ${format.duration(model.time[upTo(model.axis, span.first) - 1]! - model.time[upTo(model.axis, span.from) - 1]!)} for the first answer`;
    return `${format.moment(model.time[index] ?? NaN)} · event ${format.count(model.seq[index])}`;
  }

  const step = (by: number): void => {
    const from = at === Infinity ? model.items.length : upTo(model.itemSeq, at);
    choose(model.itemSeq[Math.max(0, Math.min(model.itemSeq.length - 1, from - 1 + by))] ?? Infinity);
  };
  const n = at === Infinity ? model.seq.length : model.index(at) + 1;
  return (
    <div class="timeline">
      {lanesOpen && shownLanes.length > 0 && (
        <div class="lane-names" style={{ paddingTop: `${SLIDER}px` }}>
          {shownLanes.map((lane) =>
            lane.href ? (
              <a href={lane.href} title={lane.name}>
                {lane.name}
              </a>
            ) : (
              <span>{lane.name}</span>
            ),
          )}
        </div>
      )}
      <div
        class="timeline-box"
        ref={box}
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={up}
        onPointerCancel={() => setDrag(null)}
        onPointerLeave={() => setHover(null)}
        onDblClick={() => setZoom(null)}
      >
        <canvas ref={canvas} style={{ height: `${height}px`, width: '100%' }} aria-hidden="true" />
        <div
          class="slider"
          role="slider"
          tabIndex={0}
          aria-label="Moment of the session"
          aria-valuemin={1}
          aria-valuemax={Math.max(1, model.seq.length)}
          aria-valuenow={Math.max(1, n)}
          aria-valuetext={
            at === Infinity ? 'now' : `event ${n} of ${model.seq.length}, ${format.moment(model.timeOf(at))}`
          }
          style={{ height: `${SLIDER}px` }}
          onKeyDown={(e) => {
            const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -20, PageUp: 20 }[e.key];
            if (e.key === 'Home') choose(model.itemSeq[0] ?? 1);
            else if (e.key === 'End') choose(Infinity);
            else if (by === undefined || e.shiftKey) return;
            else step(by);
            e.preventDefault();
          }}
        />
        {hover && (
          <div class="tip" style={{ left: `${Math.min(Math.max(hover.x, 90), Math.max(90, width - 90))}px` }}>
            {hover.text}
          </div>
        )}
        {zoom && (
          <button class="unzoom" onPointerDown={(e) => e.stopPropagation()} onClick={() => setZoom(null)}>
            Whole session
          </button>
        )}
      </div>
    </div>
  );
}
