/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens and cost up to a moment: over time, by model, by tool. */
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import * as format from './format';
import { upTo, type Model } from './model';
import { toolClass } from './timeline';
import { useTheme } from './ui';

interface ChartProps {
  title: string;
  x: number[];
  y: (number | null)[];
  show: (value: number) => string;
  bars?: boolean;
  time?: boolean;
  color?: string;
}

export function Chart({ title, x, y, show, bars, time = true, color = 'accent' }: ChartProps) {
  const theme = useTheme();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  useLayoutEffect(() => {
    const style = getComputedStyle(box.current!);
    const value = (name: string) => style.getPropertyValue(`--${name}`).trim();
    const axis = {
      stroke: value('dim'),
      font: '11px system-ui',
      grid: { stroke: value('line'), width: 1 },
      ticks: { show: false },
    };
    const make = () =>
      new uPlot(
        {
          width: box.current!.clientWidth,
          height: 150,
          legend: { show: false },
          cursor: { y: false, points: { size: 6 } },
          scales: { x: { time }, y: { range: (_, __, most) => [0, Math.max(most * 1.08, 1e-9)] } },
          axes: [
            time
              ? { ...axis, size: 40, space: 70, values: (_, seconds) => format.ticks(seconds.map((s) => s * 1000)) }
              : { ...axis, size: 26 },
            { ...axis, size: 48, values: (_, ticks) => ticks.map(show) },
          ],
          series: [
            {},
            {
              stroke: value(color),
              fill: value(`${color}-soft`),
              width: 1.5,
              points: { show: false },
              paths: bars ? uPlot.paths.bars!({ size: [0.8, 24] }) : uPlot.paths.stepped!({ align: 1 }),
            },
          ],
          hooks: {
            setCursor: [
              (u) => {
                const i = u.cursor.idx;
                const tip = box.current?.querySelector('.chart-value');
                if (tip)
                  tip.textContent =
                    i == null
                      ? ''
                      : `${time ? `${format.clock(u.data[0][i]! * 1000)}  ` : ''}${show(u.data[1]![i] as number)}`;
              },
            ],
          },
        },
        [x, y],
        box.current!.querySelector<HTMLElement>('.chart-plot')!,
      );
    plot.current = make();
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: box.current!.clientWidth, height: 150 }));
    watch.observe(box.current!);
    return () => {
      watch.disconnect();
      plot.current?.destroy();
    };
  }, [title, theme]);
  useEffect(() => plot.current?.setData([x, y]), [x, y]);
  const most = y.at(-1);
  return (
    <figure class="chart" ref={box}>
      <figcaption>
        {title} <span class="chart-value" />
      </figcaption>
      <div
        class="chart-plot"
        role="img"
        aria-label={`${title}; the last value is ${most == null ? 'unknown' : show(most)}`}
      />
    </figure>
  );
}

export function Bars({
  title,
  rows,
  show,
  note,
}: {
  title: string;
  rows: { name: string; value: number; text?: string; className?: string }[];
  show: (n: number) => string;
  note?: string;
}) {
  const most = Math.max(...rows.map((row) => row.value), 1e-9);
  if (!rows.length) return null;
  return (
    <section class="bars">
      <h2>{title}</h2>
      {rows.map((row) => (
        <div class="bar-row">
          <span class="bar-name" title={row.name}>
            {row.name || 'not said'}
          </span>
          <span class="bar-track">
            <i class={row.className} style={{ width: `${(100 * row.value) / most}%` }} />
          </span>
          <span class="bar-value">{row.text ?? show(row.value)}</span>
        </div>
      ))}
      {note && <p class="dim">{note}</p>}
    </section>
  );
}

const MOST_POINTS = 4000;

export function ChartsPanel({ model, at }: { model: Model; at: number }) {
  const n = upTo(model.usageSeq, at);
  const used = model.usage.slice(0, n);
  const step = Math.max(1, Math.ceil(n / MOST_POINTS));
  const picked = used.map((_, i) => i).filter((i) => i % step === 0 || i === n - 1);
  const requests = picked.filter((i) => used[i]!.input > 0);
  const seconds = (i: number) => used[i]!.time / 1000;
  const hasCost = n > 0 && model.cost[n - 1] !== null;
  const byModel = new Map<string, { tokens: number; cost: number | null }>();
  const sum = { input: 0, output: 0, cached: 0, written: 0 };
  for (const use of used) {
    const was = byModel.get(use.model) ?? { tokens: 0, cost: null };
    byModel.set(use.model, {
      tokens: was.tokens + use.input + use.output,
      cost: use.cost === null ? was.cost : (was.cost ?? 0) + use.cost,
    });
    sum.input += use.input;
    sum.output += use.output;
    sum.cached += use.cached;
    sum.written += use.written;
  }
  const byTool = new Map<string, { calls: number; failed: number; ms: number }>();
  for (const call of model.calls) {
    if (call.seq > at) break;
    const was = byTool.get(call.tool) ?? { calls: 0, failed: 0, ms: 0 };
    const known = model.known(call, at);
    byTool.set(call.tool, {
      calls: was.calls + 1,
      failed: was.failed + (known && call.failed ? 1 : 0),
      ms: was.ms + (known ? (call.took ?? 0) : 0),
    });
  }
  const models = [...byModel].sort((a, b) => b[1].tokens - a[1].tokens);
  const tools = [...byTool].sort((a, b) => b[1].calls - a[1].calls);
  return (
    <div class="charts">
      {n === 0 && <p class="dim">No tokens were counted {at === Infinity ? '' : 'up to here'}</p>}
      {n > 1 && (
        <Chart
          title="Tokens, cumulative"
          x={picked.map(seconds)}
          y={picked.map((i) => model.tokens[i]!)}
          show={format.compact}
        />
      )}
      {n > 1 && hasCost && (
        <Chart
          title="Cost, cumulative"
          x={picked.map(seconds)}
          y={picked.map((i) => model.cost[i] ?? 0)}
          show={format.money}
          color="good"
        />
      )}
      {requests.length > 1 && (
        <Chart
          title="Input of each request"
          x={requests.map((_, i) => i + 1)}
          y={requests.map((i) => used[i]!.input)}
          show={format.compact}
          bars
          time={false}
          color="user"
        />
      )}
      {n > 0 && (
        <Bars
          title="Kinds of tokens"
          show={format.compact}
          rows={[
            { name: 'input, new', value: Math.max(0, sum.input - sum.cached - sum.written) },
            { name: 'read from cache', value: sum.cached },
            { name: 'written to cache', value: sum.written },
            { name: 'output', value: sum.output },
          ].filter((row) => row.value > 0)}
        />
      )}
      <Bars
        title="By model"
        show={format.compact}
        rows={models.map(([name, m]) => ({
          name,
          value: m.tokens,
          text: `${format.compact(m.tokens)}${m.cost === null ? '' : `  ${format.money(m.cost)}`}`,
        }))}
      />
      <Bars
        title="By tool"
        show={format.count}
        rows={tools
          .slice(0, 30)
          .map(([name, t]) => ({
            name,
            value: t.calls,
            className: toolClass(name),
            text: `${format.count(t.calls)}${t.failed ? ` (${format.count(t.failed)} failed)` : ''}${t.ms ? `, ${format.duration(t.ms)}` : ''}`,
          }))}
      />
    </div>
  );
}
