/* SPDX-License-Identifier: Apache-2.0 */
/* Replays a session: event by event, at the original pace or faster. */
import { useEffect, useRef } from 'preact/hooks';
import * as format from './format';
import { upTo, type Model, type Turn } from './model';
import { Button } from './ui';

export const SPEEDS = [1, 2, 5, 10, 20, 50, 100];

/* The longest wait for a pause of the session. */
const LONGEST_WAIT_MS = 4000;
const FRAME_MS = 16;

/* Call `choose` with each event in turn; Infinity at the end. */
export function usePlay(
  model: Model | null,
  at: number,
  playing: boolean,
  speed: number,
  choose: (seq: number) => void,
): void {
  const place = useRef(at);
  place.current = at;
  useEffect(() => {
    if (!playing || !model) return;
    let timer: ReturnType<typeof setTimeout>;
    let saved = 0; /* sum of waits shorter than a frame */
    const next = (i: number): number => {
      if (i + 1 >= model.items.length) return Infinity;
      const passed =
        model.time[model.items[i + 1]!]! - (i < 0 ? model.time[model.items[0]!]! : model.time[model.items[i]!]!);
      return Math.min(LONGEST_WAIT_MS, Math.max(passed || 0, 60)) / speed;
    };
    const step = () => {
      let i = place.current === Infinity ? -1 : upTo(model.itemSeq, place.current) - 1;
      do {
        i++;
        const wait = next(i);
        if (i >= model.items.length - 1 || wait === Infinity) return choose(Infinity);
        saved += wait;
      } while (saved < FRAME_MS);
      choose(model.itemSeq[i]!);
      timer = setTimeout(step, saved);
      saved = 0;
    };
    timer = setTimeout(step, FRAME_MS);
    return () => clearTimeout(timer);
  }, [playing, model, speed]);
}

/* The destinations of the steps. */
export const steps = {
  event(model: Model, at: number, by: number): number {
    const n = at === Infinity ? model.itemSeq.length : upTo(model.itemSeq, at);
    const to = n - 1 + by;
    return to >= model.itemSeq.length - 1 ? Infinity : model.itemSeq[Math.max(0, to)]!;
  },
  /* To the end of a turn, when all its events are known. */
  turn(model: Model, at: number, by: number): number {
    const ends = model.turns.slice(1).map((turn) => model.seq[Math.max(0, model.index(turn.seq) - 1)]!);
    return ends.length || by < 0 ? steps.among(ends, at, by) : Infinity;
  },
  /* To a text of the user. */
  prompt(model: Model, at: number, by: number): number {
    return steps.among(prompts(model), at, by);
  },
  failure(model: Model, at: number, by: number): number {
    return steps.among(model.failures(), at === Infinity && by > 0 ? 0 : at, by);
  },
  among(places: number[], at: number, by: number): number {
    if (!places.length) return at;
    const n = by > 0 ? upTo(places, at) : upTo(places, at - 1) - 1;
    return by > 0 ? (places[n] ?? Infinity) : (places[n] ?? places[0] ?? at);
  },
};

/* The turns that the user began, not a program that the agent waited for. */
export const prompted = (model: Model): Turn[] => model.turns.filter((turn) => !turn.byProgram);

/* A turn begins with the user's message; a log without turns has none. */
export function prompts(model: Model): number[] {
  return prompted(model).map((turn) => {
    const n = upTo(model.itemSeq, turn.seq);
    return model.itemSeq[n] ?? turn.seq;
  });
}

interface Props {
  model: Model;
  at: number;
  playing: boolean;
  speed: number;
  choose: (seq: number) => void;
  play: (on: boolean) => void;
  setSpeed: (speed: number) => void;
  lanesOpen: boolean;
  setLanes: (open: boolean) => void;
}

export function Controls({ model, at, playing, speed, choose, play, setSpeed, lanesOpen, setLanes }: Props) {
  const now = at === Infinity;
  const seq = now ? model.last : at;
  const used = model.used(now ? Infinity : at);
  const turn = model.turnAt(seq);
  const failure = now ? 0 : model.failures().indexOf(at) + 1;
  const known = now ? model.seq.length : upTo(model.seq, at);
  return (
    <div class="controls">
      <div class="buttons" role="group" aria-label="Replay">
        <Button
          icon="backTurn"
          label="Previous prompt"
          hint="Shift ←"
          onClick={() => choose(steps.prompt(model, at, -1))}
        />
        <Button icon="back" label="Previous event" hint="←" onClick={() => choose(steps.event(model, at, -1))} />
        <button
          class="play"
          aria-label={playing ? 'Pause' : 'Play'}
          title={playing ? 'Pause (space)' : now ? 'Play from the beginning (space)' : 'Play (space)'}
          onClick={() => play(!playing)}
        >
          <svg class="icon solid" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
            <path d={playing ? 'M4.5 3.5h2.6v9H4.5zM8.9 3.5h2.6v9H8.9z' : 'M5 3.5v9l7.5-4.5z'} />
          </svg>
        </button>
        <Button icon="next" label="Next event" hint="→" onClick={() => choose(steps.event(model, at, 1))} />
        <Button icon="nextTurn" label="Next prompt" hint="Shift →" onClick={() => choose(steps.prompt(model, at, 1))} />
        <label class="speed">
          <span class="hidden-label">Speed</span>
          <select value={speed} onChange={(e) => setSpeed(Number(e.currentTarget.value))}>
            {SPEEDS.map((s) => (
              <option value={s}>{s}×</option>
            ))}
          </select>
        </label>
      </div>
      <p class="moment" aria-live="off">
        <b>{model.session.time_from ? `event ${format.count(seq)}` : format.moment(model.timeOf(seq))}</b>
        <span class="only-wide">
          event {format.count(known)} of {format.count(model.seq.length)}
        </span>
        {turn && <span class="only-wide">turn {turn.number}</span>}
        {used.tokens > 0 && <span>{format.compact(used.tokens)} tokens</span>}
        {used.cost !== null && (
          <span title={used.computed ? 'at least in part computed from list prices' : undefined}>
            {format.cost(used.cost, used.computed)}
          </span>
        )}
        {failure > 0 && (
          <span>
            failure {format.count(failure)} of {format.count(model.failures().length)}
          </span>
        )}
      </p>
      <button
        class={now ? 'now on' : 'now'}
        aria-pressed={now}
        onClick={() => choose(Infinity)}
        title="Show everything, and follow new events (End)"
      >
        {now ? (
          'Now'
        ) : (
          <>
            <span class="only-wide">Back to </span>now
          </>
        )}
      </button>
      <button
        class="link lanes-toggle"
        aria-pressed={lanesOpen}
        onClick={() => setLanes(!lanesOpen)}
        title="Show the lanes of the agents (t)"
      >
        {lanesOpen ? 'Hide timeline' : 'Timeline'}
      </button>
    </div>
  );
}
